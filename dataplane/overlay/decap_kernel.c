// SPDX-License-Identifier: Apache-2.0
// decap_kernel, decap_unknown: packets that are no tunnel's of this router, as they came from the underlay. The kernel
// may have tunnels of its own beside a host port; without one they are dropped. decap_unknown: their label or VNI is
// unknown, so that they are the kernel's only if no tunnel leads to their source; a mirror's collector sends nothing.
// Reads: port, outer, reason.  Next: host_output.
#include "l3/tunnel_end.h"
#include "overlay/decap.h"

enum { HOST = 1 };

static inline edge_t decap_kernel_one(struct rte_mbuf *m)
{
	const struct port_fwd *f = rcu_read(port_fwds[m->port % PORT_MAX]);

	return f && f->host ? HOST : EDGE_DROP;
}

static inline edge_t decap_unknown_one(struct rte_mbuf *m)
{
	const uint8_t *outer = RTE_PTR_ADD(m->buf_addr, meta(m)->outer);
	bool v4 = (outer[0] >> 4) == 4;
	struct ip_addr source = v4 ? ip4_addr(*(const unaligned_uint32_t *)(outer + 12)) : ip6_addr(outer + 8);

	return tunnel_end_sends(&source) ? EDGE_DROP : decap_kernel_one(m);
}

static uint16_t decap_kernel(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, decap_kernel_one);
}

static uint16_t decap_unknown(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, decap_unknown_one);
}

NODE(decap_kernel, decap_kernel, [HOST] = "host_output");
NODE(decap_unknown, decap_unknown, [HOST] = "host_output");
