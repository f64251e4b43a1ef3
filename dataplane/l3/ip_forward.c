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

static __rte_always_inline edge_t ip_forward_to(struct rte_mbuf *m, struct pkt_meta *md, const struct nexthop *nh,
						void *ip, const bool v6)
{
	const struct nexthop *member;

	if (nh && nh->kind == NH_GROUP) {
		member = rcu_read(nexthop_table[nh->bucket[forward_hash(m, md, ip, v6) % GROUP_BUCKETS]]);
		nh = member ? member : nh; // no member works: nexthop_unresolved
	}
	return forward_by(m, md, nh, ip, v6);
}

static __rte_always_inline const struct fib *ip_forward_fib(const struct pkt_meta *md, const bool v6)
{
	return v6 ? rcu_read(vrf_fibs[md->vrf].fib6) : rcu_read(vrf_fibs[md->vrf].fib4);
}

static __rte_always_inline const uint8_t *ip_forward_key(const void *ip, const bool v6)
{
	return v6 ? ((const struct rte_ipv6_hdr *)ip)->dst_addr
		  : (const uint8_t *)&((const struct rte_ipv4_hdr *)ip)->dst_addr;
}

// Packets that are looked up together, after the others.
struct forward_late {
	const struct fib *fibs[NODE_CHUNK];
	const uint8_t *keys6[NODE_CHUNK];
	uint32_t keys4[NODE_CHUNK], ids[NODE_CHUNK];
	uint16_t at[NODE_CHUNK];
	unsigned n;
};

struct forward_arrays {
	struct fib_recent recent;
	edge_t edges[NODE_CHUNK];
	struct forward_late late;
};

static __rte_always_inline void ip_forward_defer(struct forward_late *late, unsigned i, const struct fib *fib,
						 const uint8_t *key, const bool v6)
{
	late->at[late->n] = (uint16_t)i;
	late->fibs[late->n] = fib;
	if (v6)
		late->keys6[late->n++] = key;
	else
		late->keys4[late->n++] = *(const unaligned_uint32_t *)key;
}

static __rte_always_inline void ip_forward_late(struct rte_mbuf **pkts, struct forward_late *late, edge_t *edges,
						const bool v6)
{
	unsigned i, k;

	if (v6)
		fib6_lookup_bulk(late->fibs, late->keys6, late->ids, late->n);
	else
		fib4_lookup_bulk(late->fibs, late->keys4, late->ids, late->n);
	for (k = 0; k < late->n; k++) {
		struct pkt_meta *md = meta(pkts[late->at[k]]);

		i = late->at[k];
		edges[i] = ip_forward_to(pkts[i], md, rcu_read(nexthop_table[late->ids[k]]),
					 rte_pktmbuf_mtod_offset(pkts[i], void *, md->l3), v6);
	}
}

static __rte_always_inline void forward_chunk(struct rte_graph *graph, struct rte_node *node, void **objs, unsigned n,
					      const bool v6)
{
	struct rte_mbuf **pkts = (struct rte_mbuf **)objs;
	struct forward_arrays *a = NODE_ARRAYS(struct forward_arrays);
	const uint16_t vrf = meta(pkts[0])->vrf;
	unsigned i;

	fib_recent_begin(&a->recent, ip_forward_fib(meta(pkts[0]), v6));
	a->late.n = 0;
	for (i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		struct pkt_meta *md = meta(m);
		void *ip = rte_pktmbuf_mtod_offset(m, void *, md->l3);
		const uint8_t *key = ip_forward_key(ip, v6);
		const struct drop_reason *bad;

		node_prefetch(pkts, i, n);
		bad = v6 ? forward_check6(m, md, ip) : forward_check4(m, md, ip);
		if (unlikely(bad != NULL))
			a->edges[i] = drop_as(m, bad);
		else if (unlikely(md->flags & META_NEXTHOP))
			a->edges[i] = ip_forward_to(m, md, md->nexthop, ip, v6);
		else if (likely(md->vrf == vrf) && fib_lookup_recent(&a->recent, key, v6))
			a->edges[i] = ip_forward_to(m, md, rcu_read(nexthop_table[a->recent.nexthop]), ip, v6);
		else
			ip_forward_defer(&a->late, i, ip_forward_fib(md, v6), key, v6);
	}
	if (a->late.n > 0)
		ip_forward_late(pkts, &a->late, a->edges, v6);
	node_pass(graph, node, objs, a->edges, n);
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
