// SPDX-License-Identifier: Apache-2.0
// Lookups of a batch, in stages: all buckets are on their way before the first is read, then all keys.
#include <emmintrin.h>

#include <rte_prefetch.h>

#include "flow/table_private.h"

#define STAGE 64 // keys whose lines are on their way at once

static __rte_always_inline unsigned match(const struct flow_bucket *b, uint16_t sig)
{
	__m128i all = _mm_load_si128((const __m128i *)b->sig);
	__m128i equal = _mm_cmpeq_epi16(all, _mm_set1_epi16((short)sig));

	return (unsigned)_mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128()));
}

static __rte_always_inline flow_entry_t candidate(const struct flow_bucket *b, unsigned slots)
{
	return __atomic_load_n(&b->entry[__builtin_ctz(slots)], __ATOMIC_ACQUIRE) & ~FLOW_SECOND;
}

static __rte_always_inline flow_entry_t compare(const struct flow_bucket *b, unsigned slots, const struct flow_key *key,
						const bool v6)
{
	flow_entry_t e;

	for (; slots; slots &= slots - 1) {
		e = candidate(b, slots);
		if (likely(flow_key_equal(flow_entry_key(e), key, v6)))
			return e;
	}
	return 0;
}

static __rte_always_inline void find_stage(const struct flow_array *a, const struct flow_key *keys, const uint64_t *hash,
					   flow_entry_t *out, unsigned n, const bool v6)
{
	const struct flow_bucket *second[STAGE];
	unsigned slots[STAGE], waiting[STAGE], n_waiting = 0, i, k;

	for (i = 0; i < n; i++) {
		const struct flow_bucket *b = &a->b[flow_first(a, hash[i])];

		slots[i] = match(b, flow_sig(hash[i]));
		if (likely(slots[i]))
			rte_prefetch0(flow_entry_key(candidate(b, slots[i])));
	}
	for (i = 0; i < n; i++) {
		const struct flow_bucket *b = &a->b[flow_first(a, hash[i])];

		out[i] = slots[i] ? compare(b, slots[i], &keys[i], v6) : 0;
		if (likely(out[i] != 0) || likely(!(__atomic_load_n(&b->moved, __ATOMIC_RELAXED) & flow_moved_bit(hash[i]))))
			continue;
		k = n_waiting++;
		waiting[k] = i;
		second[k] = &a->b[flow_other(a, flow_first(a, hash[i]), flow_sig(hash[i]))];
		rte_prefetch0(second[k]);
	}
	if (likely(n_waiting == 0))
		return;
	for (k = 0; k < n_waiting; k++) {
		slots[k] = match(second[k], flow_sig(hash[waiting[k]]));
		if (slots[k])
			rte_prefetch0(flow_entry_key(candidate(second[k], slots[k])));
	}
	for (k = 0; k < n_waiting; k++)
		out[waiting[k]] = slots[k] ? compare(second[k], slots[k], &keys[waiting[k]], v6) : 0;
}

static __rte_always_inline void find(const struct flow_array *a, const struct flow_key *keys, flow_entry_t *out, unsigned n,
				     const bool v6)
{
	uint64_t hash[FLOW_BATCH];
	unsigned i;

	for (i = 0; i < n; i++) {
		hash[i] = flow_hash(&keys[i], v6);
		rte_prefetch0(&a->b[flow_first(a, hash[i])]);
	}
	for (i = 0; i < n; i += STAGE)
		find_stage(a, keys + i, hash + i, out + i, RTE_MIN(n - i, (unsigned)STAGE), v6);
}

// While the table grows a key may be in either array; what moves is in the new one before it leaves the old.
static __rte_always_inline void lookup(const struct flow_table *t, const struct flow_key *keys, flow_entry_t *out, unsigned n,
				       const bool v6)
{
	const struct flow_view *v = rcu_read(t->view);
	flow_entry_t more[FLOW_BATCH];
	unsigned i;

	find(v->now, keys, out, n, v6);
	if (likely(v->next == NULL))
		return;
	find(v->next, keys, more, n, v6);
	for (i = 0; i < n; i++)
		out[i] = out[i] ? out[i] : more[i];
}

void flow_table_lookup4(const struct flow_table *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	lookup(t, keys, out, n, false);
}

void flow_table_lookup6(const struct flow_table *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	lookup(t, keys, out, n, true);
}

flow_entry_t flow_table_find(const struct flow_table *t, const struct flow_key *key)
{
	flow_entry_t e;

	if (key->family == 6)
		flow_table_lookup6(t, key, &e, 1);
	else
		flow_table_lookup4(t, key, &e, 1);
	return e;
}
