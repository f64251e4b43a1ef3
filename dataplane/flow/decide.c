// SPDX-License-Identifier: Apache-2.0
// Decides about flows: translation, route or target in a bridge domain, rules.
#include "flow/decide.h"

#include <stddef.h>
#include <string.h>

#include "flow/bridged.h"
#include "flow/packet.h"
#include "l3/ip_header.h"
#include "port/registry.h"

DROP_REASON(flow_denied_egress,
	    "A rule, or the default, of the sending port's egress list denies the flow. See `corelane flow explain`.");
DROP_REASON(
	flow_denied_ingress,
	"A rule, or the default, of the receiving port's ingress list denies the flow. See `corelane flow explain`.");
DROP_REASON(service_no_endpoint,
	    "The packet begins a flow to a service that has no endpoint with a weight above 0. See "
	    "`corelane service list`; `corelane endpoint add` adds one. "
	    "The sender is told only with --no-endpoints reject.");

const struct drop_reason *const flow_no_endpoint = &drop_service_no_endpoint;
const struct drop_reason *const flow_denied[2] = {
	[RULES_EGRESS] = &drop_flow_denied_egress, [RULES_INGRESS] = &drop_flow_denied_ingress};

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

static const struct fib *decide_fib(const struct flow_key *k)
{
	return k->family == 4 ? rcu_read(vrf_fibs[k->zone].fib4) : rcu_read(vrf_fibs[k->zone].fib6);
}

static uint32_t decide_lookup(const struct fib *fib, const struct flow_key *k)
{
	const uint8_t *key6 = k->dst6;
	uint32_t id;

	if (k->family == 4)
		fib4_lookup_bulk(&fib, &k->dst4, &id, 1);
	else
		fib6_lookup_bulk(&fib, &key6, &id, 1);
	return id;
}

static uint32_t decide_lookup_recent(const struct flow_question *q, const struct fib *fib, const struct flow_key *k)
{
	struct flow_recent *r = q->recent;

	if (unlikely(r->fib != fib || r->zone != q->key.zone || r->gen != q->gen)) {
		fib_recent_begin(&r->route, fib);
		r->fib = fib;
		r->zone = q->key.zone;
		r->gen = q->gen;
	}
	if (k->family == 4 ? fib_lookup_recent(&r->route, (const uint8_t *)&k->dst4, false)
			   : fib_lookup_recent(&r->route, k->dst6, true))
		return r->route.nexthop;
	return decide_lookup(fib, k);
}

// The member of a group that the hash of `sent` selects.
static uint32_t decide_member(uint32_t id, const struct flow_key *sent, const struct nexthop **nh)
{
	*nh = rcu_read(nexthop_table[id]);
	if (*nh && (*nh)->kind == NH_GROUP) {
		uint32_t member = (*nh)->bucket[flow_spread_hash(sent) % GROUP_BUCKETS];

		if (rcu_read(nexthop_table[member])) {
			id = member;
			*nh = rcu_read(nexthop_table[id]);
		}
	}
	return id;
}

uint32_t flow_route(const struct flow_key *k, const struct flow_key *sent, const struct nexthop **nh)
{
	return decide_member(decide_lookup(decide_fib(k), k), sent, nh);
}

static uint32_t decide_route(const struct flow_question *q, const struct flow_key *k, const struct nexthop **nh)
{
	const struct fib *fib = decide_fib(k);
	uint32_t id = q->recent ? decide_lookup_recent(q, fib, k) : decide_lookup(fib, k);

	return decide_member(id, &q->key, nh);
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

	decide_route(q, &q->key, &nh);
	return nh && nh->kind == NH_LOCAL ? nh : NULL;
}

// Finds the next hop of the packet and translates its key. Source translation may lead into another VRF, whose route
// counts then.
static const struct nexthop *way_out(const struct flow_question *q, struct flow_answer *a)
{
	const struct nexthop *nh = q->via, *router;
	bool translated = nat_is_in(q->key.zone);
	uint16_t zone;

	if (q->keep)
		a->out = *q->keep;
	else if (unlikely(translated))
		nat_destination(&a->out, &a->nat);
	if (a->nat.refused)
		return NULL;
	zone = a->out.zone;
	router = zone != q->key.zone && same_destination(&a->out, &q->key) ? decide_router(q) : NULL;
	if (router) {
		*a = (struct flow_answer){.out = q->key}; // the gateway's address is not looked up in the outside VRF
		return router;
	}
	a->nexthop = nh ? nh->id : decide_route(q, &a->out, &nh);
	if (q->keep || !translated || (nh && nh->kind == NH_LOCAL))
		return nh;
	nat_source(&q->key, &a->out, (uint32_t)flow_key_hash(&q->key), &a->nat);
	if (a->out.zone != zone)
		a->nexthop = decide_route(q, &a->out, &nh);
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

static void decide_rules(const struct flow_question *q, struct flow_answer *a)
{
	if (port_stateful(q->port))
		rules_classify(q->port, RULES_EGRESS, &q->key, &a->egress);
	if (a->out_port)
		rules_classify(a->out_port, RULES_INGRESS, &a->out, &a->ingress);
	if (a->egress.denied)
		a->deny = &drop_flow_denied_egress;
	else if (a->ingress.denied)
		a->deny = &drop_flow_denied_ingress;
}

// The port of a flow's target, if it keeps flows and is still in the bridge domain.
static uint16_t decide_receiver(const struct flow_question *q)
{
	uint16_t port = flow_target_port(q->target);
	const struct port_fwd *f = port ? rcu_read(port_fwds[port]) : NULL;

	return f && port_stateful(port) && (f->bridge | FLOW_ZONE_BRIDGE) == q->key.zone ? port : 0;
}

static bool decide_without_rules(const struct flow_question *q)
{
	const struct flow_key *k = &q->key;

	return flow_key_is_nd(k) || (flow_key_answers_dhcp(k) && flow_may_serve_dhcp(q->port)) ||
	       (flow_key_asks_dhcp(k) && flow_may_serve_dhcp(flow_target_port(q->target)));
}

// The receivers of a packet whose target is unknown have their say in bridge_flood. It has a flow even if only they
// keep flows, so that their answers belong to it.
static void decide_bridged(const struct flow_question *q, struct flow_answer *a)
{
	a->nexthop = flow_way(q->port, q->target);
	if (decide_without_rules(q))
		return;
	a->out_port = decide_receiver(q);
	a->stateful = a->out_port || port_stateful(q->port) || q->target == FLOW_TARGET_UNKNOWN;
	a->owner = a->out_port && !port_stateful(q->port) ? a->out_port : q->port;
	decide_rules(q, a);
}

void flow_decide(const struct flow_question *q, struct flow_answer *a)
{
	const struct nexthop *nh;

	memset(a, 0, offsetof(struct flow_answer, out));
	a->out = q->key;
	a->nat.was = q->keep_rule;
	if (flow_zone_is_bridge(q->key.zone)) {
		decide_bridged(q, a);
		return;
	}
	if (q->keep && !nat_keeps(&q->key, q->keep, &a->nat))
		return;
	a->way = nh = way_out(q, a);
	if (nh == NULL || nh->edge < NH_EDGE_PORT) // to the router itself, or no route: handled without a flow
		return;
	a->out_port = nh->kind == NH_PORT && port_stateful(nh->port) ? nh->port : 0;
	a->stateful = a->nat.rule != 0 || a->out_port != 0 || port_stateful(q->port);
	a->owner = decide_owner(q, a, nh);
	decide_rules(q, a);
}
