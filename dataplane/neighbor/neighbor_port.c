// SPDX-License-Identifier: Apache-2.0
// Updates neighbours when their port changes, and handles the packets that workers punt for them.
#include <stdlib.h>

#include <rte_ip.h>

#include "neighbor/answer.h"
#include "neighbor/neighbor_private.h"
#include "port/registry.h"
#include "worker/punt.h"

DROP_REASON(neighbor_bad_packet, "A packet for an unresolved neighbour has no complete IP header.");

static void neighbor_port_each(const struct port *p, void (*fn)(struct neighbor *n))
{
	struct neighbor *n;
	uint32_t i;

	for (i = 1; i < neighbor_end; i++) {
		n = neighbor_at(i);
		if (n && n->port == p->id)
			fn(n);
	}
}

// The port's MAC or VLAN may have changed, or the neighbour's address may be the router's own now.
static void neighbor_port_refresh(struct neighbor *n)
{
	if (n->refs == 0 && n->addr.family && answer_is_own(port_fwds[n->port], &n->addr))
		neighbor_remove(n);
	else
		adjacency_set(n->adj, n->port, &n->mac, neighbor_usable(n));
}

static void neighbor_port_wake(struct neighbor *n)
{
	if (n->refs && n->state == NEIGH_FAILED)
		neighbor_timer_now(n);
}

PORT_SETTINGS(neighbor_config)

static void neighbor_port_forward(const struct port_config *cfg, struct port_fwd *out)
{
	out->proxy_arp = neighbor_config(cfg)->proxy_arp;
}

static void neighbor_port_on_changed(struct port *p, const struct port_config *old)
{
	neighbor_port_each(p, neighbor_port_refresh);
}

static void neighbor_port_on_removed(struct port *p)
{
	neighbor_port_each(p, neighbor_orphan);
}

static void neighbor_port_on_link(struct port *p)
{
	if (p->up)
		neighbor_port_each(p, neighbor_port_wake);
}

static void neighbor_port_on_hold(struct rte_mbuf *m)
{
	neighbor_wait(meta(m)->arg, m);
}

static void neighbor_port_on_glean(struct rte_mbuf *m)
{
	const struct rte_ipv4_hdr *ip4 = rte_pktmbuf_mtod(m, const struct rte_ipv4_hdr *);
	const struct rte_ipv6_hdr *ip6 = rte_pktmbuf_mtod(m, const struct rte_ipv6_hdr *);
	uint16_t port = (uint16_t)(meta(m)->arg % PORT_MAX);
	struct ip_addr dst;

	if (m->data_len >= sizeof(*ip4) && ip4->version_ihl >> 4 == 4) {
		dst = ip4_addr(ip4->dst_addr);
	} else if (m->data_len >= sizeof(*ip6) && ip4->version_ihl >> 4 == 6) {
		dst = ip6_addr(ip6->dst_addr);
	} else {
		neighbor_drop(m, &drop_neighbor_bad_packet);
		return;
	}
	neighbor_wait_on_port(port, &dst, m);
}

int neighbor_init(void)
{
	static struct port_listener listener = {.forward = neighbor_port_forward,
						.changed = neighbor_port_on_changed,
						.removed = neighbor_port_on_removed,
						.link = neighbor_port_on_link};

	neighbor_table_init();
	port_listen(&listener);
	punt_register(PUNT_ARP, arp_receive);
	punt_register(PUNT_ARP_REPLY, arp_receive);
	punt_register(PUNT_ARP_ASKED, arp_receive);
	punt_register(PUNT_ND, nd_receive);
	punt_register(PUNT_ND_REPLY, nd_receive);
	punt_register(PUNT_ND_ASKED, nd_receive);
	punt_register(PUNT_HOLD, neighbor_port_on_hold);
	punt_register(PUNT_GLEAN, neighbor_port_on_glean);
	return 0;
}
