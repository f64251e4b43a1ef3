// SPDX-License-Identifier: Apache-2.0
// ip4_forward, ip6_forward: check the header, find the route and decrement the TTL.
// Reads: vrf, l3, flags, nexthop (with META_NEXTHOP).  Writes: nexthop, hash.  Next: by the next hop.
#include <netinet/in.h>

#include "l3/forward.h"
#include "l3/vrf.h"

DROP_REASON(ip_truncated, "The packet ends before its IP header does, or before the length that the header states.");
DROP_REASON(ip_bad_version, "The IP header's version differs from the one that the header in front of it states.");
DROP_REASON(ip4_bad_header_length, "The IPv4 header's length field is below 20 bytes or beyond the packet.");
DROP_REASON(ip4_bad_checksum,
	    "The IPv4 header's checksum is wrong: the packet was damaged, or its sender computes it wrongly.");
DROP_REASON(ip_martian_source, "The source is zero, loopback, multicast, broadcast or reserved, so no host has it.");
DROP_REASON(ip_martian_destination, "The destination is zero or loopback, so no host has it.");
DROP_REASON(ip_multicast, "Multicast is not routed. Tenants that need it share a bridge domain.");
DROP_REASON(ip_link_local, "Link-local addresses are not routed (RFC 4291).");
DROP_REASON(ip_ttl_exceeded,
	    "The TTL (hop limit) ran out. A few of these come from traceroute; many mean a routing loop.");
DROP_REASON(ip_no_route, "The VRF has no route to the destination. See `corelane route lookup ADDRESS --vrf NAME`.");
DROP_REASON(ip_too_big,
	    "The packet is larger than what the path to its destination carries and must not be fragmented. The sender "
	    "got an ICMP error.");
DROP_REASON(route_discard, "The route's next hop is of kind discard.");
DROP_REASON(route_reject, "The route's next hop is of kind reject: the sender got an ICMP unreachable.");
DROP_REASON(nexthop_unresolved,
	    "The next hop cannot be reached now: its tunnel's remote address has no route in the fabric VRF, its "
	    "port is gone, or no member of its group works. See `corelane nexthop show ID`.");

const struct forward_reasons forward_reasons = {
	.ip_truncated = &drop_ip_truncated,
	.ip_bad_version = &drop_ip_bad_version,
	.ip4_bad_header_length = &drop_ip4_bad_header_length,
	.ip4_bad_checksum = &drop_ip4_bad_checksum,
	.ip_martian_source = &drop_ip_martian_source,
	.ip_martian_destination = &drop_ip_martian_destination,
	.ip_multicast = &drop_ip_multicast,
	.ip_link_local = &drop_ip_link_local,
	.ip_ttl_exceeded = &drop_ip_ttl_exceeded,
	.ip_no_route = &drop_ip_no_route,
	.ip_too_big = &drop_ip_too_big,
	.route_discard = &drop_route_discard,
	.route_reject = &drop_route_reject,
	.nexthop_unresolved = &drop_nexthop_unresolved,
};

void forward_trim_chain(struct rte_mbuf *m, uint32_t want)
{
	struct rte_mbuf *last = m;
	uint32_t left = want;
	uint16_t segs = 1;

	for (; left > last->data_len; last = last->next, segs++)
		left -= last->data_len;
	last->data_len = (uint16_t)left;
	rte_pktmbuf_free(last->next); // NULL is fine
	last->next = NULL;
	m->nb_segs = segs;
	m->pkt_len = want;
}

static __rte_always_inline edge_t ip_forward_one(struct rte_mbuf *m, uint32_t id, const bool v6)
{
	struct pkt_meta *md = meta(m);
	void *ip = rte_pktmbuf_mtod_offset(m, void *, md->l3);
	const struct nexthop *nh, *member;

	nh = (md->flags & META_NEXTHOP) ? md->nexthop : rcu_read(nexthop_table[id]);
	if (nh && nh->kind == NH_GROUP) {
		member = rcu_read(nexthop_table[nh->bucket[forward_hash(m, md, ip, v6) % GROUP_BUCKETS]]);
		nh = member ? member : nh; // no member works: nexthop_unresolved
	}
	return forward_by(m, md, nh, ip, v6);
}

static __rte_always_inline void forward_chunk(struct rte_graph *graph, struct rte_node *node, void **objs, unsigned n,
					      const bool v6)
{
	struct rte_mbuf **pkts = (struct rte_mbuf **)objs;
	const struct fib *fibs[NODE_CHUNK];
	const uint8_t *keys6[NODE_CHUNK];
	uint32_t keys4[NODE_CHUNK], ids[NODE_CHUNK];
	const struct drop_reason *bad[NODE_CHUNK];
	edge_t edges[NODE_CHUNK];
	static const uint8_t none[16];
	struct pkt_meta *md;
	unsigned i;

	for (i = 0; i < n; i++) {
		if (i + NODE_AHEAD < n)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i + NODE_AHEAD], void *));
		md = meta(pkts[i]);
		bad[i] = v6 ? forward_check6(pkts[i], md) : forward_check4(pkts[i], md);
		fibs[i] = v6 ? rcu_read(vrf_fibs[md->vrf].fib6) : rcu_read(vrf_fibs[md->vrf].fib4);
		if (v6)
			keys6[i] = bad[i] ? none
					  : rte_pktmbuf_mtod_offset(pkts[i], struct rte_ipv6_hdr *, md->l3)->dst_addr;
		else
			keys4[i] =
				bad[i] ? 0 : rte_pktmbuf_mtod_offset(pkts[i], struct rte_ipv4_hdr *, md->l3)->dst_addr;
	}
	if (v6)
		fib6_lookup_bulk(fibs, keys6, ids, n);
	else
		fib4_lookup_bulk(fibs, keys4, ids, n);
	for (i = 0; i < n; i++)
		edges[i] = unlikely(bad[i] != NULL) ? drop_as(pkts[i], bad[i]) : ip_forward_one(pkts[i], ids[i], v6);
	node_pass(graph, node, objs, edges, n);
}

static __rte_always_inline uint16_t ip_forward(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n,
					       const bool v6)
{
	unsigned done, k;

	for (done = 0; done < n; done += k) {
		k = RTE_MIN(n - done, (unsigned)NODE_CHUNK);
		forward_chunk(graph, node, objs + done, k, v6);
	}
	return n;
}

static uint16_t ip4_forward(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return ip_forward(graph, node, objs, n, false);
}

static uint16_t ip6_forward(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return ip_forward(graph, node, objs, n, true);
}

NODE(ip4_forward, ip4_forward, FORWARD_NEXT4);
NODE(ip6_forward, ip6_forward, FORWARD_NEXT6);
