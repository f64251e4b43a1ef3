// SPDX-License-Identifier: Apache-2.0
// rte_hash and the flow table, next to the chained tables.
#include <stdlib.h>

#include <rte_hash.h>
#include <rte_hash_crc.h>

#include "flow/lookup_private.h"
#include "flow_table_bench.h"

static void *hash_create(uint64_t slots, uint64_t entries, bool v6)
{
	struct rte_hash_parameters p = {.name = "bench",
					.entries = (uint32_t)slots,
					.key_len = v6 ? 40 : 16, // for IPv4 only the bytes that differ
					.hash_func = rte_hash_crc,
					.hash_func_init_val = 17,
					.socket_id = SOCKET_ID_ANY,
					.extra_flag = RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF};

	return rte_hash_create(&p);
}

static bool hash_insert(void *table, flow_entry_t e)
{
	return rte_hash_add_key_data(table, flow_entry_key(e), (void *)(uintptr_t)e) == 0 &&
	       rte_hash_add_key_data(table, flow_entry_key(e | 1), (void *)(uintptr_t)(e | 1)) == 0;
}

static void hash_remove(void *table, flow_entry_t e)
{
	unsigned d;

	for (d = 0; d < 2; d++) {
		int32_t at = rte_hash_del_key(table, flow_entry_key(e | d));

		if (at >= 0)
			rte_hash_free_key_with_position(table, at);
	}
}

static void hash_destroy(void *table)
{
	rte_hash_free(table);
}

static void hash_lookup(const void *table, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	const void *p[RTE_HASH_LOOKUP_BULK_MAX];
	void *data[RTE_HASH_LOOKUP_BULK_MAX];
	unsigned i, k, m;

	for (i = 0; i < n; i += m) {
		uint64_t hits = 0;

		m = RTE_MIN(n - i, (unsigned)RTE_HASH_LOOKUP_BULK_MAX);
		for (k = 0; k < m; k++)
			p[k] = &keys[i + k];
		rte_hash_lookup_bulk_data(table, p, m, &hits, data);
		for (k = 0; k < m; k++)
			out[i + k] = hits >> k & 1 ? (flow_entry_t)(uintptr_t)data[k] : 0;
	}
}

static void *own_create(uint64_t slots, uint64_t entries, bool v6)
{
	return flow_table_create(slots * 90 / 100);
}

static bool own_insert(void *table, flow_entry_t e)
{
	flow_entry_t found;

	return flow_table_insert(table, e, e | 1, &found) == 0;
}

static void own_remove(void *table, flow_entry_t e)
{
	flow_table_remove(table, (flow_entry_t[]){e, e | 1}, 2);
}

static void own_destroy(void *table)
{
	flow_table_destroy(table);
}

static void single4(const void *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	for (; n > 0; n--)
		flow_table_lookup4(t, keys++, out++, 1);
}

static void single6(const void *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	for (; n > 0; n--)
		flow_table_lookup6(t, keys++, out++, 1);
}

static __rte_always_inline void match(const struct flow_bucket *const *bucket, const uint16_t *sig, uint8_t *slots,
				      unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		slots[i] = (uint8_t)flow_match(bucket[i], sig[i]);
}

static void unfetched4(const void *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	flow_search_array(((const struct flow_table *)t)->view->now, keys, out, n, false, match, FLOW_LOOKUP_PART,
			  false);
}

static void unfetched6(const void *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	flow_search_array(((const struct flow_table *)t)->view->now, keys, out, n, true, match, FLOW_LOOKUP_PART,
			  false);
}

static void plain4(const void *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	flow_lookup_plain.v4(t, keys, out, n);
}

static void plain6(const void *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	flow_lookup_plain.v6(t, keys, out, n);
}

#ifdef __x86_64__
static void sse4(const void *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	flow_lookup_sse42.v4(t, keys, out, n);
}

static void sse6(const void *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	flow_lookup_sse42.v6(t, keys, out, n);
}

static bool has_avx2(void)
{
	return flow_lookup_avx2.supported();
}

static void avx2_4(const void *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	flow_lookup_avx2.v4(t, keys, out, n);
}

static void avx2_6(const void *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	flow_lookup_avx2.v6(t, keys, out, n);
}

static bool has_avx512(void)
{
	return flow_lookup_avx512.supported();
}

static void avx512_4(const void *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	flow_lookup_avx512.v4(t, keys, out, n);
}

static void avx512_6(const void *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	flow_lookup_avx512.v6(t, keys, out, n);
}
#endif

#define OWN "the flow table: "
static const struct backend
	rte_hash_bulk = {"rte_hash",  "DPDK's rte_hash, lock-free, in bulk",
			 hash_create, hash_insert,
			 hash_remove, hash_destroy,
			 hash_lookup, hash_lookup,
			 NULL},
	own_single = {"corelane-single",
		      OWN "one key at a time",
		      own_create,
		      own_insert,
		      own_remove,
		      own_destroy,
		      single4,
		      single6,
		      NULL},
	own_unfetched = {"corelane-no-prefetch",
			 OWN "batches without prefetch",
			 NULL,
			 NULL,
			 NULL,
			 NULL,
			 unfetched4,
			 unfetched6,
			 NULL},
	own_plain = {"corelane-plain", OWN "signatures one by one", NULL, NULL, NULL, NULL, plain4, plain6, NULL};
#ifdef __x86_64__
static const struct backend own_sse = {"corelane-sse4.2", OWN "SSE", NULL, NULL, NULL, NULL, sse4, sse6, NULL},
			    own_avx2 = {"corelane-avx2", OWN "AVX2", NULL, NULL, NULL, NULL, avx2_4, avx2_6, has_avx2},
			    own_avx512 = {"corelane-avx512", OWN "AVX-512", NULL,      NULL, NULL, NULL,
					  avx512_4,          avx512_6,      has_avx512};
#endif

const struct backend *const backends[] = {&chained_plain,
					  &chained_signature,
					  &chained_crc,
					  &chained_batch,
					  &rte_hash_bulk,
					  &own_single,
					  &own_unfetched,
					  &own_plain,
#ifdef __x86_64__
					  &own_sse,
					  &own_avx2,
					  &own_avx512,
#endif
					  NULL};
