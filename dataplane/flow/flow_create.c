// SPDX-License-Identifier: Apache-2.0
// flow4_create, flow6_create: the slow path of flows. Takes packets without a flow or with a stale one, TCP's first and
// last packets, fragments and ICMP errors.
// Reads: port, vrf, l3, flags, nexthop (with META_NEXTHOP); in bridge domains nexthop and out_port.
// Writes: nexthop, hash; in bridge domains l3.
// Next: by the flow's next hop, or as without flows; in bridge domains by the packet's target.
#include <errno.h>

#include "flow/act.h"
#include "flow/decide.h"
#include "flow/flow_lock.h"
#include "flow/flow_log.h"
#include "flow/flow_private.h"
#include "flow/fragment.h"
#include "flow/quota.h"
#include "flow/taken_ports.h"
#include "flow/tcp.h"
#include "l3/icmp.h"
#include "l3/path_mtu.h"
#include "policy/service.h"
#include "port/registry.h"

#define AHEAD 32u      // packets parsed and prefetched ahead
#define PORT_GUESSES 4 // source ports tried for a translated flow before the search looks what is known to be in use
#define PORT_TRIES 256 // and those tried then
#define AGAIN_MAX 4
#define ICMP_ERROR_MAX4 576  // RFC 1812 4.3.2.3: bytes of an ICMP error with its IP header
#define ICMP_ERROR_MAX6 1280 // RFC 4443 2.4(c)

DROP_REASON(flow_truncated, "The packet ends before its transport header does, so its flow is not known.");
DROP_REASON(flow_table_full,
	    "No flow was free, or no slot for it in the table. See `corelane flow count`; `corelane flow resize` "
	    "makes room.");
DROP_REASON(flow_nat_exhausted, "No source port of the translation pool was free towards this destination.");
DROP_REASON(flow_nat_crowded, "The search for a free source port of the translation pool ended at its bound; the next "
			      "packets continue it. Few ports are free towards this destination.");
DROP_REASON(flow_nat_in_use, "The flow has no port that translation can change, and another flow has its outside "
			     "address towards this destination.");
DROP_REASON(flow_nat_no_route, "A translation rule matches, but there is no route to the destination after it.");
DROP_REASON(flow_no_first_fragment,
	    "A later fragment arrived before the first fragment of its packet, and only the first one has the ports.");
DROP_REASON(flow_changing, "Other workers kept creating and ending the packet's flow after a change of routes, rules "
			   "or translation, or one of them was preempted while it decided about the flow. See "
			   "`corelane worker latency`.");
DROP_REASON(flow_icmp_error_long,
	    "An ICMP error about a flow is longer than RFC 1812 (576 bytes) or RFC 4443 (1,280 bytes) allow.");
DROP_REASON(flow_icmp_error_mtu,
	    "An ICMP error says that a packet of a flow is too big, with an MTU that no hop has: below 68 (IPv6: "
	    "1,280) bytes, or one that the packet fits.");
DROP_REASON(flow_icmp_error_rate,
	    "More than 1,000 ICMP errors per second about flows came from one port, or from tunnels to one port.");
DROP_REASON(flow_not_syn, "The first packet of a TCP connection is not a SYN, and TCP is set to strict.");

struct work {
	struct rte_mbuf *m;
	struct pkt_meta *md;
	struct flow_packet p;
	unsigned worker;
	uint32_t now;
	flow_entry_t entry; // found by flow_lookup, 0: none
	uint64_t hash[2];   // of the key and of its reverse, if there is no entry
	unsigned again;     // times that an existing flow had to end
	bool bridged;       // of a bridge domain
	enum flow_flood flood;
	struct rte_graph *graph;
	struct rte_node *node;
	struct flow_recent *recent;
};

static const struct nexthop *flow_create_via(const struct work *w)
{
	return (w->md->flags & META_NEXTHOP) && !w->bridged ? w->md->nexthop : NULL;
}

static uint16_t flow_create_port(const struct work *w)
{
	return w->md->flags & META_FROM_TUNNEL ? 0 : w->m->port;
}

// FLOW_WATCH if every packet may change the flow's TCP state.
static uint8_t flow_watch(const struct flow *f)
{
	return f->dir[0].key.proto == IPPROTO_TCP && f->tcp != TCP_ESTABLISHED ? FLOW_WATCH : 0;
}

// FLOW_METER and FLOW_MIRROR if the flow's rules or ports have meters or mirrors.
static uint8_t flow_extras(const struct flow *f)
{
	uint8_t flags = 0;
	unsigned i;

	for (i = 0; i < 2; i++) {
		const struct port_fwd *p = f->port[i] ? rcu_read(port_fwds[f->port[i]]) : NULL;

		if (f->extras[i].meter || (p && (p->egress_meter || p->ingress_meter)))
			flags |= FLOW_METER;
		if (f->extras[i].mirror || (p && p->mirror))
			flags |= FLOW_MIRROR;
	}
	return flags;
}

// Writes the decision into both directions. gen: generation of the zone, read before the decision. A bridged packet
// that finds its way here finds the flags that were decided for it.
static void flow_create_apply(struct flow *f, const struct flow_answer *a, uint16_t gen, bool fixed)
{
	uint8_t deny = a->deny ? FLOW_DENY : 0, extras;
	unsigned i;

	f->reason = a->deny ? a->deny->id : 0;
	f->port[1] = a->out_port;
	f->rule[0] = a->egress.rule;
	f->rule[1] = a->ingress.rule;
	f->extras[0] = a->egress.extras;
	f->extras[1] = a->ingress.extras;
	f->nat = a->nat.rule;
	extras = flow_extras(f);
	for (i = 0; i < 2; i++)
		f->dir[i].flags = (uint8_t)(flow_watch(f) | deny | extras | (a->nat.rule ? FLOW_NAT : 0) |
					    (f->dir[0].key.proto == IPPROTO_TCP ? FLOW_TCP : 0) |
					    (fixed && i == 0 ? FLOW_FIXED : 0));
	__atomic_store_n(&f->dir[0].nexthop, a->nexthop, __ATOMIC_RELEASE);
	__atomic_store_n(&f->dir[0].gen, gen, __ATOMIC_RELEASE);
}

// Routes the second direction; it has the verdict of the first.
static void flow_create_route_back(struct flow *f, uint16_t gen)
{
	struct flow_key to = flow_key_reverse(&f->dir[0].key);
	const struct nexthop *nh;

	f->dir[1].nexthop = flow_route(&to, &to, &nh);
	__atomic_store_n(&f->dir[1].gen, gen, __ATOMIC_RELEASE);
}

static void flow_create_bridge_back(struct flow *f, uint32_t way, uint16_t gen)
{
	__atomic_store_n(&f->dir[1].nexthop, way, __ATOMIC_RELEASE);
	__atomic_store_n(&f->dir[1].gen, gen, __ATOMIC_RELEASE);
}

static void flow_create_count_hits(const struct flow_answer *a)
{
	rules_hit(&a->egress);
	rules_hit(&a->ingress);
}

// True if the flow's ingress port was removed or moved to another zone: another port may have its addresses now.
static bool flow_create_orphaned(uint16_t port, uint16_t zone)
{
	const struct port_fwd *p = rcu_read(port_fwds[port]);

	return port && (p == NULL || (flow_zone_is_bridge(zone) ? (p->bridge | FLOW_ZONE_BRIDGE) : p->vrf) != zone);
}

// The way of direction 0 of a bridged flow, as a packet of either direction shows it.
static uint32_t flow_create_way(const struct flow *f, const struct flow_again *p)
{
	uint32_t was = f->dir[0].nexthop, from = flow_way_in(p->way);

	if (p->way == FLOW_WAY_NONE)
		return was;
	if (p->dir == 0)
		return p->way;
	if (from == 0) // which tunnel does not matter
		from = flow_target_port(flow_way_target(was)) ? FLOW_TARGET_TUNNEL : flow_way_target(was);
	return flow_way(flow_target_port(flow_way_target(p->way)), from);
}

// A bridged flow has new ports: no packet passes by its old flags until they are decided.
static void flow_create_move(struct flow *f, uint32_t way)
{
	__atomic_store_n(&f->dir[0].nexthop, FLOW_WAY_NONE, __ATOMIC_RELEASE);
	__atomic_store_n(&f->dir[1].nexthop, FLOW_WAY_NONE, __ATOMIC_RELEASE);
	f->port[0] = flow_way_in(way);
}

// The caller holds the flow's lock, so that generations never run backwards.
static int flow_create_decide_again(struct flow *f, const struct flow_again *p)
{
	bool bridged = flow_zone_is_bridge(f->dir[0].key.zone);
	uint16_t gen0 = __atomic_load_n(&flow_zones[f->dir[0].key.zone].gen, __ATOMIC_ACQUIRE);
	uint16_t gen1 = __atomic_load_n(&flow_zones[f->dir[1].key.zone].gen, __ATOMIC_ACQUIRE);
	struct flow_key out = flow_key_reverse(&f->dir[1].key);
	uint32_t way = bridged ? flow_create_way(f, p) : f->dir[0].nexthop;
	struct flow_question q = {.key = f->dir[0].key,
				  .port = bridged ? flow_way_in(way) : f->port[0],
				  .target = bridged ? flow_way_target(way) : 0,
				  .keep = f->nat ? &out : NULL,
				  .keep_rule = f->nat};
	struct flow_answer a;

	if (f->dir[0].gen != gen0 || f->dir[0].nexthop != way) {
		if (flow_create_orphaned(q.port, q.key.zone))
			return -ESTALE;
		if (f->dir[0].flags & FLOW_FIXED)
			q.via = p->via && p->dir == 0 ? p->via : rcu_read(nexthop_table[f->dir[0].nexthop]);
		flow_decide(&q, &a);
		if (p->hit)
			flow_create_count_hits(&a);
		if (!a.stateful || a.nat.rule != f->nat)
			return -ESTALE;
		if (bridged && f->dir[0].nexthop != way)
			flow_create_move(f, way);
		flow_create_apply(f, &a, gen0, q.via != NULL);
	}
	if (bridged && p->dir == 1 && p->way != FLOW_WAY_NONE)
		flow_create_bridge_back(f, p->way, gen1);
	else if (p->dir == 1 && !bridged && f->dir[1].gen != gen1)
		flow_create_route_back(f, gen1);
	flow_forget_generation(f);
	return 0;
}

int flow_decide_again(struct flow *f, const struct flow_again *p)
{
	int ret;

	if (!flow_lock_take(f))
		return -EBUSY;
	ret = flow_create_decide_again(f, p);
	flow_lock_release(f);
	return ret;
}

// --- A new flow. ---

static bool flow_key_is_icmp(const struct flow_key *k)
{
	return k->proto == IPPROTO_ICMP || k->proto == IPPROTO_ICMPV6;
}

static void flow_create_set_port(struct flow *f, struct flow_answer *a, uint32_t port)
{
	a->out.src_port = rte_cpu_to_be_16((uint16_t)port);
	if (flow_key_is_icmp(&a->out))
		a->out.dst_port = a->out.src_port;
	f->dir[1].key = flow_key_reverse(&a->out);
}

// Returns -EADDRINUSE if another flow has the translated key.
static int flow_create_insert_translated(const struct flow *f, flow_entry_t *found)
{
	int ret = flow_table_insert(flow_table, flow_entry(f, 0), flow_entry(f, 1), found);
	bool same = ret == -EEXIST && flow_key_equal(flow_entry_key(*found), &f->dir[0].key, f->dir[0].key.family == 6);

	return ret == -EEXIST && !same ? -EADDRINUSE : ret;
}

// The hash is a keyed one, so that a guest cannot send flows that all begin their search at used ports. A full pool
// costs a look at each of its blocks of ports; a try that fails is not repeated while the flow that has the port lives.
static int flow_create_insert_with_port(struct flow *f, struct flow_answer *a, flow_entry_t *found)
{
	uint64_t hash = flow_key_hash(&f->dir[0].key);
	uint32_t n = a->nat.ports, at = (uint32_t)hash % n, step = 1 + (uint32_t)(hash >> 32) % n;
	int ret = -EADDRINUSE, port = 0;
	unsigned i;

	for (i = 0; i < PORT_GUESSES && ret == -EADDRINUSE; i++, at = (at + step) % n) {
		port = (int)(a->nat.first + at);
		flow_create_set_port(f, a, (uint32_t)port);
		ret = flow_create_insert_translated(f, found);
	}
	for (i = 0; i < PORT_TRIES && ret == -EADDRINUSE; i++) {
		port = taken_ports_next(&f->dir[1].key, a->nat.first, n, (uint16_t)port);
		if (port < 0)
			return -EADDRNOTAVAIL;
		flow_create_set_port(f, a, (uint32_t)port);
		ret = flow_create_insert_translated(f, found);
		if (ret != 0 && ret != -EADDRINUSE)
			taken_ports_forget(&f->dir[1].key);
	}
	return ret;
}

// Inserts the flow; a translated one gets a free source port. Returns 0, -EEXIST with *found, or another error.
static int flow_create_insert(const struct work *w, struct flow *f, struct flow_answer *a, flow_entry_t *found)
{
	*found = 0;
	if (a->nat.ports)
		return flow_create_insert_with_port(f, a, found);
	f->dir[1].key = flow_key_reverse(&a->out);
	if (a->nat.rule)
		return flow_create_insert_translated(f, found);
	if (likely(w->entry == 0))
		return flow_table_insert_by(flow_table, flow_entry(f, 0), flow_entry(f, 1), w->hash, found);
	return flow_table_insert(flow_table, flow_entry(f, 0), flow_entry(f, 1), found);
}

static const struct drop_reason *flow_create_why(int error, bool ports)
{
	if (error == -EADDRNOTAVAIL)
		return &drop_flow_nat_exhausted;
	if (error == -EADDRINUSE)
		return ports ? &drop_flow_nat_crowded : &drop_flow_nat_in_use;
	return &drop_flow_table_full;
}

// Returns 0, -EEXIST with the existing flow in *e (made by another worker, the other direction or an earlier packet),
// or -errno with *why.
static int flow_create_new(struct work *w, struct flow_answer *a, const struct flow_question *q, uint16_t gen,
			   flow_entry_t *e, const struct drop_reason **why)
{
	struct flow *f = flow_alloc(w->worker);
	int ret;

	*why = &drop_flow_table_full;
	if (f == NULL)
		return -ENOSPC;
	f->dir[0].key = q->key;
	f->dir[0].owner = f->dir[1].owner = (uint8_t)w->worker;
	f->dir[0].seen = f->dir[1].seen = (uint16_t)w->now;
	f->created = w->now;
	f->port[0] = q->port;
	f->owner = a->owner;
	f->born_denied = a->deny != NULL;
	flow_create_apply(f, a, gen, q->via != NULL);
	ret = flow_create_insert(w, f, a, e);
	if (likely(ret == 0)) {
		if (a->nat.rule)
			nat_flow_made(&a->nat);
		__atomic_store_n(&f->state, FLOW_LIVE, __ATOMIC_RELEASE); // from here on it may be ended
		*e = flow_entry(f, 0);
		return 0;
	}
	flow_unalloc(w->worker, f);
	*why = flow_create_why(ret, a->nat.ports > 0);
	return ret;
}

static edge_t flow_create_refuse(struct work *w, const struct flow_question *q, uint16_t owner,
				 const struct drop_reason *why)
{
	flow_refused_add(w->worker, &q->key, owner, why, (uint16_t)w->now);
	return drop_as(w->m, why);
}

// To the packet's target, by its own hash instead of a flow's.
static edge_t flow_create_bridge(struct work *w)
{
	w->md->hash = eth_hash(w->m);
	return flow_bridge_edge(w->md);
}

// By the next hop of the decision: if the route were looked up again, it could lead to a port with rules by now.
static edge_t flow_create_bypass(struct work *w, const struct flow_answer *a, const bool v6)
{
	if (w->bridged)
		return flow_bridge_leave(w->md, flow_create_bridge(w), FLOW_FLOOD_ALL);
	if (w->md->flags & META_NEXTHOP)
		return FLOW_EDGE_BYPASS;
	return forward_by(w->m, w->md, a->way, rte_pktmbuf_mtod_offset(w->m, void *, w->md->l3), v6);
}

static edge_t flow_create_pass_known(struct work *w, flow_entry_t e, const bool v6);
static edge_t flow_create_act(struct work *w, flow_entry_t e, const bool v6);

// No endpoint of the flow's service takes it.
static edge_t flow_create_unserved(struct work *w, uint32_t rule)
{
	bool tcp = w->p.key.proto == IPPROTO_TCP;

	if (!service_flow_refused(rule))
		return drop_as(w->m, flow_no_endpoint);
	icmp_want(w->m, tcp ? ICMP_WHAT_RESET : ICMP_WHAT_PORT, 0, flow_no_endpoint);
	return NH_EDGE_ICMP_ERROR;
}

static edge_t flow_create_decide(struct work *w, const bool v6)
{
	uint16_t gen = __atomic_load_n(&flow_zones[w->p.key.zone].gen, __ATOMIC_ACQUIRE);
	struct flow_question q = {.key = w->p.key,
				  .port = flow_create_port(w),
				  .via = flow_create_via(w),
				  .target = w->bridged ? flow_target_of(w->md) : 0,
				  .recent = w->recent,
				  .gen = gen};
	const struct drop_reason *why = flow_refused(w->worker, &q.key, (uint16_t)w->now);
	struct flow_answer a;
	flow_entry_t e;
	int ret;

	if (unlikely(why != NULL))
		return drop_as(w->m, why);
	flow_decide(&q, &a);
	flow_create_count_hits(&a);
	if (unlikely(a.nat.refused))
		return flow_create_unserved(w, a.nat.rule);
	if (!a.stateful) // a packet that must be translated never leaves untranslated
		return a.nat.rule ? drop(w->m, flow_nat_no_route) : flow_create_bypass(w, &a, v6);
	if (w->p.kind == FLOW_LATER_FRAGMENT)
		return drop(w->m, flow_no_first_fragment);
	if (w->p.kind == FLOW_TRUNCATED)
		return drop(w->m, flow_truncated);
	if (flow_tcp_strict && q.key.proto == IPPROTO_TCP &&
	    (w->p.tcp_flags & (TCP_SYN | TCP_ACK | TCP_RST)) != TCP_SYN)
		return drop(w->m, flow_not_syn);
	why = flow_quota_take(w->worker, a.owner);
	if (unlikely(why != NULL))
		return flow_create_refuse(w, &q, a.owner, why);
	if (a.deny && !flow_quota_take_denied(w->worker, a.owner)) {
		if (unlikely(a.egress.log || a.ingress.log))
			flow_log_add(w->worker, &q, &a);
		flow_quota_return(w->worker, a.owner);
		// Without a flow, the rules decide about each further packet again.
		return flow_create_refuse(w, &q, a.owner, a.deny);
	}
	ret = flow_create_new(w, &a, &q, gen, &e, &why);
	if (unlikely(a.egress.log || a.ingress.log) && ret == 0)
		flow_log_add(w->worker, &q, &a);
	if (likely(ret == 0))
		return flow_create_act(w, e, v6);
	flow_quota_return(w->worker, a.owner);
	if (a.deny)
		flow_quota_return_denied(w->worker, a.owner);
	// A full table or pool is not remembered: the end of any flow may make room.
	return ret == -EEXIST ? flow_create_pass_known(w, e, v6) : drop_as(w->m, why);
}

// --- An existing flow. ---

static void flow_create_follow_tcp(struct flow *f, unsigned dir, uint8_t flags)
{
	unsigned i;

	if (!flow_lock_take(f))
		return; // the packet passes; later ones show the state as well
	f->tcp = flow_tcp_next(f, dir, flags);
	for (i = 0; i < 2; i++)
		f->dir[i].flags = (uint8_t)((f->dir[i].flags & ~FLOW_WATCH) | flow_watch(f));
	flow_lock_release(f);
}

static bool flow_create_translate(struct work *w, const struct flow *f, unsigned dir)
{
	if (w->p.kind == FLOW_ICMP_ERROR)
		return flow_translate_error(w->m, f, dir, w->p.l4);
	return flow_translate(w->m, f, dir);
}

// RFC 1191, section 4: zero says that the hop does not name its MTU. The receiver is told the next one that hops have,
// as not all look for it.
static bool flow_create_name_mtu(uint8_t *icmp, uint32_t length)
{
	unaligned_uint16_t *sum = (unaligned_uint16_t *)(icmp + 2), *mtu = (unaligned_uint16_t *)(icmp + 6);

	if (*mtu == 0) {
		*mtu = rte_cpu_to_be_16((uint16_t)path_mtu_plateau(length));
		*sum = (uint16_t)~ip_fold((uint64_t)(uint16_t) ~*sum + *mtu);
	}
	return rte_be_to_cpu_16(*mtu) >= 68 && rte_be_to_cpu_16(*mtu) < length;
}

// Whether the MTU is one that a hop which refuses the quoted packet may have. l4: offset of the ICMP header, behind
// which the quoted IP header is whole.
static bool flow_create_mtu_is_plausible(struct rte_mbuf *m, unsigned l4, const bool v6)
{
	uint8_t *icmp = rte_pktmbuf_mtod_offset(m, uint8_t *, l4), *quote = icmp + 8;
	uint32_t mtu = rte_be_to_cpu_32(*(unaligned_uint32_t *)(icmp + 4));

	if (v6)
		return icmp[0] != 2 ||
		       (mtu >= PATH_MTU_MIN6 && mtu < 40u + rte_be_to_cpu_16(*(unaligned_uint16_t *)(quote + 4)));
	return icmp[0] != 3 || icmp[1] != 4 ||
	       flow_create_name_mtu(icmp, rte_be_to_cpu_16(*(unaligned_uint16_t *)(quote + 2)));
}

// ICMP errors that refer to an allowed flow bypass the rules, so their length and rate are limited. They neither count
// as packets of the flow nor keep it alive: anyone who knows the 5-tuple can forge them.
static edge_t flow_create_pass_error(struct work *w, flow_entry_t e, const bool v6)
{
	struct flow *f = flow_of(e);
	uint32_t bytes = w->m->pkt_len - w->md->l3;
	bool tunnel = w->md->flags & META_FROM_TUNNEL;
	struct rte_mbuf *m = w->m;

	if (bytes > (v6 ? ICMP_ERROR_MAX6 : ICMP_ERROR_MAX4))
		return drop(m, flow_icmp_error_long);
	if (unlikely(f->dir[e & 1].flags & (FLOW_DENY | FLOW_METER)) && !flow_admit(m, f, e & 1, w->md))
		return EDGE_DROP;
	if (!flow_quota_error(tunnel ? f->owner : m->port, tunnel))
		return drop(m, flow_icmp_error_rate);
	if (!flow_create_mtu_is_plausible(m, w->p.l4, v6))
		return drop(m, flow_icmp_error_mtu);
	if (w->bridged)
		return flow_create_bridge(w);
	return forward_by(m, w->md, rcu_read(nexthop_table[f->dir[e & 1].nexthop]),
			  rte_pktmbuf_mtod_offset(m, void *, w->md->l3), v6);
}

// A denied packet in a bridge domain may be another guest's, with the addresses of the connection's ends. It says
// nothing about the connection.
static bool flow_create_forged(const struct work *w, const struct flow *f)
{
	return w->bridged && (f->dir[0].flags & FLOW_DENY);
}

static edge_t flow_create_act(struct work *w, flow_entry_t e, const bool v6)
{
	struct flow *f = flow_of(e);
	unsigned dir = e & 1;
	bool mirrored = f->dir[dir].flags & FLOW_MIRROR;
	edge_t edge;

	if (f->dir[dir].key.proto == IPPROTO_TCP && w->p.kind != FLOW_ICMP_ERROR && w->p.kind != FLOW_LATER_FRAGMENT &&
	    !flow_create_forged(w, f))
		flow_create_follow_tcp(f, dir, w->p.tcp_flags);
	if (unlikely(w->p.kind == FLOW_FIRST_FRAGMENT))
		flow_fragment_add(w->worker, &w->p, e, (uint16_t)w->now);
	if (unlikely(mirrored))
		flow_mirror_sent(w->graph, w->node, w->m, f, dir);
	edge = w->p.kind == FLOW_ICMP_ERROR ? flow_create_pass_error(w, e, v6)
					    : flow_forward(w->m, w->md, e, (uint16_t)w->now, w->worker, v6, w->bridged);
	if (edge < NH_EDGE_PORT)
		return edge;
	if (unlikely(f->dir[dir].flags & FLOW_NAT) && !flow_create_translate(w, f, dir))
		return drop_as(w->m, flow_untranslatable);
	if (unlikely(mirrored))
		flow_mirror_received(w->graph, w->node, w->m, f, dir);
	return w->bridged ? flow_bridge_leave(w->md, edge, w->flood) : edge;
}

static bool flow_create_goes_to(const struct flow_key *k, const struct flow_key *to, const bool v6)
{
	return v6 ? k->addr[2] == to->addr[2] && k->addr[3] == to->addr[3] : k->dst4 == to->dst4;
}

static bool flow_create_is_stateful(uint16_t port)
{
	const struct port_fwd *p = rcu_read(port_fwds[port]);

	return p && p->role == PORT_TENANT && p->stateful;
}

// In a bridge domain the MAC address says where an error goes, not its IP header.
static bool flow_create_comes_to(const struct work *w, flow_entry_t e)
{
	uint16_t to = w->bridged ? flow_target_port(flow_target_of(w->md)) : 0;

	return !flow_create_is_stateful(to) || flow_of(e)->port[!(e & 1)] == to;
}

// A guest may send errors only about flows of its own port: those of others are not checked by its rules.
static bool flow_create_comes_from(const struct work *w, flow_entry_t e)
{
	if (!flow_create_comes_to(w, e))
		return false;
	return (w->md->flags & META_FROM_TUNNEL) || !flow_create_is_stateful(w->m->port) ||
	       flow_of(e)->port[e & 1] == w->m->port;
}

static flow_entry_t flow_create_find(struct work *w, const bool v6)
{
	struct flow_key inner;
	flow_entry_t e;

	switch (w->p.kind) {
	case FLOW_LATER_FRAGMENT:
		return flow_fragment_find(w->worker, &w->p, (uint16_t)w->now);
	case FLOW_ICMP_ERROR: // it goes to the source of the packet that it quotes
		if (flow_parse_inner(w->m, w->p.l4 + 8, w->p.key.zone, v6, &inner)) {
			inner = flow_key_reverse(&inner);
			e = flow_create_goes_to(&w->p.key, &inner, v6) ? flow_table_find(flow_table, &inner) : 0;
			if (e && flow_create_comes_from(w, e))
				return e;
		}
		w->p.kind = FLOW_PACKET; // not about a flow of its destination: the rules decide
					 // fall through
	default:
		return flow_table_find(flow_table, &w->p.key);
	case FLOW_TRUNCATED:
		return 0;
	}
}

// An answer whose MAC address is unknown by now goes to where the first direction comes from: no other receiver's rules
// would let it pass.
static void flow_create_find_asker(struct work *w, const struct flow *f)
{
	uint16_t asker = f->port[0];

	if (asker == 0)
		w->flood = FLOW_FLOOD_TUNNELS;
	else if (asker != w->m->port && !flow_create_orphaned(asker, f->dir[0].key.zone))
		w->md->out_port = asker;
}

// The way of a packet of a bridge domain, by which it may be told from those of other guests with its addresses. Errors
// come from anywhere on the way.
static uint32_t flow_create_way_of(struct work *w, flow_entry_t e)
{
	if (w->p.kind == FLOW_ICMP_ERROR)
		return FLOW_WAY_NONE;
	if ((e & 1) && flow_target_of(w->md) == FLOW_TARGET_UNKNOWN)
		flow_create_find_asker(w, flow_of(e));
	return flow_way_of(w->m, w->md);
}

static edge_t flow_create_pass_known(struct work *w, flow_entry_t e, const bool v6)
{
	struct flow_again p = {.dir = e & 1, .via = flow_create_via(w), .hit = true};
	struct flow *f = flow_of(e);
	int ret = 0;

	if (w->bridged)
		p.way = flow_create_way_of(w, e);
	if (f->dir[p.dir].gen != flow_zone_gen(w->md->vrf) ||
	    (p.way != FLOW_WAY_NONE && f->dir[p.dir].nexthop != p.way))
		ret = flow_decide_again(f, &p);
	if (likely(ret == 0))
		return flow_create_act(w, e, v6);
	if (ret == -EBUSY || w->again++ > AGAIN_MAX)
		return drop(w->m, flow_changing);
	flow_end(f);
	return flow_create_decide(w, v6);
}

// A flow that flow_lookup did not find is not looked up again: if it exists by now, the insertion reports it.
static edge_t flow_create_one(struct work *w, const bool v6)
{
	flow_entry_t e = w->p.kind == FLOW_PACKET ? w->entry : flow_create_find(w, v6);

	return e ? flow_create_pass_known(w, e, v6) : flow_create_decide(w, v6);
}

static __rte_always_inline void flow_create_parse(struct work *w, struct rte_mbuf *m, uint32_t now, const bool v6)
{
	struct pkt_meta *md = meta(m);

	w->m = m;
	w->md = md;
	w->worker = this_worker->id;
	w->now = now;
	w->again = 0;
	w->bridged = flow_zone_is_bridge(md->vrf);
	w->flood = FLOW_FLOOD_RECEIVERS;
	w->entry = md->arg;
	w->p.kind = FLOW_PACKET;
	w->p.key.addr[1] = w->p.key.addr[2] = w->p.key.addr[3] = 0;
	if (unlikely(!flow_key_fast(m, md, rte_pktmbuf_mtod_offset(m, const uint8_t *, md->l3), &w->p.key,
				    &w->p.tcp_flags, v6)))
		flow_parse(m, md->l3, md->vrf, &w->p);
}

// Most packets here start a flow, so the buckets of its insertion are prefetched before the first flow of the batch is
// decided.
static __rte_always_inline uint16_t flow_create_each(struct rte_graph *graph, struct rte_node *node, void **objs,
						     uint16_t n, const bool v6)
{
	uint64_t tsc = rte_rdtsc();
	uint32_t now = flow_seconds(tsc);
	struct flow_recent recent = {.fib = NULL};
	struct work w[AHEAD];
	unsigned done, i, k;
	edge_t edges[AHEAD];

	this_worker->tsc = tsc;
	for (done = 0; done < n; done += k) {
		k = RTE_MIN(n - done, AHEAD);
		for (i = 0; i < k; i++) {
			w[i].graph = graph;
			w[i].node = node;
			w[i].recent = &recent;
			flow_create_parse(&w[i], objs[done + i], now, v6);
			if (w[i].entry == 0)
				flow_table_prefetch(flow_table, &w[i].p.key, w[i].hash);
		}
		flow_alloc_prefetch(this_worker->id, k);
		for (i = 0; i < k; i++)
			edges[i] = flow_create_one(&w[i], v6);
		node_pass(graph, node, objs + done, edges, k);
	}
	return n;
}

static uint16_t flow4_create(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return flow_create_each(graph, node, objs, n, false);
}

static uint16_t flow6_create(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return flow_create_each(graph, node, objs, n, true);
}

NODE(flow4_create, flow4_create, FORWARD_NEXT4, [FLOW_EDGE_BYPASS] = "ip4_forward",
     [FLOW_EDGE_MIRROR] = "mirror_output", [FLOW_EDGE_TX] = "port_tx", [FLOW_EDGE_FLOOD] = "bridge_flood");
NODE(flow6_create, flow6_create, FORWARD_NEXT6, [FLOW_EDGE_BYPASS] = "ip6_forward",
     [FLOW_EDGE_MIRROR] = "mirror_output", [FLOW_EDGE_TX] = "port_tx", [FLOW_EDGE_FLOOD] = "bridge_flood");
