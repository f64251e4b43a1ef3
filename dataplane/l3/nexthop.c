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

static int nexthop_check(struct nexthop_config *cfg, bool replace, struct error *err)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", cfg->id);
	if (entries[cfg->id] && !replace)
		return error_set(err, EEXIST, "nexthop.id", text, "a free id, or replace", "is taken");
	if (entries[cfg->id] && entries[cfg->id]->cfg.kind == NH_GROUP && cfg->kind != NH_GROUP &&
	    entries[cfg->id]->refs)
		return error_set(err, EBUSY, "nexthop.id", text, "a group", "is a group that is in use");
	if (entries[cfg->id] && cfg->kind == NH_GROUP && entries[cfg->id]->cfg.kind != NH_GROUP &&
	    entries[cfg->id]->refs)
		return error_set(err, EBUSY, "nexthop.id", text, "a next hop that is not in use",
				 "cannot become a group");
	// A label or VNI may point here, and the router's own addresses belong to a VRF.
	if (entries[cfg->id] && cfg->kind == NH_LOCAL && entries[cfg->id]->cfg.kind != NH_LOCAL &&
	    entries[cfg->id]->refs)
		return error_set(err, EBUSY, "nexthop.id", text, "a next hop that is not in use",
				 "cannot become local");
	if (cfg->kind == NH_GROUP)
		return nexthop_check_group(cfg, err);
	if (cfg->kind == NH_TUNNEL)
		return tunnel_check(&cfg->tunnel, err);
	if (cfg->kind == NH_PORT && cfg->port.addr.family == 0 && rte_is_zero_ether_addr(&cfg->port.mac))
		return error_set(err, EINVAL, "nexthop.port.address", "", "an address or a MAC",
				 "is needed to find the host behind the port");
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

int nexthop_del(uint32_t id, struct error *err)
{
	struct nexthop_entry *e = nexthop_get(id);
	struct nexthop *nh;
	char text[16];

	snprintf(text, sizeof(text), "%u", id);
	if (e == NULL)
		return error_set(err, ENOENT, "nexthop.id", text, NULL, "there is no such next hop");
	if (e->refs > 0)
		return error_set(err, EBUSY, "nexthop.id", text, NULL,
				 "is in use: %u routes, labels, VNIs, groups or bridges point to it", e->refs);
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

// port_rx clears the pointer, so it was set during this walk of the graph.
static void trace_nexthop(struct trace_record *r, const struct pkt_meta *md)
{
	r->nexthop = md->nexthop ? md->nexthop->id : 0;
}

int nexthop_init(void)
{
	static struct trace_listener tracer = {.record = trace_nexthop};
	static struct port_listener listener = {.check_del = nexthop_check_port_del};
	static const struct nexthop_config own[] = {{.id = NH_ID_LOCAL, .kind = NH_LOCAL},
						    {.id = NH_ID_REJECT, .kind = NH_REJECT},
						    {.id = NH_ID_DISCARD, .kind = NH_DISCARD}};
	unsigned i;
	int ret = 0;

	port_listen(&listener);
	trace_listen(&tracer);
	nexthop_follow_neighbors();
	path_mtu_init();
	for (i = 0; i < RTE_DIM(own) && ret == 0; i++)
		ret = nexthop_add(&own[i], false, NULL);
	return ret;
}
