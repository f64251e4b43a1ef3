// SPDX-License-Identifier: Apache-2.0
#include "l2/snoop_message.h"

#include <netinet/in.h>
#include <string.h>

#include <rte_ip.h>

enum { IGMP_QUERY = 0x11, IGMP_REPORT1 = 0x12, IGMP_REPORT2 = 0x16, IGMP_LEAVE = 0x17, IGMP_REPORT3 = 0x22 };
enum { MLD_QUERY = 130, MLD_REPORT1 = 131, MLD_DONE = 132, MLD_REPORT2 = 143 };
enum { IS_INCLUDE = 1, IS_EXCLUDE, TO_INCLUDE, TO_EXCLUDE, ALLOW_NEW, BLOCK_OLD };

#define IGMP_LEN 8u
#define MLD_LEN 24u
#define RECORDS_AT 8u // of a report with records
#define VERSION_LEAVE 0

// A querier whose members may take longer to answer is not relied on: memberships would end before (RFC 3376, 8.4).
#define ANSWER_MOST 25000u // ms

static uint16_t snoop_16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

// A one's complement sum with its checksum in it is all ones.
static bool snoop_message_sum_ok(const uint8_t *message, unsigned len, uint32_t start)
{
	return __rte_raw_cksum_reduce(__rte_raw_cksum(message, len, start)) == 0xffff;
}

static unsigned snoop_record_head(const struct snoop_message *s)
{
	return 4 + ip_bytes(s->family);
}

// Bytes of the next record, 0 if it is longer than what is left.
static unsigned snoop_record_len(const struct snoop_message *s)
{
	unsigned len;

	if (s->len < snoop_record_head(s))
		return 0;
	len = snoop_record_head(s) + snoop_16(s->at + 2) * ip_bytes(s->family) + 4u * s->at[1];
	return len <= s->len ? len : 0;
}

static void snoop_message_records(struct snoop_message *s, const uint8_t *message, unsigned len)
{
	struct snoop_message walk;
	unsigned one;

	s->kind = SNOOP_REPORT;
	s->version = 3;
	s->n = snoop_16(message + 6);
	s->at = message + RECORDS_AT;
	s->len = len - RECORDS_AT;
	for (walk = *s; walk.n > 0; walk.n--, walk.at += one, walk.len -= one) {
		one = snoop_record_len(&walk);
		if (one == 0) {
			s->kind = SNOOP_DAMAGED;
			return;
		}
	}
}

static void snoop_message_one(struct snoop_message *s, const uint8_t *group, bool joins)
{
	s->kind = SNOOP_REPORT;
	s->version = joins ? 1 : VERSION_LEAVE;
	s->n = 1;
	s->at = group;
	s->len = ip_bytes(s->family);
}

// RFC 3376, 4.1.1: a floating point number from 128 on.
static uint32_t snoop_igmp_code(uint8_t code)
{
	return code < 128 ? code : (uint32_t)((code & 15) | 16) << ((code >> 4 & 7) + 3);
}

// RFC 3810, 5.1.3: the same from 32768 on.
static uint32_t snoop_mld_code(uint16_t code)
{
	return code < 0x8000 ? code : (uint32_t)((code & 0xfff) | 0x1000) << ((code >> 12 & 7) + 3);
}

// src: the source address; the destination's bytes follow.
static void snoop_igmp(struct snoop_message *s, const uint8_t *message, unsigned len, const uint8_t *src)
{
	static const uint8_t all_systems[] = {224, 0, 0, 1};
	bool general = snoop_16(message + 4) == 0 && snoop_16(message + 6) == 0;
	uint32_t tenths = len >= 12 ? snoop_igmp_code(message[1]) : message[1];

	switch (message[0]) {
	case IGMP_QUERY:
		s->kind = SNOOP_QUERY;
		s->elects = general && (snoop_16(src) | snoop_16(src + 2)) != 0 && tenths * 100 <= ANSWER_MOST &&
			    memcmp(src + 4, all_systems, sizeof(all_systems)) == 0;
		return;
	case IGMP_REPORT1:
	case IGMP_REPORT2:
	case IGMP_LEAVE:
		snoop_message_one(s, message + 4, message[0] != IGMP_LEAVE);
		return;
	case IGMP_REPORT3:
		snoop_message_records(s, message, len);
	}
}

static void snoop_message_read4(const uint8_t *ip, unsigned len, bool unchecked, struct snoop_message *s)
{
	unsigned hlen, total;

	if (len < sizeof(struct rte_ipv4_hdr) || ip[0] >> 4 != 4)
		return;
	hlen = (ip[0] & 15) * 4u;
	total = snoop_16(ip + 2);
	if (ip[9] == IPPROTO_PIM && len > hlen && (ip[hlen] & 15) == 0) {
		s->kind = SNOOP_HELLO;
		return;
	}
	if (ip[9] != IPPROTO_IGMP)
		return;
	s->kind = SNOOP_DAMAGED;
	if (hlen < sizeof(struct rte_ipv4_hdr) || total > len || total < hlen + IGMP_LEN ||
	    (snoop_16(ip + 6) & (RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK)) ||
	    (!unchecked && !snoop_message_sum_ok(ip + hlen, total - hlen, 0)))
		return;
	s->kind = SNOOP_DATA;
	snoop_igmp(s, ip + hlen, total - hlen, ip + 12);
}

static void snoop_mld(struct snoop_message *s, const uint8_t *message, unsigned len, const uint8_t *dst)
{
	static const uint8_t all_nodes[16] = {0xff, 2, [15] = 1};
	static const uint8_t none[16];

	switch (message[0]) {
	case MLD_QUERY:
		s->kind = len < MLD_LEN ? SNOOP_DAMAGED : SNOOP_QUERY;
		s->elects = len >= MLD_LEN && memcmp(message + 8, none, sizeof(none)) == 0 &&
			    snoop_mld_code(snoop_16(message + 4)) <= ANSWER_MOST &&
			    memcmp(dst, all_nodes, sizeof(all_nodes)) == 0;
		return;
	case MLD_REPORT1:
	case MLD_DONE:
		if (len < MLD_LEN)
			s->kind = SNOOP_DAMAGED;
		else
			snoop_message_one(s, message + 8, message[0] == MLD_REPORT1);
		return;
	case MLD_REPORT2:
		snoop_message_records(s, message, len);
	}
}

static bool snoop_is_mld(uint8_t type)
{
	return (type >= MLD_QUERY && type <= MLD_DONE) || type == MLD_REPORT2;
}

// Whether the message of len bytes comes from a host of the link: with a link-local address or, in reports, none yet.
static bool snoop_mld_valid(const uint8_t *ip, const uint8_t *message, unsigned len, bool unchecked)
{
	static const uint8_t none[16];
	bool local = ip[8] == 0xfe && (ip[9] & 0xc0) == 0x80;
	uint32_t start = __rte_raw_cksum(ip + 8, 32, 0) + rte_cpu_to_be_16((uint16_t)len) + RTE_BE16(IPPROTO_ICMPV6);

	if (ip[7] != 1 || (!local && (message[0] == MLD_QUERY || memcmp(ip + 8, none, sizeof(none)) != 0)))
		return false;
	return unchecked || snoop_message_sum_ok(message, len, start);
}

// MLD has a hop-by-hop header with the router alert, and no other.
static void snoop_message_read6(const uint8_t *ip, unsigned len, bool unchecked, struct snoop_message *s)
{
	const unsigned at = sizeof(struct rte_ipv6_hdr);
	unsigned ext, payload;

	if (len < at + 8 || ip[0] >> 4 != 6)
		return;
	payload = snoop_16(ip + 4);
	if (ip[6] == IPPROTO_PIM && (ip[at] & 15) == 0)
		s->kind = SNOOP_HELLO;
	if (ip[6] != IPPROTO_HOPOPTS || ip[at] != IPPROTO_ICMPV6)
		return;
	ext = (ip[at + 1] + 1u) * 8;
	if (len < at + ext + 8 || !snoop_is_mld(ip[at + ext]))
		return;
	s->kind = SNOOP_DAMAGED;
	if (payload > len - at || payload < ext + 8 || !snoop_mld_valid(ip, ip + at + ext, payload - ext, unchecked))
		return;
	snoop_mld(s, ip + at + ext, payload - ext, ip + 24);
}

void snoop_message_read(const uint8_t *ip, unsigned len, rte_be16_t type, bool unchecked, struct snoop_message *out)
{
	*out = (struct snoop_message){.kind = SNOOP_DATA};
	out->family = type == RTE_BE16(RTE_ETHER_TYPE_IPV4) ? IPV4 : IPV6;
	if (out->family == IPV4)
		snoop_message_read4(ip, len, unchecked, out);
	else
		snoop_message_read6(ip, len, unchecked, out);
}

// What a record says about its group, whoever its sources are: 1 joins, -1 leaves, 0 neither.
static int snoop_record_sense(const uint8_t *record)
{
	bool sources = snoop_16(record + 2) > 0;

	switch (record[0]) {
	case IS_EXCLUDE:
	case TO_EXCLUDE:
		return 1;
	case IS_INCLUDE:
	case ALLOW_NEW:
		return sources;
	case TO_INCLUDE:
		return sources ? 1 : -1;
	default: // BLOCK_OLD: others may still be wanted
		return 0;
	}
}

bool snoop_message_next(struct snoop_message *s, struct snoop_record *out)
{
	const uint8_t *record;
	unsigned one;
	int sense;

	while (s->n > 0) {
		record = s->at;
		one = s->version == 3 ? snoop_record_len(s) : s->len;
		sense = s->version == 3 ? snoop_record_sense(record) : s->version == VERSION_LEAVE ? -1 : 1;
		s->n--;
		s->at += one;
		s->len -= one;
		*out = (struct snoop_record){.group.family = s->family, .joins = sense > 0};
		memcpy(out->group.bytes, s->version == 3 ? record + 4 : record, ip_bytes(s->family));
		if (sense != 0 && snoop_is_group(&out->group))
			return true;
	}
	return false;
}
