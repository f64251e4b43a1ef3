// SPDX-License-Identifier: Apache-2.0
// Neighbour discovery of the master thread: solicits MACs, learns from advertisements, answers on fabric ports.
#include <string.h>

#include "neighbor/answer.h"
#include "neighbor/frame.h"
#include "neighbor/nd_packet.h"
#include "neighbor/neighbor_private.h"
#include "port/registry.h"

DROP_REASON(nd_late, "A neighbour discovery packet reached the control plane after its port had been removed or had "
		     "been given the sender's address.");
DROP_REASON(nd_address_conflict,
	    "Another host on the underlay claims one of this node's IPv6 addresses: the address is configured twice.");
DROP_REASON(nd_wrong_guest_mac,
	    "The guest claimed one of its IPv6 addresses with another MAC than the one configured for it.");
DROP_REASON(nd_no_room, "The buffer of a neighbour solicitation had no room for the answer.");

static bool nd_is_link_local(const uint8_t a[16])
{
	return a[0] == 0xfe && (a[1] & 0xc0) == 0x80;
}

// RFC 4291, 2.7.1, and RFC 2464, 7.
static void nd_solicited_node(const uint8_t target[16], uint8_t ip[16], struct rte_ether_addr *mac)
{
	const uint8_t group[13] = {0xff, 2, [11] = 1, 0xff};

	memcpy(ip, group, sizeof(group));
	memcpy(ip + 13, target + 13, 3);
	*mac = (struct rte_ether_addr){{0x33, 0x33, 0xff, target[13], target[14], target[15]}};
}

static void nd_source(const struct port *p, const struct ip_addr *target, uint8_t out[16])
{
	struct ip_addr a;

	if (!nd_is_link_local(target->bytes) && frame_source(p, target, &a))
		memcpy(out, a.bytes, 16);
	else
		answer_link_local(&port_fwds[p->id]->mac, out);
}

void nd_send_solicit(const struct port *p, const struct ip_addr *target)
{
	const struct neighbor *n = neighbor_find(p->id, target);
	struct rte_ether_addr mac;
	struct nd_mac_option *o;
	struct rte_ipv6_hdr *ip;
	uint8_t src[16], dst[16];
	struct nd_header *nd;
	struct rte_mbuf *m;

	nd_source(p, target, src);
	nd_solicited_node(target->bytes, dst, &mac);
	if (n && n->state == NEIGH_PROBE) {
		memcpy(dst, target->bytes, sizeof(dst));
		mac = n->mac;
	}
	m = frame_new(p, &mac, RTE_ETHER_TYPE_IPV6, sizeof(*ip) + ND_LEN, (void **)&ip);
	if (m == NULL)
		return;
	nd = (struct nd_header *)(ip + 1);
	o = (struct nd_mac_option *)(nd + 1);
	nd_fill_ip(ip, src, dst);
	nd->type = ND_SOLICIT;
	memcpy(nd->target, target->bytes, 16);
	o->type = ND_OPT_SOURCE_MAC;
	o->len = 1;
	o->mac = port_fwds[p->id]->mac;
	nd_fill_checksum(ip, nd);
	frame_send(p, m);
}

// Returns why the address must not be learnt; NULL: it may.
static const struct drop_reason *nd_refuse(const struct port *p, const struct ip_addr *a,
					   const struct rte_ether_addr *mac)
{
	if (answer_is_own(port_fwds[p->id], a))
		return p->role == PORT_FABRIC ? &drop_nd_address_conflict : &drop_nd_late;
	if (mac && answer_is_wrong_guest(p, a, mac))
		return &drop_nd_wrong_guest_mac;
	return NULL;
}

// RFC 4861, 7.2.5.
static const struct drop_reason *nd_learn_advert(const struct port *p, const struct nd_packet *pkt)
{
	const struct ip_addr a = ip6_addr(pkt->nd->target);
	const struct neighbor *n = neighbor_find(p->id, &a);
	const struct drop_reason *refused = nd_refuse(p, &a, pkt->mac);
	bool solicited = pkt->nd->flags & ND_SOLICITED;
	struct rte_ether_addr mac;
	bool usable;

	if (refused || n == NULL)
		return refused;
	usable = neighbor_usable(n);
	if (pkt->mac == NULL && !usable)
		return NULL;
	mac = pkt->mac ? *pkt->mac : n->mac;
	if (usable && !rte_is_same_ether_addr(&mac, &n->mac) && !(pkt->nd->flags & ND_OVERRIDE)) {
		mac = n->mac; // keeps its MAC, but is probed again
		solicited = false;
		if (n->state == NEIGH_REACHABLE)
			neighbor_change(neighbor_find(p->id, &a), NEIGH_STALE, NULL);
	}
	neighbor_learn(p->id, &a, &mac, false, solicited);
	return NULL;
}

// Creates entries only for hosts of the underlay that ask for the router's address: they are about to send to it.
static const struct drop_reason *nd_learn_solicit(const struct port *p, const struct nd_packet *pkt, bool for_us)
{
	const struct ip_addr a = ip6_addr(pkt->ip->src_addr);
	const struct drop_reason *refused;

	if (pkt->mac == NULL)
		return NULL;
	refused = nd_refuse(p, &a, pkt->mac);
	if (refused == NULL)
		neighbor_learn(p->id, &a, pkt->mac,
			       for_us && p->role == PORT_FABRIC &&
				       (nd_is_link_local(a.bytes) || frame_is_connected(p, &a)),
			       false);
	return refused;
}

// Returns the drop reason, or NULL. *m becomes NULL when the packet was sent back as the answer.
static const struct drop_reason *nd_process(struct rte_mbuf **m)
{
	const struct port *p = port_get((*m)->port);
	const struct drop_reason *refused;
	struct nd_packet pkt;
	struct ip_addr target;
	bool for_us;

	if (p == NULL || !nd_parse(*m, &pkt))
		return &drop_nd_late;
	if (pkt.nd->type == ND_ADVERT)
		return nd_learn_advert(p, &pkt);
	if (pkt.nd->type != ND_SOLICIT)
		return NULL;
	target = ip6_addr(pkt.nd->target);
	for_us = answer_is_own(port_fwds[p->id], &target);
	refused = nd_learn_solicit(p, &pkt, for_us);
	if (refused || !for_us)
		return refused;
	if (!nd_answer(*m, &pkt, &port_fwds[p->id]->mac, true))
		return &drop_nd_no_room;
	frame_send(p, *m);
	*m = NULL;
	return NULL;
}

void nd_receive(struct rte_mbuf *m)
{
	const struct drop_reason *refused = nd_process(&m);

	if (refused)
		neighbor_drop(m, refused);
	else
		rte_pktmbuf_free(m); // m may be NULL
}
