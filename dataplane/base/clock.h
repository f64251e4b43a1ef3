// SPDX-License-Identifier: Apache-2.0
// The time, for what a test must be able to step through: clock_now() is the TSC and clock_now_ns() one of the kernel's
// clocks, unless a test has stopped them.
#pragma once

#include <stdint.h>
#include <time.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>

// The times at which a test has stopped all clocks; 0: they run. Nothing but a test writes these.
extern uint64_t clock_stopped;    // TSC
extern uint64_t clock_stopped_ns; // of every clockid_t

static inline uint64_t clock_now(void)
{
	return likely(clock_stopped == 0) ? rte_rdtsc() : clock_stopped;
}

static inline uint64_t clock_now_ns(clockid_t clock)
{
	struct timespec ts;

	if (unlikely(clock_stopped_ns != 0))
		return clock_stopped_ns;
	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
