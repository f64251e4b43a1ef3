// SPDX-License-Identifier: Apache-2.0
// Buckets of the flow table, for the table, its lookups and their tests.
#pragma once

#include <stdalign.h>

#include <rte_common.h>
#include <rte_lcore.h>
#include <rte_spinlock.h>

#include "base/sanitizers.h"
#include "flow/flow.h"
#include "flow/table.h"

// One cache line. A slot with signature 0 is free. Readers read it while it changes: a signature is written after its
// entry, and the holder of the lock changes one slot at a time.
struct flow_bucket {
	uint16_t sig[FLOW_SLOTS];
	flow_entry_t entry[FLOW_SLOTS]; // with FLOW_SECOND if this is the second bucket of its key
	uint64_t moved;                 // Bloom filter of the keys that overflowed from here into their second bucket
	uint16_t n_moved;
	rte_spinlock_t lock;
};
static_assert(sizeof(struct flow_bucket) == 64, "one cache line");

#define FLOW_SECOND (1u << 31)

struct flow_array {
	uint64_t bytes, filled; // filled: that have memory. Master only
	uint32_t n;
	alignas(64) struct flow_bucket b[];
};

struct flow_view { // immutable, replaced as a whole
	struct flow_array *now;
	struct flow_array *next; // target of all insertions and moves while the table grows, else NULL
};

struct flow_table {
	struct flow_view *view;     // master: wo (RCU)
	struct flow_array *filling; // will be `next` once it has its memory. Master only, as the next two
	uint32_t grown;             // buckets at the start of `now` that stay empty from now on
	bool ready;                 // a grace period after `next` was published: no writer inserts into `now` any more
	struct flow_table_count {
		alignas(RTE_CACHE_LINE_SIZE) uint64_t taken; // slots, ever
		uint64_t freed;
	} count[RTE_MAX_LCORE + 1]; // that lcore: rw; the last one, for threads without an lcore: atomic. All: ro
};

static __rte_always_inline uint16_t flow_sig(uint64_t hash)
{
	uint16_t sig = (uint16_t)hash;

	return (uint16_t)(sig + (sig == 0));
}

static __rte_always_inline uint32_t flow_first(const struct flow_array *a, uint64_t hash)
{
	return (uint32_t)((hash >> 32) * a->n >> 32);
}

// Maps either bucket of a key to the other one.
static __rte_always_inline uint32_t flow_other(const struct flow_array *a, uint32_t bucket, uint16_t sig)
{
	uint32_t sum = (uint32_t)((uint64_t)(uint32_t)(sig * 0x9e3779b1u) * a->n >> 32);

	return sum >= bucket ? sum - bucket : sum + a->n - bucket;
}

static __rte_always_inline uint64_t flow_moved_bit(uint64_t hash)
{
	return 1ull << (hash >> 16 & 63);
}

// Returns a bitmap of the slots with this signature.
static __rte_always_inline unsigned flow_match_plain(const struct flow_bucket *b, uint16_t sig)
{
	unsigned i, match = 0;

	for (i = 0; i < FLOW_SLOTS; i++)
		match |= (unsigned)(__atomic_load_n(&b->sig[i], __ATOMIC_ACQUIRE) == sig) << i;
	return match;
}

#if defined(__SSE2__) && !defined(WITH_TSAN)
#include <emmintrin.h>

// Signatures may change during the load; each one is read whole, and no more is needed.
static __rte_always_inline unsigned flow_match(const struct flow_bucket *b, uint16_t sig)
{
	__m128i equal = _mm_cmpeq_epi16(_mm_load_si128((const __m128i *)b->sig), _mm_set1_epi16((short)sig));

	return (unsigned)_mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128()));
}
#else
#define flow_match flow_match_plain
#endif

// --- Internal interface between the files of the table. ---
static inline void flow_table_counts(struct flow_table *t, uint64_t taken, uint64_t freed)
{
	unsigned id = RTE_MIN(rte_lcore_id(), (unsigned)RTE_MAX_LCORE);
	struct flow_table_count *c = &t->count[id];

	if (likely(id < RTE_MAX_LCORE)) {
		__atomic_store_n(&c->taken, c->taken + taken, __ATOMIC_RELAXED);
		__atomic_store_n(&c->freed, c->freed + freed, __ATOMIC_RELAXED);
	} else {
		__atomic_add_fetch(&c->taken, taken, __ATOMIC_RELAXED);
		__atomic_add_fetch(&c->freed, freed, __ATOMIC_RELAXED);
	}
}

// rte_spinlock_unlock() is an xchg on x86, which costs as much as the lock; a release store suffices.
static inline void flow_bucket_unlock(struct flow_bucket *b)
{
	__atomic_store_n(&b->lock.locked, 0, __ATOMIC_RELEASE);
}

struct flow_array *flow_array_reserve(uint64_t entries);   // without memory for its buckets. NULL with errno
int flow_array_fill(struct flow_array *a, uint64_t bytes); // with memory for so much more. -ENOMEM
bool flow_array_full(const struct flow_array *a);          // it may be used
struct flow_array *flow_array_create(uint64_t entries);    // all at once
void flow_array_free(void *array);
struct flow_view *flow_view_create(struct flow_array *now, struct flow_array *next);
