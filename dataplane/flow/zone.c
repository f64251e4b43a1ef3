// SPDX-License-Identifier: Apache-2.0
// Which VRFs and bridge domains keep flows, and when the flows of one become stale.
#include <errno.h>
#include <stdio.h>

#include "flow/decide.h"
#include "flow/flow_private.h"
#include "flow/quota.h"
#include "port/registry.h"
#include "worker/worker.h"

struct flow_zone flow_zones[1 << 16];

static uint16_t stateful_ports[1 << 16];
static bool changed[1 << 16];
static uint16_t waiting[1 << 16]; // zones that have changed
static unsigned n_waiting;
static bool all_changed;

void flow_zone_changed(uint16_t zone)
{
	if (changed[zone])
		return;
	changed[zone] = true;
	waiting[n_waiting++] = zone;
}

// A generation may be used again once no flow has it any more. It repeats only after 65,535 changes of one zone, each
// of them a request or a millisecond of the master's work. By then the owner of each flow has refreshed it: idle and
// stale flows about once a second, all others in every 32nd round (flow_forget_generation()).
void flow_changes_take_effect(void)
{
	unsigned i;

	for (i = 0; all_changed && i < RTE_DIM(flow_zones); i++)
		if (flow_zones[i].stateful)
			flow_zone_changed((uint16_t)i);
	all_changed = false;
	while (n_waiting > 0) {
		uint16_t zone = waiting[--n_waiting], gen = (uint16_t)(flow_zones[zone].gen + 1);

		changed[zone] = false;
		__atomic_store_n(&flow_zones[zone].gen, gen ? gen : 1, __ATOMIC_RELEASE); // 0 means "not decided yet"
	}
}

void flow_all_changed(void)
{
	all_changed = true; // a flag, because thousands of next hops may change at once
}

// --- Ports. ---

static void zone_set_stateful(uint16_t zone)
{
	__atomic_store_n(&flow_zones[zone].stateful, stateful_ports[zone] > 0 || nat_used(zone), __ATOMIC_RELEASE);
}

// The zones of a port's packets: its VRF, and its bridge domain. Returns how many there are.
static unsigned zone_of_port(const struct port_config *cfg, uint16_t zones[2])
{
	unsigned n = 0;

	if (cfg->vrf != UINT16_MAX)
		zones[n++] = cfg->vrf;
	if (cfg->bridge != UINT16_MAX)
		zones[n++] = FLOW_ZONE_BRIDGE | cfg->bridge;
	return n;
}

// flow_zones[].stateful of a zone is set before its first such port is added, and cleared after the last one has been
// removed.
static void zone_count_port(const struct port_config *cfg, int by)
{
	unsigned i, n;
	uint16_t zones[2];

	n = cfg->stateful ? zone_of_port(cfg, zones) : 0;
	for (i = 0; i < n; i++) {
		stateful_ports[zones[i]] = (uint16_t)(stateful_ports[zones[i]] + by);
		flow_zone_changed(zones[i]);
	}
}

static int zone_check_stateless(const struct port_config *cfg, struct error *err)
{
	const struct flow_quota_config *q = flow_quota_config(cfg);
	uint32_t value = q->limit ? q->limit : q->rate;
	char text[16];

	if (value == 0)
		return 0;
	snprintf(text, sizeof(text), "%u", value);
	return error_set(err, EINVAL, q->limit ? "port.flow_limit" : "port.flow_rate", text, "0, or a stateful port",
			 "only stateful ports have flows to limit");
}

static int zone_port_check(const struct port *old, const struct port_config *cfg, struct error *err)
{
	if (!cfg->stateful)
		return zone_check_stateless(cfg, err);
	if (cfg->role != PORT_TENANT || (cfg->vrf == UINT16_MAX && cfg->bridge == UINT16_MAX))
		return error_set(err, EINVAL, "port.stateful", "true", "a tenant port of a VRF or a bridge",
				 "only ports of a VRF or a bridge keep flows");
	return flow_start(err);
}

static void zone_set_quota(const struct port *p)
{
	const struct flow_quota_config *q = flow_quota_config(&p->cfg);

	flow_quota_set(p->id, q->limit, q->rate);
}

// A packet reads whether its zone keeps flows before it finds the port.
static bool zone_port_guard(struct port *p, const struct port_config *next)
{
	bool missed = false;
	uint16_t zones[2];
	unsigned i, n;

	n = next->stateful ? zone_of_port(next, zones) : 0;
	for (i = 0; i < n; i++) {
		missed |= !flow_zones[zones[i]].stateful;
		__atomic_store_n(&flow_zones[zones[i]].stateful, true, __ATOMIC_RELEASE);
	}
	return missed;
}

static void zone_port_added(struct port *p)
{
	zone_set_quota(p);
	zone_count_port(&p->cfg, 1);
}

static void zone_port_changed(struct port *p, const struct port_config *old)
{
	zone_port_added(p);
	zone_count_port(old, -1);
}

static void zone_port_unguard(struct port *p, const struct port_config *old)
{
	uint16_t zones[2];
	unsigned i, n = zone_of_port(old, zones);

	for (i = 0; i < n; i++)
		zone_set_stateful(zones[i]);
}

static void zone_port_removed(struct port *p)
{
	zone_count_port(&p->cfg, -1);
}

static void zone_port_closed(struct port *p)
{
	zone_port_unguard(p, &p->cfg);
}

static void zone_route_changed(uint16_t vrf)
{
	if (flow_zones[vrf].stateful)
		flow_zone_changed(vrf);
}

static void nat_of_vrf_changed(uint16_t vrf)
{
	zone_set_stateful(vrf);
	flow_zone_changed(vrf);
}

static void rules_of_port_changed(uint16_t id)
{
	struct port *p = port_get(id);
	uint16_t zones[2];
	unsigned i, n;

	n = p && p->cfg.stateful ? zone_of_port(&p->cfg, zones) : 0;
	for (i = 0; i < n; i++)
		flow_zone_changed(zones[i]);
}

void flow_zone_init(void)
{
	static struct port_listener listener = {.check = zone_port_check,
						.guard = zone_port_guard,
						.added = zone_port_added,
						.changed = zone_port_changed,
						.unguard = zone_port_unguard,
						.removed = zone_port_removed,
						.closed = zone_port_closed};
	static struct vrf_listener routes = {.route_changed = zone_route_changed};
	static struct nexthop_listener nexthops = {.changed = flow_all_changed};
	static struct worker_listener workers = {.each_loop = flow_age, .unfinished = flow_age_unfinished};
	static struct rules_listener rules = {.changed = rules_of_port_changed};
	static struct nat_listener nat = {.begin = flow_start, .changed = nat_of_vrf_changed};
	unsigned i;

	for (i = 0; i < RTE_DIM(flow_zones); i++)
		flow_zones[i].gen = 1;
	port_listen(&listener);
	vrf_listen(&routes);
	nexthop_listen(&nexthops);
	worker_listen(&workers);
	rules_listen(&rules);
	nat_listen(&nat);
}
