// SPDX-License-Identifier: Apache-2.0
// Batch lookup: the body that all CPU variants share. It is a software pipeline over parts of the batch: while the
// buckets of one part are being prefetched, it compares the signatures of the previous part and the keys of the part
// before that.
#pragma once

#include <rte_prefetch.h>

#include "base/rcu.h"
#include "flow/table_private.h"

#ifndef FLOW_LOOKUP_PART
#define FLOW_LOOKUP_PART 32
#endif

// Sets slots[i] to a bitmap of the slots of bucket[i] that have signature sig[i].
typedef void flow_match_fn(const struct flow_bucket *const *bucket, const uint16_t *sig, uint8_t *slots, unsigned n);

struct flow_lookup { // one variant
	const char *name;
	bool (*supported)(void); // on this CPU
	void (*v4)(const struct flow_table *t, const struct flow_key *keys, flow_entry_t *out, unsigned n);
	void (*v6)(const struct flow_table *t, const struct flow_key *keys, flow_entry_t *out, unsigned n);
};
extern const struct flow_lookup flow_lookup_plain, flow_lookup_sse42, flow_lookup_avx2, flow_lookup_avx512;
extern const struct flow_lookup *const flow_lookups[]; // ends with NULL
extern const struct flow_lookup *flow_lookup;          // in use; workers: ro

// Selects a variant; for tests and benchmarks, before any lookup. NULL: the fastest one that this CPU supports.
// -ENOENT: unknown name, -ENOTSUP: not supported by this CPU.
int flow_lookup_use(const char *name);

extern const struct flow_key flow_key_none; // no packet has it

struct flow_search {
	const struct flow_key *keys;
	flow_entry_t *out;
	unsigned n_waiting;
	const struct flow_bucket *bucket[FLOW_BATCH];
	const struct flow_key *found[FLOW_BATCH];
	uint64_t hash[FLOW_BATCH];
	uint16_t sig[FLOW_BATCH];
	uint8_t slots[FLOW_BATCH];
	uint16_t waiting[FLOW_BATCH];
};

static __rte_always_inline void flow_search_hash(struct flow_search *s, const struct flow_array *a, unsigned from,
						 unsigned to, const bool v6, const bool prefetch)
{
	unsigned i;

	for (i = from; i < to; i++) {
		s->hash[i] = flow_hash(&s->keys[i], v6);
		s->sig[i] = flow_sig(s->hash[i]);
		s->bucket[i] = &a->b[flow_first(a, s->hash[i])];
		if (prefetch)
			rte_prefetch0(s->bucket[i]);
	}
}

// The first entry with a matching signature, 0 if there is none. Branch-free, because a hit is hard to predict.
static __rte_always_inline flow_entry_t flow_candidate(const struct flow_bucket *b, unsigned slots)
{
	unsigned first = (unsigned)__builtin_ctz(slots | 1u << (FLOW_SLOTS - 1));
	flow_entry_t e = __atomic_load_n(&b->entry[first], __ATOMIC_ACQUIRE) & ~FLOW_SECOND;

	return slots ? e : 0;
}

static __rte_always_inline void flow_search_match(struct flow_search *s, unsigned from, unsigned to,
						  flow_match_fn *const match, const bool prefetch)
{
	flow_entry_t *out = s->out;
	unsigned i;

	match(s->bucket + from, s->sig + from, s->slots + from, to - from);
	for (i = from; i < to; i++) {
		flow_entry_t e = flow_candidate(s->bucket[i], s->slots[i]);

		out[i] = e;
		s->found[i] = e ? flow_entry_key(e) : &flow_key_none; // a miss touches no flow
		if (prefetch)
			rte_prefetch0(s->found[i]);
	}
}

// Keys that are not the first candidate of their first bucket wait until all others are done. Branch-free, because
// which ones do is hard to predict.
static __rte_always_inline void flow_search_compare(struct flow_search *s, unsigned from, unsigned to, const bool v6)
{
	const struct flow_key *keys = s->keys;
	flow_entry_t *out = s->out;
	unsigned i, waiting = s->n_waiting;

	for (i = from; i < to; i++) {
		bool hit = flow_key_equal(s->found[i], &keys[i], v6);

		out[i] = hit ? out[i] : 0;
		s->waiting[waiting] = (uint16_t)i;
		waiting += !hit;
	}
	s->n_waiting = waiting;
}

static __rte_always_inline flow_entry_t flow_compare_all(const struct flow_bucket *b, unsigned slots,
							 const struct flow_key *key, const bool v6)
{
	for (; slots; slots &= slots - 1) {
		flow_entry_t e = flow_candidate(b, slots);

		if (flow_key_equal(flow_entry_key(e), key, v6))
			return e;
	}
	return 0;
}

static __rte_always_inline void flow_search_second(struct flow_search *s, const struct flow_array *a,
						   flow_match_fn *const match, const bool v6)
{
	const struct flow_bucket *second[FLOW_BATCH];
	uint16_t sig[FLOW_BATCH], waiting[FLOW_BATCH];
	uint8_t slots[FLOW_BATCH];
	unsigned i, k, n = 0;

	__atomic_thread_fence(__ATOMIC_ACQUIRE); // `moved` is read after the signatures
	for (k = 0; k < s->n_waiting; k++) {
		i = s->waiting[k];
		s->out[i] = flow_compare_all(s->bucket[i], s->slots[i] & (s->slots[i] - 1u), &s->keys[i], v6);
		if (s->out[i] ||
		    !(__atomic_load_n(&s->bucket[i]->moved, __ATOMIC_RELAXED) & flow_moved_bit(s->hash[i])))
			continue;
		second[n] = &a->b[flow_other(a, flow_first(a, s->hash[i]), s->sig[i])];
		rte_prefetch0(second[n]);
		sig[n] = s->sig[i];
		waiting[n++] = (uint16_t)i;
	}
	match(second, sig, slots, n);
	for (k = 0; k < n; k++)
		if (slots[k])
			rte_prefetch0(flow_entry_key(flow_candidate(second[k], slots[k])));
	for (k = 0; k < n; k++)
		s->out[waiting[k]] = flow_compare_all(second[k], slots[k], &s->keys[waiting[k]], v6);
}

static __rte_always_inline void flow_search_array(const struct flow_array *a, const struct flow_key *keys,
						  flow_entry_t *out, unsigned n, const bool v6,
						  flow_match_fn *const match, const unsigned part, const bool prefetch)
{
	struct flow_search s;
	unsigned i;

	s.keys = keys;
	s.out = out;
	s.n_waiting = 0;
	for (i = 0; i < n + 2 * part; i += part) {
		if (i < n)
			flow_search_hash(&s, a, i, RTE_MIN(i + part, n), v6, prefetch);
		if (i >= part && i - part < n)
			// analyzer: core.CallAndMessage: hashed before
			flow_search_match(&s, i - part, RTE_MIN(i, n), match, prefetch);
		if (i >= 2 * part)
			flow_search_compare(&s, i - 2 * part, RTE_MIN(i - part, n), v6);
	}
	if (s.n_waiting)
		flow_search_second(&s, a, match, v6);
}

// While the table grows a key may be in either array; an entry that moves is in the new array before it leaves the old
// one.
static __rte_always_inline void flow_search(const struct flow_table *t, const struct flow_key *keys, flow_entry_t *out,
					    unsigned n, const bool v6, flow_match_fn *const match)
{
	const struct flow_view *v = rcu_read(t->view);
	flow_entry_t more[FLOW_BATCH];
	unsigned i;

	flow_search_array(v->now, keys, out, n, v6, match, FLOW_LOOKUP_PART, true);
	if (likely(v->next == NULL))
		return;
	// analyzer: core.uninitialized.Assign: fills more[0..n-1]
	flow_search_array(v->next, keys, more, n, v6, match, FLOW_LOOKUP_PART, true);
	for (i = 0; i < n; i++)
		out[i] = out[i] ? out[i] : more[i];
}
