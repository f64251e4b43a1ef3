// SPDX-License-Identifier: Apache-2.0
// Decides about flows: translation, route, rules.
#include "flow/decide.h"

#include "flow/packet.h"
#include "l3/fib.h"
#include "l3/ip_header.h"
#include "port/registry.h"

DROP_REASON(flow_denied_egress,
	    "A rule, or the default, of the sending port's egress list denies the flow. See `corelane flow explain`.");
DROP_REASON(
	flow_denied_ingress,
	"A rule, or the default, of the receiving port's ingress list denies the flow. See `corelane flow explain`.");

// Equals ip4_hash() and ip6_hash() of a whole packet without extension headers, so that packets with and without a flow
// use the same member of a group.
uint32_t flow_spread_hash(const struct flow_key *k)
{
	uint64_t tail = k->proto, ports = (uint32_t)k->meta;
	uint32_t hash;

	if (k->family == 4) {
		hash = hash_step(0x5ca1ab1e, ((uint64_t)k->src4 << 32) | k->dst4);
		return hash_finish(hash_step(hash, has_ports(k->proto) ? tail | ports << 8 : tail));
	}
	hash = hash_step(hash_step(0x5ca1ab1e, k->addr[0]), k->addr[1]);
	hash = hash_step(hash_step(hash, k->addr[2]), k->addr[3]);
	return hash_finish(hash_step(hash, has_ports(k->proto) ? tail ^ ports << 8 : tail));
}

uint32_t flow_route(const struct flow_key *k, uint32_t hash, const struct nexthop **nh)
{
	const struct fib *fib;
	const uint8_t *key6 = k->dst6;
	uint32_t id;

	if (k->family == 4) {
		fib = rcu_read(vrf_fibs[k->zone].fib4);
		fib4_lookup_bulk(&fib, &k->dst4, &id, 1);
	} else {
		fib = rcu_read(vrf_fibs[k->zone].fib6);
		fib6_lookup_bulk(&fib, &key6, &id, 1);
	}
	*nh = rcu_read(nexthop_table[id]);
	if (*nh && (*nh)->kind == NH_GROUP) {
		uint32_t member = (*nh)->bucket[hash % GROUP_BUCKETS];

		if (rcu_read(nexthop_table[member])) {
			id = member;
			*nh = rcu_read(nexthop_table[id]);
		}
	}
	return id;
}

static bool port_stateful(uint16_t port)
{
	const struct port_fwd *f = rcu_read(port_fwds[port]);

	return f && f->role == PORT_TENANT && f->stateful;
}

static bool same_destination(const struct flow_key *a, const struct flow_key *b)
{
	return a->dst_port == b->dst_port &&
	       (a->family == 4 ? a->dst4 == b->dst4 : a->addr[2] == b->addr[2] && a->addr[3] == b->addr[3]);
}

// The router itself, if the packet goes to it before translation. NULL: it does not.
static const struct nexthop *decide_router(const struct flow_question *q)
{
	const struct nexthop *nh;

	flow_route(&q->key, q->hash, &nh);
	return nh && nh->kind == NH_LOCAL ? nh : NULL;
}

// Finds the next hop of the packet and translates its key. Source translation may lead into another VRF, whose route
// counts then.
static const struct nexthop *way_out(const struct flow_question *q, struct flow_answer *a)
{
	const struct nexthop *nh = q->via, *router;
	uint16_t zone;

	if (q->keep)
		a->out = *q->keep;
	else
		nat_destination(&a->out, &a->nat);
	zone = a->out.zone;
	router = zone != q->key.zone && same_destination(&a->out, &q->key) ? decide_router(q) : NULL;
	if (router) {
		*a = (struct flow_answer){.out = q->key}; // the gateway's address is not looked up in the outside VRF
		return router;
	}
	a->nexthop = nh ? nh->id : flow_route(&a->out, q->hash, &nh);
	if (q->keep || (nh && nh->kind == NH_LOCAL))
		return nh;
	nat_source(&q->key, &a->out, q->hash, &a->nat);
	if (a->out.zone != zone)
		a->nexthop = flow_route(&a->out, q->hash, &nh);
	return nh;
}

// The port that the flow is charged to: one that keeps flows, if there is one; else any port of a guest, for flows that
// only translation needs. 0: from tunnel to tunnel.
static uint16_t decide_owner(const struct flow_question *q, const struct flow_answer *a, const struct nexthop *nh)
{
	if (port_stateful(q->port))
		return q->port;
	if (a->out_port || q->port)
		return a->out_port ? a->out_port : q->port;
	return nh->kind == NH_PORT ? nh->port : 0;
}

void flow_decide(const struct flow_question *q, struct flow_answer *a)
{
	const struct nexthop *nh;

	*a = (struct flow_answer){.out = q->key};
	if (q->keep && !nat_keeps(&q->key, q->keep, &a->nat))
		return;
	a->way = nh = way_out(q, a);
	if (nh == NULL || nh->edge < NH_EDGE_PORT) // to the router itself, or no route: handled without a flow
		return;
	a->out_port = nh->kind == NH_PORT && port_stateful(nh->port) ? nh->port : 0;
	a->stateful = a->nat.rule != 0 || a->out_port != 0 || port_stateful(q->port);
	a->owner = decide_owner(q, a, nh);
	if (port_stateful(q->port))
		rules_classify(q->port, RULES_EGRESS, &q->key, &a->egress);
	if (a->out_port)
		rules_classify(a->out_port, RULES_INGRESS, &a->out, &a->ingress);
	if (a->egress.denied)
		a->deny = &drop_flow_denied_egress;
	else if (a->ingress.denied)
		a->deny = &drop_flow_denied_ingress;
}
