// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "boot/dhcp4_message.h"

static struct {
	struct dhcp4_header header;
	uint8_t options[64];
} message;

static struct dhcp4_request parsed;

// The options of a message are the bytes of a string literal, without its terminator.
#define parse(options) parse_bytes(options, sizeof(options) - 1)

static bool parse_bytes(const char *options, size_t len)
{
	memcpy(message.options, options, len);
	return dhcp4_parse(&message, sizeof(message.header) + len, &parsed);
}

static int new_message(void **state)
{
	memset(&message, 0, sizeof(message));
	message.header.op = message.header.htype = 1;
	message.header.hlen = 6;
	message.header.cookie = DHCP4_COOKIE;
	return 0;
}

static void requests(void **state)
{
	assert_true(parse("\x35\1\3\0\0\x32\4\x0a\1\0\2\x36\4\x0a\1\0\1\x39\2\5\xdc\x3d\3\1\2\3\xff\x35\1\2"));
	assert_int_equal(parsed.type, DHCP4_REQUEST);
	assert_int_equal(parsed.requested, RTE_BE32(0x0a010002));
	assert_int_equal(parsed.server, RTE_BE32(0x0a010001));
	assert_int_equal(parsed.max_size, 1500);
	assert_int_equal(parsed.client_len, 3);
	assert_memory_equal(parsed.client, "\1\2\3", 3);
	assert_ptr_equal(parsed.header, &message);
}

static void defaults(void **state)
{
	assert_true(parse("\x35\1\1")); // without an end
	assert_int_equal(parsed.requested, 0);
	assert_int_equal(parsed.server, 0);
	assert_null(parsed.client);
	assert_int_equal(parsed.max_size, DHCP4_IP_SIZE);
	assert_true(parse("\x35\1\1\x39\2\0\x40\xff")); // less than each client must take
	assert_int_equal(parsed.max_size, DHCP4_IP_SIZE);
}

static void relayed(void **state)
{
	assert_true(parse("\x35\1\1\x52\4\1\2ab\xff"));
	assert_int_equal(parsed.relay_len, 4);
	assert_memory_equal(parsed.relay, "\1\2ab", 4);
	assert_true(parse("\x35\1\1\xff"));
	assert_null(parsed.relay);
}

static void overloaded(void **state)
{
	memcpy(message.header.file, "\x32\4\x0a\1\0\2\xff", 7);
	memcpy(message.header.sname, "\x36\4\x0a\1\0\1\xff", 7);
	assert_true(parse("\x35\1\3\x34\1\1\xff"));
	assert_int_equal(parsed.requested, RTE_BE32(0x0a010002));
	assert_int_equal(parsed.server, 0);
	assert_true(parse("\x35\1\3\x34\1\2\xff"));
	assert_int_equal(parsed.requested, 0);
	assert_int_equal(parsed.server, RTE_BE32(0x0a010001));
	assert_true(parse("\x35\1\3\x34\1\3\xff"));
	assert_int_equal(parsed.requested, RTE_BE32(0x0a010002));
	assert_int_equal(parsed.server, RTE_BE32(0x0a010001));
	memset(message.header.file, 0, sizeof(message.header.file));
	message.header.file[127] = 0x32; // an option without its length
	assert_false(parse("\x35\1\3\x34\1\1\xff"));
}

static void refused(void **state)
{
	assert_false(parse(""));
	assert_false(parse("\xff\x35\1\1"));
	assert_false(parse("\x35\1\0\xff"));
	assert_false(parse("\x35\1\x09\xff"));
	assert_false(parse("\x35\0\xff"));
	assert_false(parse("\x35\2\1\1\xff"));
	assert_false(parse("\x35\1\1\x32"));
	assert_false(parse("\x35\1\1\x32\4\x0a\1\0"));
	assert_false(parse("\x35\1\1\x32\3\x0a\1\0\xff"));
	assert_false(parse("\x35\1\1\x36\5\x0a\1\0\1\2\xff"));
	assert_false(parse("\x35\1\1\x39\1\5\xff"));
	assert_false(parse("\x35\1\1\x3d\1\1\xff")); // a type without an identifier
	assert_false(parse("\x35\1\1\x52\1\1\xff"));
	assert_false(parse("\x35\1\1\x34\1\0\xff"));
	assert_false(parse("\x35\1\1\x34\1\4\xff"));
	memcpy(message.header.file, "\x34\1\2\xff", 4); // overload within an overloaded field
	assert_false(parse("\x35\1\1\x34\1\1\xff"));
	assert_false(dhcp4_parse(&message, sizeof(message.header) - 1, &parsed));
	message.header.cookie = 0;
	assert_false(parse("\x35\1\1\xff"));
	message.header.cookie = DHCP4_COOKIE;
	message.header.op = 2;
	assert_false(parse("\x35\1\1\xff"));
}

static void options_that_fit(void **state)
{
	const struct ip_addr list[] = {
		ip4_addr(RTE_BE32(0x0a010035)), {.family = IPV6}, ip4_addr(RTE_BE32(0x0a010036))};
	uint8_t out[32] = {0};
	struct dhcp4_writer w = {out, out + sizeof(out) - 1};

	assert_true(dhcp4_append_number(&w, DHCP4_MTU, 1450, 2));
	assert_true(dhcp4_append_text(&w, DHCP4_DOMAIN, ""));
	assert_true(dhcp4_append_text(&w, DHCP4_DOMAIN, "red"));
	assert_true(dhcp4_append_addresses(&w, DHCP4_DNS, list, 3));
	assert_true(dhcp4_append_addresses(&w, DHCP4_NTP, list + 1, 1)); // none of this family
	assert_memory_equal(out, "\x1a\2\5\xaa\x0f\3red\6\x08\x0a\1\0\x35\x0a\1\0\x36", 19);
	assert_ptr_equal(w.at, out + 19);
	assert_false(dhcp4_append_text(&w, DHCP4_HOST_NAME, "eleven-long"));
	assert_true(dhcp4_append_text(&w, DHCP4_HOST_NAME, "ten-longer"));
	assert_ptr_equal(w.at, w.end);
	assert_false(dhcp4_append(&w, DHCP4_ROUTES, out, 0));
	w.end = w.at + 1000;
	assert_false(dhcp4_append(&w, DHCP4_ROUTES, out, 256));
}

static void routes(void **state)
{
	static const struct {
		uint8_t len;
		const char *bytes;
		unsigned n;
	} all[] = {{0, "\0\x0a\1\0\1", 5},
		   {8, "\x08\x0a\x0a\1\0\1", 6},
		   {9, "\x09\x0a\x80\x0a\1\0\1", 7},
		   {32, "\x20\x0a\x80\1\2\x0a\1\0\1", 9}};
	struct ip_prefix to = {ip4_addr(RTE_BE32(0x0a800102)), 0};
	uint8_t out[9];
	unsigned i;

	for (i = 0; i < RTE_DIM(all); i++) {
		to.len = all[i].len;
		assert_int_equal(dhcp4_route(out, &to, RTE_BE32(0x0a010001)), all[i].n);
		assert_memory_equal(out, all[i].bytes, all[i].n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(requests, new_message),
		cmocka_unit_test_setup(defaults, new_message),
		cmocka_unit_test_setup(relayed, new_message),
		cmocka_unit_test_setup(overloaded, new_message),
		cmocka_unit_test_setup(refused, new_message),
		cmocka_unit_test(options_that_fit),
		cmocka_unit_test(routes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
