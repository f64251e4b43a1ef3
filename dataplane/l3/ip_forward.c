// SPDX-License-Identifier: Apache-2.0
// ip4_forward, ip6_forward: checks the header, finds the route, counts the TTL down.
// Reads: vrf, l3, flags, nexthop (with META_NEXTHOP).  Writes: nexthop, hash.  Next: by the next hop.
#include <netinet/in.h>

#include "base/rcu.h"
#include "graph/node.h"
#include "icmp/icmp.h"
#include "ip/ip_header.h"
#include "ip/mss.h"
#include "l3/nexthop.h"
#include "l3/vrf.h"
#include "port/registry.h"

enum { FRAGMENT = NH_EDGES };

DROP_REASON(ip_truncated, "The packet ends before its IP header does, or before the length that the header states.");
DROP_REASON(ip_bad_version, "The IP header's version is not the one that the packet was announced as.");
DROP_REASON(ip4_bad_header_length, "The IPv4 header's length field is below 20 bytes or beyond the packet.");
DROP_REASON(ip4_bad_checksum, "The IPv4 header's checksum is wrong: the packet was damaged, or its sender computes it wrongly.");
DROP_REASON(ip_martian_source, "The source address can be nobody's: zero, loopback, multicast, broadcast or reserved.");
DROP_REASON(ip_martian_destination, "The destination address is nobody's: zero or loopback.");
DROP_REASON(ip_multicast, "Multicast is not routed. Tenants that need it share a bridge domain.");
DROP_REASON(ip_link_local, "Link-local addresses are not routed (RFC 4291).");
DROP_REASON(ip_ttl_exceeded, "The TTL (hop limit) ran out. A few of these come from traceroute; many mean a routing loop.");
DROP_REASON(ip_no_route, "The VRF has no route to the destination. See `corelane route lookup ADDRESS --vrf NAME`.");
DROP_REASON(ip_too_big, "The packet is larger than what the path to its destination carries and must not be fragmented. The sender "
			"was told with ICMP.");
DROP_REASON(route_discard, "The route's next hop discards.");
DROP_REASON(route_reject, "The route's next hop rejects: the sender was told with ICMP unreachable.");
DROP_REASON(nexthop_unresolved, "The next hop leads nowhere now: its tunnel's remote address has no route in the fabric VRF, its "
				"port is gone, or no member of its group works. See `corelane nexthop show ID`.");

// Cuts off what the sender's device padded. Multi-segment packets are never padded.
static inline void trim(struct rte_mbuf *m, uint32_t want)
{
	uint32_t extra = m->pkt_len - want;

	if (likely(m->nb_segs == 1)) {
		m->data_len = (uint16_t)(m->data_len - extra);
		m->pkt_len = want;
	}
}

// 0, or the reason that the packet must go for.
static __rte_always_inline const struct drop_reason *check4(struct rte_mbuf *m, const struct pkt_meta *md)
{
	const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, md->l3);
	unsigned avail = m->data_len - md->l3, hlen, len;

	if (unlikely(avail < sizeof(*ip) || m->data_len < md->l3))
		return &drop_ip_truncated;
	if (unlikely(ip->version_ihl != 0x45)) {
		if ((ip->version_ihl >> 4) != 4)
			return &drop_ip_bad_version;
		if ((ip->version_ihl & 15) < 5 || (ip->version_ihl & 15) * 4u > avail)
			return &drop_ip4_bad_header_length;
	}
	hlen = (ip->version_ihl & 15) * 4u;
	len = rte_be_to_cpu_16(ip->total_length);
	if (unlikely(len < hlen || len > m->pkt_len - md->l3))
		return &drop_ip_truncated;
	if (unlikely(!ip4_checksum_ok(ip)))
		return &drop_ip4_bad_checksum;
	if (unlikely(ip4_martian_source(ip->src_addr) || ip4_martian_source(ip->dst_addr))) // nor are these a destination
		return ip4_martian_source(ip->src_addr)               ? &drop_ip_martian_source
		       : (rte_be_to_cpu_32(ip->dst_addr) >> 28) >= 14 ? &drop_ip_multicast
								      : &drop_ip_martian_destination;
	if (len != m->pkt_len - md->l3)
		trim(m, len + md->l3);
	return NULL;
}

static __rte_always_inline const struct drop_reason *check6(struct rte_mbuf *m, const struct pkt_meta *md)
{
	const struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv6_hdr *, md->l3);
	unsigned len;

	if (unlikely(m->data_len < md->l3 + sizeof(*ip)))
		return &drop_ip_truncated;
	if (unlikely((*(const uint8_t *)ip >> 4) != 6))
		return &drop_ip_bad_version;
	len = rte_be_to_cpu_16(ip->payload_len) + (unsigned)sizeof(*ip);
	if (unlikely(len > m->pkt_len - md->l3))
		return &drop_ip_truncated;
	if (unlikely(ip6_is_multicast(ip->src_addr) || ip6_unspecified_or_loopback(ip->src_addr)))
		return &drop_ip_martian_source;
	if (unlikely(ip6_is_multicast(ip->dst_addr)))
		return &drop_ip_multicast;
	if (unlikely(ip6_unspecified_or_loopback(ip->dst_addr)))
		return &drop_ip_martian_destination;
	if (unlikely(ip6_is_link_local(ip->dst_addr)))
		return &drop_ip_link_local;
	if (len != m->pkt_len - md->l3)
		trim(m, len + md->l3);
	return NULL;
}

static __rte_always_inline uint32_t hash_of(struct rte_mbuf *m, struct pkt_meta *md, const void *ip, const bool v6)
{
	if (md->hash == 0)
		md->hash = v6 ? ip6_hash(ip, m->data_len - md->l3) : ip4_hash(ip, m->data_len - md->l3);
	return md->hash;
}

static inline edge_t give_up(struct rte_mbuf *m, const struct nexthop *nh)
{
	if (nh == NULL) {
		icmp_want(m, ICMP_WHAT_NO_ROUTE, 0, &drop_ip_no_route);
		return NH_EDGE_ICMP_ERROR;
	}
	if (nh->kind == NH_REJECT) {
		icmp_want(m, ICMP_WHAT_PROHIBITED, 0, &drop_route_reject);
		return NH_EDGE_ICMP_ERROR;
	}
	if (nh->kind == NH_DISCARD)
		return drop(m, route_discard);
	icmp_want(m, ICMP_WHAT_HOST, 0, &drop_nexthop_unresolved);
	return NH_EDGE_ICMP_ERROR;
}

static inline edge_t too_big(struct rte_mbuf *m, const struct nexthop *nh, const void *ip, const bool v6)
{
	const struct rte_ipv4_hdr *ip4 = ip;

	if (!v6 && !(ip4->fragment_offset & rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG)))
		return FRAGMENT;
	icmp_want(m, ICMP_WHAT_TOO_BIG, nh->mtu, &drop_ip_too_big);
	return NH_EDGE_ICMP_ERROR;
}

// False: the TTL has run out.
static __rte_always_inline bool count_down(void *ip, const bool v6)
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

static __rte_always_inline edge_t forward_one(struct rte_mbuf *m, uint32_t id, const bool v6)
{
	struct pkt_meta *md = meta(m);
	void *ip = rte_pktmbuf_mtod_offset(m, void *, md->l3);
	const struct nexthop *nh, *member;

	nh = (md->flags & META_NEXTHOP) ? md->nexthop : rcu_read(nexthop_table[id]);
	if (nh && nh->kind == NH_GROUP) {
		member = rcu_read(nexthop_table[nh->bucket[hash_of(m, md, ip, v6) % GROUP_BUCKETS]]);
		nh = member ? member : nh; // none works: nexthop_unresolved
	}
	md->nexthop = nh;
	if (unlikely(v6 && ip6_is_link_local(((struct rte_ipv6_hdr *)ip)->src_addr) && (nh == NULL || nh->edge != NH_EDGE_LOCAL)))
		return drop(m, ip_link_local);
	if (unlikely(nh == NULL || nh->edge < NH_EDGE_PORT))
		return nh && nh->edge == NH_EDGE_LOCAL ? NH_EDGE_LOCAL : give_up(m, nh);
	if (!(md->flags & META_ANSWER) && unlikely(!count_down(ip, v6))) {
		icmp_want(m, ICMP_WHAT_TTL, 0, &drop_ip_ttl_exceeded);
		return NH_EDGE_ICMP_ERROR;
	}
	if (unlikely(md->flags & META_CLAMP || nh->mss))
		mss_clamp_wanted(m, nh, v6);
	if (unlikely(m->pkt_len - md->l3 > nh->mtu))
		return too_big(m, nh, ip, v6);
	if (nh->kind == NH_TUNNEL)
		hash_of(m, md, ip, v6);
	return nh->edge;
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
		bad[i] = v6 ? check6(pkts[i], md) : check4(pkts[i], md);
		fibs[i] = v6 ? rcu_read(vrf_fibs[md->vrf].fib6) : rcu_read(vrf_fibs[md->vrf].fib4);
		if (v6)
			keys6[i] = bad[i] ? none : rte_pktmbuf_mtod_offset(pkts[i], struct rte_ipv6_hdr *, md->l3)->dst_addr;
		else
			keys4[i] = bad[i] ? 0 : rte_pktmbuf_mtod_offset(pkts[i], struct rte_ipv4_hdr *, md->l3)->dst_addr;
	}
	if (v6)
		fib6_lookup_bulk(fibs, keys6, ids, n);
	else
		fib4_lookup_bulk(fibs, keys4, ids, n);
	for (i = 0; i < n; i++)
		edges[i] = unlikely(bad[i] != NULL) ? drop_as(pkts[i], bad[i]) : forward_one(pkts[i], ids[i], v6);
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

NODE(ip4_forward, ip4_forward, NH_NEXT, [FRAGMENT] = "ip4_fragment");
NODE(ip6_forward, ip6_forward, NH_NEXT, [FRAGMENT] = "icmp_error");
