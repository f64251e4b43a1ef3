// SPDX-License-Identifier: Apache-2.0
// Token buckets without lock and timer: one word holds the time at which the bucket is full again (the generic cell
// rate algorithm of ITU-T I.371). A zeroed bucket is full.
//
// A bucket that was emptied at a lower rate counts as empty at the present one from its next use on.
//
// Threads may share a bucket: when two of them race, one packet too many passes, never more.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct bucket {
	uint64_t full_at; // TSC
};

// Takes n tokens. Returns false and takes none when the bucket holds fewer. rate: tokens per second, 0 = the bucket is
// always empty; burst: tokens in a full bucket; hz: frequency of the TSC.
static inline bool bucket_take(struct bucket *b, uint64_t now, uint32_t n, uint32_t rate, uint32_t burst, uint64_t hz)
{
	uint64_t cost = rate ? hz / rate : 0, all = burst * cost;
	uint64_t full_at = __atomic_load_n(&b->full_at, __ATOMIC_RELAXED);

	if (full_at < now)
		full_at = now;
	if (full_at - now > all) { // emptied at a lower rate
		full_at = now + all;
		__atomic_store_n(&b->full_at, full_at, __ATOMIC_RELAXED);
	}
	if (rate == 0 || full_at - now + n * cost > all)
		return false;
	__atomic_store_n(&b->full_at, full_at + n * cost, __ATOMIC_RELAXED);
	return true;
}
