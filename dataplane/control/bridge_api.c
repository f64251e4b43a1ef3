// SPDX-License-Identifier: Apache-2.0
// The service corelane.v1.Bridges (api/bridge.proto).
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "api/fields.h"
#include "base/owner.h"
#include "bridge.pb-c.h"
#include "l2/mac.h"
#include "l2/snoop.h"
#include "port/registry.h"

static void bridge_api_decode_flood(const Corelane__V1__Bridge *in, struct bridge_config *c)
{
	c->n_flood = (unsigned)in->n_flood;
	if (in->n_flood > 0)
		memcpy(c->flood, in->flood, in->n_flood * sizeof(c->flood[0]));
}

static void bridge_api_decode_unknown(const Corelane__V1__Bridge *in, struct bridge_config *c)
{
	c->drop_unknown = in->unknown_unicast == CORELANE__V1__UNKNOWN_UNICAST__UNKNOWN_UNICAST_DROP;
}

static void bridge_api_decode_no_learning(const Corelane__V1__Bridge *in, struct bridge_config *c)
{
	c->no_learning = in->no_learning;
}

static void bridge_api_decode_mac_limit(const Corelane__V1__Bridge *in, struct bridge_config *c)
{
	c->mac_limit = in->mac_limit;
}

static void bridge_api_decode_suppression(const Corelane__V1__Bridge *in, struct bridge_config *c)
{
	c->suppress = in->neighbor_suppression;
}

static void bridge_api_decode_snooping(const Corelane__V1__Bridge *in, struct bridge_config *c)
{
	c->snooping = in->multicast_snooping;
}

static const struct {
	const char *name;
	void (*decode)(const Corelane__V1__Bridge *in, struct bridge_config *c);
} bridge_fields[] = {
	{"unknown_unicast", bridge_api_decode_unknown},          {"flood", bridge_api_decode_flood},
	{"no_learning", bridge_api_decode_no_learning},          {"mac_limit", bridge_api_decode_mac_limit},
	{"neighbor_suppression", bridge_api_decode_suppression}, {"multicast_snooping", bridge_api_decode_snooping},
};
API_FIELDS(bridge, bridge_fields)

static void bridge_api_encode_ports(struct api_call *call, const struct bridge *b, Corelane__V1__Bridge *out)
{
	const struct port *p;

	out->ports = api_alloc(call, (port_count() + 1) * sizeof(*out->ports));
	out->router_ports = api_alloc(call, (port_count() + 1) * sizeof(*out->router_ports));
	for (p = port_next(NULL); p; p = port_next(p)) {
		if (p->cfg.bridge != b->id)
			continue;
		out->ports[out->n_ports++] = api_strdup(call, p->cfg.name);
		if (snoop_is_router(p->id))
			out->router_ports[out->n_router_ports++] = api_strdup(call, p->cfg.name);
	}
}

static void bridge_api_encode(struct api_call *call, const struct bridge *b, Corelane__V1__Bridge *out)
{
	out->name = api_strdup(call, b->cfg.name);
	out->id = b->id;
	out->owner = api_strdup(call, owner_name(b->owner));
	out->unknown_unicast = b->cfg.drop_unknown ? CORELANE__V1__UNKNOWN_UNICAST__UNKNOWN_UNICAST_DROP
						   : CORELANE__V1__UNKNOWN_UNICAST__UNKNOWN_UNICAST_FLOOD;
	out->n_flood = b->cfg.n_flood;
	out->flood = api_alloc(call, (b->cfg.n_flood + 1) * sizeof(*out->flood));
	memcpy(out->flood, b->cfg.flood, b->cfg.n_flood * sizeof(*out->flood));
	out->no_learning = b->cfg.no_learning;
	out->mac_limit = b->cfg.mac_limit;
	out->neighbor_suppression = b->cfg.suppress;
	out->multicast_snooping = b->cfg.snooping;
	bridge_api_encode_ports(call, b, out);
	out->macs = b->n_macs;
	out->learn_refused = b->learn_refused;
	out->learn_too_many = mac_learn_too_many(b->id);
	out->moves = b->moves;
	out->learn_unreachable = b->learn_unreachable;
	out->memberships = snoop_count(b->id);
	out->memberships_refused = snoop_refused(b->id);
}

static int bridge_api_add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__Bridge *in = ((const Corelane__V1__BridgeAddRequest *)req)->bridge;
	struct bridge_config c = {.id = in->id,
				  .no_learning = in->no_learning,
				  .mac_limit = in->mac_limit,
				  .suppress = in->neighbor_suppression,
				  .snooping = in->multicast_snooping};
	struct bridge *b;

	snprintf(c.name, sizeof(c.name), "%s", in->name);
	c.drop_unknown = in->unknown_unicast == CORELANE__V1__UNKNOWN_UNICAST__UNKNOWN_UNICAST_DROP;
	bridge_api_decode_flood(in, &c);
	b = bridge_add(&c, err);
	if (b == NULL)
		return -err->code;
	b->owner = api_client(call)->owner;
	bridge_api_encode(call, b, resp);
	return 0;
}

static int bridge_api_set(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__BridgeSetRequest *in = req;
	struct bridge_config c;
	struct bridge *b;
	size_t i;
	int ret;

	b = bridge_find_err(in->bridge->name, "bridge.name", err);
	if (b == NULL)
		return -ENOENT;
	ret = api_owns(call, b->owner, "bridge.name", in->bridge->name, err);
	if (ret < 0)
		return ret;
	c = b->cfg;
	for (i = 0; i < in->n_fields; i++)
		API_FIELD_FIND(bridge_fields, in->fields[i])->decode(in->bridge, &c);
	ret = bridge_set(b, &c, err);
	if (ret == 0)
		bridge_api_encode(call, b, resp);
	return ret;
}

static int bridge_api_del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const char *name = ((const Corelane__V1__BridgeDelRequest *)req)->name;
	const struct bridge *b = bridge_find(name);
	int ret = b ? api_owns(call, b->owner, "bridge.name", name, err) : 0;

	return ret < 0 ? ret : bridge_del(name, err);
}

static int bridge_api_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__BridgeListRequest *in = req;
	uint32_t *next = cursor;
	const struct bridge *b;

	if (*in->name && *next == 0 && bridge_find_err(in->name, "name", err) == NULL)
		return -ENOENT;
	while (*next < BRIDGE_MAX) {
		b = bridge_get((uint16_t)(*next)++);
		if (b && (*in->name == '\0' || strcmp(in->name, b->cfg.name) == 0)) {
			bridge_api_encode(call, b, item);
			return 1;
		}
	}
	return 0;
}

struct membership_cursor {
	struct snoop_entry last; // the entry that was sent last
	bool started;
};

static int bridge_api_memberships(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__MembershipListRequest *in = req;
	Corelane__V1__Membership *out = item;
	struct membership_cursor *c = cursor;
	const struct bridge *b;
	struct snoop_entry e;
	char text[IP_TEXT];

	if (!c->started && *in->bridge && bridge_find_err(in->bridge, "bridge", err) == NULL)
		return -ENOENT;
	while (snoop_next(c->started ? &c->last : NULL, &e)) {
		c->started = true;
		c->last = e;
		b = bridge_get(e.bridge);
		if (*in->bridge && strcmp(in->bridge, b->cfg.name) != 0)
			continue;
		out->bridge = api_strdup(call, b->cfg.name);
		out->group = api_strdup(call, ip_format_addr(&e.group, text));
		out->port = api_strdup(call, port_get(e.port)->cfg.name);
		out->age_seconds = (mac_clock - e.seen) / 10;
		return 1;
	}
	return 0;
}

#define SERVICE "corelane.v1.Bridges"

static const struct api_method methods[] = {
	{SERVICE, "Add", &corelane__v1__bridge_add_request__descriptor, &corelane__v1__bridge__descriptor,
	 .unary = bridge_api_add},
	{SERVICE, "Set", &corelane__v1__bridge_set_request__descriptor, &corelane__v1__bridge__descriptor,
	 .unary = bridge_api_set},
	{SERVICE, "Del", &corelane__v1__bridge_del_request__descriptor, &corelane__v1__empty__descriptor,
	 .unary = bridge_api_del},
	{SERVICE, "List", &corelane__v1__bridge_list_request__descriptor, &corelane__v1__bridge__descriptor,
	 .next = bridge_api_list, .cursor_size = sizeof(uint32_t)},
	{SERVICE, "Memberships", &corelane__v1__membership_list_request__descriptor,
	 &corelane__v1__membership__descriptor, .next = bridge_api_memberships,
	 .cursor_size = sizeof(struct membership_cursor)},
};
API_METHODS(methods)
