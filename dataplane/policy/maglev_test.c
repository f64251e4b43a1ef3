// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <rte_common.h>

#include "base/siphash.h"
#include "policy/maglev.h"

// Of the bytes 00 01 02 ... with the key 00 01 .. 0f, 0 and 8 of them: from another implementation (Python), whose
// SipHash-2-4 gives the vector of the paper. The rows below are from it, too.
static void hash_is_siphash(void **state)
{
	struct siphash_key key = {{0x0706050403020100, 0x0f0e0d0c0b0a0908}};
	uint64_t words[] = {0x0706050403020100};

	assert_int_equal(siphash(&key, words, 0), 0xabac0158050fc4dc);
	assert_int_equal(siphash(&key, words, 1), 0x369095118d299a8e);
}

static void fill(struct maglev_endpoint *e, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		e[i] = (struct maglev_endpoint){{0x0a000001 + i, 0, 8080}, 1 + i % 3};
}

static uint32_t sum_of(const struct maglev *m, uint32_t rows)
{
	uint32_t sum = 0, i;

	for (i = 0; i < rows; i++)
		sum = sum * 31 + maglev_table(m)[i];
	return sum;
}

static void rows_are_golden(void **state)
{
	static const uint16_t last[] = {2, 2, 2, 1, 2, 2, 2, 0, 2, 2, 2, 4, 4, 2, 1, 2};
	struct maglev_endpoint e[5];
	struct maglev *m;
	unsigned i;

	fill(e, 5);
	m = maglev_begin(e, 5, 509);
	assert_non_null(m);
	assert_true(maglev_step(m, UINT32_MAX));
	for (i = 0; i < RTE_DIM(last); i++)
		assert_int_equal(maglev_table(m)[509 - RTE_DIM(last) + i], last[i]);
	assert_int_equal(sum_of(m, 509), 0x65fa6499);
	maglev_free(m);
}

// One large weight among many small ones costs no more steps than equal weights, and the rows are those of the rounds
// in which each endpoint gets its weight as credit (the sum is from a program that goes through all of them).
static void weights_differ(void **state)
{
	static struct maglev_endpoint e[1000];
	struct maglev *m;
	unsigned i;

	for (i = 0; i < RTE_DIM(e); i++)
		e[i] = (struct maglev_endpoint){{0x0a000001 + i, 0, 8080}, i == 500 ? 256 : 1};
	m = maglev_begin(e, RTE_DIM(e), MAGLEV_ROWS_MAX);
	assert_non_null(m);
	assert_true(maglev_step(m, 2000000));
	assert_int_equal(sum_of(m, MAGLEV_ROWS_MAX), 0x8b8324dc);
	maglev_free(m);
}

// Only ratios count: weights with a common factor give the rows of those without it.
static void weights_are_ratios(void **state)
{
	struct maglev_endpoint e[5];
	struct maglev *m;
	unsigned i;

	fill(e, 5);
	for (i = 0; i < 5; i++)
		e[i].weight *= 60;
	m = maglev_begin(e, 5, 509);
	assert_non_null(m);
	assert_true(maglev_step(m, UINT32_MAX));
	assert_int_equal(sum_of(m, 509), 0x65fa6499); // as in rows_are_golden
	maglev_free(m);
}

// In steps of any size the table is the same; shares follow the weights; one endpoint less moves few rows of others.
static void rows_are_shared(void **state)
{
	struct maglev_endpoint e[64];
	uint32_t rows = maglev_rows(64), n[64] = {0}, i, others = 0, moved = 0, weights = 0;
	struct maglev *m, *again, *less;

	assert_int_equal(rows, 8191);
	assert_int_equal(maglev_rows(1), 509);
	assert_int_equal(maglev_rows(1000), 131071);
	fill(e, 64);
	m = maglev_begin(e, 64, rows);
	again = maglev_begin(e, 64, rows);
	less = maglev_begin(e, 63, rows);
	assert_true(maglev_step(m, UINT32_MAX));
	while (!maglev_step(again, 7))
		;
	assert_true(maglev_step(less, UINT32_MAX));
	assert_memory_equal(maglev_table(m), maglev_table(again), rows * sizeof(uint16_t));
	for (i = 0; i < rows; i++) {
		uint16_t was = maglev_table(m)[i];

		n[was]++;
		others += was != 63;
		moved += was != 63 && maglev_table(less)[i] != was;
	}
	for (i = 0; i < 64; i++)
		weights += e[i].weight;
	for (i = 0; i < 64; i++)
		assert_in_range(n[i], e[i].weight * rows / weights - 2, e[i].weight * rows / weights + 3);
	assert_in_range(moved, 0, others * 3 / 100);
	maglev_free(m);
	maglev_free(again);
	maglev_free(less);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hash_is_siphash), cmocka_unit_test(rows_are_golden),
		cmocka_unit_test(weights_differ),  cmocka_unit_test(weights_are_ratios),
		cmocka_unit_test(rows_are_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
