// SPDX-License-Identifier: Apache-2.0
// Messages about membership of multicast groups: IGMP (RFC 1112, 2236, 3376), MLD (RFC 2710, 3810), and the hello of
// PIM (RFC 7761), which says where a multicast router is. Reads only, and nothing outside of the packet.
#pragma once

#include <stdbool.h>

#include <rte_byteorder.h>
#include <rte_ether.h>

#include "base/ip.h"

enum snoop_kind {
	SNOOP_DATA,   // no such message: forwarded by its destination
	SNOOP_REPORT, // of members, also that they leave
	SNOOP_QUERY,
	SNOOP_HELLO,   // of a multicast router
	SNOOP_DAMAGED, // nothing may be read from it
};

struct snoop_message {
	enum snoop_kind kind;
	uint8_t family;
	bool elects; // a general query with the address of its sender, which is the querier of the link
	uint16_t n;  // records that are left
	uint8_t version;
	const uint8_t *at; // the next one
	unsigned len;      // bytes from there on
};

// One group of a report.
struct snoop_record {
	struct ip_addr group;
	bool joins; // false: leaves
};

// The payload of a frame with this Ethernet type, IPv4 or IPv6; len: bytes that are there. unchecked: the sender left
// the checksum to the router.
void snoop_message_read(const uint8_t *ip, unsigned len, rte_be16_t type, bool unchecked, struct snoop_message *out);

// The next record of a report that says something about a group that is snooped. False: there is none.
bool snoop_message_next(struct snoop_message *s, struct snoop_record *out);

// Groups of one link are flooded (RFC 4541, 2.1.2): 224.0.0.0/24, and IPv6 groups with a scope up to link-local, among
// them those of neighbour discovery.
static inline bool snoop_is_group(const struct ip_addr *a)
{
	if (a->family == IPV4)
		return (a->bytes[0] & 0xf0) == 0xe0 && (a->bytes[0] != 224 || a->bytes[1] != 0 || a->bytes[2] != 0);
	return a->family == IPV6 && a->bytes[0] == 0xff && (a->bytes[1] & 15) > 2;
}
