// SPDX-License-Identifier: Apache-2.0
// API of the host's own traffic (api/host.proto).
#include <errno.h>

#include "api/api.h"
#include "host.pb-c.h"
#include "host/steer.h"

#define PbSteer Corelane__V1__HostSteer

// Returns the port of this name; without a name the only port that has a host port. NULL with err.
static struct port *host_api_find_port(const char *name, struct error *err)
{
	struct port *p, *only = NULL;

	if (*name) {
		p = port_find(name);
		if (p == NULL)
			error_set(err, ENOENT, "steer.port", name, "a fabric port with a host port",
				  "there is no such port");
		return p;
	}
	for (p = port_next(NULL); p; p = port_next(p)) {
		if (p->host && only) {
			error_set(err, EINVAL, "steer.port", NULL, "the name of a fabric port",
				  "several ports have a host port");
			return NULL;
		}
		only = p->host ? p : only;
	}
	if (only == NULL)
		error_set(err, ENOENT, "steer.port", NULL, "a port of role host, added first",
			  "no fabric port has a host port");
	return only;
}

static struct port *host_api_decode_key(const char *port, const char *address, struct ip_addr *addr, struct error *err)
{
	return ip_parse_addr(address, "steer.address", addr, err) < 0 ? NULL : host_api_find_port(port, err);
}

static void host_api_encode_state(struct api_call *call, const struct steer *s, PbSteer *out)
{
	const struct steer_state *state = steer_state(s->port);
	Corelane__V1__HostSteerState *o = api_alloc(call, sizeof(*o));
	unsigned i;

	corelane__v1__host_steer_state__init(o);
	o->mode = (Corelane__V1__HostSteerMode)state->mode;
	o->why = api_strdup(call, state->why);
	o->worker = state->worker ? state->worker->id : 0;
	o->packets = s->count->packets;
	o->queues = api_alloc(call, PORT_MAX_QUEUES * sizeof(*o->queues));
	for (i = 0; i < PORT_MAX_QUEUES; i++)
		if (state->queues & 1u << i)
			o->queues[o->n_queues++] = i;
	out->state = o;
}

static void host_api_encode(struct api_call *call, const struct steer *s, PbSteer *out)
{
	char text[IP_TEXT];

	out->address = api_strdup(call, ip_format_addr(&s->addr, text));
	out->port = api_strdup(call, port_get(s->port)->cfg.name);
	host_api_encode_state(call, s, out);
}

static int host_api_add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const PbSteer *in = ((const Corelane__V1__HostSteerAddRequest *)req)->steer;
	struct ip_addr addr;
	struct steer *s;
	struct port *p;

	p = host_api_decode_key(in->port, in->address, &addr, err);
	s = p ? steer_add(p, &addr, err) : NULL;
	if (s == NULL)
		return -err->code;
	host_api_encode(call, s, resp);
	return 0;
}

static int host_api_del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__HostSteerDelRequest *in = req;
	struct ip_addr addr;
	struct port *p = host_api_decode_key(in->port, in->address, &addr, err);

	return p ? steer_del(p, &addr, err) : -err->code;
}

static int host_api_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__HostSteerListRequest *in = req;
	const struct port *p = *in->port ? port_find(in->port) : NULL;
	uint32_t *at = cursor, i = 0;
	struct steer *s;

	if (*in->port && p == NULL)
		return error_set(err, ENOENT, "port", in->port, NULL, "there is no such port");
	for (s = steer_next(NULL); s; s = steer_next(s)) {
		if (i++ < *at)
			continue;
		++*at;
		if (p && s->port != p->id)
			continue;
		host_api_encode(call, s, item);
		return 1;
	}
	return 0;
}

static const struct api_method methods[] = {
	{"corelane.v1.HostSteers", "Add", &corelane__v1__host_steer_add_request__descriptor,
	 &corelane__v1__host_steer__descriptor, .unary = host_api_add},
	{"corelane.v1.HostSteers", "Del", &corelane__v1__host_steer_del_request__descriptor,
	 &corelane__v1__empty__descriptor, .unary = host_api_del},
	{"corelane.v1.HostSteers", "List", &corelane__v1__host_steer_list_request__descriptor,
	 &corelane__v1__host_steer__descriptor, .next = host_api_list, .cursor_size = sizeof(uint32_t)},
};
API_METHODS(methods)
