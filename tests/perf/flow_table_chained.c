// SPDX-License-Identifier: Apache-2.0
// A conventional chained table: buckets with an overflow list, and the steps that were proposed to make it faster.
#include <stdlib.h>

#include <rte_hash_crc.h>
#include <rte_jhash.h>
#include <rte_prefetch.h>

#include "flow/reserve.h"
#include "flow_table_bench.h"

struct extra { // what did not fit
	flow_entry_t entry;
	uint32_t next;
};

struct bucket4 {
	flow_entry_t entry[4];
	uint32_t extra;
} __rte_aligned(32);

struct bucket8 {
	uint16_t sig[8];
	flow_entry_t entry[8];
	uint32_t extra;
} __rte_aligned(64);

struct chained {
	void *buckets;
	struct extra *extras;
	uint64_t bytes, extra_bytes;
	uint32_t mask, used, free;
	bool v6, crc, sigs;
};

static __rte_always_inline uint32_t hash_of(const struct flow_key *k, bool v6, bool crc)
{
	uint32_t h = 17;

	if (!crc)
		return rte_jhash_32b((const uint32_t *)k, v6 ? 10 : 4, h);
	h = rte_hash_crc_8byte(k->meta, h);
	h = rte_hash_crc_8byte(k->addr[0], h);
	return v6 ? rte_hash_crc_8byte(k->addr[3], rte_hash_crc_8byte(k->addr[2], rte_hash_crc_8byte(k->addr[1], h)))
		  : h;
}

static uint16_t sig_of(uint32_t hash)
{
	return (uint16_t)(hash >> 16 ? hash >> 16 : 1);
}

static void *taken(uint64_t bytes)
{
	void *p = reserve_range(bytes);

	if (p == NULL || reserve_fill(p, 0, bytes) != 0)
		exit(3);
	return p;
}

static struct chained *create(uint64_t slots, uint64_t entries, bool v6, bool crc, bool sigs)
{
	struct chained *t = calloc(1, sizeof(*t));

	*t = (struct chained){
		.mask = (uint32_t)(slots / (sigs ? 8 : 4)) - 1, .used = 1, .v6 = v6, .crc = crc, .sigs = sigs};
	t->bytes = ((uint64_t)t->mask + 1) * (sigs ? sizeof(struct bucket8) : sizeof(struct bucket4));
	t->extra_bytes = (entries + 2) * sizeof(struct extra);
	t->buckets = taken(t->bytes);
	t->extras = taken(t->extra_bytes);
	return t;
}

static void *create_plain(uint64_t slots, uint64_t entries, bool v6)
{
	return create(slots, entries, v6, false, false);
}

static void *create_signature(uint64_t slots, uint64_t entries, bool v6)
{
	return create(slots, entries, v6, false, true);
}

static void *create_crc(uint64_t slots, uint64_t entries, bool v6)
{
	return create(slots, entries, v6, true, true);
}

static void destroy(void *table)
{
	struct chained *t = table;

	reserve_release(t->buckets, t->bytes);
	reserve_release(t->extras, t->extra_bytes);
	free(t);
}

static void slots_of(struct chained *t, uint32_t hash, flow_entry_t **entry, uint16_t **sig, uint32_t **extra)
{
	struct bucket4 *four = (struct bucket4 *)t->buckets + (hash & t->mask);
	struct bucket8 *eight = (struct bucket8 *)t->buckets + (hash & t->mask);

	*entry = t->sigs ? eight->entry : four->entry;
	*extra = t->sigs ? &eight->extra : &four->extra;
	*sig = t->sigs ? eight->sig : NULL;
}

static void insert_one(struct chained *t, flow_entry_t e)
{
	uint32_t hash = hash_of(flow_entry_key(e), t->v6, t->crc), *extra, x;
	flow_entry_t *entry;
	uint16_t *sig;
	unsigned i;

	slots_of(t, hash, &entry, &sig, &extra);
	for (i = 0; i < (t->sigs ? 8 : 4); i++) {
		if (entry[i] != 0)
			continue;
		entry[i] = e;
		if (sig)
			sig[i] = sig_of(hash);
		return;
	}
	x = t->free ? t->free : t->used++;
	t->free = t->free ? t->extras[x].next : 0;
	t->extras[x] = (struct extra){e, *extra};
	*extra = x;
}

static void remove_one(struct chained *t, flow_entry_t e)
{
	uint32_t hash = hash_of(flow_entry_key(e), t->v6, t->crc), *extra, x;
	flow_entry_t *entry;
	uint16_t *sig;
	unsigned i;

	slots_of(t, hash, &entry, &sig, &extra);
	for (i = 0; i < (t->sigs ? 8 : 4); i++) {
		if (entry[i] != e)
			continue;
		entry[i] = 0;
		if (sig)
			sig[i] = 0;
		return;
	}
	for (; (x = *extra) != 0; extra = &t->extras[x].next) {
		if (t->extras[x].entry != e)
			continue;
		*extra = t->extras[x].next;
		t->extras[x].next = t->free;
		t->free = x;
		return;
	}
}

static bool insert(void *table, flow_entry_t e)
{
	insert_one(table, e);
	insert_one(table, e | 1);
	return true;
}

static void remove_both(void *table, flow_entry_t e)
{
	remove_one(table, e);
	remove_one(table, e | 1);
}

static __rte_always_inline flow_entry_t in_list(const struct chained *t, uint32_t x, const struct flow_key *k,
						const bool v6)
{
	for (; x; x = t->extras[x].next)
		if (flow_key_equal(flow_entry_key(t->extras[x].entry), k, v6))
			return t->extras[x].entry;
	return 0;
}

static __rte_always_inline void full_compare(const struct chained *t, const struct flow_key *keys, flow_entry_t *out,
					     unsigned n, const bool v6)
{
	unsigned i, s;

	for (i = 0; i < n; i++) {
		const struct bucket4 *b = (const struct bucket4 *)t->buckets + (hash_of(&keys[i], v6, false) & t->mask);

		out[i] = 0;
		for (s = 0; s < 4 && out[i] == 0; s++)
			if (b->entry[s] && flow_key_equal(flow_entry_key(b->entry[s]), &keys[i], v6))
				out[i] = b->entry[s];
		if (out[i] == 0)
			out[i] = in_list(t, b->extra, &keys[i], v6);
	}
}

static __rte_always_inline flow_entry_t in_bucket(const struct chained *t, const struct bucket8 *b, unsigned slots,
						  const struct flow_key *k, const bool v6)
{
	for (; slots; slots &= slots - 1) {
		flow_entry_t e = b->entry[__builtin_ctz(slots)];

		if (flow_key_equal(flow_entry_key(e), k, v6))
			return e;
	}
	return in_list(t, b->extra, k, v6);
}

static __rte_always_inline unsigned match(const struct bucket8 *b, uint16_t sig)
{
	return flow_match((const struct flow_bucket *)b, sig); // signatures come first in both
}

static __rte_always_inline void one_by_one(const struct chained *t, const struct flow_key *keys, flow_entry_t *out,
					   unsigned n, const bool v6, const bool crc)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		uint32_t hash = hash_of(&keys[i], v6, crc);
		const struct bucket8 *b = (const struct bucket8 *)t->buckets + (hash & t->mask);

		out[i] = in_bucket(t, b, match(b, sig_of(hash)), &keys[i], v6);
	}
}

static __rte_always_inline void batched(const struct chained *t, const struct flow_key *keys, flow_entry_t *out,
					unsigned n, const bool v6)
{
	const struct bucket8 *b[FLOW_BATCH];
	uint32_t hash[FLOW_BATCH];
	unsigned slots[FLOW_BATCH], i;

	for (i = 0; i < n; i++) {
		hash[i] = hash_of(&keys[i], v6, true);
		b[i] = (const struct bucket8 *)t->buckets + (hash[i] & t->mask);
		rte_prefetch0(b[i]);
	}
	for (i = 0; i < n; i++) {
		slots[i] = match(b[i], sig_of(hash[i]));
		if (slots[i])
			rte_prefetch0(flow_entry_key(b[i]->entry[__builtin_ctz(slots[i])]));
	}
	for (i = 0; i < n; i++)
		out[i] = in_bucket(t, b[i], slots[i], &keys[i], v6);
}

static void plain4(const void *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	full_compare(t, keys, out, n, false);
}

static void plain6(const void *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	full_compare(t, keys, out, n, true);
}

static void signature4(const void *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	one_by_one(t, keys, out, n, false, false);
}

static void signature6(const void *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	one_by_one(t, keys, out, n, true, false);
}

static void crc4(const void *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	one_by_one(t, keys, out, n, false, true);
}

static void crc6(const void *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	one_by_one(t, keys, out, n, true, true);
}

static void batch4(const void *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	batched(t, keys, out, n, false);
}

static void batch6(const void *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	batched(t, keys, out, n, true);
}

const struct backend chained_plain = {"chained",    "buckets of 4 and a list, Jenkins hash, whole keys compared",
				      create_plain, insert,
				      remove_both,  destroy,
				      plain4,       plain6,
				      NULL},
		     chained_signature = {"chained-signatures",
					  "signatures, buckets of 8",
					  create_signature,
					  insert,
					  remove_both,
					  destroy,
					  signature4,
					  signature6,
					  NULL},
		     chained_crc = {"chained-crc", "CRC32 instruction for the hash",
				    create_crc,    insert,
				    remove_both,   destroy,
				    crc4,          crc6,
				    NULL},
		     chained_batch = {
			     "chained-batch", "batches with prefetch", NULL, NULL, NULL, NULL, batch4, batch6, NULL};
