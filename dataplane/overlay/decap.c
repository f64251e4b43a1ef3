// SPDX-License-Identifier: Apache-2.0
// Decapsulation: drop reasons, ECN and TTL, checksums.
#include "overlay/decap.h"

#include "offload/whole.h"

DROP_REASON(tunnel_truncated, "The packet from the tunnel ends before the headers that it announces.");
DROP_REASON(tunnel_not_ip,
	    "The tunnel's payload is neither IPv4 nor IPv6, and its label or VNI does not stand for a bridge.");
DROP_REASON(tunnel_congested, "The underlay marked congestion (ECN) on a packet whose inner header does not support "
			      "it; RFC 6040 requires the drop.");
DROP_REASON(tunnel_udp_checksum, "The tunnel packet's UDP checksum is wrong: the packet was damaged in transit.");
DROP_REASON(tunnel_nexthop_gone, "The label or VNI stands for a next hop that no longer exists.");
DROP_REASON(tunnel_source,
	    "The label or VNI does not accept packets from this outer source. See `corelane label list`, "
	    "`corelane vni list`, `corelane address-group list` and, for tunnel ends, `corelane nexthop list`.");

DROP_REASON(tunnel_segment,
	    "The peer of a memif marked the packet as a large segment in a tunnel, but its headers are not "
	    "those of one.");

const struct drop_reason *const decap_truncated = &drop_tunnel_truncated;
const struct drop_reason *const decap_not_ip = &drop_tunnel_not_ip;
const struct drop_reason *const decap_ecn = &drop_tunnel_congested;
const struct drop_reason *const decap_udp_checksum = &drop_tunnel_udp_checksum;
const struct drop_reason *const decap_nexthop = &drop_tunnel_nexthop_gone;
const struct drop_reason *const decap_source = &drop_tunnel_source;
const struct drop_reason *const decap_segment = &drop_tunnel_segment;

// RFC 6040, section 4.2: the outgoing ECN field for an inner and an outer one; -1 = drop.
static int combine_ecn(uint8_t inner, uint8_t outer)
{
	enum { NOT_ECT, ECT1, ECT0, CE };

	if (outer == CE)
		return inner == NOT_ECT ? -1 : CE;
	if (outer == ECT1 && inner == ECT0)
		return ECT1;
	return inner;
}

bool decap_mark(struct rte_mbuf *m, unsigned at)
{
	const struct pkt_meta *md = meta(m);
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, at), tos = ip_tos(ip), ttl;
	bool v4 = (ip[0] >> 4) == 4;
	int ecn = combine_ecn(tos & 3, md->tos & 3);

	if (ecn < 0 || (!v4 && m->data_len < at + sizeof(struct rte_ipv6_hdr)))
		return ecn >= 0;
	tos = (uint8_t)((tos & 0xfc) | ecn);
	ttl = v4 ? ip[8] : ip[7];
	if ((md->flags & META_UNIFORM) && at == 0) { // a bridged frame passes no hop: its TTL stays
		tos = (uint8_t)((md->tos & 0xfc) | ecn);
		ttl = RTE_MIN(ttl, md->ttl);
	}
	if (v4) {
		struct rte_ipv4_hdr *h = (struct rte_ipv4_hdr *)ip;
		bool good = at + rte_ipv4_hdr_len(h) <= m->data_len && ip4_checksum_ok(h);

		h->type_of_service = tos;
		h->time_to_live = ttl;
		if (good) // a wrong checksum stays wrong, for ip4_forward to find
			ip4_checksum_set(h);
	} else {
		ip[0] = (uint8_t)(0x60 | tos >> 4);
		ip[1] = (uint8_t)(tos << 4 | (ip[1] & 15));
		ip[7] = ttl;
	}
	return true;
}

bool decap_flags(struct rte_mbuf *m, uint32_t tunnel_id, uint32_t target)
{
	struct pkt_meta *md = meta(m);

	if (target & TARGET_UNIFORM)
		md->flags |= META_UNIFORM;
	return !(target & (TARGET_SOURCES | TARGET_ENDS)) ||
	       tunnel_source_ok(tunnel_id, target, RTE_PTR_ADD(m->buf_addr, md->outer));
}

bool decap_whole(struct rte_mbuf *m, bool frame)
{
	unsigned at = frame ? frame_ip(m) : 0;

	return (!frame || at != 0) && whole_open(m, at);
}

bool decap_mark_frame(struct rte_mbuf *m)
{
	unsigned at = frame_ip(m);

	return at == 0 || decap_mark(m, at);
}

// If a NIC recognizes a tunnel, what it says about layer 4 is about the inner packet.
static bool decap_nic_verified(const struct rte_mbuf *m)
{
	if (m->packet_type & RTE_PTYPE_TUNNEL_MASK)
		return (m->ol_flags & RTE_MBUF_F_RX_OUTER_L4_CKSUM_MASK) == RTE_MBUF_F_RX_OUTER_L4_CKSUM_GOOD;
	return (m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_GOOD;
}

bool decap_udp_ok(const struct rte_mbuf *m, const struct rte_udp_hdr *udp)
{
	const uint8_t *outer = RTE_PTR_ADD(m->buf_addr, meta((struct rte_mbuf *)(uintptr_t)m)->outer);
	unsigned l4 = (unsigned)((const uint8_t *)udp - rte_pktmbuf_mtod(m, const uint8_t *)),
		 len = rte_be_to_cpu_16(udp->dgram_len);
	const struct rte_ipv4_hdr *ip4 = (const struct rte_ipv4_hdr *)outer;
	const struct rte_ipv6_hdr *ip6 = (const struct rte_ipv6_hdr *)outer;
	uint64_t sum = RTE_BE16(IPPROTO_UDP) + udp->dgram_len;
	uint16_t raw;

	if (decap_nic_verified(m))
		return true;
	if (rte_raw_cksum_mbuf(m, l4, len, &raw) < 0)
		return false;
	sum += (outer[0] >> 4) == 4 ? ip_sum(&ip4->src_addr, 8) : ip_sum(ip6->src_addr, 32);
	return ip_fold(sum + raw) == 0xffff;
}
