// SPDX-License-Identifier: Apache-2.0
// API of flows (api/flow.proto).
#include <errno.h>
#include <stdio.h>

#include "api/api.h"
#include "control/flow_extras.h"
#include "control/flow_filter.h"
#include "flow/bridged.h"
#include "flow/decide.h"
#include "flow/flow.h"
#include "flow/tcp.h"
#include "l2/bridge.h"
#include "policy/service.h"
#include "port/registry.h"

#define SHARE 4096 // flows that one turn of the master looks at, in less than a millisecond

typedef Corelane__V1__Flow PbFlow;

static struct flow_side flow_api_side(const struct flow *f, unsigned i)
{
	return (struct flow_side){f->port[i], f->extras[i]};
}

static void flow_api_encode_zone(struct api_call *call, uint16_t zone, Corelane__V1__FlowDirection *out)
{
	struct bridge *b = flow_zone_is_bridge(zone) ? bridge_get(zone & ~FLOW_ZONE_BRIDGE) : NULL;
	struct vrf *v = vrf_get(zone);

	if (flow_zone_is_bridge(zone))
		out->bridge = api_strdup(call, b ? b->cfg.name : "(removed)");
	else
		out->vrf = api_strdup(call, v ? v->name : "(removed)");
}

static uint32_t flow_api_nexthop(const struct flow_dir *d)
{
	uint32_t target = flow_way_target(d->nexthop);

	if (d->gen == 0)
		return 0;
	if (!flow_zone_is_bridge(d->key.zone))
		return d->nexthop;
	return target & FLOW_TARGET_TUNNEL ? target & ~FLOW_TARGET_TUNNEL : 0;
}

static Corelane__V1__FlowDirection *flow_api_encode_direction(struct api_call *call, const struct flow *f, unsigned dir)
{
	Corelane__V1__FlowDirection *out = api_alloc(call, sizeof(*out));
	const struct flow_dir *d = &f->dir[dir];
	const struct flow_side from = flow_api_side(f, dir), to = flow_api_side(f, !dir);
	struct ip_addr src = flow_source(&d->key), dst = flow_destination(&d->key);
	char text[IP_TEXT];

	corelane__v1__flow_direction__init(out);
	flow_api_encode_zone(call, d->key.zone, out);
	out->source = api_strdup(call, ip_format_addr(&src, text));
	out->destination = api_strdup(call, ip_format_addr(&dst, text));
	out->source_port = rte_be_to_cpu_16(d->key.src_port);
	out->destination_port = rte_be_to_cpu_16(d->key.dst_port);
	out->nexthop = flow_api_nexthop(d);
	out->packets = flow_packets(f, dir);
	out->bytes = flow_bytes(f, dir);
	out->worker = d->owner == FLOW_UNOWNED ? 0 : d->owner;
	out->idle_seconds = flow_idle(f, dir, (uint16_t)flow_now());
	out->n_meters = flow_meter_names(call, &from, &to, &out->meters);
	out->n_mirrors = flow_mirror_names(call, &from, &to, &out->mirrors);
	return out;
}

static const char *flow_api_port_name(uint16_t id)
{
	const struct port *p = id ? port_get(id) : NULL;

	return p ? p->cfg.name : id ? "(removed)" : "";
}

void flow_encode(struct api_call *call, const struct flow *f, PbFlow *out)
{
	const struct drop_reason *why = f->dir[0].flags & FLOW_DENY ? drop_reason_get(f->reason) : NULL;
	const struct service *s = service_get(service_of_rule(f->nat));
	char text[4];

	out->id = (uint32_t)(f - flows);
	out->protocol = api_strdup(call, ip_format_protocol(f->dir[0].key.proto, text));
	out->action = flow_action(f);
	out->state = flow_state(f);
	out->reason = api_strdup(call, why ? why->name : "");
	out->in_port = api_strdup(call, flow_api_port_name(f->port[0]));
	out->out_port = api_strdup(call, flow_api_port_name(f->port[1]));
	out->egress_rule = f->rule[0];
	out->ingress_rule = f->rule[1];
	if (nat_is_endpoint(f->nat))
		out->service = api_strdup(call, s ? s->cfg.name : "(removed)");
	else
		out->nat = f->nat;
	out->forward = flow_api_encode_direction(call, f, 0);
	out->reverse = flow_api_encode_direction(call, f, 1);
	out->age_seconds = (double)(flow_now() - f->created);
	out->timeout_seconds = flow_timeout(f);
}

struct cursor {
	struct flow_filter filter;
	uint32_t at, given;
	bool begun;
};

static bool flow_api_live(const struct flow *f)
{
	return __atomic_load_n(&f->state, __ATOMIC_ACQUIRE) == FLOW_LIVE;
}

// Returns the next flow that matches. NULL: this turn's share is used up, or c->at is at the end.
static struct flow *flow_api_find(struct cursor *c)
{
	uint32_t end = (uint32_t)RTE_MIN((uint64_t)c->at + SHARE, (uint64_t)flow_used_range() - 1);

	while (c->at < end) {
		struct flow *f = &flows[++c->at];

		if (flow_api_live(f) && flow_filter_match(&c->filter, f))
			return f;
	}
	return NULL;
}

static bool flow_api_at_end(const struct cursor *c)
{
	return c->at + 1 >= flow_used_range();
}

static int flow_api_begin(const Corelane__V1__FlowFilter *in, struct cursor *c, struct error *err)
{
	int ret = c->begun ? 0 : flow_filter_decode(in, &c->filter, err);

	c->begun = true;
	return ret;
}

static int flow_api_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__FlowFilter *in = req;
	struct cursor *c = cursor;
	struct flow *f;
	int ret = flow_api_begin(in, c, err);

	if (ret < 0 || (in->limit > 0 && c->given == in->limit))
		return ret;
	rcu_reader_online(RCU_MASTER); // so that no flow is freed and reused meanwhile
	f = flow_api_find(c);
	if (f)
		flow_encode(call, f, item);
	rcu_reader_offline(RCU_MASTER);
	if (f == NULL)
		return flow_api_at_end(c) ? 0 : api_again(call);
	c->given++;
	return 1;
}

static void flow_api_encode_count(uint64_t n, Corelane__V1__FlowCount *out)
{
	out->flows = n;
	out->in_use = flow_count();
	out->capacity = flow_capacity();
	if (flow_table == NULL)
		return;
	out->table_slots = flow_table_slots(flow_table);
	out->table_used = flow_table_used(flow_table);
	out->memory_bytes = flow_table_memory(flow_table) + (flow_capacity() + 1ull) * sizeof(struct flow);
	out->growing = flow_growing();
}

// Counts the flows that match, and ends them if `end` is set.
static int flow_api_each(struct api_call *call, const void *req, struct cursor *c, bool end,
			 Corelane__V1__FlowCount *out, struct error *err)
{
	int ret = flow_api_begin(req, c, err);
	uint32_t until = c->at + SHARE;
	struct flow *f;

	if (ret < 0)
		return ret;
	rcu_reader_online(RCU_MASTER);
	while (c->at < until && (f = flow_api_find(c)) != NULL) {
		c->given++;
		if (end)
			flow_end(f);
	}
	rcu_reader_offline(RCU_MASTER);
	if (!flow_api_at_end(c))
		return api_again(call);
	flow_api_encode_count(c->given, out);
	return 1;
}

static int flow_api_count(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	return flow_api_each(call, req, cursor, false, item, err);
}

static int flow_api_flush(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	return flow_api_each(call, req, cursor, true, item, err);
}

static int flow_api_resize(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__FlowResizeRequest *in = req;
	int ret = flow_set_capacity(in->capacity, err);

	if (ret == 0)
		flow_api_encode_count(flow_count(), resp);
	return ret;
}

static const struct api_method methods[] = {
	{"corelane.v1.Flows", "List", &corelane__v1__flow_filter__descriptor, &corelane__v1__flow__descriptor,
	 .next = flow_api_list, .cursor_size = sizeof(struct cursor)},
	{"corelane.v1.Flows", "Count", &corelane__v1__flow_filter__descriptor, &corelane__v1__flow_count__descriptor,
	 .next = flow_api_count, .single = true, .cursor_size = sizeof(struct cursor)},
	{"corelane.v1.Flows", "Flush", &corelane__v1__flow_filter__descriptor, &corelane__v1__flow_count__descriptor,
	 .next = flow_api_flush, .single = true, .cursor_size = sizeof(struct cursor)},
	{"corelane.v1.Flows", "Resize", &corelane__v1__flow_resize_request__descriptor,
	 &corelane__v1__flow_count__descriptor, .unary = flow_api_resize},
};
API_METHODS(methods)
