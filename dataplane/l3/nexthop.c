// SPDX-License-Identifier: Apache-2.0
#include "l3/nexthop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_malloc.h>

#include "base/notify.h"
#include "base/rcu.h"
#include "graph/trace.h"
#include "l3/fib.h"
#include "l3/path_mtu.h"
#include "l3/tunnel_end.h"
#include "l3/underlay.h"
#include "neighbor/adjacency.h"
#include "neighbor/neighbor.h"
#include "port/registry.h"

static struct nexthop_listener *listeners;
static struct referrer *nexthop_referrers;
struct nexthop *nexthop_table[NEXTHOP_MAX];
static struct nexthop_entry *entries[NEXTHOP_MAX];
static uint32_t next_system = NH_ID_DISCARD + 1;
static unsigned n_api;
static uint32_t end_api = 1, end_system = NEXTHOP_API_MAX; // ids in use lie below

// The order in which a rebuild goes: tunnels take their paths from ports and from groups of ports; then come groups of
// tunnels.
static const enum nexthop_kind rebuild_order[] = {NH_PORT, NH_GLEAN, NH_GROUP, NH_TUNNEL, NH_GROUP};
static unsigned rebuild_step = RTE_DIM(rebuild_order); // the step under way; RTE_DIM(): none
static uint32_t rebuild_at;                            // the last id that this step has looked at
static bool dirty;                                     // the underlay has changed since a rebuild began

#define REBUILD_LOOKS 32768 // work units per poll, about 3 ms; skipping a next hop costs 1
#define REBUILD_COST 8      // work units of a rebuild

struct nexthop_entry *nexthop_get(uint32_t id)
{
	return id < NEXTHOP_MAX ? entries[id] : NULL;
}

struct nexthop_entry *nexthop_next(uint32_t after)
{
	uint32_t i = after + 1;

	for (; i < end_api; i++)
		if (entries[i])
			return entries[i];
	for (i = RTE_MAX(i, NEXTHOP_API_MAX); i < end_system; i++)
		if (entries[i])
			return entries[i];
	return NULL;
}

unsigned nexthop_count(void)
{
	return n_api;
}

void nexthop_ref(uint32_t id)
{
	entries[id]->refs++;
}

// The router's own next hops are deleted with their last reference.
void nexthop_unref(uint32_t id)
{
	struct nexthop_entry *e = nexthop_get(id);

	if (e && --e->refs == 0 && id > NH_ID_DISCARD)
		nexthop_del(id, NULL);
}

int nexthop_usable(uint32_t id, const char *field, struct error *err)
{
	char text[16];

	if (id < NEXTHOP_API_MAX && nexthop_get(id))
		return 0;
	snprintf(text, sizeof(text), "%u", id);
	return error_set(err, ENOENT, field, text, "the id of a next hop that exists", "there is no such next hop");
}

int nexthop_carries(uint32_t id, uint8_t family, const char *field, struct error *err)
{
	const struct nexthop_entry *e = nexthop_get(id);
	char text[16];
	unsigned i;
	int ret = 0;

	for (i = 0; e->cfg.kind == NH_GROUP && i < e->cfg.group.n && ret == 0; i++)
		ret = nexthop_carries(e->cfg.group.member[i].nexthop, family, field, err);
	if (ret < 0 || e->cfg.kind != NH_PORT || family == IPV4 || e->cfg.port.addr.family != IPV4 ||
	    port_get(e->cfg.port.id) == NULL || port_get(e->cfg.port.id)->role != PORT_FABRIC)
		return ret; // a guest's MAC is the same for both families
	snprintf(text, sizeof(text), "%u", id);
	return error_set(err, EINVAL, field, text, "a next hop with an IPv6 address or a MAC",
			 "leads to an IPv4 address, which is no way for IPv6");
}

static void nexthop_build_port(struct nexthop_entry *e, struct nexthop *nh)
{
	const struct port *p = port_get(e->cfg.port.id);

	nh->port = e->cfg.port.id;
	nh->adj = e->adj;
	nh->edge = p == NULL ? NH_EDGE_DROP : e->cfg.kind == NH_GLEAN ? NH_EDGE_HOLD : NH_EDGE_PORT;
	nh->mtu = p ? p->cfg.mtu : 0;
	nh->mss = p ? (uint16_t)routed_config(&p->cfg)->mss_clamp : 0;
	e->resolved = p && (e->cfg.kind == NH_GLEAN || adjacency_table[e->adj]->resolved);
	e->overhead = 0;
}

static bool nexthop_is_tunnel(const struct nexthop_entry *e)
{
	return e->cfg.kind == NH_TUNNEL;
}

struct nexthop *nexthop_build(struct nexthop_entry *e)
{
	struct nexthop *nh = rte_zmalloc("nexthop", sizeof(*nh), RTE_CACHE_LINE_SIZE);

	if (nh == NULL)
		return NULL;
	nh->id = e->cfg.id;
	nh->kind = (uint8_t)e->cfg.kind;
	nh->mtu = UINT16_MAX;
	e->resolved = true;
	switch (e->cfg.kind) {
	case NH_DISCARD:
		nh->edge = NH_EDGE_DROP;
		break;
	case NH_REJECT:
		nh->edge = NH_EDGE_ICMP_ERROR;
		break;
	case NH_LOCAL:
		nh->edge = NH_EDGE_LOCAL;
		break;
	case NH_PORT:
	case NH_GLEAN:
		nexthop_build_port(e, nh);
		break;
	case NH_TUNNEL:
		tunnel_build(e, nh);
		break;
	case NH_GROUP:
		group_build(e, nh, nexthop_table[e->cfg.id]);
		break;
	}
	return nh;
}

// Whether packets take another path now; false if only their header changes.
static bool nexthop_goes_elsewhere(const struct nexthop *old, const struct nexthop *nh)
{
	if (old == NULL)
		return false; // nothing could refer to it
	if (old->kind != nh->kind || old->kind == NH_PORT || old->kind == NH_GLEAN)
		return old->kind != nh->kind || old->port != nh->port;
	return old->kind == NH_GROUP && memcmp(old->bucket, nh->bucket, sizeof(nh->bucket)) != 0;
}

void nexthop_listen(struct nexthop_listener *l)
{
	LISTEN(listeners, l);
}

void nexthop_refer(struct referrer *r)
{
	LISTEN(nexthop_referrers, r);
}

static void nexthop_tell(void)
{
	const struct nexthop_listener *l;

	for (l = listeners; l; l = l->next)
		if (l->changed)
			l->changed();
}

static int nexthop_publish(struct nexthop_entry *e)
{
	struct nexthop *nh = nexthop_build(e), *old = nexthop_table[e->cfg.id];

	if (nh == NULL)
		return -ENOMEM;
	rcu_publish(nexthop_table[e->cfg.id], nh);
	if (nexthop_goes_elsewhere(old, nh))
		nexthop_tell();
	if (old)
		rcu_defer(rte_free, old);
	return 0;
}

static int nexthop_no_memory(struct error *err)
{
	return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a next hop");
}

static int nexthop_check_group(const struct nexthop_config *cfg, struct error *err)
{
	const struct nexthop_entry *m;
	char text[16];
	unsigned i;
	int ret;

	for (i = 0; i < cfg->group.n; i++) {
		ret = nexthop_usable(cfg->group.member[i].nexthop, "nexthop.group.members.nexthop", err);
		if (ret < 0)
			return ret;
		m = nexthop_get(cfg->group.member[i].nexthop);
		snprintf(text, sizeof(text), "%u", m->cfg.id);
		if (m->cfg.id == cfg->id || (m->cfg.kind != NH_PORT && !nexthop_is_tunnel(m)))
			return error_set(err, EINVAL, "nexthop.group.members.nexthop", text,
					 "a port or tunnel next hop", "cannot be in a group");
	}
	return 0;
}

// The error of a next hop that has references and therefore cannot be changed so much, or deleted (change: "").
static int nexthop_in_use(const struct nexthop_entry *e, const char *change, struct error *err)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", e->cfg.id);
	return referrer_error_of(nexthop_referrers, e->cfg.id, e->refs, "nexthop.id", text, change, err);
}

// Some kinds are not possible for all that names a next hop: a group may have no groups as members, and a label or VNI
// may not point to the router's own addresses, which belong to a VRF.
static int nexthop_check_kind(const struct nexthop_entry *old, enum nexthop_kind kind, struct error *err)
{
	if (old->cfg.kind == kind || old->refs == 0)
		return 0;
	if (old->cfg.kind == NH_GROUP)
		return nexthop_in_use(old, "cannot cease to be a group, because it ", err);
	if (kind == NH_GROUP)
		return nexthop_in_use(old, "cannot become a group, because it ", err);
	if (kind == NH_LOCAL)
		return nexthop_in_use(old, "cannot become local, because it ", err);
	return 0;
}

static int nexthop_check(struct nexthop_config *cfg, bool replace, struct error *err)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", cfg->id);
	if (entries[cfg->id] && !replace)
		return error_set(err, EEXIST, "nexthop.id", text, "a free id, or replace", "is taken");
	if (entries[cfg->id] && nexthop_check_kind(entries[cfg->id], cfg->kind, err) < 0)
		return -EBUSY;
	if (cfg->kind == NH_GROUP)
		return nexthop_check_group(cfg, err);
	if (cfg->kind == NH_TUNNEL)
		return tunnel_check(&cfg->tunnel, err);
	if (cfg->kind == NH_PORT && cfg->port.addr.family == 0 && rte_is_zero_ether_addr(&cfg->port.mac))
		return error_set(err, EINVAL, "nexthop.port.address", "", "an address or a MAC",
				 "is needed to find the host behind the port");
	if (cfg->kind == NH_PORT && port_get(cfg->port.id) && rte_is_zero_ether_addr(&cfg->port.mac))
		return neighbor_check_link(cfg->port.id, &cfg->port.addr, "nexthop.port.address", err);
	return 0;
}

static void nexthop_ref_members(const struct nexthop_config *cfg, void (*fn)(uint32_t))
{
	unsigned i;

	for (i = 0; cfg->kind == NH_GROUP && i < cfg->group.n; i++)
		fn(cfg->group.member[i].nexthop);
}

// Takes what the next hop needs besides its members.
static int nexthop_hold(struct nexthop_entry *e, struct error *err)
{
	const struct nexthop_config *c = &e->cfg;

	e->adj = UINT32_MAX;
	e->way = NULL;
	if (c->kind == NH_PORT)
		return adjacency_hold(c->port.id, &c->port.addr, &c->port.mac, &e->adj, err);
	if (c->kind == NH_TUNNEL)
		e->way = tunnel_way_hold(c->id, &c->tunnel);
	return c->kind == NH_TUNNEL && e->way == NULL ? nexthop_no_memory(err) : 0;
}

static void nexthop_put(struct nexthop_entry *e)
{
	if (e->adj != UINT32_MAX)
		adjacency_put(e->adj);
	e->adj = UINT32_MAX;
	if (e->way)
		tunnel_way_put(e->way, e->cfg.id, &e->cfg.tunnel);
	e->way = NULL;
}

static void nexthop_release(struct nexthop_entry *e)
{
	nexthop_ref_members(&e->cfg, nexthop_unref);
	nexthop_put(e);
}

int nexthop_add(const struct nexthop_config *wanted, bool replace, struct error *err)
{
	struct nexthop_entry new = {.cfg = *wanted}, old = {.adj = UINT32_MAX}, *e;
	uint32_t id = wanted->id;
	int ret = nexthop_check(&new.cfg, replace, err);

	if (ret == 0)
		ret = nexthop_hold(&new, err);
	if (ret < 0)
		return ret;
	e = entries[id];
	if (e)
		old = *e;
	else
		e = calloc(1, sizeof(*e));
	if (e) {
		e->cfg = new.cfg;
		e->adj = new.adj;
		e->way = new.way;
	}
	if (e == NULL || nexthop_publish(e) < 0) {
		nexthop_put(&new);
		if (entries[id]) // analyzer: unix.Malloc: e is this one
			*e = old;
		else
			free(e);
		return nexthop_no_memory(err);
	}
	nexthop_ref_members(&new.cfg, nexthop_ref);
	if (entries[id] == NULL) {
		entries[id] = e;
		n_api += id < NEXTHOP_API_MAX;
		if (id < NEXTHOP_API_MAX)
			end_api = RTE_MAX(end_api, id + 1);
		else
			end_system = RTE_MAX(end_system, id + 1);
	} else {
		nexthop_release(&old); // workers have the new one
	}
	if (e->refs)
		dirty = true; // rebuild the groups and tunnels that lead through it
	return 0;
}

static int nexthop_check_del(uint32_t id, struct error *err)
{
	const struct nexthop_entry *e = nexthop_get(id);
	char text[16];

	snprintf(text, sizeof(text), "%u", id);
	if (e == NULL || e->leaving)
		return error_set(err, ENOENT, "nexthop.id", text, NULL, "there is no such next hop");
	return e->refs > 0 ? nexthop_in_use(e, "", err) : 0;
}

int nexthop_del_all(const uint32_t *ids, size_t n, struct error *err)
{
	size_t i, leaving = 0;
	int ret = 0;

	while (leaving < n && ret == 0) {
		ret = nexthop_check_del(ids[leaving], err);
		if (ret < 0)
			break;
		entries[ids[leaving]]->leaving = true;
		nexthop_ref_members(&entries[ids[leaving]]->cfg, nexthop_unref); // a member may follow
		leaving++;
	}
	for (i = 0; i < leaving; i++) {
		entries[ids[i]]->leaving = false;
		nexthop_ref_members(&entries[ids[i]]->cfg, nexthop_ref);
	}
	if (ret < 0) {
		err->index = (uint32_t)leaving;
		return ret;
	}
	for (i = 0; i < n; i++)
		nexthop_del(ids[i], NULL);
	return 0;
}

int nexthop_del(uint32_t id, struct error *err)
{
	struct nexthop_entry *e = nexthop_get(id);
	struct nexthop *nh;
	int ret = nexthop_check_del(id, err);

	if (ret < 0)
		return ret;
	nh = nexthop_table[id];
	rcu_publish(nexthop_table[id], NULL);
	nexthop_tell();
	rcu_defer(rte_free, nh);
	entries[id] = NULL;
	n_api -= id < NEXTHOP_API_MAX;
	nexthop_release(e);
	free(e);
	return 0;
}

uint32_t nexthop_alloc(void)
{
	uint32_t tries;

	for (tries = 0; tries < NEXTHOP_API_MAX; tries++) {
		if (next_system >= NEXTHOP_MAX)
			next_system = NH_ID_DISCARD + 1;
		if (entries[next_system++] == NULL)
			return next_system - 1;
	}
	return 0;
}

void nexthop_underlay_changed(void)
{
	dirty = true;
}

bool nexthop_rebuilding(void)
{
	return dirty || rebuild_step < RTE_DIM(rebuild_order);
}

static void nexthop_rebuild(void)
{
	struct nexthop_entry *e;
	unsigned looks = 0;

	while (rebuild_step < RTE_DIM(rebuild_order) && looks < REBUILD_LOOKS) {
		e = nexthop_next(rebuild_at);
		rebuild_at = e ? e->cfg.id : 0;
		if (e == NULL) {
			rebuild_step++;
		} else if (e->cfg.kind == rebuild_order[rebuild_step]) {
			nexthop_publish(e);
			looks += REBUILD_COST;
		} else {
			looks++;
		}
	}
}

void nexthop_poll(void)
{
	path_mtu_poll();
	if (dirty && rebuild_step == RTE_DIM(rebuild_order)) {
		dirty = false;
		rebuild_step = 0;
	}
	nexthop_rebuild();
}

// The operator's next hops must be deleted before their port: another tenant may get the port's id.
static int nexthop_check_port_del(const struct port *p, struct error *err)
{
	struct nexthop_entry *e;

	for (e = nexthop_next(0); e && e->cfg.id < NEXTHOP_API_MAX; e = nexthop_next(e->cfg.id))
		if (e->cfg.kind == NH_PORT && e->cfg.port.id == p->id)
			return error_set(err, EBUSY, "port.name", p->cfg.name, NULL,
					 "is in use: next hop %u leads through it", e->cfg.id);
	return 0;
}

static bool nexthop_has_member(const struct nexthop_entry *e, uint32_t id)
{
	unsigned i = 0;

	while (e->cfg.kind == NH_GROUP && i < e->cfg.group.n && e->cfg.group.member[i].nexthop != id)
		i++;
	return e->cfg.kind == NH_GROUP && i < e->cfg.group.n;
}

static bool nexthop_find_group(uint32_t id, char *text, size_t size)
{
	const struct nexthop_entry *e = nexthop_next(0);

	while (e && !nexthop_has_member(e, id))
		e = nexthop_next(e->cfg.id);
	if (e)
		snprintf(text, size, "next hop %u, a group", e->cfg.id);
	return e != NULL;
}

// port_rx clears the pointer, so it was set during this walk of the graph.
static void trace_nexthop(struct trace_record *r, const struct pkt_meta *md)
{
	r->nexthop = md->nexthop ? md->nexthop->id : 0;
}

int nexthop_init(void)
{
	static struct trace_listener tracer = {.record = trace_nexthop};
	static struct port_listener listener = {.check_del = nexthop_check_port_del};
	static struct referrer groups = {.find = nexthop_find_group};
	static const struct nexthop_config own[] = {{.id = NH_ID_LOCAL, .kind = NH_LOCAL},
						    {.id = NH_ID_REJECT, .kind = NH_REJECT},
						    {.id = NH_ID_DISCARD, .kind = NH_DISCARD}};
	unsigned i;
	int ret = 0;

	port_listen(&listener);
	trace_listen(&tracer);
	nexthop_refer(&groups);
	nexthop_follow_neighbors();
	path_mtu_init();
	for (i = 0; i < RTE_DIM(own) && ret == 0; i++)
		ret = nexthop_add(&own[i], false, NULL);
	return ret;
}
