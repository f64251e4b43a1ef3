// SPDX-License-Identifier: Apache-2.0
// Time stamps in frames: 32 bits of the TSC, in units of at most 10 ns that do not wrap within 10 s.
#pragma once

#include <stdint.h>

#include <rte_cycles.h>

struct clock {
	uint64_t hz;
	unsigned shift; // a unit is 1 << shift cycles
};

static inline struct clock clock_of(uint64_t hz)
{
	struct clock c = {.hz = hz};

	while (((uint64_t)1 << (32 + c.shift)) / hz < 10)
		c.shift++;
	return c;
}

static inline uint32_t clock_stamp(const struct clock *c, uint64_t tsc)
{
	return (uint32_t)(tsc >> c->shift);
}

static inline double clock_ns(const struct clock *c, double units)
{
	return units * (double)((uint64_t)1 << c->shift) * 1e9 / (double)c->hz;
}
