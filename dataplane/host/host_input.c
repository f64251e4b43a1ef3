// SPDX-License-Identifier: Apache-2.0
// host_input: packets that the kernel sends. They leave by the fabric port unchanged, except for the VLAN tag of the
// link.
// Reads: port.  Writes: out_port.  Next: port_tx.
#include <string.h>

#include "base/rcu.h"
#include "graph/node.h"
#include "port/registry.h"

enum { TX = 1 };

DROP_REASON(host_truncated, "The kernel sent a frame shorter than an Ethernet header.");
DROP_REASON(host_no_headroom, "A buffer had no room for the VLAN tag of the fabric port.");
DROP_REASON(host_no_fabric, "The fabric port of the host port has been removed.");

static inline bool host_input_tag(struct rte_mbuf *m, rte_be16_t tci)
{
	const unsigned macs = 2 * RTE_ETHER_ADDR_LEN;
	char *start = rte_pktmbuf_prepend(m, sizeof(struct rte_vlan_hdr));
	rte_be16_t *vlan;

	if (unlikely(start == NULL))
		return false;
	vlan = (rte_be16_t *)(start + macs);
	memmove(start, start + sizeof(struct rte_vlan_hdr), macs);
	vlan[0] = RTE_BE16(RTE_ETHER_TYPE_VLAN);
	vlan[1] = tci;
	return true;
}

static inline edge_t input_one(struct rte_mbuf *m)
{
	const struct port_fwd *f = rcu_read(port_fwds[m->port % PORT_MAX]),
			      *fabric = f ? rcu_read(port_fwds[f->fabric]) : NULL;

	if (unlikely(fabric == NULL))
		return drop(m, host_no_fabric);
	if (unlikely(m->data_len < sizeof(struct rte_ether_hdr)))
		return drop(m, host_truncated);
	if (fabric->vlan_be && unlikely(!host_input_tag(m, fabric->vlan_be)))
		return drop(m, host_no_headroom);
	meta(m)->out_port = f->fabric;
	return TX;
}

static uint16_t host_input(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, input_one);
}

NODE(host_input, host_input, [TX] = "port_tx");
