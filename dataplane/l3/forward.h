// SPDX-License-Identifier: Apache-2.0
// Forwarding of an IP packet, shared by the nodes that find its next hop by a route and by a flow: the checks of its
// header, and what all next hops have in common. `v6` is a constant in every call.
#pragma once

#include "base/offload.h"
#include "base/rcu.h"
#include "graph/node.h"
#include "l3/icmp.h"
#include "l3/ip_header.h"
#include "l3/mss.h"
#include "l3/nexthop.h"

enum { FORWARD_FRAGMENT = NH_EDGES, FORWARD_EDGES };
#define FORWARD_NEXT4 NH_NEXT, [FORWARD_FRAGMENT] = "ip4_fragment"
#define FORWARD_NEXT6 NH_NEXT, [FORWARD_FRAGMENT] = "icmp_error"

extern const struct forward_reasons { // ip_forward.c
	const struct drop_reason *ip_truncated, *ip_bad_version, *ip4_bad_header_length, *ip4_bad_checksum,
		*ip_martian_source, *ip_martian_destination, *ip_multicast, *ip_link_local, *ip_ttl_exceeded,
		*ip_no_route, *ip_too_big, *route_discard, *route_reject, *nexthop_unresolved;
} forward_reasons;

void forward_trim_chain(struct rte_mbuf *m, uint32_t want); // ip_forward.c

// Cuts the packet to its first `want` bytes; it has at least as many. The rest is padding of the sender's device, or
// was added to make later lengths wrong.
static inline void forward_trim(struct rte_mbuf *m, uint32_t want)
{
	uint32_t extra = m->pkt_len - want;

	if (unlikely(m->nb_segs != 1)) {
		forward_trim_chain(m, want);
		return;
	}
	m->data_len = (uint16_t)(m->data_len - extra);
	m->pkt_len = want;
}

// ip: the packet's header. Returns NULL, or the reason to drop the packet.
static __rte_always_inline const struct drop_reason *forward_check4(struct rte_mbuf *m, const struct pkt_meta *md,
								    const struct rte_ipv4_hdr *ip)
{
	unsigned hlen, len, l3 = md->l3;

	if (unlikely(m->data_len < l3 + sizeof(*ip)))
		return forward_reasons.ip_truncated;
	hlen = ip4_header_len(ip, m->data_len - l3);
	if (unlikely(hlen == 0))
		return (ip->version_ihl >> 4) != 4 ? forward_reasons.ip_bad_version
						   : forward_reasons.ip4_bad_header_length;
	len = rte_be_to_cpu_16(ip->total_length);
	if (unlikely(len < hlen || l3 + len > m->pkt_len))
		return forward_reasons.ip_truncated;
	if (unlikely(!ip4_checksum_ok_of(ip, hlen)))
		return forward_reasons.ip4_bad_checksum;
	if (unlikely(ip4_martian_source(ip->src_addr) || ip4_martian_source(ip->dst_addr))) // no destination either
		return ip4_martian_source(ip->src_addr)               ? forward_reasons.ip_martian_source
		       : (rte_be_to_cpu_32(ip->dst_addr) >> 28) >= 14 ? forward_reasons.ip_multicast
								      : forward_reasons.ip_martian_destination;
	if (l3 + len != m->pkt_len)
		forward_trim(m, l3 + len);
	return NULL;
}

static __rte_always_inline const struct drop_reason *forward_check6(struct rte_mbuf *m, const struct pkt_meta *md,
								    const struct rte_ipv6_hdr *ip)
{
	unsigned len;

	if (unlikely(m->data_len < md->l3 + sizeof(*ip)))
		return forward_reasons.ip_truncated;
	if (unlikely((*(const uint8_t *)ip >> 4) != 6))
		return forward_reasons.ip_bad_version;
	len = rte_be_to_cpu_16(ip->payload_len) + (unsigned)sizeof(*ip);
	if (unlikely(len > m->pkt_len - md->l3))
		return forward_reasons.ip_truncated;
	if (unlikely(ip6_is_multicast(ip->src_addr) || ip6_unspecified_or_loopback(ip->src_addr)))
		return forward_reasons.ip_martian_source;
	if (unlikely(ip6_is_multicast(ip->dst_addr)))
		return forward_reasons.ip_multicast;
	if (unlikely(ip6_unspecified_or_loopback(ip->dst_addr)))
		return forward_reasons.ip_martian_destination;
	if (unlikely(ip6_is_link_local(ip->dst_addr)))
		return forward_reasons.ip_link_local;
	if (len != m->pkt_len - md->l3)
		forward_trim(m, len + md->l3);
	return NULL;
}

static __rte_always_inline uint32_t forward_hash(struct rte_mbuf *m, struct pkt_meta *md, const void *ip, const bool v6)
{
	if (md->hash == 0)
		md->hash = v6 ? ip6_hash(ip, m->data_len - md->l3) : ip4_hash(ip, m->data_len - md->l3);
	return md->hash;
}

static inline edge_t forward_give_up(struct rte_mbuf *m, const struct nexthop *nh)
{
	if (nh == NULL) {
		icmp_want(m, ICMP_WHAT_NO_ROUTE, 0, forward_reasons.ip_no_route);
		return NH_EDGE_ICMP_ERROR;
	}
	if (nh->kind == NH_REJECT) {
		icmp_want(m, ICMP_WHAT_PROHIBITED, 0, forward_reasons.route_reject);
		return NH_EDGE_ICMP_ERROR;
	}
	if (nh->kind == NH_DISCARD)
		return drop_as(m, forward_reasons.route_discard);
	icmp_want(m, ICMP_WHAT_HOST, 0, forward_reasons.nexthop_unresolved);
	return NH_EDGE_ICMP_ERROR;
}

static inline edge_t forward_too_big(struct rte_mbuf *m, const struct nexthop *nh, const void *ip, const bool v6)
{
	const struct rte_ipv4_hdr *ip4 = ip;

	if (!v6 && offload_is_whole(m)) // it is cut first
		return FORWARD_FRAGMENT;
	if (!v6 && !(ip4->fragment_offset & rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG)))
		return FORWARD_FRAGMENT;
	icmp_want(m, ICMP_WHAT_TOO_BIG, nh->mtu, forward_reasons.ip_too_big);
	return NH_EDGE_ICMP_ERROR;
}

// Returns false if the TTL has run out.
static __rte_always_inline bool forward_count_down(void *ip, const bool v6)
{
	struct rte_ipv4_hdr *ip4 = ip;
	struct rte_ipv6_hdr *ip6 = ip;

	if (unlikely((v6 ? ip6->hop_limits : ip4->time_to_live) <= 1))
		return false;
	if (v6)
		ip6->hop_limits--;
	else
		ip4_decrement_ttl(ip4);
	return true;
}

// Returns the edge to the packet's next hop. nh is NULL if there is none.
static __rte_always_inline edge_t forward_by(struct rte_mbuf *m, struct pkt_meta *md, const struct nexthop *nh,
					     void *ip, const bool v6)
{
	const uint8_t flags = md->flags;

	md->nexthop = nh;
	if (unlikely(v6 && ip6_is_link_local(((struct rte_ipv6_hdr *)ip)->src_addr) &&
		     (nh == NULL || nh->edge != NH_EDGE_LOCAL)))
		return drop_as(m, forward_reasons.ip_link_local);
	if (unlikely(nh == NULL || nh->edge < NH_EDGE_PORT))
		return nh && nh->edge == NH_EDGE_LOCAL ? NH_EDGE_LOCAL : forward_give_up(m, nh);
	if (!(flags & META_ANSWER) && unlikely(!forward_count_down(ip, v6))) {
		icmp_want(m, ICMP_WHAT_TTL, 0, forward_reasons.ip_ttl_exceeded);
		return NH_EDGE_ICMP_ERROR;
	}
	if (unlikely(flags & META_CLAMP || nh->mss))
		mss_clamp_wanted(m, nh, v6);
	if (unlikely(m->pkt_len - md->l3 > nh->mtu) && offload_ip_size(m, md->l3) > nh->mtu)
		return forward_too_big(m, nh, ip, v6);
	if (nh->kind == NH_TUNNEL)
		forward_hash(m, md, ip, v6);
	return nh->edge;
}
