// SPDX-License-Identifier: Apache-2.0
// Neighbour discovery for IPv6 (RFC 4861), for the nodes of neighbor/, boot/ and l2/, and for the master thread.
#pragma once

#include <stdbool.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

enum nd_type { ND_ROUTER_SOLICIT = 133, ND_ROUTER_ADVERT, ND_SOLICIT, ND_ADVERT, ND_REDIRECT };
enum nd_option { ND_OPT_SOURCE_MAC = 1, ND_OPT_TARGET_MAC = 2 };

#define ND_ROUTER RTE_BE32(0x80000000)
#define ND_SOLICITED RTE_BE32(0x40000000)
#define ND_OVERRIDE RTE_BE32(0x20000000)

struct nd_header {
	uint8_t type, code;
	uint16_t checksum;
	uint32_t flags;     // of advertisements only
	uint8_t target[16]; // solicitations and advertisements
} __rte_packed __rte_aligned(2);

struct nd_mac_option {
	uint8_t type, len; // in units of 8 bytes
	struct rte_ether_addr mac;
} __rte_packed __rte_aligned(2);

#define ND_LEN (sizeof(struct nd_header) + sizeof(struct nd_mac_option)) // bytes of each message that the router sends

struct nd_packet {
	struct rte_ether_hdr *eth;
	struct rte_ipv6_hdr *ip;
	struct nd_header *nd;
	const struct rte_ether_addr *mac; // from the option that belongs to the type; NULL: absent, or not a host's MAC
};

// Parses the packet whose IPv6 header is at offset meta->l3 of a frame. False: malformed (RFC 4861, 6.1, 7.1 and 8.1).
bool nd_parse(struct rte_mbuf *m, struct nd_packet *p);

// Turns a solicitation into the advertisement that the target is at mac. A proxy clears override. False: the buffer has
// no room for the option.
bool nd_answer(struct rte_mbuf *m, struct nd_packet *p, const struct rte_ether_addr *mac, bool override);

void nd_fill_ip(struct rte_ipv6_hdr *ip, const uint8_t src[16], const uint8_t dst[16]);
void nd_fill_checksum(const struct rte_ipv6_hdr *ip, struct nd_header *nd);
bool nd_is_unspecified(const uint8_t a[16]);
