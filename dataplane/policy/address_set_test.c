// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/address_set.h"

static struct ip_addr addr(const char *text)
{
	struct ip_addr a;

	assert_int_equal(ip_parse_addr(text, "", &a, NULL), 0);
	return a;
}

static struct address_set *set_of(const char *const *texts, size_t n)
{
	struct ip_prefix p[16];
	struct address_group g = {.n = n, .prefixes = p};
	struct address_set *s;
	size_t i;

	for (i = 0; i < n; i++)
		assert_int_equal(ip_parse_prefix(texts[i], "", &p[i], NULL), 0);
	s = address_set_make(&g);
	assert_non_null(s);
	return s;
}

static void assert_has(const struct address_set *s, const char *text, bool expected)
{
	struct ip_addr a = addr(text);

	if (address_set_has(s, &a) != expected)
		fail_msg("%s: expected %d", text, expected);
}

static void edges(void **state)
{
	// As a group keeps them: sorted by family, address and length.
	static const char *const texts[] = {"10.0.0.0/8",         "10.1.0.0/16",   "192.0.2.7/32",
					    "255.255.255.255/32", "2001:db8::/33", "2001:db8:ffff::/48"};
	struct address_set *s = set_of(texts, 6);

	assert_int_equal(s->n, 5); // 10.1.0.0/16 lies in 10.0.0.0/8
	assert_has(s, "9.255.255.255", false);
	assert_has(s, "10.0.0.0", true);
	assert_has(s, "10.1.2.3", true);
	assert_has(s, "10.255.255.255", true);
	assert_has(s, "11.0.0.0", false);
	assert_has(s, "192.0.2.6", false);
	assert_has(s, "192.0.2.7", true);
	assert_has(s, "192.0.2.8", false);
	assert_has(s, "255.255.255.255", true);
	assert_has(s, "2001:db8:7fff:ffff:ffff:ffff:ffff:ffff", true);
	assert_has(s, "2001:db8:8000::", false);
	assert_has(s, "2001:db8:ffff::1", true);
	assert_has(s, "::ffff:10.0.0.1", false);
	free(s);
}

static void all_of_a_family(void **state)
{
	static const char *const four[] = {"0.0.0.0/0"}, *const six[] = {"::/0"};
	struct address_set *s = set_of(four, 1);

	assert_has(s, "0.0.0.0", true);
	assert_has(s, "255.255.255.255", true);
	assert_has(s, "::", false);
	free(s);
	s = set_of(six, 1);
	assert_has(s, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", true);
	assert_has(s, "192.0.2.1", false);
	free(s);
	s = set_of(NULL, 0);
	assert_has(s, "192.0.2.1", false);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(edges), cmocka_unit_test(all_of_a_family)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
