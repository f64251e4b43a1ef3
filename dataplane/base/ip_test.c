// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/field_limits.h"
#include "base/ip.h"

static void prefixes(void **state)
{
	static const char *const good[] = {"0.0.0.0/0", "10.1.2.0/24",   "10.1.2.3/32",
					   "::/0",      "2001:db8::/32", "2001:db8::1/128"};
	static const char *const bad[] = {
		"",         "10.0.0.0",       "10.0.0.0/", "10.0.0.0/33", "10.0.0.1/24", "10.0.0.0/024", "10.0.0.0/-1",
		"10.0.0/8", "2001:db8::1/64", "::/129",    "/8",          "10.0.0.0/8 ", "x/8"};
	struct ip_prefix p;
	struct error err;
	char buf[IP_TEXT];
	unsigned i;

	for (i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(ip_parse_prefix(good[i], "prefix", &p, &err), 0);
		assert_string_equal(ip_format_prefix(&p, buf), good[i]);
	}
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(ip_parse_prefix(bad[i], "prefix", &p, &err), -EINVAL);
		assert_string_equal(err.field, "prefix");
		assert_string_equal(err.value, bad[i]);
		assert_true(err.valid[0] != '\0');
	}
	assert_int_equal(ip_parse_prefix(NULL, "prefix", &p, &err), -EINVAL);
	ip_parse_prefix("10.0.0.1/24", "prefix", &p, &err);
	assert_string_equal(err.message, "prefix '10.0.0.1/24': has host bits set; valid: 10.0.0.0/24");
	ip_parse_prefix("10.0.0.1", "prefix", &p, &err);
	assert_string_equal(err.message, "prefix '10.0.0.1': is not a prefix; valid: " NOTATION_PREFIX_VALID);
	ip_parse_ifaddr("10.0.0.1", "address", &p, &err);
	assert_string_equal(err.message, "address '10.0.0.1': is not an address with a prefix length; valid: "
					 "the address of a host with its prefix length, such as \"192.0.2.1/24\"");
}

static void covers(void **state)
{
	struct ip_prefix p;
	struct ip_addr a;

	ip_parse_prefix("10.1.128.0/17", NULL, &p, NULL);
	ip_parse_addr("10.1.128.1", NULL, &a, NULL);
	assert_true(ip_prefix_covers(&p, &a));
	ip_parse_addr("10.1.127.1", NULL, &a, NULL);
	assert_false(ip_prefix_covers(&p, &a));
	ip_parse_addr("::1", NULL, &a, NULL);
	assert_false(ip_prefix_covers(&p, &a));
}

static void macs(void **state)
{
	static const char *const bad[] = {"",
					  "02:00:00:00:00",
					  "ff:ff:ff:ff:ff:ff",
					  "01:00:5e:00:00:01",
					  "00:00:00:00:00:00",
					  "zz:00:00:00:00:01"};
	struct rte_ether_addr mac;
	char buf[18];
	unsigned i;

	assert_int_equal(mac_parse("02:00:00:aa:BB:01", "mac", &mac, NULL), 0);
	assert_string_equal(mac_format(&mac, buf), "02:00:00:aa:bb:01");
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(mac_parse(bad[i], "mac", &mac, NULL), -EINVAL);
}

static void protocols(void **state)
{
	static const char *const bad[] = {"", "any", "256", "-1", "6x", " 6", "+6", "TCP", "99999999999999999999"};
	uint8_t number;
	struct error err;
	char buf[4];
	unsigned i;

	assert_int_equal(ip_parse_protocol("sctp", "protocol", &number, NULL), 0);
	assert_int_equal(number, 132);
	assert_string_equal(ip_format_protocol(number, buf), "sctp");
	assert_int_equal(ip_parse_protocol("255", "protocol", &number, NULL), 0);
	assert_string_equal(ip_format_protocol(number, buf), "255");
	assert_int_equal(ip_parse_protocol("0", "protocol", &number, NULL), 0);
	assert_string_equal(ip_format_protocol(number, buf), "0");
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(ip_parse_protocol(bad[i], "protocol", &number, NULL), -EINVAL);
	ip_parse_protocol("ospf", "protocol", &number, &err);
	assert_string_equal(err.message, "protocol 'ospf': is not an IP protocol; valid: "
					 "tcp, udp, sctp, icmp, icmpv6 or a number from 0 to 255");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(prefixes), cmocka_unit_test(covers), cmocka_unit_test(macs),
					   cmocka_unit_test(protocols)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
