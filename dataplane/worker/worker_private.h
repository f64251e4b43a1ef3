// SPDX-License-Identifier: Apache-2.0
// Private to worker/: shared by the files worker*.c. Master only, unless stated otherwise.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define SETTLE_MS 20 // longest wait for workers to follow a change

struct worker;

// The same as worker_del_all(), with another time to wait. If it returns false, nothing was freed, and it can be called
// again: worker_ended says whose threads have ended.
bool worker_end_all(unsigned ms);
extern bool worker_ended[];

int worker_start(struct worker *w); // returns 0 once its thread runs on its CPU, or -errno
int worker_check_cpu(unsigned cpu, enum idle_policy idle, struct error *err);

// worker_loop.c: a closed gate keeps workers that begin from their loops. worker_gate_look(): one of them has to stop.
void worker_gate_set(bool closed);
void worker_gate_look(void);

// worker_loop.c: calls the listeners.
bool worker_unfinished(const struct worker *w); // on the worker
void worker_notify_set(const struct worker *leaving);
