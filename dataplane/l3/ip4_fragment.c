// SPDX-License-Identifier: Apache-2.0
// ip4_fragment: splits packets that are larger than the MTU of their path and may be fragmented (RFC 791).
// Reads: nexthop, l3, hash.  Next: by the next hop, each fragment on its own.
#include <errno.h>

#include <rte_ip_frag.h>

#include "graph/node.h"
#include "l3/forward.h"
#include "l3/icmp.h"
#include "l3/ip_header.h"
#include "offload/checksum.h"
#include "offload/segment.h"
#include "offload/whole.h"
#include "port/port.h"

DROP_REASON(fragment_failed,
	    "The packet had to be fragmented, but its header is malformed or there were no buffers left.");
DROP_REASON(fragment_too_many,
	    "The packet had to be fragmented into more than 32 pieces: the MTU of its path is too small for it.");
DROP_REASON(fragment_past_end,
	    "The packet is a fragment that ends beyond the 65,535 bytes of the largest IPv4 packet, and it had to be "
	    "fragmented again.");

#define MAX_FRAGMENTS 32 // a packet of the largest port MTU needs 18 on a path of 576 bytes
#define OFFSET_MASK 0x1fff

static void ip4_fragment_pass(struct rte_graph *graph, struct rte_node *node, struct rte_mbuf *m,
			      const struct pkt_meta *from, uint16_t port)
{
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod(m, struct rte_ipv4_hdr *);
	struct pkt_meta *md = meta(m);
	void *obj = m;
	edge_t edge = from->nexthop->edge;

	*md = *from;
	md->l3 = 0;
	m->port = port;
	m->ol_flags = 0;
	ip4_checksum_set(ip);
	node_pass(graph, node, &obj, &edge, 1);
}

// Fragments of a chain refer to its buffers, so they are copied once more.
static int split_chain(struct rte_mbuf *m, struct rte_mbuf **out, uint16_t mtu)
{
	struct rte_mbuf *refs[MAX_FRAGMENTS];
	int i, n = rte_ipv4_fragment_packet(m, refs, MAX_FRAGMENTS, mtu, m->pool, m->pool);
	bool complete = true;

	for (i = 0; i < n; i++) {
		out[i] = rte_pktmbuf_copy(refs[i], m->pool, 0, UINT32_MAX);
		complete = complete && out[i];
	}
	if (n > 0)
		rte_pktmbuf_free_bulk(refs, (unsigned)n);
	if (complete || n <= 0)
		return n;
	rte_pktmbuf_free_bulk(out, (unsigned)n); // NULL is fine
	return -ENOMEM;
}

// Returns the reason why the packet cannot be fragmented, or cuts off what lies behind it and returns NULL. What lies
// behind must not be counted: rte_ipv4_fragment_packet() compares the room in its array with the low 16 bits of the
// chain's length.
static const struct drop_reason *ip4_fragment_check(struct rte_mbuf *m, uint16_t mtu)
{
	const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, meta(m)->l3);
	unsigned hlen = (ip->version_ihl & 15) * 4u, len = rte_be_to_cpu_16(ip->total_length);
	unsigned offset = (rte_be_to_cpu_16(ip->fragment_offset) & OFFSET_MASK) * 8u;

	if (hlen < sizeof(*ip) || len < hlen || len + meta(m)->l3 > m->pkt_len || mtu < hlen + 8)
		return &drop_fragment_failed;
	if (len - hlen > MAX_FRAGMENTS * RTE_ALIGN_FLOOR(mtu - hlen, 8u))
		return &drop_fragment_too_many;
	if (offset + len > UINT16_MAX)
		return &drop_fragment_past_end;
	forward_trim(m, len + meta(m)->l3);
	return NULL;
}

// Copies the data, since others may free or write to the packet's buffers.
static int ip4_fragment_split(struct rte_mbuf *m, struct rte_mbuf **out, uint16_t mtu)
{
	rte_pktmbuf_adj(m, meta(m)->l3);
	meta(m)->l3 = 0;
	if (m->nb_segs == 1)
		return rte_ipv4_fragment_copy_nonseg_packet(m, out, MAX_FRAGMENTS, mtu, m->pool);
	return split_chain(m, out, mtu);
}

// A packet that is whole.
static void fragment_whole(struct rte_graph *graph, struct rte_node *node, struct rte_mbuf *m)
{
	struct rte_mbuf *out[MAX_FRAGMENTS];
	struct pkt_meta from = *meta(m);
	const struct drop_reason *bad = ip4_fragment_check(m, from.nexthop->mtu);
	edge_t edge = EDGE_DROP;
	void *obj = m;
	int i, n;

	n = bad ? 0 : ip4_fragment_split(m, out, from.nexthop->mtu);
	if (n <= 0) {
		drop_as(m, bad ? bad : &drop_fragment_failed);
		node_pass(graph, node, &obj, &edge, 1);
		return;
	}
	for (i = 0; i < n; i++)
		ip4_fragment_pass(graph, node, out[i], &from, m->port);
	rte_pktmbuf_free(m);
}

// A large segment becomes packets, and each of these becomes fragments.
static void fragment_one(struct rte_graph *graph, struct rte_node *node, struct rte_mbuf *m)
{
	struct rte_mbuf *parts[OFFLOAD_SEGMENTS_MAX];
	int i, n;

	if (!offload_is_large(m)) {
		if (offload_is_unfinished(m))
			checksum_finish(m, meta(m)->l3);
		fragment_whole(graph, node, m);
		return;
	}
	n = segment(m, meta(m)->l3, parts);
	for (i = 0; i < n; i++)
		fragment_whole(graph, node, parts[i]);
	if (n < 0) {
		edge_t edge = drop(m, fragment_failed);
		void *obj = m;

		node_pass(graph, node, &obj, &edge, 1);
	}
}

// One of the packets that a whole packet becomes: it fits, or it is fragmented unless its sender forbids that. One
// error is enough for all of them.
static void fragment_part(struct rte_graph *graph, struct rte_node *node, struct rte_mbuf *m, bool *told)
{
	const struct nexthop *nh = meta(m)->nexthop;
	const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, meta(m)->l3);
	edge_t edge = nh->edge;
	void *obj = m;

	if (m->pkt_len - meta(m)->l3 > nh->mtu) {
		if (!(ip->fragment_offset & RTE_BE16(RTE_IPV4_HDR_DF_FLAG))) {
			fragment_whole(graph, node, m);
			return;
		}
		if (*told) {
			edge = drop_as(m, forward_reasons.ip_too_big);
		} else {
			icmp_want(m, ICMP_WHAT_TOO_BIG, nh->mtu, forward_reasons.ip_too_big);
			edge = NH_EDGE_ICMP_ERROR;
			*told = true;
		}
	}
	node_pass(graph, node, &obj, &edge, 1);
}

// A whole packet of a tunnel that ends elsewhere.
static void fragment_tunnel(struct rte_graph *graph, struct rte_node *node, struct rte_mbuf *m)
{
	struct rte_mbuf *parts[OFFLOAD_SEGMENTS_MAX];
	int i, n = whole_cut(m, meta(m)->l3, parts);
	bool told = false;
	void *obj = m;
	edge_t edge;

	for (i = 0; i < n; i++)
		fragment_part(graph, node, parts[i], &told);
	if (n < 0) {
		edge = drop(m, fragment_failed);
		node_pass(graph, node, &obj, &edge, 1);
	}
}

static uint16_t ip4_fragment(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (unlikely(offload_is_whole(objs[i])))
			fragment_tunnel(graph, node, objs[i]);
		else
			fragment_one(graph, node, objs[i]);
	return n;
}

NODE(ip4_fragment, ip4_fragment, NH_NEXT);
