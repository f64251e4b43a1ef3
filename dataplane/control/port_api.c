// SPDX-License-Identifier: Apache-2.0
// API of ports (api/port.proto).
#include <errno.h>
#include <stdio.h>

#include "api/api.h"
#include "control/port_message.h"
#include "port.pb-c.h"
#include "port/port_after.h"
#include "port/registry.h"
#include "worker/worker.h"

static int port_api_add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__PortAddRequest *in = req;
	struct port_config c;
	struct port *p;
	int ret = port_decode(in->port, &c, err);

	if (ret < 0)
		return ret;
	p = port_add(&c, err);
	if (p == NULL)
		return -(err->code ? err->code : EINVAL);
	p->owner = api_client(call)->owner;
	port_encode(call, p, resp);
	return 0;
}

// What the port had is free when its client hears of the change: a device can be opened again, a rule list deleted.
static int port_api_hold(struct api_call *call)
{
	api_hold(call, port_change_done, port_last_change(), PORT_PATIENCE_MS);
	return 0;
}

static int port_api_set(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__PortSetRequest *in = req;
	struct port_config c;
	struct port *p;
	size_t i;
	int ret;

	p = port_find(in->port->name);
	if (p == NULL)
		return error_set(err, ENOENT, "port.name", in->port->name, NULL, "there is no such port");
	ret = api_owns(call, p->owner, "port.name", in->port->name, err);
	c = p->cfg;
	for (i = 0; i < in->n_fields && ret == 0; i++)
		ret = port_decode_field(in->port, in->fields[i], &c, err);
	if (ret == 0)
		ret = port_set(p, &c, err);
	if (ret < 0)
		return ret;
	port_encode(call, p, resp);
	return port_api_hold(call);
}

static int port_api_del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const char *name = ((const Corelane__V1__PortDelRequest *)req)->name;
	const struct port *p = port_find(name);
	int ret = p ? api_owns(call, p->owner, "port.name", name, err) : 0;

	if (ret == 0)
		ret = port_del(name, err);
	return ret < 0 ? ret : port_api_hold(call);
}

static int port_api_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__PortListRequest *in = req;
	uint16_t *last = cursor;
	struct port *p;

	if (*in->name && *last == 0 && port_find(in->name) == NULL)
		return error_set(err, ENOENT, "port.name", in->name, NULL, "there is no such port");
	while (++*last < PORT_MAX) {
		p = port_get(*last);
		if (p == NULL || (*in->name && strcmp(in->name, p->cfg.name) != 0) ||
		    (in->role && (unsigned)in->role != p->role))
			continue;
		port_encode(call, p, item);
		return 1;
	}
	return 0;
}

static int port_api_assign(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__PortAssignRequest *in = req;
	struct worker *w = worker_get(in->worker);
	struct port *p = port_find(in->name);
	char text[16], valid[32];
	int ret;

	if (p == NULL)
		return error_set(err, ENOENT, "name", in->name, NULL, "there is no such port");
	snprintf(text, sizeof(text), "%u", in->queue);
	if (port_polled_queues(p) == 0)
		return error_set(err, EINVAL, "name", in->name, "its parent",
				 "is a sub-port, whose packets come in by the queues of its parent");
	snprintf(valid, sizeof(valid), "0 to %u", p->n_queues - 1u);
	if (in->queue >= p->n_queues)
		return error_set(err, ERANGE, "queue", text, valid, "the port has no such queue");
	snprintf(text, sizeof(text), "%u", in->worker);
	if (w == NULL)
		return error_set(err, ENOENT, "worker", text, "the id of a worker that exists",
				 "there is no such worker");
	ret = worker_assign(&p->queues[in->queue], w, err);
	if (ret == 0)
		port_encode(call, p, resp);
	return ret;
}

static const struct api_method methods[] = {
	{"corelane.v1.Ports", "Add", &corelane__v1__port_add_request__descriptor, &corelane__v1__port__descriptor,
	 .unary = port_api_add},
	{"corelane.v1.Ports", "Set", &corelane__v1__port_set_request__descriptor, &corelane__v1__port__descriptor,
	 .unary = port_api_set},
	{"corelane.v1.Ports", "Del", &corelane__v1__port_del_request__descriptor, &corelane__v1__empty__descriptor,
	 .unary = port_api_del},
	{"corelane.v1.Ports", "List", &corelane__v1__port_list_request__descriptor, &corelane__v1__port__descriptor,
	 .next = port_api_list, .cursor_size = sizeof(uint16_t)},
	{"corelane.v1.Ports", "Assign", &corelane__v1__port_assign_request__descriptor, &corelane__v1__port__descriptor,
	 .unary = port_api_assign},
};
API_METHODS(methods)
