// SPDX-License-Identifier: Apache-2.0
// Copies packets of flows whose rules or ports have mirrors. Egress copies show the packet as the guest sent it, even
// if it is dropped later; ingress copies show it as the guest will receive it.
#include "flow/act.h"
#include "neighbor/adjacency.h"
#include "policy/mirror.h"
#include "port/registry.h"

static void flow_mirror_copy(struct rte_graph *graph, struct rte_node *node, uint16_t mirror, enum mirror_direction dir,
			     struct rte_mbuf *m, const void *eth)
{
	struct rte_mbuf *c = mirror_copy(mirror, dir, m, eth);

	if (c)
		rte_node_enqueue_x1(graph, node, FLOW_EDGE_MIRROR, c);
}

// Copies for one side of the flow, to its port's and its rule's mirror; only once if they are the same.
static void flow_mirror_copies(struct rte_graph *graph, struct rte_node *node, const struct port_fwd *p, uint16_t rules,
			       enum mirror_direction dir, struct rte_mbuf *m, const void *eth)
{
	if (p && p->mirror)
		flow_mirror_copy(graph, node, p->mirror, dir, m, eth);
	if (rules && (p == NULL || rules != p->mirror))
		flow_mirror_copy(graph, node, rules, dir, m, eth);
}

static const struct port_fwd *port_of(const struct flow *f, unsigned side)
{
	return f->port[side] ? rcu_read(port_fwds[f->port[side]]) : NULL;
}

void flow_mirror_sent(struct rte_graph *graph, struct rte_node *node, struct rte_mbuf *m, const struct flow *f,
		      unsigned dir)
{
	const struct port_fwd *p = port_of(f, dir);
	const struct pkt_meta *md = meta(m);
	struct rte_ether_hdr made_up = {0};
	const void *eth = &made_up;

	if (md->l3 >= sizeof(made_up))
		eth = rte_pktmbuf_mtod_offset(m, const uint8_t *, md->l3 - sizeof(made_up));
	else if (p)
		made_up.dst_addr = p->mac;
	flow_mirror_copies(graph, node, p, f->extras[dir].mirror, MIRROR_EGRESS, m, eth);
}

void flow_mirror_received(struct rte_graph *graph, struct rte_node *node, struct rte_mbuf *m, const struct flow *f,
			  unsigned dir)
{
	const struct port_fwd *p = port_of(f, !dir);
	const struct nexthop *nh = meta(m)->nexthop;
	struct rte_ether_hdr made_up = {0};
	const void *eth = &made_up;

	if (flow_zone_is_bridge(f->dir[dir].key.zone)) {
		eth = rte_pktmbuf_mtod(m, const void *);
	} else if (nh->kind == NH_PORT) {
		const struct adjacency *a = rcu_read(adjacency_table[nh->adj]);

		if (a->resolved)
			eth = a->l2 + sizeof(a->l2) - sizeof(made_up);
	}
	if (eth == &made_up && p)
		made_up.src_addr = p->mac;
	flow_mirror_copies(graph, node, p, f->extras[!dir].mirror, MIRROR_INGRESS, m, eth);
}
