// SPDX-License-Identifier: Apache-2.0
// nd_input: answers, in place, guests that solicit their gateway. Messages from neighbours and from the underlay go to
// the control plane, and to the kernel as well if the port has a host port. Solicitations between guests go to their
// bridge. Hosts of the underlay that solicit the router's address are answered in place when the control plane has had
// enough of such solicitations.
// Reads: port, bridge, l3 (offset of the IPv6 header).  Writes: out_port.
// Next: port_tx, punt, host_share, host_output, bridge_input.
#include "base/rcu.h"
#include "graph/node.h"
#include "neighbor/answer.h"
#include "neighbor/nd_packet.h"
#include "port/registry.h"
#include "worker/punt.h"

enum { TX = 1, PUNT, SHARE, HOST, BRIDGE };

DROP_REASON(nd_malformed, "The neighbour discovery packet is truncated, has passed a router (hop limit below 255), or "
			  "has a wrong checksum, malformed options or invalid addresses.");
DROP_REASON(nd_spoofed_gateway, "The guest claimed its gateway's address in neighbour discovery.");
DROP_REASON(nd_not_ours, "The guest asked for an IPv6 address that is not the router's and that it does not proxy (see "
			 "`proxy_arp` of the port).");
DROP_REASON(nd_duplicate_check, "The guest asked whether anybody else has its own IPv6 address. No answer means no.");
DROP_REASON(nd_router_solicit_ignored,
	    "The host asked for routers, but this router does not advertise itself: guests have their gateway "
	    "configured.");
DROP_REASON(nd_router_advert_ignored,
	    "The host advertises itself as a router. Routers are configured here, not discovered.");
DROP_REASON(nd_redirect_ignored, "The host sent a redirect. Routes are configured here, not discovered.");
DROP_REASON(nd_no_tailroom, "The buffer of a neighbour solicitation had no room for the answer.");

static inline edge_t nd_input_to_master(struct rte_mbuf *m, enum punt kind)
{
	punt_mark(m, kind);
	return PUNT;
}

static inline edge_t nd_input_answer(struct rte_mbuf *m, struct nd_packet *p, const struct port_fwd *f, bool override)
{
	if (unlikely(!nd_answer(m, p, &f->mac, override)))
		return drop(m, nd_no_tailroom);
	meta(m)->out_port = m->port;
	meta(m)->flags |= META_ANSWER;
	return TX;
}

static inline edge_t nd_input_tenant_advert(struct rte_mbuf *m, const struct nd_packet *p, const struct port_fwd *f)
{
	const struct ip_addr target = ip6_addr(p->nd->target);

	if (answer_is_own(f, &target))
		return drop(m, nd_spoofed_gateway);
	// A multicast is also for the other guests of the bridge.
	return meta(m)->bridge != UINT16_MAX && rte_is_multicast_ether_addr(&p->eth->dst_addr)
		       ? BRIDGE
		       : nd_input_to_master(m, PUNT_ND);
}

static inline edge_t nd_input_tenant_solicit(struct rte_mbuf *m, struct nd_packet *p, const struct port_fwd *f)
{
	const struct ip_addr source = ip6_addr(p->ip->src_addr), target = ip6_addr(p->nd->target);
	enum answer answer;

	if (answer_is_own(f, &source))
		return drop(m, nd_spoofed_gateway);
	answer = answer_for(f, m->port, &target);
	// A proxy does not answer duplicate address detection (RFC 4862): the guest would give its own address up.
	if (answer == ANSWER_NO || (answer == ANSWER_PROXY && ip_is_unspecified(&source))) {
		if (meta(m)->bridge != UINT16_MAX)
			return BRIDGE;
		return ip_is_unspecified(&source) ? drop(m, nd_duplicate_check) : drop(m, nd_not_ours);
	}
	return nd_input_answer(m, p, f, answer == ANSWER_OWN);
}

static inline edge_t nd_input_router_message(struct rte_mbuf *m, const struct port_fwd *f, uint8_t type)
{
	if (f->role == PORT_TENANT && meta(m)->bridge != UINT16_MAX && (type == ND_ROUTER_SOLICIT || f->allow_router))
		return BRIDGE; // a guest of the bridge may be a router
	if (f->host)           // the kernel may listen to routers, or be one
		return HOST;
	if (type == ND_ROUTER_SOLICIT)
		return drop(m, nd_router_solicit_ignored);
	return type == ND_ROUTER_ADVERT ? drop(m, nd_router_advert_ignored) : drop(m, nd_redirect_ignored);
}

// The kernel has neighbours and addresses of its own, but only the router answers for the router's addresses.
static inline edge_t nd_input_fabric(struct rte_mbuf *m, struct nd_packet *p, const struct port_fwd *f)
{
	const struct ip_addr source = ip6_addr(p->ip->src_addr), target = ip6_addr(p->nd->target);
	bool own = answer_is_own(f, &target);

	if (p->nd->type == ND_SOLICIT && own) {
		if (!answer_is_own(f, &source))
			return punt_take(m->port, PUNT_ND) ? nd_input_to_master(m, PUNT_ND_ASKED)
							   : nd_input_answer(m, p, f, true);
		return nd_input_to_master(m, PUNT_ND);
	}
	if (p->nd->type == ND_ADVERT && !own && rte_is_same_ether_addr(&p->eth->dst_addr, &f->mac))
		nd_input_to_master(m, PUNT_ND_REPLY);
	else
		nd_input_to_master(m, PUNT_ND);
	return f->host ? SHARE : PUNT;
}

static inline edge_t nd_input_one(struct rte_mbuf *m)
{
	const struct port_fwd *f = rcu_read(port_fwds[m->port % PORT_MAX]);
	struct nd_packet p;

	if (unlikely(f == NULL || !nd_parse(m, &p)))
		return drop(m, nd_malformed);
	if (p.nd->type != ND_SOLICIT && p.nd->type != ND_ADVERT)
		return nd_input_router_message(m, f, p.nd->type);
	if (f->role == PORT_FABRIC)
		return nd_input_fabric(m, &p, f);
	return p.nd->type == ND_SOLICIT ? nd_input_tenant_solicit(m, &p, f) : nd_input_tenant_advert(m, &p, f);
}

static uint16_t nd_input(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, nd_input_one);
}

NODE(nd_input, nd_input, [TX] = "port_tx", [PUNT] = "punt", [SHARE] = "host_share", [HOST] = "host_output",
     [BRIDGE] = "bridge_input");
