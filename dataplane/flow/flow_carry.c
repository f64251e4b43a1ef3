// SPDX-License-Identifier: Apache-2.0
#include "flow/flow_carry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "flow/bridged.h"
#include "flow/flow.h"
#include "flow/quota.h"
#include "flow/tcp.h"
#include "keep/carry.h"
#include "l3/nexthop.h"
#include "policy/nat.h"
#include "policy/service.h"
#include "port/registry.h"
#include "worker/worker.h"

#define SCAN 2048 // flows that one call looks at
#define GROW_BUCKETS 16384
#define ROOM_TRIES 100000 // steps of growth, of some 10 us

// Ids of ports and VRFs may differ after the restart; names do not.
struct name_carried {
	uint16_t id;
	char name[PORT_NAME];
};
static_assert(sizeof(((struct vrf *)0)->name) == PORT_NAME, "both fit");

struct flow_carried {
	struct flow_key key[2];
	uint64_t packets[2], bytes[2];
	uint32_t nat, nexthop; // nexthop: of direction 0, with FLOW_FIXED
	uint32_t age, idle[2]; // seconds
	uint16_t port[2], owner;
	uint8_t tcp, fin, after_end[2];
	uint8_t fixed, unused[9];
};
static_assert(sizeof(struct flow_carried) == 152, "no gaps");

// --- Names. ---

static uint16_t carried_ports[PORT_MAX], carried_vrfs[VRF_MAX]; // the present id, 0: it is gone

static unsigned flow_carry_names(uint64_t *at, unsigned end, const char *(*name)(uint16_t id), void *records,
				 unsigned n)
{
	struct name_carried *out = records;
	unsigned i = 0;

	while (i < n && ++*at < end) {
		const char *text = name((uint16_t)*at);

		if (text == NULL)
			continue;
		out[i] = (struct name_carried){.id = (uint16_t)*at};
		snprintf(out[i++].name, sizeof(out->name), "%s", text);
	}
	if (*at >= end)
		*at = CARRY_END;
	return i;
}

static const char *flow_carry_port_name(uint16_t id)
{
	const struct port *p = port_get(id);

	return p ? p->cfg.name : NULL;
}

static const char *flow_carry_vrf_name(uint16_t id)
{
	const struct vrf *v = vrf_get(id);

	return v ? v->name : NULL;
}

static unsigned flow_carry_save_ports(uint64_t *at, void *records, unsigned n)
{
	return flow_carry_names(at, PORT_MAX, flow_carry_port_name, records, n);
}

static unsigned flow_carry_save_vrfs(uint64_t *at, void *records, unsigned n)
{
	return flow_carry_names(at, VRF_MAX, flow_carry_vrf_name, records, n);
}

static bool flow_carry_load_port(const void *record, uint32_t seconds)
{
	const struct name_carried *in = record;
	const struct port *p = memchr(in->name, '\0', sizeof(in->name)) ? port_find(in->name) : NULL;

	if (p == NULL || in->id >= PORT_MAX)
		return false;
	carried_ports[in->id] = p->id;
	return true;
}

static bool flow_carry_load_vrf(const void *record, uint32_t seconds)
{
	const struct name_carried *in = record;
	const struct vrf *v = memchr(in->name, '\0', sizeof(in->name)) ? vrf_find(in->name) : NULL;

	if (v == NULL || in->id >= VRF_MAX)
		return false;
	carried_vrfs[in->id] = v->id;
	return true;
}

// --- What is written. ---

// A flow that was denied from its first packet on is decided about again by its next one, and so are those of bridge
// domains: their names belong to a module above this one.
static bool flow_carry_wants(const struct flow *f)
{
	return __atomic_load_n(&f->state, __ATOMIC_ACQUIRE) == FLOW_LIVE && !f->born_denied &&
	       !flow_zone_is_bridge(f->dir[0].key.zone);
}

static void flow_carry_fill(const struct flow *f, uint16_t now, struct flow_carried *out)
{
	unsigned i;

	*out = (struct flow_carried){.nat = f->nat,
				     .nexthop = f->dir[0].nexthop,
				     .age = flow_now() - f->created,
				     .port = {f->port[0], f->port[1]},
				     .owner = f->owner,
				     .tcp = f->tcp,
				     .fin = f->fin,
				     .after_end = {f->after_end[0], f->after_end[1]},
				     .fixed = (f->dir[0].flags & FLOW_FIXED) != 0};
	for (i = 0; i < 2; i++) {
		const struct flow_dir *d = &f->dir[i];

		out->key[i] = d->key;
		out->idle[i] = flow_idle(f, i, now);
		out->packets[i] = flow_packets(f, i);
		out->bytes[i] = flow_bytes(f, i);
	}
}

static unsigned flow_carry_save(uint64_t *at, void *records, unsigned n)
{
	uint32_t used = flow_table ? flow_used_range() : 0, end = (uint32_t)RTE_MIN(*at + SCAN, (uint64_t)used);
	struct flow_carried *out = records;
	uint16_t now = (uint16_t)flow_now();
	unsigned i = 0;

	rcu_reader_online(RCU_MASTER); // so that no flow is freed and reused meanwhile
	for (; i < n && *at < end; ++*at)
		if (*at > 0 && flow_carry_wants(&flows[*at]))
			flow_carry_fill(&flows[*at], now, &out[i++]);
	rcu_reader_offline(RCU_MASTER);
	if (*at >= used)
		*at = CARRY_END;
	return i;
}

// --- What is loaded. ---

static bool flow_carry_key(struct flow_key *k)
{
	if (k->zone >= VRF_MAX || carried_vrfs[k->zone] == 0 || (k->family != 4 && k->family != 6))
		return false;
	if (k->family == 4 && (k->addr[1] | k->addr[2] | k->addr[3]) != 0)
		return false;
	k->zone = carried_vrfs[k->zone];
	return flow_zones[k->zone].stateful;
}

static bool flow_carry_port(uint16_t *port)
{
	uint16_t was = *port;

	*port = was < PORT_MAX ? carried_ports[was] : 0;
	return was == 0 || *port != 0;
}

// Both keys of a flow that is not translated are the same. An endpoint may have another id by now.
static bool flow_carry_keys_agree(struct flow_carried *in)
{
	struct flow_key back = flow_key_reverse(&in->key[0]);

	if (in->key[0].family != in->key[1].family || in->key[0].proto != in->key[1].proto)
		return false;
	if (nat_is_endpoint(in->nat)) {
		back = flow_key_reverse(&in->key[1]);
		in->nat = nat_endpoint_of(&in->key[0], &back);
		return in->nat != 0;
	}
	return in->nat ? nat_get(in->nat) != NULL : flow_key_equal(&back, &in->key[1], true);
}

static bool flow_carry_valid(struct flow_carried *in)
{
	return flow_carry_key(&in->key[0]) && flow_carry_key(&in->key[1]) && flow_carry_keys_agree(in) &&
	       flow_carry_port(&in->port[0]) && flow_carry_port(&in->owner) && in->tcp < TCP_STATES && in->fin <= 3 &&
	       (!in->fixed || (in->nexthop > 0 && in->nexthop < NEXTHOP_API_MAX)) &&
	       (flow_carry_port(&in->port[1]) || true); // the decision says where it leaves now
}

// The flows are allocated as a worker that was removed since would have done: the master owns what such a one had, and
// the others get it in shares (ager.c).
static unsigned flow_carry_worker(void)
{
	unsigned id;

	for (id = 0; id < WORKER_MAX && worker_get(id); id++)
		;
	return id;
}

// Lets the tables grow. Returns false if they do not.
static bool flow_carry_grow(unsigned *tries)
{
	bool more = flow_grow_step(GROW_BUCKETS);

	rcu_poll();
	return more && ++*tries < ROOM_TRIES;
}

static struct flow *flow_carry_alloc(unsigned worker)
{
	struct flow *f = flow_alloc(worker);
	unsigned tries = 0;

	while (f == NULL && flow_carry_grow(&tries))
		f = flow_alloc(worker);
	return f;
}

static int flow_carry_insert(const struct flow *f)
{
	flow_entry_t found;
	unsigned tries = 0;
	int ret = -EAGAIN;

	do {
		ret = flow_table_insert(flow_table, flow_entry(f, 0), flow_entry(f, 1), &found);
	} while ((ret == -EAGAIN || ret == -ENOSPC) && flow_carry_grow(&tries));
	return ret;
}

static uint16_t flow_carry_seen(uint32_t idle, uint32_t seconds)
{
	return (uint16_t)(flow_now() - RTE_MIN((uint64_t)idle + seconds, (uint64_t)INT16_MAX));
}

static void flow_carry_make(struct flow *f, const struct flow_carried *in, uint32_t seconds)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		f->dir[i] = (struct flow_dir){.key = in->key[i],
					      .seen = flow_carry_seen(in->idle[i], seconds),
					      .owner = FLOW_UNOWNED,
					      .hi = (uint16_t)(in->packets[i] >> 32),
					      .packets = (uint32_t)in->packets[i],
					      .bytes = in->bytes[i]};
		f->port[i] = in->port[i];
		f->after_end[i] = in->after_end[i];
	}
	f->dir[0].nexthop = in->fixed ? in->nexthop : 0;
	f->dir[0].flags = in->fixed ? FLOW_FIXED : 0;
	f->created = flow_now() - in->age - seconds;
	f->owner = in->owner;
	f->nat = in->nat;
	f->tcp = in->tcp;
	f->fin = in->fin;
}

static bool flow_carry_load(const void *record, uint32_t seconds)
{
	struct flow_carried in = *(const struct flow_carried *)record;
	unsigned worker = flow_carry_worker();
	struct flow *f;

	if (worker == WORKER_MAX || flow_table == NULL || !flow_carry_valid(&in))
		return false;
	f = flow_carry_alloc(worker);
	if (f == NULL)
		return false;
	flow_carry_make(f, &in, seconds);
	if (RTE_MIN(in.idle[0], in.idle[1]) + (uint64_t)seconds > flow_timeout(f) || flow_carry_insert(f) < 0) {
		flow_unalloc(worker, f);
		return false;
	}
	flow_quota_carried(worker, f->owner);
	service_flow_made(f->nat);
	__atomic_store_n(&f->state, FLOW_LIVE, __ATOMIC_RELEASE);
	return true;
}

static void flow_carry_loaded(unsigned taken, unsigned all)
{
	if (all > 0)
		LOG(INFO, "flows: %u of %u go on after the restart", taken, all);
}

void flow_carry_init(void)
{
	static struct carry_part ports = {.name = "flow-ports",
					  .version = 1,
					  .size = sizeof(struct name_carried),
					  .save = flow_carry_save_ports,
					  .load = flow_carry_load_port};
	static struct carry_part vrfs = {.name = "flow-vrfs",
					 .version = 1,
					 .size = sizeof(struct name_carried),
					 .save = flow_carry_save_vrfs,
					 .load = flow_carry_load_vrf};
	static struct carry_part all = {.name = "flows",
					.version = 1,
					.size = sizeof(struct flow_carried),
					.save = flow_carry_save,
					.load = flow_carry_load,
					.loaded = flow_carry_loaded};

	carry_add(&ports);
	carry_add(&vrfs);
	carry_add(&all);
}
