// SPDX-License-Identifier: Apache-2.0
// What a worker has counted, second by second for the last two minutes and minute by minute for the last two hours: the
// usual rate and cost of its packets, for comparisons. Master thread.
#pragma once

#include <stdint.h>

#define HISTORY_SAMPLES 128

struct history_sample { // counters since the worker began
	uint64_t tsc;
	uint64_t packets, loops, busy_loops, busy_cycles, idle_cycles;
	uint64_t waited_ns; // ready to run while another thread had its CPU
};

struct history {
	uint32_t n_seconds, n_minutes; // written; the rings hold the last ones
	struct history_sample seconds[HISTORY_SAMPLES], minutes[HISTORY_SAMPLES];
};

// Adds the sample of a second; it is kept for longer if the last one that was is a minute old.
void history_add(struct history *h, const struct history_sample *s, uint64_t tsc_hz);
// Copies the samples in order of time. Returns how many.
unsigned history_read(const struct history *h, struct history_sample out[2 * HISTORY_SAMPLES]);
