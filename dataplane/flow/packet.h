// SPDX-License-Identifier: Apache-2.0
// What the flow nodes read of a packet. `v6` is a constant where these are called.
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
	FLOW_PACKET,         // key holds
	FLOW_FIRST_FRAGMENT, // key holds; what follows has no ports
	FLOW_LATER_FRAGMENT, // key holds but for the ports
	FLOW_ICMP_ERROR,     // about a packet of a flow that the other way
	FLOW_TRUNCATED,
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
	return v6 ? type < 128 : type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}

// The usual packet: no options, no fragment, TCP, UDP, SCTP or ICMP echo. False: flow_parse() must look.
static __rte_always_inline bool flow_key_fast(const struct rte_mbuf *m, const struct pkt_meta *md, struct flow_key *k,
					      uint8_t *tcp_flags, const bool v6)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, md->l3), *l4;
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
			; // ports lie where those of UDP do
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

// Any packet that passed forward_check4() or forward_check6().
void flow_parse(const struct rte_mbuf *m, unsigned l3, uint16_t zone, struct flow_packet *p);
// The packet that an ICMP error is about, at offset `at`. False: too little of it is there.
bool flow_parse_inner(const struct rte_mbuf *m, unsigned at, uint16_t zone, bool v6, struct flow_key *k);
