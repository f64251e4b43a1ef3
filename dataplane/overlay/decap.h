// SPDX-License-Identifier: Apache-2.0
// Decapsulation, shared by all encapsulations. The outer header stays in place in front of the packet (meta.outer); the
// target of the label or VNI decides where the packet goes.
#pragma once

#include <rte_udp.h>

#include "base/eth.h"
#include "base/offload.h"
#include "base/rcu.h"
#include "flow/flow.h"
#include "graph/node.h"
#include "l3/ip_header.h"
#include "l3/nexthop.h"
#include "l3/tunnel.h"
#include "overlay/overlay.h"
#include "port/registry.h"

enum { DECAP_IP4 = 1, DECAP_IP6, DECAP_BRIDGE, DECAP_FLOW4, DECAP_FLOW6, DECAP_KERNEL, DECAP_UNKNOWN };
#define DECAP_NEXT                                                                                       \
	[DECAP_IP4] = "ip4_forward", [DECAP_IP6] = "ip6_forward", [DECAP_BRIDGE] = "bridge_input",       \
	[DECAP_FLOW4] = "flow4_lookup", [DECAP_FLOW6] = "flow6_lookup", [DECAP_KERNEL] = "decap_kernel", \
	[DECAP_UNKNOWN] = "decap_unknown"

// Reasons that several decapsulations share (decap.c).
extern const struct drop_reason *const decap_truncated,
	*const decap_not_ip, *const decap_ecn, *const decap_udp_checksum,
						       *const decap_nexthop, *const decap_source, *const decap_segment;

// True if ECN or, in uniform mode, TTL and DSCP of the outer header must be carried over to the inner one.
static inline bool decap_must_mark(const struct pkt_meta *md)
{
	return (md->tos & 3) == 3 || (md->tos & 3) == 1 || (md->flags & META_UNIFORM);
}

// Carries them over to the IP packet at offset `at` (0, or behind an Ethernet header; RFC 6040, RFC 3443). Returns
// false if the packet must be dropped (decap_ecn).
bool decap_mark(struct rte_mbuf *m, unsigned at);
bool decap_mark_frame(struct rte_mbuf *m); // the same for the IP packet in a frame, if it carries one
// Makes the payload of a whole packet (offload/whole.h) the large segment that it is. Returns false if its headers
// contradict the packet's mark (decap_segment).
bool decap_whole(struct rte_mbuf *m, bool frame);
bool decap_udp_ok(const struct rte_mbuf *m, const struct rte_udp_hdr *udp); // verifies a checksum that is not zero

// The edge of a packet that is no tunnel's of this router and was not changed (decap_kernel.c): DECAP_KERNEL, or
// DECAP_UNKNOWN if its label or VNI is unknown. reason: if the kernel does not get it.
static inline edge_t decap_not_mine(struct rte_mbuf *m, edge_t edge, const struct drop_reason *reason)
{
	drop_as(m, reason);
	return edge;
}

// Applies the target's flags. Returns false if the packet's outer source is not accepted (decap_source).
bool decap_flags(struct rte_mbuf *m, uint32_t tunnel_id, uint32_t target);

// The VRF of the guest port that a label or VNI stands for; otherwise VRF_FABRIC, which has no guests.
static inline uint16_t nexthop_vrf(const struct nexthop *nh)
{
	const struct port_fwd *f = nh->kind == NH_PORT || nh->kind == NH_GLEAN ? rcu_read(port_fwds[nh->port]) : NULL;

	return f && f->vrf != UINT16_MAX ? f->vrf : VRF_FABRIC;
}

static inline edge_t decap_ip(struct rte_mbuf *m, struct pkt_meta *md)
{
	uint8_t version = m->data_len >= 20 ? *rte_pktmbuf_mtod(m, const uint8_t *) >> 4 : 0;

	if (unlikely(version != 4 && version != 6))
		return drop_as(m, decap_not_ip);
	if (unlikely(decap_must_mark(md) && !decap_mark(m, 0)))
		return drop_as(m, decap_ecn);
	if (unlikely(flow_zones[md->vrf].stateful))
		return version == 4 ? DECAP_FLOW4 : DECAP_FLOW6;
	return version == 4 ? DECAP_IP4 : DECAP_IP6;
}

// If the frame carries IP, the encapsulation copied its ECN field to the outer header.
static inline edge_t decap_frame(struct rte_mbuf *m, const struct pkt_meta *md)
{
	if (unlikely(decap_must_mark(md)) && !decap_mark_frame(m))
		return drop_as(m, decap_ecn);
	return DECAP_BRIDGE;
}

// Passes on the payload at offset `at`: an IP packet for a VRF or next hop, an Ethernet frame for a bridge.
static inline edge_t decap_to(struct rte_mbuf *m, struct pkt_meta *md, uint32_t tunnel_id, uint32_t target, unsigned at)
{
	if (unlikely(target & TARGET_FLAGS) && !decap_flags(m, tunnel_id, target))
		return drop_as(m, decap_source);
	m->data_off = (uint16_t)(m->data_off + at);
	m->data_len = (uint16_t)(m->data_len - at);
	m->pkt_len -= at;
	md->l3 = 0;
	md->hash = 0;
	md->flags |= META_FROM_TUNNEL;
	if (unlikely(offload_is_whole(m)) && !decap_whole(m, TARGET_KIND(target) == TARGET_BRIDGE))
		return drop_as(m, decap_segment);
	switch (TARGET_KIND(target)) {
	case TARGET_VRF:
		md->vrf = (uint16_t)TARGET_ID(target);
		return decap_ip(m, md);
	case TARGET_BRIDGE:
		md->bridge = (uint16_t)TARGET_ID(target);
		return decap_frame(m, md);
	default:
		md->nexthop = rcu_read(nexthop_table[TARGET_ID(target)]);
		if (unlikely(md->nexthop == NULL))
			return drop_as(m, decap_nexthop);
		md->flags |= META_NEXTHOP;
		md->vrf = nexthop_vrf(md->nexthop);
		return decap_ip(m, md);
	}
}

// Passes on the IP packet in a frame of a routed VNI. The frame must be addressed to this router and carry IP.
static inline edge_t decap_router_frame(struct rte_mbuf *m, struct pkt_meta *md, uint32_t target, unsigned at,
					const struct drop_reason *wrong_mac)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod_offset(m, const struct rte_ether_hdr *, at);

	if (unlikely(!eth_same(&eth->dst_addr, &tunnel_router_mac) && !eth_same(&eth->dst_addr, &gateway_mac)))
		return drop_as(m, wrong_mac);
	if (unlikely(eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV4) &&
		     eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV6)))
		return drop_as(m, decap_not_ip);
	return decap_to(m, md, TUNNEL_ID_VNI(md->arg), target, at + (unsigned)sizeof(*eth));
}

// Passes on the frame at offset `at`, whose Ethernet header lies in the first buffer, with the VNI md->arg. unknown,
// wrong_mac: drop reasons of the encapsulation.
static inline edge_t decap_vni_frame(struct rte_mbuf *m, struct pkt_meta *md, unsigned at,
				     const struct drop_reason *unknown, const struct drop_reason *wrong_mac)
{
	uint32_t target = vni_target(md->arg);

	switch (TARGET_KIND(target)) {
	case TARGET_NONE:
		return decap_not_mine(m, DECAP_UNKNOWN, unknown);
	case TARGET_BRIDGE:
		return decap_to(m, md, TUNNEL_ID_VNI(md->arg), target, at);
	default:
		return decap_router_frame(m, md, target, at, wrong_mac);
	}
}
