// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <rte_ip.h>

#include "l2/snoop_message.h"

static struct snoop_message read;

// --- Packets around a message, with correct checksums. ---

static uint8_t packet[512];

#define igmp(src, bytes) igmp_packet(src, bytes, sizeof(bytes) - 1)
#define mld(src, bytes) mld_packet(src, bytes, sizeof(bytes) - 1)

static unsigned igmp_packet(uint8_t src, const char *bytes, unsigned len)
{
	const uint8_t head[24] = {0x46, 0xc0, 0, (uint8_t)(24 + len), 0, 0, 0, 0, 1, 2, 0, 0, 10, 0, 0, src, 224, 0, 0,
				  22,   0x94, 4};
	uint16_t sum;

	memcpy(packet, head, sizeof(head));
	if (src == 0)
		packet[12] = 0;
	if (bytes[0] == 0x11) // queries are for all hosts
		packet[19] = 1;
	memcpy(packet + 24, bytes, len);
	sum = (uint16_t)~rte_raw_cksum(packet + 24, len);
	memcpy(packet + 26, &sum, sizeof(sum));
	return 24 + len;
}

static unsigned mld_packet(uint8_t src, const char *bytes, unsigned len)
{
	const uint8_t head[48] = {
		0x60, [5] = (uint8_t)(8 + len), [7] = 1, [24] = 0xff, 2, [39] = 0x16, 58, 0, 5, 2, 0, 0, 1};
	uint32_t start;
	uint16_t sum;

	memcpy(packet, head, sizeof(head));
	if (src) {
		packet[8] = 0xfe;
		packet[9] = 0x80;
		packet[23] = src;
	}
	if ((uint8_t)bytes[0] == 0x82)
		packet[39] = 1;
	memcpy(packet + 48, bytes, len);
	start = __rte_raw_cksum(packet + 8, 32, rte_cpu_to_be_16((uint16_t)len) + (uint32_t)RTE_BE16(58));
	sum = (uint16_t)~__rte_raw_cksum_reduce(__rte_raw_cksum(packet + 48, len, start));
	memcpy(packet + 50, &sum, sizeof(sum));
	return 48 + len;
}

static enum snoop_kind kind_of(unsigned len)
{
	rte_be16_t type = packet[0] >> 4 == 4 ? RTE_BE16(RTE_ETHER_TYPE_IPV4) : RTE_BE16(RTE_ETHER_TYPE_IPV6);

	snoop_message_read(packet, len, type, false, &read);
	return read.kind;
}

// "+239.1.1.1 -239.1.1.2": what the report says.
static void assert_says(unsigned len, const char *want)
{
	char text[512] = "", addr[IP_TEXT];
	struct snoop_record r;
	size_t n = 0;

	assert_int_equal(kind_of(len), SNOOP_REPORT);
	while (snoop_message_next(&read, &r))
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%c%s", n ? " " : "", r.joins ? '+' : '-',
				      ip_format_addr(&r.group, addr));
	assert_string_equal(text, want);
}

#define G1 "\xef\1\1\1"
#define G2 "\xef\1\1\2"
#define M1 "\xff\x0e\0\0\0\0\0\0\0\0\0\0\0\0\0\1"
#define M2 "\xff\x05\0\0\0\0\0\0\0\0\0\0\0\0\0\2"
#define S4 "\x0a\0\0\x09"
#define S6 "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x09"

static void old_reports(void **state)
{
	assert_says(igmp(2, "\x12\0\0\0" G1), "+239.1.1.1");
	assert_says(igmp(2, "\x16\0\0\0" G1), "+239.1.1.1");
	assert_says(igmp(2, "\x17\0\0\0" G2), "-239.1.1.2");
	assert_says(igmp(0, "\x16\0\0\0" G1), "+239.1.1.1"); // before it has an address
	assert_says(mld(2, "\x83\0\0\0\0\0\0\0" M1), "+ff0e::1");
	assert_says(mld(2, "\x84\0\0\0\0\0\0\0" M2), "-ff05::2");
	assert_says(mld(0, "\x83\0\0\0\0\0\0\0" M1), "+ff0e::1");
}

static void records(void **state)
{
	assert_says(igmp(2, "\x22\0\0\0\0\0\0\2"
			    "\4\0\0\0" G1 "\3\0\0\0" G2),
		    "+239.1.1.1 -239.1.1.2");
	// Sources do not count, but a report that wants none of them leaves.
	assert_says(igmp(2, "\x22\0\0\0\0\0\0\3"
			    "\1\0\0\1" G1 S4 "\5\0\0\2" G2 S4 S4 "\6\0\0\1" G1 S4),
		    "+239.1.1.1 +239.1.1.2");
	assert_says(igmp(2, "\x22\0\0\0\0\0\0\2"
			    "\1\0\0\0" G1 "\2\1\0\0" G2 "aux!"),
		    "+239.1.1.2");
	assert_says(igmp(2, "\x22\0\0\0\0\0\0\1"
			    "\3\0\0\1" G1 S4),
		    "+239.1.1.1");
	assert_says(mld(2, "\x8f\0\0\0\0\0\0\2"
			   "\4\0\0\0" M1 "\3\0\0\0" M2),
		    "+ff0e::1 -ff05::2");
	assert_says(mld(2, "\x8f\0\0\0\0\0\0\2"
			   "\1\0\0\1" M1 S6 "\2\1\0\0" M2 "aux!"),
		    "+ff0e::1 +ff05::2");
	assert_says(igmp(2, "\x22\0\0\0\0\0\0\0"), "");
}

// Groups of the link are flooded, so that nobody has to join them; what is no group at all is left out.
static void groups_that_are_not_snooped(void **state)
{
	assert_says(igmp(2, "\x16\0\0\0\xe0\0\0\xfb"), "");
	assert_says(igmp(2, "\x16\0\0\0\x0a\0\0\1"), "");
	assert_says(igmp(2, "\x16\0\0\0\xe0\0\1\1"), "+224.0.1.1");
	assert_says(mld(2, "\x83\0\0\0\0\0\0\0\xff\2\0\0\0\0\0\0\0\0\0\1\xff\0\0\1"), "");
	assert_says(mld(2, "\x83\0\0\0\0\0\0\0" S6), "");
}

static void queries(void **state)
{
	unsigned len;

	assert_int_equal(kind_of(igmp(2, "\x11\x64\0\0\0\0\0\0")), SNOOP_QUERY);
	assert_true(read.elects);
	assert_int_equal(kind_of(igmp(2, "\x11\x64\0\0" G1)), SNOOP_QUERY);
	assert_false(read.elects);
	assert_int_equal(kind_of(igmp(0, "\x11\x64\0\0\0\0\0\0")), SNOOP_QUERY);
	assert_false(read.elects); // a switch's, like ours
	assert_int_equal(kind_of(igmp(2, "\x11\xff\0\0\0\0\0\0\2\x7d\0\0")), SNOOP_QUERY);
	assert_false(read.elects); // its answers may take 53 minutes
	len = igmp(2, "\x11\x64\0\0\0\0\0\0");
	packet[19] = 2;
	assert_int_equal(kind_of(len), SNOOP_QUERY);
	assert_false(read.elects); // for routers: no host answers
	assert_int_equal(kind_of(mld(2, "\x82\0\0\0\x27\x10\0\0"
					"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")),
			 SNOOP_QUERY);
	assert_true(read.elects);
	assert_int_equal(kind_of(mld(2, "\x82\0\0\0\xff\xff\0\0"
					"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2\x7d\0\0")),
			 SNOOP_QUERY);
	assert_false(read.elects);
	assert_int_equal(kind_of(mld(2, "\x82\0\0\0\x27\x10\0\0" M1)), SNOOP_QUERY);
	assert_false(read.elects);
}

static void other_packets(void **state)
{
	unsigned len = igmp(2, "\x30\0\0\0\0\0\0\0"); // of multicast router discovery

	assert_int_equal(kind_of(len), SNOOP_DATA);
	packet[9] = 17;
	assert_int_equal(kind_of(len), SNOOP_DATA);
	packet[9] = 103;
	packet[24] = 0x20;
	assert_int_equal(kind_of(len), SNOOP_HELLO);
	packet[24] = 0x23;
	assert_int_equal(kind_of(len), SNOOP_DATA);
	len = mld(2, "\x80\0\0\0\0\0\0\0");
	assert_int_equal(kind_of(len), SNOOP_DATA);
	packet[6] = 103;
	packet[40] = 0x20;
	assert_int_equal(kind_of(len), SNOOP_HELLO);
	assert_int_equal(kind_of(10), SNOOP_DATA);
}

static void damaged4(void **state)
{
	unsigned len = igmp(2, "\x16\0\0\0" G1), i;

	for (i = 20; i < len; i++)
		assert_int_equal(kind_of(i), SNOOP_DAMAGED);
	packet[6] = 0x20; // a fragment
	assert_int_equal(kind_of(len), SNOOP_DAMAGED);
	len = igmp(2, "\x16\0\0\0" G1);
	packet[26] ^= 1;
	assert_int_equal(kind_of(len), SNOOP_DAMAGED);
	snoop_message_read(packet, len, RTE_BE16(RTE_ETHER_TYPE_IPV4), true, &read);
	assert_int_equal(read.kind, SNOOP_REPORT); // the sender left the checksum to us
	assert_int_equal(kind_of(igmp(2, "\x22\0\0\0\0\0\0\2"
					 "\4\0\0\0" G1)),
			 SNOOP_DAMAGED);
	assert_int_equal(kind_of(igmp(2, "\x22\0\0\0\0\0\0\1"
					 "\4\0\xff\xff" G1)),
			 SNOOP_DAMAGED);
	assert_int_equal(kind_of(igmp(2, "\x22\0\0\0\0\0\0\1"
					 "\4\xff\0\0" G1)),
			 SNOOP_DAMAGED);
}

static void damaged6(void **state)
{
	unsigned len = mld(2, "\x83\0\0\0\0\0\0\0" M1);

	assert_int_equal(kind_of(len - 1), SNOOP_DAMAGED);
	packet[50] ^= 1;
	assert_int_equal(kind_of(len), SNOOP_DAMAGED);
	packet[50] ^= 1;
	packet[7] = 2; // it has passed a router
	assert_int_equal(kind_of(len), SNOOP_DAMAGED);
	assert_int_equal(kind_of(mld(2, "\x83\0\0\0\0\0\0\0"
					"\xff\x0e")),
			 SNOOP_DAMAGED);
	assert_int_equal(kind_of(mld(2, "\x82\0\0\0\0\0\0\0"
					"\xff\x0e")),
			 SNOOP_DAMAGED);
	assert_int_equal(kind_of(mld(0, "\x82\0\0\0\x27\x10\0\0"
					"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")),
			 SNOOP_DAMAGED);
	assert_int_equal(kind_of(mld(2, "\x8f\0\0\0\0\0\0\1"
					"\4\0\0\1" M1)),
			 SNOOP_DAMAGED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(old_reports),
		cmocka_unit_test(records),
		cmocka_unit_test(groups_that_are_not_snooped),
		cmocka_unit_test(queries),
		cmocka_unit_test(other_packets),
		cmocka_unit_test(damaged4),
		cmocka_unit_test(damaged6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
