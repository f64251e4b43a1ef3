// SPDX-License-Identifier: Apache-2.0
// API of services and their endpoints (api/service.proto).
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/fields.h"
#include "flow/flow.h"
#include "l3/vrf.h"
#include "policy/service.h"
#include "service.pb-c.h"

#define SHARE 4096 // flows that one turn of the master looks at, in less than a millisecond

typedef Corelane__V1__Service PbService;
typedef Corelane__V1__Endpoint PbEndpoint;

// --- Totals: what was counted of ended flows, and what flows count that go on. ---

struct totals_cursor {
	struct service_totals *sums; // by id of the service or the endpoint, NULL: not begun
	uint32_t flow;               // last one that was added
	uint32_t last;               // id of the last object
};

static void service_api_done(void *cursor)
{
	free(((struct totals_cursor *)cursor)->sums);
}

static void service_api_sum(const struct flow *f, struct service_totals *t)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		t->traffic.packets[i] += flow_packets(f, i);
		t->traffic.bytes[i] += flow_bytes(f, i);
	}
}

// Adds the flows of this turn's share. Returns whether those of all are there.
static bool service_api_walk(struct totals_cursor *c, bool by_service)
{
	uint32_t used = flow_table ? flow_used_range() : 0, end = RTE_MIN(c->flow + SHARE, used);

	rcu_reader_online(RCU_MASTER); // so that no flow is freed and reused meanwhile
	for (; c->flow < end; c->flow++) {
		const struct flow *f = &flows[c->flow];

		if (c->flow > 0 && __atomic_load_n(&f->state, __ATOMIC_ACQUIRE) == FLOW_LIVE && nat_is_endpoint(f->nat))
			service_api_sum(f, &c->sums[by_service ? service_of_rule(f->nat) : f->nat & ~NAT_OF_ENDPOINT]);
	}
	rcu_reader_offline(RCU_MASTER);
	return c->flow >= used;
}

static Corelane__V1__FlowTotals *service_api_encode_totals(struct api_call *call, const struct service_totals *t)
{
	Corelane__V1__FlowTotals *out = api_alloc(call, sizeof(*out));

	corelane__v1__flow_totals__init(out);
	out->flows = t->flows;
	out->active = t->active;
	out->packets = t->traffic.packets[0];
	out->bytes = t->traffic.bytes[0];
	out->reply_packets = t->traffic.packets[1];
	out->reply_bytes = t->traffic.bytes[1];
	return out;
}

static int service_api_no_memory(struct error *err)
{
	return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for the totals of flows");
}

// --- Services. ---

static char *service_api_address(struct api_call *call, const struct ip_addr *a)
{
	char text[IP_TEXT];

	return api_strdup(call, ip_format_addr(a, text));
}

static void service_api_encode(struct api_call *call, const struct service *s, const struct service_totals *t,
			       PbService *out)
{
	Corelane__V1__ServiceState *state = api_alloc(call, sizeof(*state));

	out->name = api_strdup(call, s->cfg.name);
	out->vrf = api_strdup(call, vrf_get(s->cfg.vrf)->name);
	if (s->cfg.external != s->cfg.vrf)
		out->external_vrf = api_strdup(call, vrf_get(s->cfg.external)->name);
	out->address = service_api_address(call, &s->cfg.addr);
	out->protocol = s->cfg.protocol == IPPROTO_ICMPV6 ? CORELANE__V1__NAT_PROTOCOL__NAT_PROTOCOL_ICMP
							  : (Corelane__V1__NatProtocol)s->cfg.protocol;
	out->port = s->cfg.port;
	out->scheduler = (Corelane__V1__ServiceScheduler)s->cfg.scheduler;
	out->max_endpoints = s->cfg.max_endpoints;
	out->no_endpoints = (Corelane__V1__ServiceNoEndpoints)s->cfg.reject;
	out->client_prefix = s->cfg.client_prefix;
	corelane__v1__service_state__init(state);
	state->rows = s->rows;
	state->endpoints = s->n_endpoints;
	state->serving = service_serving(s);
	state->totals = service_api_encode_totals(call, t);
	state->refused = __atomic_load_n(&s->refused, __ATOMIC_RELAXED);
	state->building = service_is_stale(s);
	out->state = state;
}

static void service_api_answer(struct api_call *call, const struct service *s, PbService *out)
{
	struct service_totals t;

	service_totals(s, &t);
	service_api_encode(call, s, &t, out);
}

static void service_api_decode_scheduler(const PbService *in, struct service_config *c)
{
	c->scheduler = (enum service_scheduler)in->scheduler;
}

static void service_api_decode_no_endpoints(const PbService *in, struct service_config *c)
{
	c->reject = in->no_endpoints == CORELANE__V1__SERVICE_NO_ENDPOINTS__SERVICE_NO_ENDPOINTS_REJECT;
}

static void service_api_decode_client_prefix(const PbService *in, struct service_config *c)
{
	c->client_prefix = (uint8_t)in->client_prefix;
}

static const struct {
	const char *name;
	void (*decode)(const PbService *in, struct service_config *c);
} service_fields[] = {
	{"scheduler", service_api_decode_scheduler},
	{"no_endpoints", service_api_decode_no_endpoints},
	{"client_prefix", service_api_decode_client_prefix},
};
API_FIELDS(service, service_fields)

static int service_api_decode(const PbService *in, struct service_config *c, struct error *err)
{
	const struct vrf *vrf, *external;

	*c = (struct service_config){.protocol = (uint8_t)in->protocol,
				     .port = (uint16_t)in->port,
				     .scheduler = (enum service_scheduler)in->scheduler,
				     .client_prefix = (uint8_t)in->client_prefix,
				     .max_endpoints = (uint16_t)in->max_endpoints};
	service_api_decode_no_endpoints(in, c);
	if (c->max_endpoints == 0)
		c->max_endpoints = LIMIT_SERVICE_MAX_ENDPOINTS_DEFAULT;
	snprintf(c->name, sizeof(c->name), "%s", in->name);
	vrf = vrf_find_err(in->vrf, "service.vrf", err);
	external = vrf && *in->external_vrf ? vrf_find_err(in->external_vrf, "service.external_vrf", err) : vrf;
	if (external == NULL)
		return -ENOENT;
	c->vrf = vrf->id;
	c->external = external->id;
	return ip_parse_addr(in->address, "service.address", &c->addr, err);
}

static int service_api_add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	struct service_config c;
	struct service *s = NULL;

	if (service_api_decode(((const Corelane__V1__ServiceAddRequest *)req)->service, &c, err) == 0)
		s = service_add(&c, err);
	if (s == NULL)
		return -err->code;
	service_api_answer(call, s, resp);
	return 0;
}

static int service_api_set(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__ServiceSetRequest *in = req;
	struct service *s = service_find_err(in->service->name, "service.name", err);
	struct service_config c;
	size_t i;

	if (s == NULL)
		return -ENOENT;
	c = s->cfg;
	for (i = 0; i < in->n_fields; i++)
		API_FIELD_FIND(service_fields, in->fields[i])->decode(in->service, &c);
	if (service_set(s, &c, err) < 0)
		return -err->code;
	service_api_answer(call, s, resp);
	return 0;
}

static int service_api_del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	return service_del(((const Corelane__V1__ServiceDelRequest *)req)->name, err);
}

static int service_api_begin(struct totals_cursor *c, struct error *err)
{
	const struct service *s;

	c->sums = calloc(SERVICE_MAX, sizeof(*c->sums));
	if (c->sums == NULL)
		return service_api_no_memory(err);
	for (s = service_next(0); s; s = service_next(s->id))
		service_totals(s, &c->sums[s->id]);
	return 0;
}

static int service_api_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__ServiceListRequest *in = req;
	struct totals_cursor *c = cursor;
	const struct service *s;

	if (*in->name && c->sums == NULL && service_find_err(in->name, "name", err) == NULL)
		return -ENOENT;
	if (c->sums == NULL && service_api_begin(c, err) < 0)
		return -err->code;
	if (!service_api_walk(c, true))
		return api_again(call);
	for (s = service_next((uint16_t)c->last); s && *in->name && strcmp(in->name, s->cfg.name) != 0;
	     s = service_next(s->id))
		;
	if (s == NULL)
		return 0;
	c->last = s->id;
	service_api_encode(call, s, &c->sums[s->id], item);
	return 1;
}

// --- Endpoints. ---

static void endpoint_api_encode(struct api_call *call, const struct endpoint *e, const struct service_totals *t,
				PbEndpoint *out)
{
	Corelane__V1__EndpointState *state = api_alloc(call, sizeof(*state));

	out->service = api_strdup(call, e->service->cfg.name);
	out->address = service_api_address(call, &e->cfg.addr);
	out->port = e->cfg.port;
	out->weight = e->cfg.weight;
	corelane__v1__endpoint_state__init(state);
	state->rows = e->rows;
	state->totals = service_api_encode_totals(call, t);
	out->state = state;
}

static void endpoint_api_answer(struct api_call *call, const struct endpoint *e, PbEndpoint *out)
{
	struct service_totals t;

	endpoint_totals(e->id, &t);
	endpoint_api_encode(call, e, &t, out);
}

static void endpoint_api_decode_weight(const PbEndpoint *in, struct endpoint_config *c)
{
	c->weight = (uint16_t)in->weight;
}

static const struct {
	const char *name;
	void (*decode)(const PbEndpoint *in, struct endpoint_config *c);
} endpoint_fields[] = {
	{"weight", endpoint_api_decode_weight},
};
API_FIELDS(endpoint, endpoint_fields)

static int endpoint_api_add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const PbEndpoint *in = ((const Corelane__V1__EndpointAddRequest *)req)->endpoint;
	struct endpoint_config c = {.port = (uint16_t)in->port, .weight = (uint16_t)in->weight};
	struct service *s = service_find_err(in->service, "endpoint.service", err);
	struct endpoint *e = NULL;

	if (s && ip_parse_addr(in->address, "endpoint.address", &c.addr, err) == 0)
		e = endpoint_add(s, &c, err);
	if (e == NULL)
		return -err->code;
	endpoint_api_answer(call, e, resp);
	return 0;
}

static struct endpoint *endpoint_api_find(const char *service, const char *address, uint32_t port, struct error *err)
{
	struct service *s = service_find_err(service, "endpoint.service", err);
	struct ip_addr addr;

	if (s == NULL || ip_parse_addr(address, "endpoint.address", &addr, err) < 0)
		return NULL;
	return endpoint_find_err(s, &addr, (uint16_t)port, err);
}

static int endpoint_api_set(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__EndpointSetRequest *in = req;
	struct endpoint *e = endpoint_api_find(in->endpoint->service, in->endpoint->address, in->endpoint->port, err);
	struct endpoint_config c;
	size_t i;
	int ret;

	if (e == NULL)
		return -err->code;
	c = e->cfg;
	for (i = 0; i < in->n_fields; i++)
		API_FIELD_FIND(endpoint_fields, in->fields[i])->decode(in->endpoint, &c);
	ret = endpoint_set(e, c.weight, err);
	if (ret == 0)
		endpoint_api_answer(call, e, resp);
	return ret;
}

static int endpoint_api_del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__EndpointDelRequest *in = req;
	struct endpoint *e = endpoint_api_find(in->service, in->address, in->port, err);

	if (e == NULL)
		return -err->code;
	endpoint_del(e);
	return 0;
}

static int endpoint_api_begin(struct totals_cursor *c, struct error *err)
{
	const struct endpoint *e;

	c->sums = calloc(ENDPOINT_MAX, sizeof(*c->sums));
	if (c->sums == NULL)
		return service_api_no_memory(err);
	for (e = endpoint_next(0); e; e = endpoint_next(e->id))
		endpoint_totals(e->id, &c->sums[e->id]);
	return 0;
}

static int endpoint_api_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__EndpointListRequest *in = req;
	const struct service *s = *in->service ? service_find_err(in->service, "service", err) : NULL;
	struct totals_cursor *c = cursor;
	const struct endpoint *e;

	if (*in->service && s == NULL)
		return -ENOENT;
	if (c->sums == NULL && endpoint_api_begin(c, err) < 0)
		return -err->code;
	if (!service_api_walk(c, false))
		return api_again(call);
	for (e = endpoint_next(c->last); e && s && e->service != s; e = endpoint_next(e->id))
		;
	if (e == NULL)
		return 0;
	c->last = e->id;
	endpoint_api_encode(call, e, &c->sums[e->id], item);
	return 1;
}

static const struct api_method methods[] = {
	{"corelane.v1.Services", "Add", &corelane__v1__service_add_request__descriptor,
	 &corelane__v1__service__descriptor, .unary = service_api_add},
	{"corelane.v1.Services", "Set", &corelane__v1__service_set_request__descriptor,
	 &corelane__v1__service__descriptor, .unary = service_api_set},
	{"corelane.v1.Services", "Del", &corelane__v1__service_del_request__descriptor,
	 &corelane__v1__empty__descriptor, .unary = service_api_del},
	{"corelane.v1.Services", "List", &corelane__v1__service_list_request__descriptor,
	 &corelane__v1__service__descriptor, .next = service_api_list, .done = service_api_done,
	 .cursor_size = sizeof(struct totals_cursor)},
	{"corelane.v1.Endpoints", "Add", &corelane__v1__endpoint_add_request__descriptor,
	 &corelane__v1__endpoint__descriptor, .unary = endpoint_api_add},
	{"corelane.v1.Endpoints", "Set", &corelane__v1__endpoint_set_request__descriptor,
	 &corelane__v1__endpoint__descriptor, .unary = endpoint_api_set},
	{"corelane.v1.Endpoints", "Del", &corelane__v1__endpoint_del_request__descriptor,
	 &corelane__v1__empty__descriptor, .unary = endpoint_api_del},
	{"corelane.v1.Endpoints", "List", &corelane__v1__endpoint_list_request__descriptor,
	 &corelane__v1__endpoint__descriptor, .next = endpoint_api_list, .done = service_api_done,
	 .cursor_size = sizeof(struct totals_cursor)},
};
API_METHODS(methods)
