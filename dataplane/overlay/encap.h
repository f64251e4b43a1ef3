// SPDX-License-Identifier: Apache-2.0
// Encapsulation, shared by all kinds: copies the prepared header of the next hop, then fills in the fields that depend
// on the packet. Callers pass *ops and `v6` (outer family) as constants.
#pragma once

#include <netinet/in.h>

#include <rte_udp.h>

#include "base/offload.h"
#include "graph/node.h"
#include "l3/encap.h"
#include "l3/ip_header.h"
#include "l3/nexthop.h"
#include "neighbor/adjacency.h"

enum { ENCAP_TX = 1, ENCAP_HOLD, ENCAP_SEGMENT };
#define ENCAP_NEXT [ENCAP_TX] = "port_tx", [ENCAP_HOLD] = "neighbor_hold", [ENCAP_SEGMENT] = "encap_segment"

#define ENTROPY_FIRST 49152 // RFC 7510, RFC 7348: source ports of tunnels
#define ENTROPY_MASK 0x3fff

// DSCP and ECN of the outer header: RFC 2983 and RFC 6040 (normal mode: ECN is copied).
static inline uint8_t outer_tos(const struct nexthop *nh, uint8_t inner)
{
	return nh->fixed_dscp ? (uint8_t)(nh->tos | (inner & 3)) : inner;
}

// Returns the TOS or traffic class of the IP packet behind the Ethernet header that ends at p, VLAN tags skipped; 0 if
// there is none.
static inline uint8_t frame_tos(const uint8_t *p)
{
	unsigned tags;

	for (tags = 0;; tags++, p += sizeof(struct rte_vlan_hdr)) {
		rte_be16_t type = *(const unaligned_uint16_t *)(p - 2);

		if (likely((type == RTE_BE16(RTE_ETHER_TYPE_IPV4) && (p[0] >> 4) == 4) ||
			   type == RTE_BE16(RTE_ETHER_TYPE_IPV6)))
			return ip_tos(p);
		if (tags == 2 || (type != RTE_BE16(RTE_ETHER_TYPE_VLAN) && type != RTE_BE16(RTE_ETHER_TYPE_QINQ)))
			return 0;
	}
}

static inline uint8_t inner_ttl(const uint8_t *ip)
{
	return (ip[0] >> 4) == 4 ? ip[8] : ip[7];
}

static inline void finish_ip4(struct rte_ipv4_hdr *ip, const struct nexthop *nh, uint8_t tos, uint8_t ttl, unsigned len)
{
	const rte_be16_t length = RTE_BE16(len); // rte_cpu_to_be_16() is assembly that the compiler does not understand
	uint32_t sum = nh->ip_sum;

	ip->type_of_service = tos;
	ip->total_length = length;
	sum += RTE_BE16(tos) + length;
	if (unlikely(ttl != nh->ttl)) {
		ip->time_to_live = ttl;
		sum += (uint16_t)~rte_cpu_to_be_16((uint16_t)(nh->ttl << 8)) + rte_cpu_to_be_16((uint16_t)(ttl << 8));
	}
	sum = (sum & 0xffff) + (sum >> 16);
	ip->hdr_checksum = (uint16_t) ~(sum + (sum >> 16));
}

static inline void finish_ip6(struct rte_ipv6_hdr *ip, uint8_t tos, uint8_t ttl, uint32_t hash, unsigned len)
{
	// RFC 6438: the flow label carries entropy as well.
	ip->vtc_flow = rte_cpu_to_be_32(6u << 28 | (uint32_t)tos << 20 | (hash & 0xfffff));
	ip->payload_len = RTE_BE16(len - sizeof(*ip));
	ip->hop_limits = ttl;
}

// RFC 8200: sum over the pseudo header and the whole datagram. RFC 768: 0 is sent as 0xffff.
static inline void udp6_checksum(const struct rte_mbuf *m, const struct nexthop *nh, struct rte_udp_hdr *udp)
{
	uint16_t raw = 0;
	uint32_t sum;

	udp->dgram_cksum = 0;
	if (rte_raw_cksum_mbuf(m, sizeof(struct rte_ipv6_hdr), m->pkt_len - (uint32_t)sizeof(struct rte_ipv6_hdr),
			       &raw) < 0)
		return;
	sum = nh->pseudo_sum + udp->dgram_len + raw;
	sum = (sum & 0xffff) + (sum >> 16);
	udp->dgram_cksum = (uint16_t) ~(sum + (sum >> 16));
	if (udp->dgram_cksum == 0)
		udp->dgram_cksum = 0xffff;
}

// Copies the last `max` bytes of the prepared header to in front of `end`, in steps of 16. A shorter header leaves
// garbage in the headroom.
static __rte_always_inline void copy_header(uint8_t *end, const struct nexthop *nh, unsigned max)
{
	const uint8_t *src = nh->hdr + TUNNEL_HDR_MAX;
	unsigned i;

	for (i = 16; i <= max; i += 16)
		rte_mov16(end - i, src - i);
}

// Upper bound of the size of all headers, rounded up to 16.
static __rte_always_inline unsigned header_room(const struct encap_ops *ops, const bool v6)
{
	return RTE_ALIGN_CEIL((v6 ? 40u : 20u) + ops->header, 16);
}

static __rte_always_inline edge_t encap_one(struct rte_mbuf *m, const struct encap_ops *ops, const bool v6)
{
	struct pkt_meta *md = meta(m);
	const struct nexthop *nh = md->nexthop;
	uint8_t *payload = rte_pktmbuf_mtod_offset(m, uint8_t *, md->l3), *end = payload, *hdr;
	bool frame = md->l3 == 0 && md->bridge != UINT16_MAX; // a bridged frame is the payload as it is
	const uint8_t *inner = frame ? payload + sizeof(struct rte_ether_hdr) : payload;
	unsigned hdr_len = nh->hdr_len, len;
	const rte_be16_t type = v6 ? RTE_BE16(RTE_ETHER_TYPE_IPV6) : RTE_BE16(RTE_ETHER_TYPE_IPV4);
	uint8_t tos, ttl = nh->ttl;
	struct rte_udp_hdr *udp;
	uint32_t path;
	int grown;

	if (unlikely(m->ol_flags & (OFFLOAD_UNFINISHED | OFFLOAD_CAME_WHOLE)))
		return ENCAP_SEGMENT;

	tos = likely(!frame) ? ip_tos(inner) : frame_tos(inner);
	tos = outer_tos(nh, tos);
	if (ops->inner_eth && frame) { // the frame has its own Ethernet header
		end += nh->inner_eth;
		hdr_len -= nh->inner_eth;
	}
	if (unlikely(nh->uniform && !frame))
		ttl = inner_ttl(inner);
	if (ops->inner_eth && frame) {
		uint8_t keep[16];

		rte_mov16(keep, payload);
		copy_header(end, nh, header_room(ops, v6));
		rte_mov16(payload, keep);
	} else {
		copy_header(end, nh, header_room(ops, v6));
	}
	if (ops->inner_eth && !frame)
		*(unaligned_uint16_t *)(payload - 2) = eth_type_of_ip(inner);
	if (ops->inner_ttl && unlikely(ttl != nh->ttl))
		payload[-1] = ttl;

	hdr = payload - hdr_len;
	grown = (int)hdr_len - md->l3;
	len = m->pkt_len + (unsigned)grown;
	md->l3 = 0;
	if (ops->proto == IPPROTO_UDP) {
		udp = (struct rte_udp_hdr *)(hdr + (v6 ? 40 : 20));
		udp->src_port = RTE_BE16(ENTROPY_FIRST + ((md->hash >> 16) & ENTROPY_MASK));
		udp->dgram_len = RTE_BE16(len - (v6 ? 40 : 20));
	}
	if (v6) {
		finish_ip6((struct rte_ipv6_hdr *)hdr, tos, ttl, md->hash >> 8, len);
		if (ops->proto == IPPROTO_UDP && unlikely(nh->udp6_checksum)) {
			adjacency_extend(m, grown);
			grown = 0;
			udp6_checksum(m, nh, (struct rte_udp_hdr *)(hdr + 40));
		}
	} else {
		finish_ip4((struct rte_ipv4_hdr *)hdr, nh, tos, ttl, len);
	}
	path = nh->path[(md->hash >> 8) & (nh->n_paths - 1)];
	return adjacency_write_at(m, path, hdr, type, grown) ? ENCAP_TX : ENCAP_HOLD;
}

#define ENCAP_NODE(name, ops, v6) ENCAP_NODE_ONE(name, encap_one(m, &ops, v6))

// A node with an expression of its own for the edge of packet m.
#define ENCAP_NODE_ONE(name, edge_of_m)                                                               \
	static inline edge_t name##_one(struct rte_mbuf *m)                                           \
	{                                                                                             \
		return edge_of_m;                                                                     \
	}                                                                                             \
	static uint16_t name(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n) \
	{                                                                                             \
		return node_each(graph, node, objs, n, name##_one);                                   \
	}                                                                                             \
	NODE(name, name, ENCAP_NEXT)
