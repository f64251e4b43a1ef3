// SPDX-License-Identifier: Apache-2.0
// Counts of 64-bit values in buckets whose width grows with the value: 16 for each power of two, so that a bucket's
// bounds are within 6.25 % of each other. Adding is a handful of instructions and one store.
//
// One thread adds; others may read at any time and see each count as it was a moment ago.
#pragma once

#include <stdint.h>

#define HISTOGRAM_SUB_BITS 4 // 16 buckets for each power of two
#define HISTOGRAM_OCTAVES 38 // the last one ends at 2^42; larger values count there
#define HISTOGRAM_BUCKETS ((HISTOGRAM_OCTAVES + 1) << HISTOGRAM_SUB_BITS)

struct histogram {
	uint64_t count[HISTOGRAM_BUCKETS];
};

static inline unsigned histogram_bucket(uint64_t v)
{
	unsigned shift = 63 - HISTOGRAM_SUB_BITS - (unsigned)__builtin_clzll(v | 1 << HISTOGRAM_SUB_BITS);
	unsigned bucket = (shift << HISTOGRAM_SUB_BITS) + (unsigned)(v >> shift);

	return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

static inline void histogram_add(struct histogram *h, uint64_t v)
{
	h->count[histogram_bucket(v)]++;
}

uint64_t histogram_least(unsigned bucket); // smallest and largest value of a bucket
uint64_t histogram_most(unsigned bucket);

void histogram_copy(struct histogram *to, const struct histogram *from);
void histogram_merge(struct histogram *to, const struct histogram *from);
void histogram_subtract(struct histogram *from, const struct histogram *base); // base: an earlier copy
uint64_t histogram_total(const struct histogram *h);
// The value that at least per_million of a million counted values do not exceed: the upper bound of a bucket. 0 when
// nothing was counted.
uint64_t histogram_quantile(const struct histogram *h, uint32_t per_million);
