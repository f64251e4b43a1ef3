// SPDX-License-Identifier: Apache-2.0
// Mirrors: their configuration, and the form that workers read.
#include "policy/mirror.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_malloc.h>

#include "base/id_table.h"
#include "base/notify.h"
#include "base/rcu.h"
#include "port/registry.h"

struct mirror_fwd *mirror_table[MIRROR_MAX];
static struct mirror *mirrors[MIRROR_MAX];
static struct referrer *mirror_referrers;

struct mirror *mirror_get(uint16_t id)
{
	return id < MIRROR_MAX ? mirrors[id] : NULL;
}

static struct mirror *mirror_find(const char *name)
{
	return id_table_find(mirrors, MIRROR_MAX, offsetof(struct mirror, cfg.name), name);
}

struct mirror *mirror_find_err(const char *name, const char *field, struct error *err)
{
	struct mirror *m = mirror_find(name);

	if (m == NULL)
		error_set(err, ENOENT, field, name, "an existing mirror, see `corelane mirror list`",
			  "there is no such mirror");
	return m;
}

struct mirror_count mirror_count(const struct mirror *m)
{
	struct mirror_count sum = {0};
	unsigned i;

	for (i = 0; i < WORKER_MAX; i++) {
		sum.packets += m->count[i].packets;
		sum.bytes += m->count[i].bytes;
		sum.lost += m->count[i].lost;
	}
	return sum;
}

// --- Publishing. ---

static int mirror_publish(struct mirror *m, const struct mirror_config *cfg, uint32_t nexthop, struct error *err)
{
	struct mirror_fwd *old = mirror_table[m->id], *f = rte_zmalloc("mirror", sizeof(*f), RTE_CACHE_LINE_SIZE);

	if (f == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a mirror");
	f->egress = cfg->direction != MIRROR_INGRESS;
	f->ingress = cfg->direction != MIRROR_EGRESS;
	f->target = (uint8_t)cfg->target;
	f->port = cfg->port;
	f->nexthop = nexthop;
	f->snap = cfg->snap ? cfg->snap : UINT32_MAX;
	f->pool = port_pool(SOCKET_ID_ANY);
	f->count = m->count;
	f->sequence = &m->sequence;
	m->cfg = *cfg;
	m->nexthop = nexthop;
	rcu_publish(mirror_table[m->id], f);
	if (old)
		rcu_defer(rte_free, old);
	return 0;
}

// The tunnel's errors name fields of a next hop. Names the mirror's instead, also at the start of the message.
static void mirror_rename_field(const struct mirror_config *cfg, struct error *err)
{
	static const char was[] = "nexthop.tunnel.";
	const struct error e = *err;

	if (strncmp(e.field, was, strlen(was)) != 0)
		return;
	snprintf(err->field, sizeof(err->field), "mirror.%.20s.%.30s", cfg->tunnel.encap->name, e.field + strlen(was));
	snprintf(err->message, sizeof(err->message), "%s%.700s", err->field, e.message + strlen(e.field));
}

// Adds the collector's next hop, or changes the one that exists. Returns its id, 0 with err.
static uint32_t mirror_tunnel(const struct mirror_config *cfg, uint32_t old, struct error *err)
{
	struct nexthop_config n = {.id = old ? old : nexthop_alloc(), .kind = NH_TUNNEL, .tunnel = cfg->tunnel};

	if (nexthop_add(&n, old != 0, err) == 0)
		return n.id;
	mirror_rename_field(cfg, err);
	return 0;
}

static int mirror_configure(struct mirror *m, const struct mirror_config *cfg, struct error *err)
{
	uint32_t old = m->nexthop, nexthop = 0;
	int ret;

	if (cfg->target == MIRROR_TUNNEL) {
		nexthop = mirror_tunnel(cfg, old, err);
		if (nexthop == 0)
			return -err->code;
	}
	ret = mirror_publish(m, cfg, nexthop, err);
	if (ret == 0 && old && nexthop == 0)
		nexthop_del(old, NULL);
	if (ret < 0 && nexthop && old == 0)
		nexthop_del(nexthop, NULL);
	return ret;
}

struct mirror *mirror_add(const struct mirror_config *cfg, struct error *err)
{
	static uint16_t last;
	struct mirror *m;
	uint16_t id;

	if (mirror_find(cfg->name)) {
		error_set(err, EEXIST, "mirror.name", cfg->name, "a new name", "is taken");
		return NULL;
	}
	id = id_table_in_turn(mirrors, MIRROR_MAX, &last);
	m = id ? rte_zmalloc("mirror", sizeof(*m), RTE_CACHE_LINE_SIZE) : NULL;
	if (m == NULL) {
		error_full(err, id ? ENOMEM : ENOSPC, "mirror", NULL, MIRROR_MAX - 1, "mirrors");
		return NULL;
	}
	m->id = id;
	if (mirror_configure(m, cfg, err) < 0) {
		rte_free(m);
		return NULL;
	}
	mirrors[id] = m;
	return m;
}

int mirror_set(struct mirror *m, const struct mirror_config *cfg, struct error *err)
{
	return mirror_configure(m, cfg, err);
}

void mirror_refer(struct referrer *r)
{
	LISTEN(mirror_referrers, r);
}

int mirror_del(const char *name, struct error *err)
{
	struct mirror *m = mirror_find(name);
	struct mirror_fwd *f;

	if (m == NULL)
		return error_set(err, ENOENT, "mirror.name", name, NULL, "there is no such mirror");
	if (m->refs > 0)
		return referrer_error(mirror_referrers, m->id, m->refs, "mirror.name", name, err);
	f = mirror_table[m->id];
	rcu_publish(mirror_table[m->id], NULL);
	mirrors[m->id] = NULL;
	if (m->nexthop)
		nexthop_del(m->nexthop, NULL);
	rcu_defer(rte_free, f);
	rcu_defer(rte_free, m);
	return 0;
}

void mirror_ref(uint16_t id)
{
	if (id)
		mirrors[id]->refs++;
}

void mirror_unref(uint16_t id)
{
	if (id)
		mirrors[id]->refs--;
}

// --- Ports. ---

PORT_SETTINGS(mirroring_config)

static int mirror_port_check(const struct port *old, const struct port_config *cfg, struct error *err)
{
	const struct mirror *m = mirror_get(mirroring_config(cfg)->mirror);

	if (m == NULL)
		return 0;
	if (!cfg->stateful)
		return error_set(err, EINVAL, "port.mirror", m->cfg.name, "a stateful port",
				 "mirrors copy flows, which only stateful ports keep");
	return 0;
}

static void mirror_port_forward(const struct port_config *cfg, struct port_fwd *out)
{
	out->mirror = mirroring_config(cfg)->mirror;
}

static void mirror_port_added(struct port *p)
{
	mirror_ref(mirroring_config(&p->cfg)->mirror);
}

static void mirror_port_changed(struct port *p, const struct port_config *old)
{
	mirror_port_added(p);
	mirror_unref(mirroring_config(old)->mirror);
}

static void mirror_port_removed(struct port *p)
{
	mirror_unref(mirroring_config(&p->cfg)->mirror);
}

static int mirror_port_check_del(const struct port *p, struct error *err)
{
	unsigned i;

	for (i = 1; i < MIRROR_MAX; i++)
		if (mirrors[i] && mirrors[i]->cfg.target == MIRROR_PORT && mirrors[i]->cfg.port == p->id)
			return error_set(err, EBUSY, "port.name", p->cfg.name, NULL, "is the target of mirror '%s'",
					 mirrors[i]->cfg.name);
	return 0;
}

static bool mirror_port_find(uint32_t id, char *text, size_t size)
{
	const struct port *p = port_next(NULL);

	while (p && mirroring_config(&p->cfg)->mirror != id)
		p = port_next(p);
	if (p)
		snprintf(text, size, "port '%s'", p->cfg.name);
	return p != NULL;
}

void mirror_init(void)
{
	static struct port_listener listener = {.check = mirror_port_check,
						.forward = mirror_port_forward,
						.added = mirror_port_added,
						.changed = mirror_port_changed,
						.check_del = mirror_port_check_del,
						.removed = mirror_port_removed};
	static struct referrer ports = {.find = mirror_port_find};

	port_listen(&listener);
	mirror_refer(&ports);
}
