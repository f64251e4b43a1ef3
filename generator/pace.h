// SPDX-License-Identifier: Apache-2.0
// Pacing: the number of frames of a stream that are due after a number of cycles.
#pragma once

#include <stdint.h>

#include <rte_common.h>

#define PACE_WIRE_BPS 25e9    // frames of a burst are spaced as on a wire of this speed
#define PACE_WIRE_OVERHEAD 24 // bytes per frame on the wire: FCS, preamble and gap

struct pace {
	uint64_t step;    // frames per cycle, 64 bits of fraction
	uint32_t burst;   // frames per burst, 1: no bursts
	uint64_t spacing; // cycles between two frames of a burst
	uint64_t limit;   // frames in all
};

// Rates are capped at half a frame per cycle.
static inline struct pace pace_of(double per_second, double hz, uint32_t burst, double frame_size, uint64_t limit)
{
	struct pace p = {.burst = burst, .limit = limit};

	p.step = (uint64_t)(RTE_MIN(per_second / hz, 0.5) * 18446744073709551616.0);
	if (p.step > 0)
		p.step += (p.step >> 50) + 1; // rounded up, so that the last frame is not late
	p.spacing = RTE_MAX((uint64_t)1, (uint64_t)((frame_size + PACE_WIRE_OVERHEAD) * 8 / PACE_WIRE_BPS * hz));
	return p;
}

static inline uint64_t pace_due(const struct pace *p, uint64_t cycles)
{
	uint64_t due = (uint64_t)((unsigned __int128)cycles * p->step >> 64), bursts, since;
	unsigned __int128 begin; // of the current burst

	if (p->burst > 1) {
		bursts = due / p->burst;
		begin = (unsigned __int128)(bursts * p->burst) << 64;
		since = cycles - (uint64_t)((begin + p->step - 1) / p->step);
		due = bursts * p->burst + RTE_MIN((uint64_t)p->burst, (since + p->spacing - 1) / p->spacing);
	}
	return RTE_MIN(due, p->limit);
}
