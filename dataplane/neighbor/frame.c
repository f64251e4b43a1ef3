// SPDX-License-Identifier: Apache-2.0
// Builds the frames of the master thread and selects their source addresses.
#include "neighbor/frame.h"

#include <string.h>

#include "graph/meta.h"
#include "port/registry.h"
#include "worker/worker.h"

struct rte_mbuf *frame_new(const struct port *p, const struct rte_ether_addr *dst, uint16_t ether_type, unsigned len,
			   void **payload)
{
	const struct port_fwd *f = port_fwds[p->id];
	struct rte_mempool *pool = port_pool(p->numa);
	struct rte_mbuf *m = pool ? rte_pktmbuf_alloc(pool) : NULL;
	unsigned l2 = sizeof(struct rte_ether_hdr) + (f->vlan_be ? sizeof(struct rte_vlan_hdr) : 0);
	unsigned total = RTE_MAX(l2 + len, (unsigned)(RTE_ETHER_MIN_LEN - RTE_ETHER_CRC_LEN));
	struct rte_ether_hdr *eth;
	struct rte_vlan_hdr *vlan;

	if (m == NULL)
		return NULL;
	eth = (struct rte_ether_hdr *)rte_pktmbuf_append(m, (uint16_t)total);
	memset(eth, 0, total);
	eth->dst_addr = *dst;
	eth->src_addr = f->mac;
	eth->ether_type = rte_cpu_to_be_16(ether_type);
	if (f->vlan_be) {
		vlan = (struct rte_vlan_hdr *)(eth + 1);
		vlan->eth_proto = eth->ether_type;
		vlan->vlan_tci = f->vlan_be;
		eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_VLAN);
	}
	*payload = (uint8_t *)eth + l2;
	return m;
}

void frame_send(const struct port *p, struct rte_mbuf *m)
{
	struct pkt_meta *md = meta(m);

	memset(md, 0, sizeof(*md));
	md->out_port = p->id;
	md->flags = META_ANSWER;
	m->port = 0;
	m->ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
	worker_inject(m, INJECT_TX);
}

static unsigned frame_own_prefixes(const struct port *p, const struct ip_prefix **list)
{
	*list = p->cfg.role == PORT_FABRIC ? p->cfg.addrs : p->cfg.gateways;
	return p->cfg.role == PORT_FABRIC ? p->cfg.n_addrs : p->cfg.n_gateways;
}

static bool frame_covers(const struct ip_prefix *own, const struct ip_addr *a)
{
	struct ip_prefix net;

	if (own->addr.family != a->family)
		return false;
	net = ip_prefix_of(&own->addr, own->len);
	return ip_prefix_covers(&net, a);
}

bool frame_source(const struct port *p, const struct ip_addr *target, struct ip_addr *src)
{
	const struct ip_prefix *list, *best = NULL;
	unsigned i, n = frame_own_prefixes(p, &list);

	for (i = 0; i < n; i++) {
		if (list[i].addr.family != target->family)
			continue;
		if (best == NULL || (frame_covers(&list[i], target) && !frame_covers(best, target)))
			best = &list[i];
	}
	if (best)
		*src = best->addr;
	return best != NULL;
}

bool frame_is_connected(const struct port *p, const struct ip_addr *a)
{
	unsigned i;

	if (p->cfg.role != PORT_FABRIC)
		return false;
	for (i = 0; i < p->cfg.n_addrs; i++)
		if (frame_covers(&p->cfg.addrs[i], a))
			return true;
	return false;
}
