// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "boot/dhcp6_message.h"

static struct dhcp6_request parsed;

// A message is a type and the bytes of a string literal, without its terminator.
#define parse(type, options) parse_bytes(type, options, sizeof(options) - 1)

static bool parse_bytes(uint8_t type, const char *options, size_t len)
{
	static uint8_t message[256];

	memcpy(message, (const uint8_t[]){type, 1, 2, 3}, 4);
	memcpy(message + 4, options, len);
	return dhcp6_parse(message, 4 + len, &parsed);
}

#define CLIENT "\0\1\0\3\0\3\1"
#define SERVER "\0\2\0\3\0\3\2"
#define IA           \
	"\0\3\0\x0c" \
	"abcd\0\0\0\0\0\0\0\0"
#define ADDRESS      \
	"\0\5\0\x18" \
	"0123456789abcdef\0\0\0\1\0\0\0\2"
#define IA_WITH_ADDRESS \
	"\0\3\0\x28"    \
	"abcd\0\0\0\0\0\0\0\0" ADDRESS

static void solicit(void **state)
{
	const uint8_t *address = NULL;
	unsigned at = 0;

	assert_true(parse(DHCP6_SOLICIT, CLIENT IA_WITH_ADDRESS "\0\x06\0\x04\0\x17\0\x18\0\x0e\0\0"));
	assert_memory_equal(parsed.header->xid, "\1\2\3", 3);
	assert_int_equal(parsed.client_len, 3);
	assert_memory_equal(parsed.client, "\0\3\1", 3);
	assert_null(parsed.server);
	assert_true(parsed.rapid_commit);
	assert_int_equal(parsed.n_ias, 1);
	assert_int_equal(parsed.ias[0].option, DHCP6_IA_NA);
	assert_memory_equal(parsed.ias[0].id, "abcd", 4);
	assert_true(dhcp6_next_address(&parsed.ias[0], &at, &address));
	assert_memory_equal(address, "0123456789abcdef", 16);
	assert_false(dhcp6_next_address(&parsed.ias[0], &at, &address));
	assert_true(dhcp6_wants(&parsed, DHCP6_DNS));
	assert_true(dhcp6_wants(&parsed, DHCP6_DOMAINS));
	assert_false(dhcp6_wants(&parsed, DHCP6_NTP));
	assert_true(parse(DHCP6_SOLICIT, CLIENT));
	assert_true(dhcp6_wants(&parsed, DHCP6_NTP)); // it does not say what it wants
	assert_int_equal(parsed.n_ias, 0);
}

// Each type of message with and without the identifiers that it must and must not have.
static void identifiers(void **state)
{
	static const struct {
		uint8_t type;
		bool none, client, both;
	} all[] = {
		{DHCP6_SOLICIT, false, true, false},      {DHCP6_ADVERTISE, false, false, false},
		{DHCP6_REQUEST, false, false, true},      {DHCP6_CONFIRM, false, true, false},
		{DHCP6_RENEW, false, false, true},        {DHCP6_REBIND, false, true, false},
		{DHCP6_REPLY, false, false, false},       {DHCP6_RELEASE, false, false, true},
		{DHCP6_DECLINE, false, false, true},      {DHCP6_RECONFIGURE, false, false, false},
		{DHCP6_INFORMATION, true, true, true},    {DHCP6_RELAY_FORWARD, false, false, false},
		{DHCP6_RELAY_REPLY, false, false, false}, {0, false, false, false},
	};
	unsigned i;

	for (i = 0; i < RTE_DIM(all); i++) {
		assert_int_equal(parse(all[i].type, ""), all[i].none);
		assert_int_equal(parse(all[i].type, CLIENT), all[i].client);
		assert_int_equal(parse(all[i].type, CLIENT SERVER), all[i].both);
	}
	assert_false(parse(DHCP6_INFORMATION, CLIENT IA));
}

static void associations(void **state)
{
	unsigned i;

	assert_true(parse(DHCP6_SOLICIT, CLIENT "\0\4\0\4wxyz" IA "\0\x19\0\x0c"
						"pref\0\0\0\0\0\0\0\0"));
	assert_int_equal(parsed.n_ias, 3);
	assert_int_equal(parsed.ias[0].option, DHCP6_IA_TA);
	assert_int_equal(parsed.ias[1].option, DHCP6_IA_NA);
	assert_int_equal(parsed.ias[2].option, DHCP6_IA_PD);
	assert_memory_equal(parsed.ias[2].id, "pref", 4);
	assert_true(parse(DHCP6_SOLICIT, CLIENT IA IA IA IA IA IA IA IA IA IA)); // more than are answered
	assert_int_equal(parsed.n_ias, DHCP6_MAX_IAS);
	for (i = 0; i < DHCP6_MAX_IAS; i++)
		assert_int_equal(parsed.ias[i].len, 0);
}

static void refused(void **state)
{
	assert_false(dhcp6_parse("\1\1\2", 3, &parsed));
	assert_false(parse(DHCP6_SOLICIT, CLIENT "\0"));
	assert_false(parse(DHCP6_SOLICIT, CLIENT "\0\6\0"));
	assert_false(parse(DHCP6_SOLICIT, CLIENT "\0\6\0\2\0"));
	assert_false(parse(DHCP6_SOLICIT, CLIENT "\0\6\0\1\0"));
	assert_false(parse(DHCP6_SOLICIT, CLIENT CLIENT));
	assert_false(parse(DHCP6_SOLICIT, "\0\1\0\2\0\3"));
	assert_false(parse(DHCP6_SOLICIT, CLIENT "\0\3\0\x0b"
						 "abcd\0\0\0\0\0\0\0"));
	assert_false(parse(DHCP6_SOLICIT, CLIENT "\0\4\0\3abc"));
	assert_false(parse(DHCP6_SOLICIT, CLIENT "\0\3\0\x0f"
						 "abcd\0\0\0\0\0\0\0\0\0\5\0"));
	assert_false(parse(DHCP6_SOLICIT, CLIENT "\0\3\0\x14"
						 "abcd\0\0\0\0\0\0\0\0\0\5\0\4"
						 "0123"));
	assert_false(parse(DHCP6_SOLICIT, CLIENT "\0\3\0\x10"
						 "abcd\0\0\0\0\0\0\0\0\0\7\0\1"));
}

static void options_that_fit(void **state)
{
	const struct ip_addr list[] = {ip6_addr((const uint8_t *)"0123456789abcdef"), {.family = IPV4}};
	uint8_t out[34] = {0};
	struct dhcp6_writer w = {out, out + sizeof(out)};

	assert_true(dhcp6_append_status(&w, DHCP6_NOT_ON_LINK));
	assert_true(dhcp6_append_addresses(&w, DHCP6_DNS, list, 2));
	assert_true(dhcp6_append_addresses(&w, DHCP6_DNS, list + 1, 1)); // none of this family
	assert_memory_equal(out,
			    "\0\x0d\0\2\0\4\0\x17\0\x10"
			    "0123456789abcdef",
			    26);
	assert_ptr_equal(w.at, out + 26);
	assert_false(dhcp6_append(&w, DHCP6_FQDN, "five5", 5));
	assert_true(dhcp6_append(&w, DHCP6_FQDN, "four", 4));
	assert_ptr_equal(w.at, w.end);
	assert_false(dhcp6_append_addresses(&w, DHCP6_DNS, list, 1));
	assert_null(dhcp6_reserve(&w, DHCP6_DNS, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(solicit), cmocka_unit_test(identifiers),      cmocka_unit_test(associations),
		cmocka_unit_test(refused), cmocka_unit_test(options_that_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
