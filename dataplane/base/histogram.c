// SPDX-License-Identifier: Apache-2.0
// Everything about histograms except adding to them, which is inline.
#include "base/histogram.h"

#define SUB (1u << HISTOGRAM_SUB_BITS)

uint64_t histogram_least(unsigned bucket)
{
	unsigned shift = bucket < 2 * SUB ? 0 : (bucket >> HISTOGRAM_SUB_BITS) - 1;

	return (uint64_t)(bucket - (shift << HISTOGRAM_SUB_BITS)) << shift;
}

uint64_t histogram_most(unsigned bucket)
{
	return bucket + 1 < HISTOGRAM_BUCKETS ? histogram_least(bucket + 1) - 1 : UINT64_MAX;
}

static uint64_t histogram_load(const uint64_t *count)
{
	return __atomic_load_n(count, __ATOMIC_RELAXED);
}

void histogram_copy(struct histogram *to, const struct histogram *from)
{
	unsigned i;

	for (i = 0; i < HISTOGRAM_BUCKETS; i++)
		to->count[i] = histogram_load(&from->count[i]);
}

void histogram_merge(struct histogram *to, const struct histogram *from)
{
	unsigned i;

	for (i = 0; i < HISTOGRAM_BUCKETS; i++)
		to->count[i] += histogram_load(&from->count[i]);
}

void histogram_subtract(struct histogram *from, const struct histogram *base)
{
	unsigned i;

	for (i = 0; i < HISTOGRAM_BUCKETS; i++)
		from->count[i] -= base->count[i];
}

uint64_t histogram_total(const struct histogram *h)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < HISTOGRAM_BUCKETS; i++)
		sum += histogram_load(&h->count[i]);
	return sum;
}

uint64_t histogram_quantile(const struct histogram *h, uint32_t per_million)
{
	uint64_t total = histogram_total(h), seen = 0;
	unsigned __int128 want = (unsigned __int128)total * per_million;
	unsigned i;

	if (total == 0)
		return 0;
	for (i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
		seen += histogram_load(&h->count[i]);
		if (seen > 0 && (unsigned __int128)seen * 1000000 >= want)
			break;
	}
	return histogram_most(i);
}
