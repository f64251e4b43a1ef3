// SPDX-License-Identifier: Apache-2.0
// host_output: frames from the fabric for the kernel. Removes the VLAN tag of the link.
// Reads: port.  Writes: out_port.  Next: host_handoff.
#include <string.h>

#include "base/rcu.h"
#include "graph/node.h"
#include "port/registry.h"

enum { HANDOFF = 1 };

DROP_REASON(host_gone, "The host port was removed before a packet for the kernel was sent.");

// The input node has checked that the tag is the link's.
static inline void host_output_untag(struct rte_mbuf *m)
{
	struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);

	if (eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_VLAN))
		return;
	memmove(RTE_PTR_ADD(eth, sizeof(struct rte_vlan_hdr)), eth, 2 * RTE_ETHER_ADDR_LEN);
	rte_pktmbuf_adj(m, sizeof(struct rte_vlan_hdr));
}

static inline edge_t host_output_one(struct rte_mbuf *m)
{
	const struct port_fwd *f = rcu_read(port_fwds[m->port % PORT_MAX]);

	if (unlikely(f == NULL || f->host == 0))
		return drop(m, host_gone);
	host_output_untag(m);
	meta(m)->out_port = f->host;
	return HANDOFF;
}

static uint16_t host_output(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, host_output_one);
}

NODE(host_output, host_output, [HANDOFF] = "host_handoff");
