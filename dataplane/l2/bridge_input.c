// SPDX-License-Identifier: Apache-2.0
// bridge_input: frames of a bridge domain, from its ports and from tunnels. Learns their source and looks up their
// destination.
// Reads: bridge, port, flags, outer (from tunnels).  Writes: l3, hash, nexthop or out_port; vrf for the gateway's
// frames.  Next: port_tx, an encapsulation, bridge_flood, and for the gateway's MAC the route lookup.
#include "base/eth.h"
#include "base/rcu.h"
#include "flow/flow.h"
#include "graph/node.h"
#include "l2/mac.h"
#include "l3/icmp.h"
#include "l3/ip_header.h"
#include "l3/nexthop.h"
#include "port/registry.h"

enum { TX = NH_EDGES, FLOOD, IP4, IP6, FLOW4, FLOW6 };

DROP_REASON(bridge_gone, "The bridge domain has been removed.");
DROP_REASON(bridge_truncated, "A frame for a bridge domain is shorter than an Ethernet header.");
DROP_REASON(bridge_bad_source, "The frame's source MAC is a multicast address or zero.");
DROP_REASON(bridge_spoofed_gateway, "A frame in a bridge domain has the virtual gateway's MAC as its source: a guest "
				    "claims it, or there is a loop.");
DROP_REASON(bridge_link_local,
	    "The frame is link-local (spanning tree, LLDP, pause), which a bridge must not forward (IEEE 802.1Q).");
DROP_REASON(bridge_same_port, "The frame's destination is behind the port by which it entered.");
DROP_REASON(bridge_split_horizon,
	    "A frame from a tunnel is for a MAC behind a tunnel: the sending host must send it there directly.");
DROP_REASON(bridge_unknown_unicast,
	    "The destination MAC is unknown, and the bridge domain drops such frames. See `corelane mac list`.");
DROP_REASON(bridge_tunnel_down, "The tunnel to the destination MAC is down: its remote address has no route in the "
				"fabric VRF. See `corelane nexthop show ID`.");
DROP_REASON(bridge_too_big,
	    "The frame exceeds the MTU of the port or tunnel to its destination. Lower the guests' MTU or "
	    "raise the underlay's.");
DROP_REASON(bridge_gateway_arp,
	    "ARP or neighbour discovery for the gateway's MAC that the router does not answer: it came from "
	    "another host, where the gateway there answers, or asks for another address.");
DROP_REASON(bridge_gateway_type, "The frame for the gateway's MAC carries neither IPv4 nor IPv6.");

#define CHUNK 32u // frames whose buckets are prefetched together
#define UNDECIDED UINT16_MAX
#define SEEN_EVERY 10 // tenths of a second

static inline bool bridge_input_is_link_local(const struct rte_ether_addr *a)
{
	const unaligned_uint32_t *high = (const unaligned_uint32_t *)a;

	return *high == RTE_BE32(0x0180c200) && a->addr_bytes[4] == 0 && a->addr_bytes[5] < 16;
}

// The checks that need no MAC table.
static inline edge_t bridge_check_source(struct rte_mbuf *m, const struct bridge_fwd *f)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);

	if (unlikely(f == NULL))
		return drop(m, bridge_gone);
	if (unlikely(m->data_len < sizeof(*eth)))
		return drop(m, bridge_truncated);
	if (unlikely(!rte_is_valid_assigned_ether_addr(&eth->src_addr)))
		return drop(m, bridge_bad_source);
	if (unlikely(f->vrf != UINT16_MAX && eth_same(&eth->src_addr, &f->gateway)))
		return drop(m, bridge_spoofed_gateway);
	if (unlikely(bridge_input_is_link_local(&eth->dst_addr)))
		return drop(m, bridge_link_local);
	meta(m)->l3 = 0; // the payload is the whole frame
	return UNDECIDED;
}

static inline uint64_t remote_print(const struct rte_mbuf *m, const struct pkt_meta *md)
{
	const uint8_t *outer = RTE_PTR_ADD(m->buf_addr, md->outer);
	bool v6 = (outer[0] >> 4) == 6;

	return mac_print(outer + (v6 ? 8 : 12), v6); // source address
}

// Whether the frame came from where the table has its source. A static MAC is never learnt elsewhere.
static inline bool bridge_is_where(const struct rte_mbuf *m, const struct pkt_meta *md, uint64_t target)
{
	if (!(target & MAC_LEARNT))
		return true;
	if (md->flags & META_FROM_TUNNEL)
		return (target & MAC_TUNNEL) && target >> 32 == remote_print(m, md);
	return !(target & MAC_TUNNEL) && MAC_ID(target) == m->port;
}

static inline void bridge_input_learn(struct rte_mbuf *m, const struct bridge_fwd *f, const struct mac_table *t,
				      uint64_t key, uint64_t hash, uint32_t now)
{
	uint64_t target;
	uint32_t *seen;

	if (likely(mac_lookup(t, key, hash, &target, &seen) && bridge_is_where(m, meta(m), target))) {
		if (unlikely(now - __atomic_load_n(seen, __ATOMIC_RELAXED) >= SEEN_EVERY))
			__atomic_store_n(seen, now, __ATOMIC_RELAXED);
	} else if (f->learning) {
		mac_learn_ask(m, key);
	}
}

// The frame is for the gateway: it leaves the bridge domain and becomes a packet of the VRF.
static inline edge_t bridge_to_gateway(struct rte_mbuf *m, struct pkt_meta *md, const struct bridge_fwd *f,
				       const struct rte_ether_hdr *eth)
{
	md->l3 = sizeof(*eth);
	md->vrf = f->vrf;
	md->bridge = BRIDGE_NONE;
	switch (eth->ether_type) {
	case RTE_BE16(RTE_ETHER_TYPE_IPV4):
		return likely(!flow_zones[md->vrf].stateful) ? IP4 : FLOW4;
	case RTE_BE16(RTE_ETHER_TYPE_IPV6):
		if (eth_is_nd(m, sizeof(*eth)))
			return drop(m, bridge_gateway_arp);
		return likely(!flow_zones[md->vrf].stateful) ? IP6 : FLOW6;
	case RTE_BE16(RTE_ETHER_TYPE_ARP):
		return drop(m, bridge_gateway_arp);
	default:
		return drop(m, bridge_gateway_type);
	}
}

static inline edge_t bridge_to_port(struct rte_mbuf *m, struct pkt_meta *md, uint16_t port)
{
	const struct port_fwd *f = rcu_read(port_fwds[port % PORT_MAX]);

	if (unlikely(port == m->port))
		return drop(m, bridge_same_port);
	if (unlikely(f && m->pkt_len > f->mtu + sizeof(struct rte_ether_hdr) + sizeof(struct rte_vlan_hdr)))
		return drop(m, bridge_too_big);
	md->out_port = port;
	return TX;
}

// A bridge with a gateway sends an ICMP error to a sender that does path MTU discovery; other frames are dropped
// silently.
static inline edge_t too_big(struct rte_mbuf *m, struct pkt_meta *md, const struct bridge_fwd *f,
			     const struct nexthop *nh)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(eth + 1);
	unsigned mtu = nh->mtu + nh->inner_eth - (unsigned)sizeof(*eth);
	bool v6 = eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV6) &&
		  m->data_len >= sizeof(*eth) + sizeof(struct rte_ipv6_hdr);
	bool v4 = eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4) && m->data_len >= sizeof(*eth) + sizeof(*ip) &&
		  ip->version_ihl == 0x45;

	if (f->vrf == UINT16_MAX || mtu < 576 ||
	    !(v6 || (v4 && (ip->fragment_offset & RTE_BE16(RTE_IPV4_HDR_DF_FLAG)))))
		return drop(m, bridge_too_big);
	if (v6 && (ip->version_ihl >> 4) != 6)
		return drop(m, bridge_too_big);
	md->l3 = sizeof(*eth);
	md->vrf = f->vrf;
	icmp_want(m, ICMP_WHAT_TOO_BIG, (uint16_t)mtu, &drop_bridge_too_big);
	return NH_EDGE_ICMP_ERROR;
}

static inline edge_t bridge_to_tunnel(struct rte_mbuf *m, struct pkt_meta *md, const struct bridge_fwd *f, uint32_t id)
{
	const struct nexthop *nh = rcu_read(nexthop_table[id % NEXTHOP_MAX]);

	if (unlikely(md->flags & META_FROM_TUNNEL))
		return drop(m, bridge_split_horizon);
	if (unlikely(nh == NULL || nh->kind != NH_TUNNEL || nh->edge == NH_EDGE_DROP))
		return drop(m, bridge_tunnel_down);
	if (unlikely(m->pkt_len > (unsigned)nh->mtu + nh->inner_eth))
		return too_big(m, md, f, nh);
	md->nexthop = nh;
	md->hash = eth_hash(m);
	return nh->edge;
}

static inline edge_t bridge_input_forward_one(struct rte_mbuf *m, const struct bridge_fwd *f, const struct mac_table *t,
					      uint64_t key, uint64_t hash)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	struct pkt_meta *md = meta(m);
	uint64_t target;
	uint32_t *seen;

	if (rte_is_multicast_ether_addr(&eth->dst_addr))
		return FLOOD;
	if (f->vrf != UINT16_MAX && eth_same(&eth->dst_addr, &f->gateway))
		return bridge_to_gateway(m, md, f, eth);
	if (!mac_lookup(t, key, hash, &target, &seen))
		return f->drop_unknown ? drop(m, bridge_unknown_unicast) : FLOOD;
	return target & MAC_TUNNEL ? bridge_to_tunnel(m, md, f, MAC_ID(target))
				   : bridge_to_port(m, md, (uint16_t)MAC_ID(target));
}

struct bridge_arrays {
	struct {
		uint64_t key, hash;
	} src[CHUNK], dst[CHUNK];
	const struct bridge_fwd *f[CHUNK];
	edge_t edges[CHUNK];
};

static void bridge_chunk(struct rte_graph *graph, struct rte_node *node, void **objs, unsigned n)
{
	const struct mac_table *t = rcu_read(mac_table);
	uint32_t now = __atomic_load_n(&mac_clock, __ATOMIC_RELAXED);
	struct rte_mbuf **pkts = (struct rte_mbuf **)objs;
	struct bridge_arrays *a = NODE_ARRAYS(struct bridge_arrays);
	unsigned i;

	for (i = 0; i < n; i++) {
		const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(pkts[i], const struct rte_ether_hdr *);
		uint16_t bridge = meta(pkts[i])->bridge % BRIDGE_MAX;

		if (i + NODE_AHEAD < n)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i + NODE_AHEAD], void *));
		a->f[i] = rcu_read(bridge_fwds[bridge]);
		a->edges[i] = bridge_check_source(pkts[i], a->f[i]);
		if (unlikely(a->edges[i] != UNDECIDED)) // the buffer may end within the addresses
			continue;
		a->src[i].key = mac_key(bridge, &eth->src_addr);
		a->src[i].hash = mac_hash(a->src[i].key);
		mac_prefetch(t, a->src[i].hash, true);
		a->dst[i].key = mac_key(bridge, &eth->dst_addr);
		a->dst[i].hash = mac_hash(a->dst[i].key);
		mac_prefetch(t, a->dst[i].hash, false);
	}
	for (i = 0; i < n; i++) {
		if (unlikely(a->edges[i] != UNDECIDED))
			continue;
		bridge_input_learn(pkts[i], a->f[i], t, a->src[i].key, a->src[i].hash, now);
		a->edges[i] = bridge_input_forward_one(pkts[i], a->f[i], t, a->dst[i].key, a->dst[i].hash);
	}
	node_pass(graph, node, objs, a->edges, n);
}

static uint16_t bridge_input(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	unsigned done, k;

	for (done = 0; done < n; done += k) {
		k = RTE_MIN(n - done, CHUNK);
		bridge_chunk(graph, node, objs + done, k);
	}
	return n;
}

NODE(bridge_input, bridge_input, NH_NEXT, [TX] = "port_tx", [FLOOD] = "bridge_flood", [IP4] = "ip4_forward",
     [IP6] = "ip6_forward", [FLOW4] = "flow4_lookup", [FLOW6] = "flow6_lookup");
