// SPDX-License-Identifier: Apache-2.0
// Between the files of a worker's life. Master only, where nothing else is said.
#pragma once

#include <stdint.h>

#include "base/error.h"

#define SETTLE_MS 20 // that a change waits for those who follow it

struct worker;

int worker_start(struct worker *w); // returns once its thread runs on its CPU, or says why it cannot: -errno
int worker_check_cpu(unsigned cpu, struct error *err);
int worker_check_ring_size(uint32_t size, struct error *err);

// worker_loop.c: what the listeners say, and what they are told.
bool worker_unfinished(const struct worker *w); // on the worker
void worker_tell_set(const struct worker *leaving);
