// SPDX-License-Identifier: Apache-2.0
// What a worker does after empty polls. Private to worker/.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/field_limits.h"

#define SLEEP_MAX_US LIMIT_WORKER_SLEEP_MAX_US_DEFAULT

struct worker;

struct idle {
	// Worker: rw.
	uint64_t empty_since; // TSC of the first empty poll, 0 = the last one brought packets
	bool armed;           // its queues wake it (wait.h)
	uint32_t nap_ns;      // length of its next sleep
	// Master: wo, worker: ro.
	uint32_t sleep_max_us;
};

void idle_enter(void);                   // on the worker's own thread
void worker_idle(struct worker *w);      // after an empty poll
void worker_idle_over(struct worker *w); // after the first poll that brought something, and at the end
