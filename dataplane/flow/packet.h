// SPDX-License-Identifier: Apache-2.0
// Parses packets into flow keys. Callers pass `v6` as a constant.
#pragma once

#include <netinet/in.h>

#include "flow/flow.h"
#include "l3/ip_header.h"

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10
#define PROTO_SCTP 132

enum flow_kind {
	FLOW_PACKET,         // key is valid
	FLOW_FIRST_FRAGMENT, // key is valid; the later fragments have no ports
	FLOW_LATER_FRAGMENT, // key is valid except for the ports
	FLOW_ICMP_ERROR,     // about a packet that travelled the other way
	FLOW_TRUNCATED,      // key is not valid
};

struct flow_packet {
	struct flow_key key;
	enum flow_kind kind;
	uint16_t l4; // offset of the transport header from the packet's start
	uint8_t tcp_flags;
	uint32_t fragment_id; // network byte order
};

static inline bool icmp_is_echo(uint8_t type, const bool v6)
{
	return v6 ? type == 128 || type == 129 : type == 8 || type == 0;
}

static inline bool icmp_is_error(uint8_t type, const bool v6)
{
	return v6 ? type < 128 : type == 3 || type == 11 || type == 12; // source quench and redirect: the rules decide
}

// Parses the common packet: no options, no fragment, TCP, UDP, SCTP or ICMP echo. Returns false if flow_parse() must
// parse it.
static __rte_always_inline bool flow_key_fast(const struct rte_mbuf *m, const struct pkt_meta *md, const uint8_t *ip,
					      struct flow_key *k, uint8_t *tcp_flags, const bool v6)
{
	const uint8_t *l4;
	const struct rte_ipv4_hdr *ip4 = (const struct rte_ipv4_hdr *)ip;
	const unaligned_uint64_t *a6 = (const unaligned_uint64_t *)(ip + 8);
	unsigned avail = m->data_len - md->l3, hlen = v6 ? 40 : 20;
	uint8_t proto = v6 ? ip[6] : ip4->next_proto_id;
	uint32_t ports;

	if (unlikely(!v6 && (ip[0] != 0x45 || (ip4->fragment_offset & RTE_BE16(0x3fff)))))
		return false;
	l4 = ip + hlen;
	if (unlikely(avail < hlen + 8))
		return false;
	ports = *(const unaligned_uint32_t *)l4;
	*tcp_flags = 0;
	if (proto == IPPROTO_TCP) {
		if (unlikely(avail < hlen + 14))
			return false;
		*tcp_flags = l4[13];
	} else if (proto != IPPROTO_UDP) {
		if (proto == PROTO_SCTP)
			; // the ports are where UDP has them
		else if (proto == (v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP) && icmp_is_echo(l4[0], v6))
			ports = *(const unaligned_uint16_t *)(l4 + 4) * 0x10001u;
		else
			return false;
	}
	k->meta = (uint64_t)ports | (uint64_t)md->vrf << 32 | (uint64_t)proto << 48 | (uint64_t)(v6 ? 6 : 4) << 56;
	if (v6) {
		k->addr[0] = a6[0];
		k->addr[1] = a6[1];
		k->addr[2] = a6[2];
		k->addr[3] = a6[3];
	} else {
		k->addr[0] = *(const unaligned_uint64_t *)&ip4->src_addr;
	}
	return true;
}

// Parses any packet that passed forward_check4() or forward_check6().
void flow_parse(const struct rte_mbuf *m, unsigned l3, uint16_t zone, struct flow_packet *p);
// Parses the packet that an ICMP error quotes, at offset `at`. Returns false if the quote is too short or a later
// fragment.
bool flow_parse_inner(const struct rte_mbuf *m, unsigned at, uint16_t zone, bool v6, struct flow_key *k);
