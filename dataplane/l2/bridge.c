// SPDX-License-Identifier: Apache-2.0
// Bridge domains: their configuration, and the form that workers read.
#include "l2/bridge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_malloc.h>

#include "base/id_table.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/rcu.h"
#include "l2/mac.h"
#include "l2/snoop.h"
#include "l3/nexthop.h"
#include "port/registry.h"

struct bridge_fwd *bridge_fwds[BRIDGE_MAX];
static struct bridge *bridges[BRIDGE_MAX];
static unsigned n_bridges;
static struct referrer *bridge_referrers;

static bool bridge_find_nexthop(uint32_t id, char *text, size_t size)
{
	const struct bridge *b = bridge_next(NULL);

	while (b && !bridge_floods_to(b, id) && !bridge_has_via(b, id))
		b = bridge_next(b);
	if (b)
		snprintf(text, size, "%sbridge '%s'", bridge_floods_to(b, id) ? "" : "a MAC of ", b->cfg.name);
	return b != NULL;
}

int bridge_init(struct error *err)
{
	static struct referrer of_nexthops = {.find = bridge_find_nexthop};
	int ret = mac_table_init(err);

	nexthop_refer(&of_nexthops);
	if (ret == 0)
		ret = mac_learn_init(err);
	if (ret == 0)
		ret = snoop_init(err);
	return ret < 0 ? ret : bridge_ports_init(err);
}

void bridge_refer(struct referrer *r)
{
	LISTEN(bridge_referrers, r);
}

struct bridge *bridge_get(uint16_t id)
{
	return id < BRIDGE_MAX ? bridges[id] : NULL;
}

struct bridge *bridge_next(const struct bridge *b)
{
	return id_table_next(bridges, BRIDGE_MAX, b ? b->id + 1u : 1);
}

struct bridge *bridge_find(const char *name)
{
	return id_table_find(bridges, BRIDGE_MAX, offsetof(struct bridge, cfg.name), name);
}

struct bridge *bridge_find_err(const char *name, const char *field, struct error *err)
{
	struct bridge *b = name ? bridge_find(name) : NULL;

	if (b == NULL)
		error_set(err, ENOENT, field, name, "the name of an existing bridge", "there is no such bridge");
	return b;
}

unsigned bridge_count(void)
{
	return n_bridges;
}

bool bridge_floods_to(const struct bridge *b, uint32_t nexthop)
{
	unsigned i;

	for (i = 0; i < b->cfg.n_flood; i++)
		if (b->cfg.flood[i] == nexthop)
			return true;
	return false;
}

static bool bridge_leads_to(uint32_t nexthop, const struct ip_addr *remote)
{
	const struct nexthop_entry *nh = nexthop_get(nexthop);

	return nh && nh->cfg.kind == NH_TUNNEL && ip_addr_eq(&nh->cfg.tunnel.remote, remote);
}

uint32_t bridge_tunnel_to(const struct bridge *b, const struct ip_addr *remote)
{
	unsigned i;

	for (i = 0; i < b->cfg.n_flood; i++)
		if (bridge_leads_to(b->cfg.flood[i], remote))
			return b->cfg.flood[i];
	for (i = 0; i < b->n_vias; i++)
		if (bridge_leads_to(b->vias[i].nexthop, remote))
			return b->vias[i].nexthop;
	return 0;
}

bool bridge_is_gateway(const struct bridge *b, const struct rte_ether_addr *mac)
{
	const struct bridge_fwd *f = bridge_fwds[b->id];

	return f && f->vrf != UINT16_MAX && rte_is_same_ether_addr(&f->gateway, mac);
}

int bridge_check_tunnel(uint32_t nexthop, const char *field, struct error *err)
{
	char text[16];
	int ret = nexthop_usable(nexthop, field, err);

	if (ret < 0 || nexthop_get(nexthop)->cfg.kind == NH_TUNNEL)
		return ret;
	snprintf(text, sizeof(text), "%u", nexthop);
	return error_set(err, EINVAL, field, text, "a tunnel next hop", "is not a tunnel");
}

static void bridge_fill_ports(struct bridge_fwd *f, const struct bridge *b, uint16_t without)
{
	const struct port *p;

	f->vrf = UINT16_MAX;
	for (p = port_next(NULL); p; p = port_next(p)) {
		if (p->cfg.bridge != b->id || p->id == without)
			continue;
		f->ports[f->n_ports++] = p->id;
		if (p->cfg.vrf == UINT16_MAX || f->vrf != UINT16_MAX)
			continue;
		f->vrf = p->cfg.vrf;
		f->gateway = p->mac;
	}
}

static struct bridge_fwd *bridge_fwd_build(const struct bridge *b, uint16_t without)
{
	size_t flood = b->cfg.n_flood * sizeof(uint32_t), ports = port_count() * sizeof(uint16_t);
	struct bridge_fwd *f = rte_zmalloc("bridge", sizeof(*f) + flood + ports, RTE_CACHE_LINE_SIZE);

	if (f == NULL)
		return NULL;
	f->drop_unknown = b->cfg.drop_unknown;
	f->learning = !b->cfg.no_learning;
	f->suppress = b->cfg.suppress;
	f->snooping = b->cfg.snooping;
	f->flood = (uint32_t *)(f + 1);
	f->ports = (uint16_t *)(f->flood + b->cfg.n_flood);
	f->n_flood = b->cfg.n_flood;
	memcpy(f->flood, b->cfg.flood, flood);
	bridge_fill_ports(f, b, without);
	return f;
}

void bridge_publish(struct bridge *b, uint16_t without)
{
	struct bridge_fwd *old = bridge_fwds[b->id], *f = bridge_fwd_build(b, without);
	uint32_t slot;

	if (f == NULL) // fail closed: the old form may soon lead to another tenant's port
		LOG(ERR, "bridge %s forwards nothing: no memory", b->cfg.name);
	rcu_publish(bridge_fwds[b->id], f);
	if (old)
		rcu_defer(rte_free, old);
	snoop_follow(b);
	if (f == NULL || f->vrf == UINT16_MAX)
		return;
	slot = mac_table_find(mac_key(b->id, &f->gateway)); // learnt before it became the gateway's
	if (slot != MAC_NONE)
		mac_remove(slot);
}

static int bridge_check_name(const char *name, struct error *err)
{
	if (bridge_find(name))
		return error_set(err, EEXIST, "bridge.name", name, "a new name", "is taken");
	return 0;
}

static int bridge_check_id(uint32_t *id, struct error *err)
{
	char text[16];

	if (*id == 0)
		*id = id_table_free(bridges, BRIDGE_MAX, 1);
	if (*id == BRIDGE_MAX)
		return error_set(err, ENOSPC, "bridge.id", NULL, NULL, "all %u ids are taken", BRIDGE_MAX - 1);
	snprintf(text, sizeof(text), "%u", *id);
	if (bridges[*id])
		return error_set(err, EEXIST, "bridge.id", text, "a free id from " LIMIT_BRIDGE_ID_VALID,
				 "is taken by '%s'", bridges[*id]->cfg.name);
	return 0;
}

static int bridge_check(struct bridge_config *cfg, struct error *err)
{
	unsigned i;
	int ret = 0;

	if (cfg->mac_limit == 0)
		cfg->mac_limit = LIMIT_BRIDGE_MAC_LIMIT_DEFAULT;
	for (i = 0; i < cfg->n_flood && ret == 0; i++)
		ret = bridge_check_tunnel(cfg->flood[i], "bridge.flood", err);
	return ret;
}

static void bridge_ref_flood(const struct bridge_config *cfg, void (*fn)(uint32_t))
{
	unsigned i;

	for (i = 0; i < cfg->n_flood; i++)
		fn(cfg->flood[i]);
}

struct bridge *bridge_add(const struct bridge_config *wanted, struct error *err)
{
	struct bridge_config cfg = *wanted;
	struct bridge *b;

	if (bridge_check_name(cfg.name, err) < 0 || bridge_check_id(&cfg.id, err) < 0 || bridge_check(&cfg, err) < 0)
		return NULL;
	b = calloc(1, sizeof(*b));
	if (b == NULL) {
		error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a bridge");
		return NULL;
	}
	b->cfg = cfg;
	b->id = (uint16_t)cfg.id;
	bridge_ref_flood(&cfg, nexthop_ref);
	bridges[b->id] = b;
	n_bridges++;
	mac_learn_begin(b->id);
	bridge_publish(b, 0);
	return b;
}

static void bridge_flush_gone(struct bridge *b, const struct bridge_config *old)
{
	struct ip_addr remote;
	unsigned i;

	for (i = 0; i < old->n_flood; i++) {
		if (bridge_floods_to(b, old->flood[i]))
			continue;
		remote = nexthop_get(old->flood[i])->cfg.tunnel.remote;
		if (bridge_tunnel_to(b, &remote) != old->flood[i])
			mac_flush_tunnel(b, old->flood[i]);
	}
}

int bridge_set(struct bridge *b, const struct bridge_config *wanted, struct error *err)
{
	struct bridge_config cfg = *wanted, old = b->cfg;
	int ret = bridge_check(&cfg, err);

	if (ret < 0)
		return ret;
	memcpy(cfg.name, old.name, sizeof(cfg.name));
	cfg.id = old.id;
	b->cfg = cfg;
	bridge_ref_flood(&cfg, nexthop_ref);
	bridge_publish(b, 0);
	bridge_flush_gone(b, &old);
	if (cfg.no_learning)
		mac_flush_bridge(b, true);
	bridge_ref_flood(&old, nexthop_unref);
	return 0;
}

int bridge_del(const char *name, struct error *err)
{
	struct bridge *b = bridge_find_err(name, "bridge.name", err);
	struct bridge_fwd *f;

	if (b == NULL)
		return -ENOENT;
	if (b->refs > 0)
		return referrer_error(bridge_referrers, b->id, b->refs, "bridge.name", name, err);
	snoop_forget(b);
	f = bridge_fwds[b->id];
	rcu_publish(bridge_fwds[b->id], NULL);
	if (f)
		rcu_defer(rte_free, f);
	mac_flush_bridge(b, false);
	bridge_ref_flood(&b->cfg, nexthop_unref);
	bridges[b->id] = NULL;
	n_bridges--;
	free(b->vias);
	free(b);
	return 0;
}
