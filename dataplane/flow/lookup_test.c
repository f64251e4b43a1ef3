// SPDX-License-Identifier: Apache-2.0
// The hash by instruction and in software, every variant of the lookup on the same tables, and lookups of absent keys,
// which read one cache line.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <rte_byteorder.h>
#include <rte_eal.h>

#include "dpdk/eal_init.h"
#include "flow/lookup_private.h"
#include "flow/table_fixture.h"

#define FLOWS 100000u

static void hash_in_software(void **state)
{
	uint64_t random = 1;
	struct flow_key k;
	unsigned i, w;

	assert_int_equal(flow_crc(~0u, 0), flow_crc_soft(~0u, 0));
	for (i = 0; i < 100000; i++) {
		if (i % 100 == 0)
			fixture_secret(i);
		for (w = 0; w < sizeof(k) / 8; w++)
			((uint64_t *)&k)[w] = fixture_random(&random);
		assert_true(flow_hash(&k, true) == flow_hash_by(&k, true, flow_crc_soft));
		assert_true(flow_hash(&k, false) == flow_hash_by(&k, false, flow_crc_soft));
	}
}

// How unevenly a secret spreads keys over buckets: variance over mean; 1 for a random function.
static double unevenness(uint32_t buckets, uint64_t seed, bool v6, uint32_t *sum)
{
	static uint32_t count[1 << 14];
	struct flow_array a = {.n = buckets};
	double mean = (double)FLOWS / buckets, v = 0;
	uint32_t i;

	fixture_secret(seed);
	memset(count, 0, sizeof(count));
	for (i = 0; i < FLOWS; i++) {
		struct flow_key k = fixture_key(i, v6);
		uint32_t bucket = flow_first(&a, flow_hash(&k, v6));

		count[bucket]++;
		*sum = *sum * 31 + bucket;
	}
	for (i = 0; i < buckets; i++)
		v += (count[i] - mean) * (count[i] - mean);
	return v / buckets / mean;
}

static void secrets(void **state)
{
	uint32_t sums[20] = {0};
	unsigned seed, k;

	for (seed = 0; seed < RTE_DIM(sums); seed++) {
		double u = unevenness(seed % 2 ? 1 << 14 : 9973, seed, seed & 2, &sums[seed]);

		assert_true(u < 1.5);
		for (k = 0; k < seed; k++)
			assert_int_not_equal(sums[k], sums[seed]);
	}
}

static void other_bucket(void **state)
{
	static const uint32_t sizes[] = {2, 3, 286, 65536, 4660339, UINT32_MAX / 2};
	uint64_t random = 3;
	unsigned i, k;

	for (i = 0; i < RTE_DIM(sizes); i++) {
		struct flow_array a = {.n = sizes[i]};

		for (k = 0; k < 100000; k++) {
			uint64_t hash = fixture_random(&random);
			uint32_t first = flow_first(&a, hash), other = flow_other(&a, first, flow_sig(hash));

			assert_true(first < a.n && other < a.n && flow_sig(hash) != 0);
			assert_int_equal(flow_other(&a, other, flow_sig(hash)), first);
		}
	}
}

static struct flow_table *filled(uint32_t n, bool v6, uint64_t slots_for)
{
	struct flow_table *t = flow_table_create(slots_for);
	flow_entry_t found;
	uint32_t i;

	for (i = 1; i <= n; i++) {
		struct flow_key k = fixture_key(i, v6);

		fixture_flow(i, &k);
		assert_int_equal(flow_table_insert(t, i << 1, i << 1 | 1, &found), 0);
	}
	return t;
}

static void compare_variants(struct flow_table *t, uint32_t n, bool v6, unsigned rounds)
{
	struct flow_key keys[FLOW_BATCH];
	flow_entry_t wanted[FLOW_BATCH], out[FLOW_BATCH + 1];
	uint64_t random = n;
	unsigned i, k, m;

	while (rounds-- > 0) {
		m = (unsigned)(fixture_random(&random) % (FLOW_BATCH + 1));
		for (i = 0; i < m; i++) {
			uint32_t f = (uint32_t)(fixture_random(&random) >> 32) % (2 * n) + 1,
				 d = (uint32_t)fixture_random(&random) & 1;

			keys[i] = fixture_key(f, v6);
			keys[i] = d ? flow_key_reverse(&keys[i]) : keys[i];
			wanted[i] = f <= n ? f << 1 | d : 0;
		}
		for (k = 0; flow_lookups[k]; k++) {
			if (!flow_lookups[k]->supported())
				continue;
			out[m] = 4711;
			(v6 ? flow_lookups[k]->v6 : flow_lookups[k]->v4)(t, keys, out, m);
			assert_memory_equal(out, wanted, m * sizeof(*out));
			assert_int_equal(out[m], 4711);
		}
	}
}

static void variants(void **state)
{
	static const unsigned per_cent[] = {1, 30, 70, 90, 97};
	unsigned i, v6;

	for (i = 0; i < RTE_DIM(per_cent); i++) {
		for (v6 = 0; v6 < 2; v6++) {
			uint32_t n = FLOWS / 2 / 90 * per_cent[i];
			struct flow_table *t;

			fixture_secret(i + 100);
			t = filled(n, v6, FLOWS);
			compare_variants(t, n, v6, 1000);
			assert_int_equal(flow_table_grow_begin(t, 2 * FLOWS), 0); // and with two arrays
			rcu_poll();
			flow_table_grow_step(t, 3000);
			compare_variants(t, n, v6, 300);
			while (!flow_table_grow_step(t, 1000))
				rcu_poll();
			compare_variants(t, n, v6, 300);
			rcu_poll();
			flow_table_destroy(t);
		}
	}
}

// All signatures are equal, so every candidate is compared.
static void same_signatures(void **state)
{
	struct flow_table *t = flow_table_create(2000);
	struct flow_bucket *b = t->view->now->b;
	struct flow_key k;
	uint64_t hash;
	uint32_t first;
	unsigned i, s;

	fixture_secret(7);
	for (i = 1; i <= FLOW_SLOTS; i++) {
		k = fixture_key(i, false);
		fixture_flow(i, &k);
	}
	k = fixture_key(FLOW_SLOTS / 2, false);
	hash = flow_hash(&k, false);
	first = flow_first(t->view->now, hash);
	for (s = 0; s < FLOW_SLOTS; s++) {
		b[first].sig[s] = flow_sig(hash);
		b[first].entry[s] = (s + 1) << 1;
	}
	for (i = 0; flow_lookups[i]; i++) {
		flow_entry_t out = 1;

		if (!flow_lookups[i]->supported())
			continue;
		flow_lookups[i]->v4(t, &k, &out, 1);
		assert_int_equal(out, FLOW_SLOTS / 2 << 1);
	}
	flow_table_destroy(t);
}

// A lookup without a matching signature reads no flow: here their memory is inaccessible.
static void absent_keys(void **state)
{
	const uint32_t n = FLOWS / 2;
	struct flow_table *t;
	struct flow_key keys[FLOW_BATCH];
	flow_entry_t out[FLOW_BATCH];
	uint32_t i = n, k, m, looked = 0;
	unsigned v;

	fixture_secret(5);
	t = filled(n, false, FLOWS);
	assert_int_equal(mprotect(flows, (n + 1) * sizeof(struct flow), PROT_NONE), 0);
	while (looked < 100000) {
		for (m = 0; m < FLOW_BATCH;) {
			struct flow_array *a = t->view->now;
			uint64_t hash;
			uint32_t first;
			unsigned same;

			keys[m] = fixture_key(++i, false);
			hash = flow_hash(&keys[m], false);
			first = flow_first(a, hash);
			same = flow_match_plain(&a->b[first], flow_sig(hash));
			same |= flow_match_plain(&a->b[flow_other(a, first, flow_sig(hash))], flow_sig(hash));
			m += same == 0; // one key in some thousands has the signature of another
		}
		looked += m;
		for (v = 0; flow_lookups[v]; v++) {
			if (!flow_lookups[v]->supported())
				continue;
			flow_lookups[v]->v4(t, keys, out, m);
			for (k = 0; k < m; k++)
				assert_int_equal(out[k], 0);
		}
	}
	assert_true((double)looked / (i - n) > 0.999);
	assert_int_equal(mprotect(flows, (n + 1) * sizeof(struct flow), PROT_READ | PROT_WRITE), 0);
	flow_table_destroy(t);
}

static void choice(void **state)
{
	assert_int_equal(flow_lookup_use("abacus"), -ENOENT);
	assert_int_equal(flow_lookup_use("plain"), 0);
	assert_ptr_equal(flow_lookup, &flow_lookup_plain);
	assert_int_equal(flow_lookup_use(NULL), 0);
}

static int start(void **state)
{
	char *argv[] = {"flow_lookup_test", "--no-huge", "-m", "64", "--no-pci", "--no-shconf", "--no-telemetry", NULL};

	if (eal_init(7, argv) < 0 || rcu_init() != 0 || flow_init(FLOWS) != 0 || flow_start(NULL) != 0)
		return -1;
	while (flow_grow_step(UINT32_MAX))
		rcu_poll();
	return 0;
}

static int stop(void **state)
{
	flow_fini();
	rcu_fini();
	return rte_eal_cleanup();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hash_in_software), cmocka_unit_test(secrets),         cmocka_unit_test(other_bucket),
		cmocka_unit_test(variants),         cmocka_unit_test(same_signatures), cmocka_unit_test(absent_keys),
		cmocka_unit_test(choice),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
