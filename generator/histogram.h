// SPDX-License-Identifier: Apache-2.0
// Histogram of latencies in clock units (clock.h). Bars are one unit wide up to 64 units, then 1/32 of an octave.
#pragma once

#include <stdint.h>

#include <rte_common.h>

#define HISTOGRAM_STEPS 32u
#define HISTOGRAM_BARS (HISTOGRAM_STEPS * 28)

struct histogram {
	uint64_t bars[HISTOGRAM_BARS];
};

static __rte_always_inline unsigned histogram_bar(uint32_t v)
{
	unsigned octave = v < HISTOGRAM_STEPS ? 0 : 26 - (unsigned)__builtin_clz(v); // 0 up to 63

	return octave * HISTOGRAM_STEPS + (v >> octave);
}

// The smallest value of the bar in which the share of what was added to `from` since its earlier copy `since` ends.
// share: 0 to 1. 0 = nothing was added.
uint64_t histogram_quantile_since(const struct histogram *from, const struct histogram *since, double share);

// The smallest value of a bar.
static inline uint64_t histogram_low(unsigned bar)
{
	unsigned octave = bar < 2 * HISTOGRAM_STEPS ? 0 : bar / HISTOGRAM_STEPS - 1;

	return (uint64_t)(bar - octave * HISTOGRAM_STEPS) << octave;
}
