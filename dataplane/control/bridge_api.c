// SPDX-License-Identifier: Apache-2.0
// The service corelane.v1.Bridges (api/bridge.proto).
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "bridge.pb-c.h"
#include "l2/bridge.h"
#include "port/registry.h"

static int get_flood(const Corelane__V1__Bridge *in, struct bridge_config *c, struct error *err)
{
	char text[16];

	snprintf(text, sizeof(text), "%zu", in->n_flood);
	if (in->n_flood > BRIDGE_FLOOD_MAX)
		return error_set(err, ERANGE, "bridge.flood", text, "up to 256 next hops", "are too many");
	c->n_flood = (unsigned)in->n_flood;
	if (in->n_flood > 0)
		memcpy(c->flood, in->flood, in->n_flood * sizeof(c->flood[0]));
	return 0;
}

static int get_unknown(const Corelane__V1__Bridge *in, struct bridge_config *c, struct error *err)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", (int)in->unknown_unicast);
	if (in->unknown_unicast > CORELANE__V1__UNKNOWN_UNICAST__UNKNOWN_UNICAST_DROP)
		return error_set(err, EINVAL, "bridge.unknown_unicast", text, "flood, drop", "is no policy");
	c->drop_unknown = in->unknown_unicast == CORELANE__V1__UNKNOWN_UNICAST__UNKNOWN_UNICAST_DROP;
	return 0;
}

static int get_field(const char *field, const Corelane__V1__Bridge *in, struct bridge_config *c, struct error *err)
{
	if (strcmp(field, "unknown_unicast") == 0)
		return get_unknown(in, c, err);
	if (strcmp(field, "flood") == 0)
		return get_flood(in, c, err);
	if (strcmp(field, "no_learning") == 0)
		return c->no_learning = in->no_learning, 0;
	if (strcmp(field, "mac_limit") == 0)
		return c->mac_limit = in->mac_limit, 0;
	return error_set(err, EINVAL, "fields", field, "unknown_unicast, flood, no_learning, mac_limit", "cannot be changed");
}

static int get_name(const char *name, struct bridge_config *c, struct error *err)
{
	if (strlen(name) >= sizeof(c->name))
		return error_set(err, EINVAL, "bridge.name", name, "1 to 31 of A-Z a-z 0-9 . _ -", "is too long");
	memcpy(c->name, name, strlen(name) + 1);
	return 0;
}

static void put_ports(struct api_call *call, const struct bridge *b, Corelane__V1__Bridge *out)
{
	const struct port *p;

	out->ports = api_alloc(call, (port_count() + 1) * sizeof(*out->ports));
	for (p = port_next(NULL); p; p = port_next(p))
		if (p->cfg.bridge == b->id)
			out->ports[out->n_ports++] = api_strdup(call, p->cfg.name);
}

static void put_bridge(struct api_call *call, const struct bridge *b, Corelane__V1__Bridge *out)
{
	out->name = api_strdup(call, b->cfg.name);
	out->id = b->id;
	out->unknown_unicast = b->cfg.drop_unknown ? CORELANE__V1__UNKNOWN_UNICAST__UNKNOWN_UNICAST_DROP
						   : CORELANE__V1__UNKNOWN_UNICAST__UNKNOWN_UNICAST_FLOOD;
	out->n_flood = b->cfg.n_flood;
	out->flood = api_alloc(call, (b->cfg.n_flood + 1) * sizeof(*out->flood));
	memcpy(out->flood, b->cfg.flood, b->cfg.n_flood * sizeof(*out->flood));
	out->no_learning = b->cfg.no_learning;
	out->mac_limit = b->cfg.mac_limit;
	put_ports(call, b, out);
	out->macs = b->n_macs;
	out->learn_refused = b->learn_refused;
	out->moves = b->moves;
	out->learn_unreachable = b->learn_unreachable;
}

static int add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__Bridge *in = ((const Corelane__V1__BridgeAddRequest *)req)->bridge;
	struct bridge_config c = {0};
	struct bridge *b;
	int ret;

	if (in == NULL)
		return error_set(err, EINVAL, "bridge", NULL, "a name", "is missing");
	c.id = in->id;
	c.no_learning = in->no_learning;
	c.mac_limit = in->mac_limit;
	ret = get_name(in->name, &c, err);
	if (ret == 0)
		ret = get_unknown(in, &c, err);
	if (ret == 0)
		ret = get_flood(in, &c, err);
	if (ret < 0)
		return ret;
	b = bridge_add(&c, err);
	if (b == NULL)
		return -err->code;
	put_bridge(call, b, resp);
	return 0;
}

static int set(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__BridgeSetRequest *in = req;
	struct bridge_config c;
	struct bridge *b;
	size_t i;
	int ret = 0;

	if (in->bridge == NULL || in->n_fields == 0)
		return error_set(err, EINVAL, in->bridge ? "fields" : "bridge", NULL,
				 "unknown_unicast, flood, no_learning, mac_limit", "nothing to change");
	b = bridge_find_err(in->bridge->name, "bridge.name", err);
	if (b == NULL)
		return -ENOENT;
	c = b->cfg;
	for (i = 0; i < in->n_fields && ret == 0; i++)
		ret = get_field(in->fields[i], in->bridge, &c, err);
	if (ret == 0)
		ret = bridge_set(b, &c, err);
	if (ret == 0)
		put_bridge(call, b, resp);
	return ret;
}

static int del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	return bridge_del(((const Corelane__V1__BridgeDelRequest *)req)->name, err);
}

static int list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__BridgeListRequest *in = req;
	uint32_t *next = cursor;
	const struct bridge *b;

	if (*in->name && *next == 0 && bridge_find_err(in->name, "name", err) == NULL)
		return -ENOENT;
	while (*next < BRIDGE_MAX) {
		b = bridge_get((uint16_t)(*next)++);
		if (b && (*in->name == '\0' || strcmp(in->name, b->cfg.name) == 0)) {
			put_bridge(call, b, item);
			return 1;
		}
	}
	return 0;
}

#define SERVICE "corelane.v1.Bridges"

static const struct api_method methods[] = {
	{SERVICE, "Add", &corelane__v1__bridge_add_request__descriptor, &corelane__v1__bridge__descriptor, .unary = add},
	{SERVICE, "Set", &corelane__v1__bridge_set_request__descriptor, &corelane__v1__bridge__descriptor, .unary = set},
	{SERVICE, "Del", &corelane__v1__bridge_del_request__descriptor, &corelane__v1__empty__descriptor, .unary = del},
	{SERVICE, "List", &corelane__v1__bridge_list_request__descriptor, &corelane__v1__bridge__descriptor, .next = list,
	 .cursor_size = sizeof(uint32_t)},
};
API_METHODS(methods)
