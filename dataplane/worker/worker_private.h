// SPDX-License-Identifier: Apache-2.0
// Between worker.c, worker_loop.c and worker_set.c. Master only.
#pragma once

#include <stdint.h>

#include "base/error.h"

#define SETTLE_MS 20 // that a change waits for those who follow it

struct worker;

int worker_start(struct worker *w); // returns once its thread runs on its CPU, or says why it cannot: -errno
int worker_check_cpu(unsigned cpu, struct error *err);
int worker_check_ring_size(uint32_t size, struct error *err);
