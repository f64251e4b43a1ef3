// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu_list.h"

static struct cpu_list l;
static char text[CPU_LIST_TEXT];

static void parses_as(const char *in, const char *list)
{
	assert_int_equal(cpu_list_parse(in, &l), 0);
	assert_string_equal(cpu_list_format(&l, text, sizeof(text)), list);
}

static void lists(void **state)
{
	parses_as("0", "0");
	parses_as("2,4-7", "2,4-7");
	parses_as("7,5-6,4", "4-7");
	parses_as("(5,6)", "5-6");
	parses_as("(2-4)", "2-4");
	parses_as("5-7,9", "5-7,9");
	parses_as("63,64,1023,1024,8191", "63-64,1023-1024,8191");
	parses_as("16383", "16383");
	parses_as("0-16383", "0-16383");
	parses_as("007", "7");
}

static void masks(void **state)
{
	parses_as("0xf0", "4-7");
	parses_as("0XF1", "0,4-7");
	parses_as("0x10", "4");
	parses_as("10", "10"); // not a mask without 0x
	parses_as("0x1,00000000", "32");
	parses_as("0x80000000,00000000,00000001", "0,95");
	parses_as("0x1000000000000000000000000000000", "120"); // beyond 64 bits
	parses_as("0x000000000000000000000000000000000001", "0");
	assert_int_equal(cpu_mask_parse("f0", &l), 0);
	assert_string_equal(cpu_list_format(&l, text, sizeof(text)), "4-7");
	assert_int_equal(cpu_mask_parse("10", &l), 0);
	assert_string_equal(cpu_list_format(&l, text, sizeof(text)), "4");
	assert_int_equal(cpu_mask_parse("ff,00000000,0000000f", &l), 0);
	assert_string_equal(cpu_list_format(&l, text, sizeof(text)), "0-3,64-71");
}

static void wide_mask(void **state)
{
	char mask[2 + CPU_LIST_MAX / 4 + 2] = "0x1";

	memset(mask + 3, '0', 256); // CPU 1024
	parses_as(mask, "1024");
	memset(mask + 3, '0', CPU_LIST_MAX / 4 - 1);
	parses_as(mask, "16380");
	mask[2] = '8';
	parses_as(mask, "16383");
	mask[2 + CPU_LIST_MAX / 4] = '0';
	assert_int_equal(cpu_list_parse(mask, &l), -ERANGE);
	assert_true(cpu_list_empty(&l));
	mask[2] = '0'; // any number of leading zeros
	mask[3] = '1';
	parses_as(mask, "16380");
}

static void refused(void **state)
{
	static const struct {
		const char *text;
		int ret;
	} bad[] = {
		{"", -EINVAL},
		{",", -EINVAL},
		{"0,", -EINVAL},
		{",0", -EINVAL},
		{"0,,1", -EINVAL},
		{"-", -EINVAL},
		{"0-", -EINVAL},
		{"-1", -EINVAL},
		{"2-1", -EINVAL},
		{"1-2-3", -EINVAL},
		{" 1", -EINVAL},
		{"1 ", -EINVAL},
		{"1\n", -EINVAL},
		{"x", -EINVAL},
		{"f0", -EINVAL},
		{"(", -EINVAL},
		{"()", -EINVAL},
		{"(1", -EINVAL},
		{"1)", -EINVAL},
		{"(1))", -EINVAL},
		{"((1))", -EINVAL},
		{"(1)2", -EINVAL},
		{"(0x3)", -EINVAL},
		{"0,0", -EEXIST},
		{"0-3,2", -EEXIST},
		{"16384", -ERANGE},
		{"0-16384", -ERANGE},
		{"4294967296", -ERANGE},
		{"18446744073709551616", -ERANGE},
		{"0x", -EINVAL},
		{"0x0", -EINVAL},
		{"0x0,00000000", -EINVAL},
		{"0xg", -EINVAL},
		{"0x1,0", -EINVAL},
		{"0x1,000000000", -EINVAL},
		{"0x,00000001", -EINVAL},
		{"0x1,00000000,", -EINVAL},
		{"0x000000001,00000000", -EINVAL},
		{"1,0x2", -EINVAL},
	};
	unsigned i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (cpu_list_parse(bad[i].text, &l) != bad[i].ret)
			fail_msg("'%s' gives %d", bad[i].text, cpu_list_parse(bad[i].text, &l));
		assert_true(cpu_list_empty(&l));
	}
}

static void order(void **state)
{
	unsigned cpus[4], n;

	assert_int_equal(cpu_list_order("7,2-3", cpus, 4, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(cpus[0], 7);
	assert_int_equal(cpus[1], 2);
	assert_int_equal(cpus[2], 3);
	assert_int_equal(cpu_list_order("0xc1", cpus, 4, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(cpus[0], 0);
	assert_int_equal(cpus[2], 7);
	assert_int_equal(cpu_list_order("0-4", cpus, 4, &n), -ENOSPC);
	assert_int_equal(n, 0);
	assert_int_equal(cpu_list_order("0x1f", cpus, 4, &n), -ENOSPC);
	assert_int_equal(cpu_list_order("1,1", cpus, 4, &n), -EEXIST);
}

static void formats(void **state)
{
	char small[12];

	memset(&l, 0, sizeof(l));
	assert_string_equal(cpu_list_format(&l, text, sizeof(text)), "none");
	cpu_list_parse("100,200,300", &l);
	assert_string_equal(cpu_list_format(&l, small, sizeof(small)), "100,200..."); // cut between two CPUs
	cpu_list_parse("1000-16383", &l);
	assert_string_equal(cpu_list_format(&l, small, 4), "...");
}

static void sets(void **state)
{
	struct cpu_list a, b, c;

	cpu_list_parse("0-3,1024", &a);
	cpu_list_parse("2-5", &b);
	c = cpu_list_both(&a, &b);
	assert_string_equal(cpu_list_format(&c, text, sizeof(text)), "2-3");
	assert_true(cpu_list_within(&c, &a) && cpu_list_within(&c, &b) && !cpu_list_within(&a, &b));
	c = cpu_list_without(&a, &b);
	assert_string_equal(cpu_list_format(&c, text, sizeof(text)), "0-1,1024");
	assert_int_equal(cpu_list_count(&a), 5);
	assert_int_equal(cpu_list_next(&a, 4), 1024);
	assert_int_equal(cpu_list_next(&a, 1025), CPU_LIST_MAX);
	assert_int_equal(cpu_list_next(&a, CPU_LIST_MAX), CPU_LIST_MAX);
	assert_int_equal(cpu_list_last(&a), 1024);
	assert_true(cpu_list_has(&a, 1024) && !cpu_list_has(&a, 1025) && !cpu_list_has(&a, CPU_LIST_MAX));
	memset(&c, 0, sizeof(c));
	assert_int_equal(cpu_list_last(&c), CPU_LIST_MAX);
	assert_true(cpu_list_empty(&c) && cpu_list_within(&c, &a) && !cpu_list_eq(&c, &a) && cpu_list_eq(&a, &a));
}

static void affinity_of_a_thread(void **state)
{
	struct cpu_list before, now, one = {0};

	assert_int_equal(cpu_list_get_affinity(0, &before), 0);
	assert_false(cpu_list_empty(&before));
	cpu_list_add(&one, cpu_list_last(&before));
	assert_int_equal(cpu_list_set_affinity(0, &one), 0);
	assert_int_equal(cpu_list_get_affinity(0, &now), 0);
	assert_true(cpu_list_eq(&one, &now));
	assert_int_equal((unsigned)sched_getcpu(), cpu_list_last(&before));
	assert_int_equal(cpu_list_get_allowed(&now), 0);
	assert_true(cpu_list_within(&before, &now));
	assert_int_equal(cpu_list_get_affinity(0, &now), 0);
	assert_true(cpu_list_eq(&now, &one)); // unchanged
	assert_int_equal(cpu_list_set_affinity(0, &before), 0);
	memset(&one, 0, sizeof(one));
	assert_int_equal(cpu_list_set_affinity(0, &one), -EINVAL);
	cpu_list_add(&one, CPU_LIST_MAX - 1);
	assert_int_equal(cpu_list_set_affinity(0, &one), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(lists),     cmocka_unit_test(masks),
					   cmocka_unit_test(wide_mask), cmocka_unit_test(refused),
					   cmocka_unit_test(order),     cmocka_unit_test(formats),
					   cmocka_unit_test(sets),      cmocka_unit_test(affinity_of_a_thread)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
