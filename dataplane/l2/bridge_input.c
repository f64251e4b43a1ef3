// SPDX-License-Identifier: Apache-2.0
// bridge_input: frames of a bridge domain, from its ports and from tunnels. Learns their source and looks up their
// destination. IP packets of ports that keep flows then go to flow4_bridge and flow6_bridge.
// Reads: bridge, port, flags, outer (from tunnels).  Writes: l3, hash, nexthop or out_port; vrf for the gateway's
// frames, vrf and arg where flows are kept.
// Next: port_tx, an encapsulation, bridge_suppress, bridge_flood, the flows, and for the gateway's MAC the route
// lookup.
#include "base/eth.h"
#include "base/offload.h"
#include "base/rcu.h"
#include "flow/bridged.h"
#include "graph/node.h"
#include "l2/mac.h"
#include "l3/icmp.h"
#include "l3/ip_header.h"
#include "l3/nexthop.h"
#include "port/registry.h"

enum { TX = NH_EDGES, FLOOD, SUPPRESS, IP4, IP6, FLOW4, FLOW6, BRIDGED4, BRIDGED6, TAGGED };

DROP_REASON(bridge_gone, "The bridge domain has been removed.");
DROP_REASON(bridge_truncated, "A frame for a bridge domain is shorter than an Ethernet header.");
DROP_REASON(bridge_bad_source, "The frame's source MAC is a multicast address or zero.");
DROP_REASON(bridge_spoofed_gateway,
	    "A frame in a bridge domain has the virtual gateway's MAC as its source: a guest claims it, there is a "
	    "loop, or a virtual router (VRRP, CARP) has group 1, whose MAC it is. Give that one another group, or the "
	    "gateway another MAC (`--mac` of `corelane port add`).");
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

#define CHUNK 32u     // frames whose buckets are prefetched together
#define SEEN_EVERY 10 // tenths of a second

// What consecutive frames of one sender to one receiver have in common, so that they share one lookup.
struct bridge_alike {
	uint64_t place;    // by which they came in: as a target of the MAC table that was learnt from them
	uint64_t addrs[2]; // both MACs as in the frame; above the last four bytes the bridge, or SHORT
};

#define SHORT (1ull << 63) // in addrs[1]: a frame without addresses

static inline uint16_t bridge_of(const struct bridge_alike *of)
{
	return (uint16_t)(of->addrs[1] >> 32) % BRIDGE_MAX;
}

struct bridge_run {
	struct bridge_alike of;
	uint32_t n;
	const struct bridge_fwd *f;
	uint64_t src, dst; // keys
	uint64_t hash_src, hash_dst;
	bool same_source; // as the run before, at the same place
};

// What the lookup says about all frames of a run.
struct bridge_way {
	enum { WAY_DROP, WAY_FLOOD, WAY_SUPPRESS, WAY_GATEWAY, WAY_PORT, WAY_TUNNEL } kind;
	const struct bridge_fwd *f;
	const struct drop_reason *why;
	const struct nexthop *nexthop;
	uint16_t port;
	uint32_t longest;
};

static inline bool bridge_input_is_link_local(const struct rte_ether_addr *a)
{
	const unaligned_uint32_t *high = (const unaligned_uint32_t *)a;

	return *high == RTE_BE32(0x0180c200) && a->addr_bytes[4] == 0 && a->addr_bytes[5] < 16;
}

// The checks that need no MAC table. Returns NULL, or the reason to drop the frame.
static inline const struct drop_reason *bridge_input_check(const struct bridge_run *r, const struct rte_ether_hdr *eth)
{
	const struct bridge_fwd *f = r->f;

	if (unlikely(f == NULL))
		return &drop_bridge_gone;
	if (unlikely(r->of.addrs[1] & SHORT))
		return &drop_bridge_truncated;
	if (unlikely(!rte_is_valid_assigned_ether_addr(&eth->src_addr)))
		return &drop_bridge_bad_source;
	if (unlikely(f->vrf != UINT16_MAX && eth_same(&eth->src_addr, &f->gateway)))
		return &drop_bridge_spoofed_gateway;
	if (unlikely(bridge_input_is_link_local(&eth->dst_addr)))
		return &drop_bridge_link_local;
	return NULL;
}

static inline uint64_t bridge_place(const struct rte_mbuf *m, const struct pkt_meta *md)
{
	const uint8_t *outer = RTE_PTR_ADD(m->buf_addr, md->outer);
	bool v6;

	if (!(md->flags & META_FROM_TUNNEL))
		return MAC_LEARNT | m->port;
	v6 = (outer[0] >> 4) == 6;
	return (uint64_t)mac_print(outer + (v6 ? 8 : 12), v6) << 32 | MAC_LEARNT | MAC_TUNNEL; // source address
}

// Whether the frame came from where the table has its source. A static MAC is never learnt elsewhere, but the master
// reports when one behind a tunnel is seen at a local port: its guest has come here.
static inline bool bridge_is_where(uint64_t place, uint64_t target)
{
	uint64_t id = place & MAC_TUNNEL ? MAC_ID(UINT64_MAX) : 0; // of the tunnel, which the place does not have

	if (unlikely(!(target & MAC_LEARNT)))
		return !(target & MAC_TUNNEL) || (place & MAC_TUNNEL);
	return ((target ^ place) & ~id) == 0;
}

static inline void bridge_input_learn(struct rte_mbuf *m, const struct bridge_run *r, const struct mac_table *t,
				      uint32_t now)
{
	uint64_t target;
	uint32_t *seen;

	if (likely(mac_lookup(t, r->src, r->hash_src, &target, &seen) && bridge_is_where(r->of.place, target))) {
		if (unlikely(now - __atomic_load_n(seen, __ATOMIC_RELAXED) >= SEEN_EVERY))
			__atomic_store_n(seen, now, __ATOMIC_RELAXED);
	} else if (r->f->learning) {
		mac_learn_ask(m, r->src);
	}
}

// The frame is for the gateway: it leaves the bridge domain and becomes a packet of the VRF.
static inline edge_t bridge_to_gateway(struct rte_mbuf *m, struct pkt_meta *md, const struct bridge_fwd *f)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);

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
		drop(m, bridge_gateway_type); // which bridge_tagged does, unless the tag says only a priority
		return eth_is_tagged(eth) ? TAGGED : EDGE_DROP;
	}
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

static inline struct bridge_way bridge_way_drop(const struct drop_reason *why)
{
	return (struct bridge_way){.kind = WAY_DROP, .why = why};
}

static inline struct bridge_way bridge_way_port(const struct rte_mbuf *m, uint16_t port)
{
	const struct port_fwd *f = rcu_read(port_fwds[port % PORT_MAX]);
	uint32_t longest = UINT32_MAX;

	if (unlikely(port == m->port))
		return bridge_way_drop(&drop_bridge_same_port);
	if (likely(f != NULL))
		longest = f->mtu + BRIDGE_L2;
	return (struct bridge_way){.kind = WAY_PORT, .port = port, .longest = longest};
}

static inline struct bridge_way bridge_way_tunnel(const struct bridge_run *r, uint32_t id)
{
	const struct nexthop *nh = rcu_read(nexthop_table[id % NEXTHOP_MAX]);

	if (unlikely(r->of.place & MAC_TUNNEL))
		return bridge_way_drop(&drop_bridge_split_horizon);
	if (unlikely(nh == NULL || nh->kind != NH_TUNNEL || nh->edge == NH_EDGE_DROP))
		return bridge_way_drop(&drop_bridge_tunnel_down);
	return (struct bridge_way){
		.kind = WAY_TUNNEL, .f = r->f, .nexthop = nh, .longest = (uint32_t)nh->mtu + nh->inner_eth};
}

static inline struct bridge_way bridge_way_of(const struct bridge_run *r, const struct rte_mbuf *m,
					      const struct mac_table *t)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct bridge_fwd *f = r->f;
	uint64_t target;
	uint32_t *seen;

	if (rte_is_multicast_ether_addr(&eth->dst_addr))
		return (struct bridge_way){.kind = f->suppress && !(r->of.place & MAC_TUNNEL) ? WAY_SUPPRESS
											      : WAY_FLOOD};
	if (f->vrf != UINT16_MAX && eth_same(&eth->dst_addr, &f->gateway))
		return (struct bridge_way){.kind = WAY_GATEWAY, .f = f};
	if (!mac_lookup(t, r->dst, r->hash_dst, &target, &seen))
		return f->drop_unknown ? bridge_way_drop(&drop_bridge_unknown_unicast)
				       : (struct bridge_way){.kind = WAY_FLOOD};
	return target & MAC_TUNNEL ? bridge_way_tunnel(r, MAC_ID(target))
				   : bridge_way_port(m, (uint16_t)MAC_ID(target));
}

// A large segment is as long as its longest packet on the wire.
static inline bool bridge_is_longer(const struct rte_mbuf *m, uint32_t longest)
{
	return unlikely(m->pkt_len > longest) && offload_frame_size(m) > longest;
}

static inline edge_t bridge_input_forward_one(struct rte_mbuf *m, const struct bridge_way *w)
{
	struct pkt_meta *md = meta(m);

	md->l3 = 0; // the payload is the whole frame
	switch (w->kind) {
	case WAY_TUNNEL:
		if (unlikely(bridge_is_longer(m, w->longest)))
			return too_big(m, md, w->f, w->nexthop);
		md->nexthop = w->nexthop;
		md->hash = eth_hash(m);
		return w->nexthop->edge;
	case WAY_PORT:
		if (unlikely(bridge_is_longer(m, w->longest)))
			return drop(m, bridge_too_big);
		md->out_port = w->port;
		return TX;
	case WAY_GATEWAY:
		return bridge_to_gateway(m, md, w->f);
	case WAY_FLOOD:
		return FLOOD;
	case WAY_SUPPRESS:
		return SUPPRESS;
	default:
		return drop_as(m, w->why);
	}
}

// --- Domains that keep flows. ---

static inline bool bridge_keeps_flows(uint32_t bridge)
{
	return flow_zones[FLOW_ZONE_BRIDGE | bridge].stateful;
}

static inline bool bridge_port_stateful(uint16_t port)
{
	const struct port_fwd *f = rcu_read(port_fwds[port % PORT_MAX]);

	return f && f->stateful;
}

// Whether the frames of a run have flows, or rules decide about them. Those to several receivers are decided one by one
// in bridge_flood.
static inline bool bridge_way_has_flows(const struct bridge_way *w, const struct bridge_run *r,
					const struct rte_mbuf *m)
{
	bool local = !(r->of.place & MAC_TUNNEL);

	switch (w->kind) {
	case WAY_FLOOD:
		return !rte_is_multicast_ether_addr(rte_pktmbuf_mtod(m, const struct rte_ether_addr *));
	case WAY_PORT:
		return bridge_port_stateful(w->port) || (local && bridge_port_stateful(m->port));
	case WAY_TUNNEL:
		return local && bridge_port_stateful(m->port);
	default:
		return false;
	}
}

// A frame that carries no IP packet. receiver: a port, 0 = a tunnel.
static __rte_noinline edge_t bridge_input_decide_other(struct rte_mbuf *m, uint16_t receiver, edge_t edge)
{
	const struct pkt_meta *md = meta(m);
	const struct drop_reason *why;
	struct flow_frame f;

	if (edge == FLOOD)
		return edge;
	flow_frame_decide(m, md->flags & META_FROM_TUNNEL ? 0 : m->port, FLOW_FLOOD_ALL, &f);
	why = flow_frame_denied(&f, receiver);
	return why ? drop_as(m, why) : edge;
}

static inline edge_t bridge_input_flow_one(struct rte_mbuf *m, const struct bridge_way *w, uint32_t bridge)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	struct pkt_meta *md = meta(m);
	edge_t edge = bridge_input_forward_one(m, w);
	bool v4 = eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4);

	if (unlikely(edge < NH_EDGE_PORT))
		return edge;
	md->arg = FLOW_FLOOD_ALL;
	if (unlikely(!v4 && eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV6)))
		return bridge_input_decide_other(m, w->kind == WAY_PORT ? w->port : 0, edge);
	if (w->kind != WAY_TUNNEL)
		md->nexthop = NULL;
	if (w->kind == WAY_FLOOD)
		md->out_port = FLOW_TARGET_UNKNOWN;
	md->vrf = (uint16_t)(FLOW_ZONE_BRIDGE | bridge);
	md->l3 = sizeof(*eth);
	md->arg = flow_way_of(m, md);
	return v4 ? BRIDGED4 : BRIDGED6;
}

struct bridge_arrays {
	struct bridge_run runs[CHUNK];
	edge_t edges[NODE_CHUNK];
};

static inline bool bridge_is_alike(const struct bridge_alike *a, const struct bridge_alike *b)
{
	return ((a->addrs[0] ^ b->addrs[0]) | (a->addrs[1] ^ b->addrs[1]) | (a->place ^ b->place)) == 0;
}

// before: the run before this one, NULL if it is the first one.
static inline void bridge_run_begin(struct bridge_run *r, const struct bridge_run *before,
				    const struct bridge_alike *of, const struct rte_ether_hdr *eth,
				    const struct mac_table *t)
{
	const uint16_t bridge = bridge_of(of);

	r->of = *of;
	r->n = 0;
	r->f = rcu_read(bridge_fwds[bridge]);
	r->src = MAC_FREE;
	r->same_source = false;
	if (unlikely(of->addrs[1] & SHORT))
		return;
	r->src = mac_key(bridge, &eth->src_addr);
	r->same_source = before && before->src == r->src && before->of.place == of->place;
	if (r->same_source) {
		r->hash_src = before->hash_src;
	} else {
		r->hash_src = mac_hash(r->src);
		mac_prefetch(t, r->hash_src, true);
	}
	r->dst = mac_key(bridge, &eth->dst_addr);
	r->hash_dst = mac_hash(r->dst);
	mac_prefetch(t, r->hash_dst, false);
}

// Divides the frames into runs, and prefetches the buckets of their MACs. Returns the end of the runs.
static inline const struct bridge_run *bridge_runs(struct rte_mbuf **pkts, unsigned n, struct bridge_run *runs,
						   const struct mac_table *t)
{
	struct bridge_run *r = runs;
	struct bridge_alike of;
	unsigned i;

	for (i = 0; i < n; i++) {
		const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(pkts[i], const struct rte_ether_hdr *);
		const struct pkt_meta *md = meta(pkts[i]);

		node_prefetch(pkts, i, n);
		of.place = bridge_place(pkts[i], md);
		of.addrs[0] = 0;
		of.addrs[1] = (uint64_t)md->bridge << 32;
		if (likely(pkts[i]->data_len >= sizeof(*eth))) { // the buffer may end within the addresses
			of.addrs[0] = *(const unaligned_uint64_t *)eth;
			of.addrs[1] |= *((const unaligned_uint32_t *)eth + 2);
		} else {
			of.addrs[1] |= SHORT;
		}
		if (i == 0 || !bridge_is_alike(&r[-1].of, &of)) {
			bridge_run_begin(r, i == 0 ? NULL : &r[-1], &of, eth, t);
			r++;
		}
		r[-1].n++;
	}
	return r;
}

// The frames i to next - 1 are of one run, in a domain that keeps flows. Returns the first one that needs no decision.
static unsigned bridge_input_decided(struct rte_mbuf **pkts, edge_t *edges, unsigned i, unsigned next,
				     const struct bridge_run *r, const struct bridge_way *w)
{
	if (bridge_way_has_flows(w, r, pkts[i])) {
		for (; i < next; i++)
			edges[i] = bridge_input_flow_one(pkts[i], w, bridge_of(&r->of));
		return next;
	}
	for (unsigned k = i; k < next; k++)
		meta(pkts[k])->arg = FLOW_FLOOD_ALL;
	return i;
}

// Chooses the edges of up to CHUNK frames.
static void bridge_chunk(struct rte_mbuf **pkts, edge_t *edges, unsigned n, struct bridge_run *runs)
{
	const struct mac_table *t = rcu_read(mac_table);
	uint32_t now = __atomic_load_n(&mac_clock, __ATOMIC_RELAXED);
	const struct bridge_run *r = runs, *end = bridge_runs(pkts, n, runs, t);
	bool learnt = false; // the source of this run
	unsigned i = 0, next;

	for (; r < end; r++) {
		const struct drop_reason *why =
			bridge_input_check(r, rte_pktmbuf_mtod(pkts[i], const struct rte_ether_hdr *));
		struct bridge_way way = bridge_way_drop(why);

		learnt &= r->same_source;
		if (likely(why == NULL)) {
			if (!learnt)
				bridge_input_learn(pkts[i], r, t, now);
			learnt = true;
			way = bridge_way_of(r, pkts[i], t);
		}
		next = i + r->n;
		if (unlikely(bridge_keeps_flows(bridge_of(&r->of))))
			i = bridge_input_decided(pkts, edges, i, next, r, &way);
		for (; i < next; i++)
			edges[i] = bridge_input_forward_one(pkts[i], &way);
	}
}

static uint16_t bridge_input(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct bridge_arrays *a = NODE_ARRAYS(struct bridge_arrays);
	unsigned done, i, k;

	for (done = 0; done < n; done += k) {
		k = RTE_MIN(n - done, NODE_CHUNK);
		for (i = 0; i < k; i += CHUNK)
			bridge_chunk((struct rte_mbuf **)objs + done + i, a->edges + i, RTE_MIN(k - i, CHUNK), a->runs);
		node_pass(graph, node, objs + done, a->edges, k);
	}
	return n;
}

NODE(bridge_input, bridge_input, NH_NEXT, [TX] = "port_tx", [FLOOD] = "bridge_flood", [SUPPRESS] = "bridge_suppress",
     [IP4] = "ip4_forward", [IP6] = "ip6_forward", [FLOW4] = "flow4_lookup", [FLOW6] = "flow6_lookup",
     [BRIDGED4] = "flow4_bridge", [BRIDGED6] = "flow6_bridge", [TAGGED] = "bridge_tagged");
