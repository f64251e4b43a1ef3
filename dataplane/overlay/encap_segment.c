// SPDX-License-Identifier: Apache-2.0
// encap_segment: cuts large segments and finishes checksums (base/offload.h) of packets for tunnels.
// Reads: nexthop, l3, bridge.  Next: the encapsulation of the next hop, each packet on its own.
#include "base/eth.h"
#include "graph/node.h"
#include "l3/encap.h"
#include "l3/nexthop.h"
#include "offload/checksum.h"
#include "neighbor/adjacency.h"
#include "offload/segment.h"
#include "offload/whole.h"
#include "port/registry.h"

DROP_REASON(encap_segment_failed,
	    "A large segment could not be cut into packets for a tunnel: no packet buffer was free, "
	    "or its headers contradict each other.");

// Whether the port by which the tunnel leaves takes the segment whole: as whole_open() and whole_cut() want it, in a
// packet that an IPv4 header can describe.
static bool encap_segment_stays(const struct rte_mbuf *m, const struct pkt_meta *md)
{
	const struct nexthop *nh = md->nexthop;
	bool v4 = (nh->hdr[TUNNEL_HDR_MAX - nh->hdr_len] >> 4) == 4;
	const struct adjacency *a = rcu_read(adjacency_table[nh->path[(md->hash >> 8) & (nh->n_paths - 1)]]);
	const struct port *port = rcu_read(port_table[a->port % PORT_MAX]);

	return port != NULL && (__atomic_load_n(&port->takes, __ATOMIC_RELAXED) & PORT_TAKES_WHOLE) && v4 &&
	       !nh->sequenced && m->nb_segs > 1 &&
	       m->pkt_len - md->l3 + nh->hdr_len + RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN <= UINT16_MAX;
}

// Distance of the packet's IP header from the tunnel's, once it is encapsulated.
static unsigned encap_segment_inner(const struct nexthop *nh, bool frame, unsigned l3)
{
	return frame ? nh->hdr_len - nh->inner_eth + l3 : nh->hdr_len;
}

// Returns how many packets there are in out[], 0: none.
static unsigned encap_segment_one(struct rte_mbuf *m, struct rte_mbuf **out)
{
	const struct pkt_meta *md = meta(m);
	bool frame = md->l3 == 0 && md->bridge != UINT16_MAX;
	unsigned l3 = frame ? frame_ip(m) : md->l3;
	int n;

	if (unlikely(offload_is_whole(m))) { // of a tunnel that ends elsewhere
		n = whole_cut(m, l3, out);
		return n > 0 ? (unsigned)n : 0;
	}
	if (offload_is_large(m)) {
		if (encap_segment_stays(m, md)) {
			whole_mark(m, encap_segment_inner(md->nexthop, frame, l3));
			*out = m;
			return 1;
		}
		n = segment(m, l3, out);
		return n > 0 ? (unsigned)n : 0;
	}
	checksum_finish(m, l3);
	*out = m;
	return 1;
}

static uint16_t encap_segment(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf *out[OFFLOAD_SEGMENTS_MAX], *m;
	edge_t edges[OFFLOAD_SEGMENTS_MAX], edge;
	unsigned i, j, k;

	for (i = 0; i < n; i++) {
		m = objs[i];
		edge = meta(m)->nexthop->edge;
		k = encap_segment_one(m, out);
		if (unlikely(k == 0)) {
			edge = drop(m, encap_segment_failed);
			out[k++] = m;
		}
		for (j = 0; j < k; j++)
			edges[j] = edge;
		node_pass(graph, node, (void **)out, edges, k);
	}
	return n;
}

NODE(encap_segment, encap_segment, [NH_EDGE_ENCAP] = NODE_LIST(ENCAP_SEND_NODES));
