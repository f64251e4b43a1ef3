// SPDX-License-Identifier: Apache-2.0
// Multicast snooping: the memberships, and what workers read of them.
#include "l2/snoop.h"

#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_malloc.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "base/bucket.h"
#include "base/field_limits.h"
#include "base/log.h"
#include "base/offload.h"
#include "base/rcu.h"
#include "graph/counters.h"
#include "l2/mac.h"
#include "l2/snoop_message.h"
#include "l2/snoop_private.h"
#include "port/registry.h"

DROP_REASON(bridge_group_empty, "A multicast frame is for a group that no other port of the bridge domain has joined, "
				"and there is no multicast router. See `corelane bridge groups`.");
DROP_REASON(bridge_report_kept, "A guest's IGMP or MLD report was noted by its bridge domain. It is for multicast "
				"routers only, and there is none.");
DROP_REASON(bridge_report_damaged, "An IGMP or MLD message has a wrong checksum, a wrong length, or a source address "
				   "that is not of this link.");
DROP_REASON(bridge_report_rate, "A port sends more reports of group memberships (IGMP, MLD) than the bridge domain "
				"notes, or the router has no time for them.");
DROP_REASON(bridge_group_limit,
	    "A guest joined a multicast group, but its port, its bridge domain or the node has as "
	    "many memberships as it may have. If its port has, it gets the group's frames only while "
	    "no other port is a member; otherwise it gets all groups.");

#define RING 4096
#define RECORDS_PER_TICK 256
#define RECORDS_PER_SECOND 200 // of a port
#define RECORDS_BURST 512
#define BUILDS_PER_TICK 4
#define LONGEST_MESSAGE LIMIT_PORT_MTU_MAX

// RFC 3376, 8, and RFC 2710, 7, in tenths of a second.
#define MEMBER_TIME 2600
#define LEAVE_TIME 20
#define ROUTER_TIME 2550 // also of another querier
#define FRESH_TIME 30    // of a port whose hosts have just been asked: it gets all groups
#define LAST_ASKED 30    // before a membership ends by its age
#define ASKED_PER_TURN 256

struct snoop_note {
	uint16_t bridge, port; // port 0: from a tunnel
	uint8_t kind;          // enum snoop_kind; of one record
	bool joins, elects;
	uint8_t family;
	uint8_t group[16];
};

// --- What workers read. ---

struct snoop_group {
	struct ip_addr addr;
	uint32_t n;
	const uint16_t *ports; // ascending
};

struct snoop_fwd {
	unsigned n_groups, n_routers;
	const uint16_t *routers;     // ascending
	struct snoop_group groups[]; // ascending
};

static struct snoop_fwd *snoop_fwds[BRIDGE_MAX]; // workers: ro (RCU); NULL: nothing is known, frames are flooded
static struct rte_ring *ring;
static struct bucket of_port[PORT_MAX];      // workers: rw
static struct bucket of_tunnels[BRIDGE_MAX]; // workers: rw

static int snoop_compare(const struct ip_addr *a, const struct ip_addr *b)
{
	return a->family != b->family ? a->family - b->family : memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

static const struct snoop_group *snoop_find_group(const struct snoop_fwd *s, const struct ip_addr *group)
{
	unsigned low = 0, high = s->n_groups, middle;
	int order;

	while (low < high) {
		middle = (low + high) / 2;
		order = snoop_compare(&s->groups[middle].addr, group);
		if (order == 0)
			return &s->groups[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

// The group of an untagged frame. may_report: it may carry a message about memberships.
static bool snoop_group_of(const struct rte_mbuf *m, struct ip_addr *group, bool *may_report)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_ipv4_hdr *ip4 = (const struct rte_ipv4_hdr *)(eth + 1);
	const struct rte_ipv6_hdr *ip6 = (const struct rte_ipv6_hdr *)(eth + 1);

	if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4) && m->data_len >= sizeof(*eth) + sizeof(*ip4)) {
		*group = ip4_addr(ip4->dst_addr);
		*may_report = ip4->next_proto_id == IPPROTO_IGMP || ip4->next_proto_id == IPPROTO_PIM;
		return rte_is_multicast_ether_addr(&eth->dst_addr);
	}
	if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV6) && m->data_len >= sizeof(*eth) + sizeof(*ip6)) {
		*group = ip6_addr(ip6->dst_addr);
		*may_report = ip6->proto == IPPROTO_HOPOPTS || ip6->proto == IPPROTO_PIM;
		return rte_is_multicast_ether_addr(&eth->dst_addr);
	}
	return false;
}

static bool snoop_note_send(struct snoop_note *n)
{
	struct bucket *b = n->port ? &of_port[n->port % PORT_MAX] : &of_tunnels[n->bridge % BRIDGE_MAX];

	return bucket_take(b, rte_rdtsc(), 1, RECORDS_PER_SECOND, RECORDS_BURST, rte_get_tsc_hz()) &&
	       rte_ring_mp_enqueue_elem(ring, n, sizeof(*n)) == 0;
}

// Tells the master. Reports from tunnels are only passed on: all groups are sent into the tunnels anyway.
static bool snoop_report(const struct rte_mbuf *m, bool from_tunnel, struct snoop_message *s)
{
	struct snoop_note n = {.bridge = meta((struct rte_mbuf *)(uintptr_t)m)->bridge,
			       .port = from_tunnel ? 0 : m->port,
			       .kind = (uint8_t)s->kind,
			       .family = s->family,
			       .elects = s->elects};
	struct snoop_record r;

	if (s->kind == SNOOP_QUERY || s->kind == SNOOP_HELLO) // those from tunnels pass, noted or not
		return ((!from_tunnel || s->elects) && snoop_note_send(&n)) || from_tunnel;
	while (!from_tunnel && snoop_message_next(s, &r)) {
		n.joins = r.joins;
		memcpy(n.group, r.group.bytes, sizeof(n.group));
		if (!snoop_note_send(&n))
			return false;
	}
	return true;
}

static __rte_noinline enum snoop_kind snoop_read(struct rte_mbuf *m, bool from_tunnel, bool *noted)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	unsigned len = RTE_MIN(m->pkt_len - (unsigned)sizeof(*eth), (unsigned)LONGEST_MESSAGE);
	uint8_t copy[LONGEST_MESSAGE];
	struct snoop_message s;

	snoop_message_read(rte_pktmbuf_read(m, sizeof(*eth), len, copy), len, eth->ether_type, offload_is_unfinished(m),
			   &s);
	*noted = s.kind == SNOOP_DATA || s.kind == SNOOP_DAMAGED || snoop_report(m, from_tunnel, &s);
	return s.kind;
}

static bool snoop_none(struct snoop_ends *e, const struct drop_reason *why)
{
	e->none = why;
	return false;
}

bool snoop_ends(struct rte_mbuf *m, bool from_tunnel, struct snoop_ends *e)
{
	const struct snoop_fwd *s = rcu_read(snoop_fwds[meta(m)->bridge % BRIDGE_MAX]);
	const struct snoop_group *g;
	enum snoop_kind kind = SNOOP_DATA;
	struct ip_addr group;
	bool may_report, noted = true;

	if (!snoop_group_of(m, &group, &may_report))
		return true;
	if (may_report)
		kind = snoop_read(m, from_tunnel, &noted);
	if (kind == SNOOP_DAMAGED)
		return snoop_none(e, &drop_bridge_report_damaged);
	if (!noted)
		return snoop_none(e, &drop_bridge_report_rate);
	if (s == NULL || kind == SNOOP_QUERY || (kind == SNOOP_DATA && !snoop_is_group(&group)))
		return true;
	if (kind == SNOOP_REPORT) {
		*e = (struct snoop_ends){s->routers, NULL, s->n_routers, 0, &drop_bridge_report_kept};
		return true;
	}
	g = snoop_find_group(s, &group);
	if (g) // else it is not registered (RFC 4541, 2.1.2, 3)
		*e = (struct snoop_ends){g->ports, s->routers, g->n, s->n_routers, &drop_bridge_group_empty};
	return true;
}

// --- Memberships. ---

struct snoop_member {
	struct ip_addr group;
	uint16_t port;
	bool asked;           // whether it is still a member
	uint32_t seen, until; // mac_clock
};

struct snoop {
	struct snoop_member *members; // by group and port
	unsigned n, room, n_routers;
	uint32_t other_until[2]; // another querier of IPv4, IPv6
	bool dirty;
	uint64_t refused;
};

static struct snoop *snoops[BRIDGE_MAX];
static uint16_t dirty[BRIDGE_MAX];
static unsigned n_dirty, total;
static uint32_t n_of_port[PORT_MAX], router_until[PORT_MAX], fresh_until[PORT_MAX];

static bool snoop_runs(uint32_t until)
{
	return (int32_t)(until - mac_clock) > 0;
}

static void snoop_spoil(uint16_t bridge)
{
	if (snoops[bridge]->dirty)
		return;
	snoops[bridge]->dirty = true;
	dirty[n_dirty++] = bridge;
}

static bool snoop_gets_all(uint16_t port)
{
	return snoop_runs(router_until[port]) || snoop_runs(fresh_until[port]);
}

static unsigned snoop_count_routers(const struct bridge_fwd *f)
{
	unsigned i, n = 0;

	for (i = 0; i < f->n_ports; i++)
		n += snoop_gets_all(f->ports[i]);
	return n;
}

static void snoop_fill(struct snoop_fwd *out, const struct snoop *s, const struct bridge_fwd *f, uint16_t *ports)
{
	struct snoop_group *g = out->groups;
	unsigned i;

	out->routers = ports;
	for (i = 0; i < f->n_ports; i++)
		if (snoop_gets_all(f->ports[i]))
			ports[out->n_routers++] = f->ports[i];
	ports += out->n_routers;
	for (i = 0; i < s->n; i++) {
		if (i == 0 || snoop_compare(&g[-1].addr, &s->members[i].group) != 0)
			*g++ = (struct snoop_group){.addr = s->members[i].group, .ports = ports};
		*ports++ = s->members[i].port;
		g[-1].n++;
	}
	out->n_groups = (unsigned)(g - out->groups);
}

static void snoop_publish(uint16_t bridge)
{
	struct snoop *s = snoops[bridge];
	const struct bridge_fwd *f = bridge_fwds[bridge];
	struct snoop_fwd *old = snoop_fwds[bridge], *out = NULL;

	if (f)
		out = rte_zmalloc("snoop",
				  sizeof(*out) + s->n * (sizeof(out->groups[0]) + sizeof(uint16_t)) +
					  f->n_ports * sizeof(uint16_t),
				  0);
	if (out) {
		snoop_fill(out, s, f, (uint16_t *)(out->groups + s->n));
		s->n_routers = out->n_routers;
	}
	rcu_publish(snoop_fwds[bridge], out); // without memory all is flooded
	if (old)
		rcu_defer(rte_free, old);
}

int snoop_init(struct error *err)
{
	ring = rte_ring_create_elem("snoop", sizeof(struct snoop_note), RING, SOCKET_ID_ANY, RING_F_SC_DEQ);
	return ring ? 0 : error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for multicast snooping");
}

static void snoop_begin(struct bridge *b)
{
	const struct bridge_fwd *f = bridge_fwds[b->id];
	struct snoop *s = calloc(1, sizeof(*s));
	unsigned i;

	if (s == NULL) {
		LOG(ERR, "bridge %s floods multicast: no memory", b->cfg.name);
		return;
	}
	snoops[b->id] = s;
	for (i = 0; f && i < f->n_ports; i++)
		snoop_port_begin(f->ports[i]);
}

void snoop_forget(struct bridge *b)
{
	struct snoop *s = snoops[b->id];
	struct snoop_fwd *old = snoop_fwds[b->id];
	const struct bridge_fwd *f = bridge_fwds[b->id];
	unsigned i;

	if (s == NULL)
		return;
	for (i = 0; f && i < f->n_ports; i++)
		snoop_port_end(b->id, f->ports[i]);
	for (i = 0; i < s->n; i++)
		n_of_port[s->members[i].port]--;
	total -= s->n;
	for (i = 0; i < n_dirty; i++)
		if (dirty[i] == b->id)
			dirty[i--] = dirty[--n_dirty];
	snoops[b->id] = NULL;
	free(s->members);
	free(s);
	rcu_publish(snoop_fwds[b->id], NULL);
	if (old)
		rcu_defer(rte_free, old);
}

void snoop_follow(struct bridge *b)
{
	if (!b->cfg.snooping)
		snoop_forget(b);
	else if (snoops[b->id] == NULL)
		snoop_begin(b);
	if (snoops[b->id])
		snoop_publish(b->id); // at once: the old form may lead to a port that is now in another domain
}

void snoop_port_begin(uint16_t port)
{
	const struct port *p = port_get(port);

	if (p == NULL || p->cfg.bridge == BRIDGE_NONE || snoops[p->cfg.bridge] == NULL)
		return;
	fresh_until[port] = mac_clock + FRESH_TIME;
	snoop_query_soon(port);
	snoop_spoil(p->cfg.bridge);
}

// Removes the members for which `gone` is true. Returns whether there were any.
static bool snoop_remove(struct snoop *s, bool (*gone)(const struct snoop_member *, uint16_t), uint16_t arg)
{
	unsigned i, kept = 0, n = s->n;

	for (i = 0; i < n; i++) {
		if (!gone(&s->members[i], arg)) {
			s->members[kept++] = s->members[i];
			continue;
		}
		n_of_port[s->members[i].port]--;
		total--;
	}
	s->n = kept;
	return kept < n;
}

static bool snoop_member_is_at(const struct snoop_member *m, uint16_t port)
{
	return m->port == port;
}

static bool snoop_member_is_old(const struct snoop_member *m, uint16_t unused)
{
	return !snoop_runs(m->until);
}

void snoop_port_end(uint16_t bridge, uint16_t port)
{
	router_until[port] = fresh_until[port] = mac_clock;
	snoop_query_never(port);
	if (bridge < BRIDGE_MAX && snoops[bridge] && snoop_remove(snoops[bridge], snoop_member_is_at, port))
		snoop_spoil(bridge);
}

bool snoop_is_queried(uint16_t bridge, uint8_t family)
{
	const struct snoop *s = bridge < BRIDGE_MAX ? snoops[bridge] : NULL;

	return s == NULL || snoop_runs(s->other_until[family == IPV6]);
}

// The index of the member, or where it would be.
static unsigned snoop_place(const struct snoop *s, const struct ip_addr *group, uint16_t port, bool *found)
{
	unsigned low = 0, high = s->n, middle;
	int order;

	*found = false;
	while (low < high) {
		middle = (low + high) / 2;
		order = snoop_compare(&s->members[middle].group, group);
		if (order == 0)
			order = s->members[middle].port - port;
		if (order == 0)
			*found = true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// The last eighth of a domain's memberships is for ports that have less than their share.
static bool snoop_has_room(struct snoop *s, uint16_t bridge, uint16_t port)
{
	const struct bridge_fwd *f = bridge_fwds[bridge];
	struct snoop_member *more;

	if (f == NULL || total >= SNOOP_TOTAL_MAX || n_of_port[port] >= SNOOP_PORT_MAX || s->n >= SNOOP_BRIDGE_MAX ||
	    (s->n >= SNOOP_BRIDGE_MAX - SNOOP_BRIDGE_MAX / 8 && n_of_port[port] >= SNOOP_BRIDGE_MAX / (f->n_ports + 1)))
		return false;
	if (s->n < s->room)
		return true;
	more = realloc(s->members, (s->room * 2 + 16) * sizeof(*more));
	if (more == NULL)
		return false;
	s->members = more;
	s->room = s->room * 2 + 16;
	return true;
}

static void snoop_join(struct snoop *s, const struct snoop_note *n, const struct ip_addr *group)
{
	bool found;
	unsigned i = snoop_place(s, group, n->port, &found);

	if (!found && !snoop_has_room(s, n->bridge, n->port)) {
		s->refused++;
		counters->drops[n->port][drop_bridge_group_limit.id]++;
		if (n_of_port[n->port] < SNOOP_PORT_MAX) { // others have the room: it gets all groups meanwhile
			if (!snoop_gets_all(n->port))
				snoop_spoil(n->bridge);
			fresh_until[n->port] = mac_clock + MEMBER_TIME;
		}
		return;
	}
	if (!found) {
		memmove(&s->members[i + 1], &s->members[i], (s->n++ - i) * sizeof(*s->members));
		n_of_port[n->port]++;
		total++;
		snoop_spoil(n->bridge);
	}
	s->members[i] = (struct snoop_member){
		.group = *group, .port = n->port, .seen = mac_clock, .until = mac_clock + MEMBER_TIME};
}

// Other hosts of the port may still be members: they are asked.
static void snoop_leave(struct snoop *s, const struct snoop_note *n, const struct ip_addr *group)
{
	bool found;
	unsigned i = snoop_place(s, group, n->port, &found);

	if (!found || s->members[i].asked)
		return;
	s->members[i].asked = true;
	s->members[i].until = mac_clock + LEAVE_TIME;
	snoop_query_group(n->port, group);
}

static void snoop_note_one(const struct snoop_note *n)
{
	struct snoop *s = snoops[n->bridge % BRIDGE_MAX];
	const struct port *p = port_get(n->port);
	struct ip_addr group = {.family = n->family};

	if (s == NULL || (n->port && (p == NULL || p->cfg.bridge != n->bridge))) // it may have left meanwhile
		return;
	memcpy(group.bytes, n->group, sizeof(group.bytes));
	if (n->kind == SNOOP_REPORT) {
		if (n->joins)
			snoop_join(s, n, &group);
		else
			snoop_leave(s, n, &group);
		return;
	}
	if (n->elects)
		s->other_until[n->family == IPV6] = mac_clock + ROUTER_TIME;
	if (n->port == 0 || !(n->elects || n->kind == SNOOP_HELLO))
		return;
	if (!snoop_gets_all(n->port))
		snoop_spoil(n->bridge);
	router_until[n->port] = mac_clock + ROUTER_TIME;
}

void snoop_tick(void)
{
	struct snoop_note n[32];
	unsigned i, got, done = 0;

	while (done < RECORDS_PER_TICK &&
	       (got = rte_ring_sc_dequeue_burst_elem(ring, n, sizeof(n[0]), RTE_DIM(n), NULL)) > 0) {
		for (i = 0; i < got; i++)
			// analyzer: core.CallAndMessage core.UndefinedBinaryOperatorResult: the ring has copied n
			snoop_note_one(&n[i]);
		done += got;
	}
	for (i = 0; i < BUILDS_PER_TICK && n_dirty > 0; i++) {
		uint16_t bridge = dirty[0]; // in turn, so that busy ones do not starve others

		memmove(dirty, dirty + 1, --n_dirty * sizeof(dirty[0]));
		snoops[bridge]->dirty = false;
		snoop_publish(bridge);
	}
}

// Hosts of ports that have left a group are asked again, as far as the budget of the turn goes. All hosts are asked
// before a membership ends by its age, whoever says to be the querier.
static void snoop_ask_again(const struct snoop *s, unsigned *budget)
{
	unsigned i;

	for (i = 0; i < s->n; i++) {
		const struct snoop_member *m = &s->members[i];

		if (m->asked && *budget > 0) {
			snoop_query_group(m->port, &m->group);
			(*budget)--;
		} else if (!m->asked && !snoop_runs(m->until - LAST_ASKED)) {
			snoop_query_soon(m->port);
		}
	}
}

// Each domain once a second.
void snoop_poll(void)
{
	static unsigned turn;
	unsigned id, budget = ASKED_PER_TURN;

	turn = (turn + 1) % 10;
	for (id = turn; id < BRIDGE_MAX; id += 10) {
		struct snoop *s = snoops[id];
		const struct bridge_fwd *f = bridge_fwds[id];

		if (s == NULL)
			continue;
		if (snoop_remove(s, snoop_member_is_old, 0) || (f && snoop_count_routers(f) != s->n_routers))
			snoop_spoil((uint16_t)id);
		snoop_ask_again(s, &budget);
	}
	snoop_query_poll();
}

// --- For listings. ---

bool snoop_next(const struct snoop_entry *after, struct snoop_entry *out)
{
	unsigned id = after ? after->bridge : 0, i = 0;
	bool found = false;

	if (after && snoops[id])
		i = snoop_place(snoops[id], &after->group, after->port, &found) + found;
	for (; id < BRIDGE_MAX; id++, i = 0) {
		if (snoops[id] == NULL || i >= snoops[id]->n)
			continue;
		*out = (struct snoop_entry){.bridge = (uint16_t)id,
					    .port = snoops[id]->members[i].port,
					    .group = snoops[id]->members[i].group,
					    .seen = snoops[id]->members[i].seen};
		return true;
	}
	return false;
}

bool snoop_is_router(uint16_t port)
{
	return snoop_runs(router_until[port % PORT_MAX]);
}

uint32_t snoop_count(uint16_t bridge)
{
	return snoops[bridge % BRIDGE_MAX] ? snoops[bridge % BRIDGE_MAX]->n : 0;
}

uint64_t snoop_refused(uint16_t bridge)
{
	return snoops[bridge % BRIDGE_MAX] ? snoops[bridge % BRIDGE_MAX]->refused : 0;
}
