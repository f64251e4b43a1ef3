// SPDX-License-Identifier: Apache-2.0
// Meters: the table of token buckets, and the ports and rules that use them.
#include "policy/meter.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_malloc.h>

#include "base/id_table.h"
#include "base/notify.h"
#include "base/rcu.h"
#include "port/registry.h"

struct meter *meter_table[METER_MAX];
static struct referrer *meter_referrers;

// A large segment passes as soon as its first packet would. What the bucket lacks for the others is taken from the time
// to come: were it to wait for all of its tokens, small packets that share the meter would keep it out for ever.
static bool meter_take(struct meter *m, uint32_t packets, uint32_t bytes, uint64_t tsc)
{
	uint32_t tokens = m->by_packet ? packets : bytes, first = packets > 1 ? tokens / packets : tokens;
	uint32_t rest = tokens - first, now;

	if (rte_meter_srtcm_color_blind_check(&m->bucket, &m->profile, tsc, first) != RTE_COLOR_GREEN)
		return false;
	if (likely(rest == 0))
		return true;
	now = (uint32_t)RTE_MIN(m->bucket.tc, rest);
	m->bucket.tc -= now;
	m->bucket.time += (rest - now) * m->profile.cir_period / m->profile.cir_bytes_per_period;
	return true;
}

bool meter_pass(uint16_t id, uint32_t packets, uint32_t bytes, uint64_t tsc)
{
	struct meter *m = rcu_read(meter_table[id]);
	struct meter_count *count;
	bool pass;

	if (unlikely(m == NULL))
		return true;
	rte_spinlock_lock(&m->lock);
	// Another worker's batch may have started later; time must not run backwards, as that would fill the bucket.
	tsc = RTE_MAX(tsc, m->bucket.time);
	pass = meter_take(m, packets, bytes, tsc);
	count = pass ? &m->passed : &m->dropped;
	count->packets += packets;
	count->bytes += bytes;
	rte_spinlock_unlock(&m->lock);
	return pass;
}

struct meter *meter_get(uint16_t id)
{
	return meter_table[id];
}

struct meter *meter_next(const struct meter *m)
{
	return id_table_next(meter_table, METER_MAX, m ? m->id + 1u : 1);
}

struct meter *meter_find(const char *name)
{
	return id_table_find(meter_table, METER_MAX, offsetof(struct meter, cfg.name), name);
}

struct meter *meter_find_err(const char *name, const char *field, struct error *err)
{
	struct meter *m = meter_find(name);

	if (m == NULL)
		error_set(err, ENOENT, field, name, "an existing meter, see `corelane meter list`",
			  "there is no such meter");
	return m;
}

// --- Configuration. Ranges and names are checked by api/meter.proto. ---

static int meter_config_check(const struct meter_config *c, struct error *err)
{
	bool bits = c->bit_rate != 0;

	if (bits == (c->packet_rate != 0))
		return error_set(err, EINVAL, "meter.bit_rate", NULL, "bit_rate or packet_rate",
				 bits ? "a meter limits bits or packets, not both" : "a meter needs a rate");
	if (bits && c->burst_packets)
		return error_set(err, EINVAL, "meter.burst_packets", NULL, "burst_bytes", "the meter limits bits");
	if (!bits && c->burst_bytes)
		return error_set(err, EINVAL, "meter.burst_bytes", NULL, "burst_packets", "the meter limits packets");
	return 0;
}

static uint64_t meter_burst_of(const struct meter_config *c)
{
	uint64_t burst;

	if (c->packet_rate)
		return c->burst_packets ? c->burst_packets : RTE_MAX(c->packet_rate / 20, 32ul);
	if (c->burst_bytes)
		return c->burst_bytes;
	burst = RTE_MIN(c->bit_rate / 8 / 20, (uint64_t)UINT32_MAX);
	return RTE_MAX(burst, 65536ul);
}

// A new bucket is full; a changed one keeps its tokens, up to the new burst.
static void meter_configure(struct meter *m, const struct meter_config *cfg, bool changed)
{
	struct rte_meter_srtcm_params params = {.cir = cfg->packet_rate ? cfg->packet_rate : cfg->bit_rate / 8,
						.cbs = meter_burst_of(cfg)};
	bool alike = changed && m->by_packet == (cfg->packet_rate != 0);
	struct rte_meter_srtcm_profile profile;
	struct rte_meter_srtcm bucket;

	rte_meter_srtcm_profile_config(&profile, &params);
	rte_meter_srtcm_config(&bucket, &profile);
	rte_spinlock_lock(&m->lock);
	if (alike)
		bucket.tc = RTE_MIN(m->bucket.tc, bucket.tc);
	m->profile = profile;
	m->bucket = bucket;
	m->by_packet = cfg->packet_rate != 0;
	rte_spinlock_unlock(&m->lock);
	m->cfg = *cfg;
	m->burst = params.cbs;
}

struct meter *meter_add(const struct meter_config *cfg, struct error *err)
{
	static uint16_t last;
	struct meter *m;
	uint16_t id;

	if (meter_config_check(cfg, err) < 0)
		return NULL;
	if (meter_find(cfg->name)) {
		error_set(err, EEXIST, "meter.name", cfg->name, "a new name", "is taken");
		return NULL;
	}
	id = id_table_in_turn(meter_table, METER_MAX, &last);
	m = id ? rte_zmalloc("meter", sizeof(*m), RTE_CACHE_LINE_SIZE) : NULL;
	if (m == NULL) {
		error_full(err, id ? ENOMEM : ENOSPC, "meter", NULL, METER_MAX - 1, "meters");
		return NULL;
	}
	m->id = id;
	rte_spinlock_init(&m->lock);
	meter_configure(m, cfg, false);
	rcu_publish(meter_table[id], m);
	return m;
}

int meter_set(struct meter *m, const struct meter_config *cfg, struct error *err)
{
	int ret = meter_config_check(cfg, err);

	if (ret == 0)
		meter_configure(m, cfg, true);
	return ret;
}

void meter_refer(struct referrer *r)
{
	LISTEN(meter_referrers, r);
}

int meter_del(const char *name, struct error *err)
{
	struct meter *m = meter_find(name);

	if (m == NULL)
		return error_set(err, ENOENT, "meter.name", name, NULL, "there is no such meter");
	if (m->refs > 0)
		return referrer_error(meter_referrers, m->id, m->refs, "meter.name", name, err);
	rcu_publish(meter_table[m->id], NULL);
	rcu_defer(rte_free, m);
	return 0;
}

void meter_count(struct meter *m, struct meter_count *passed, struct meter_count *dropped)
{
	rte_spinlock_lock(&m->lock);
	*passed = m->passed;
	*dropped = m->dropped;
	rte_spinlock_unlock(&m->lock);
}

void meter_ref(uint16_t id)
{
	if (id)
		meter_table[id]->refs++;
}

void meter_unref(uint16_t id)
{
	if (id)
		meter_table[id]->refs--;
}

// --- Ports. ---

PORT_SETTINGS(meters_config)

static int meter_port_check(const struct port *old, const struct port_config *cfg, struct error *err)
{
	const struct meters_config *meters = meters_config(cfg);
	uint16_t id = meters->egress ? meters->egress : meters->ingress;
	const char *field = meters->egress ? "port.egress_meter" : "port.ingress_meter";

	if (id == 0)
		return 0;
	if (!cfg->stateful)
		return error_set(err, EINVAL, field, meter_get(id)->cfg.name, "a stateful port",
				 "meters limit flows, which only stateful ports keep");
	return 0;
}

static void meter_port_forward(const struct port_config *cfg, struct port_fwd *out)
{
	out->egress_meter = meters_config(cfg)->egress;
	out->ingress_meter = meters_config(cfg)->ingress;
}

static void meter_port_added(struct port *p)
{
	meter_ref(meters_config(&p->cfg)->egress);
	meter_ref(meters_config(&p->cfg)->ingress);
}

static void meter_port_release(const struct port_config *cfg)
{
	meter_unref(meters_config(cfg)->egress);
	meter_unref(meters_config(cfg)->ingress);
}

static void meter_port_changed(struct port *p, const struct port_config *old)
{
	meter_port_added(p);
	meter_port_release(old);
}

static void meter_port_removed(struct port *p)
{
	meter_port_release(&p->cfg);
}

static bool meter_port_find(uint32_t id, char *text, size_t size)
{
	const struct port *p = port_next(NULL);

	while (p && meters_config(&p->cfg)->egress != id && meters_config(&p->cfg)->ingress != id)
		p = port_next(p);
	if (p)
		snprintf(text, size, "port '%s'", p->cfg.name);
	return p != NULL;
}

void meter_init(void)
{
	static struct port_listener listener = {.check = meter_port_check,
						.forward = meter_port_forward,
						.added = meter_port_added,
						.changed = meter_port_changed,
						.removed = meter_port_removed};
	static struct referrer ports = {.find = meter_port_find};

	port_listen(&listener);
	meter_refer(&ports);
}
