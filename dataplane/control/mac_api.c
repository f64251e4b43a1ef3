// SPDX-License-Identifier: Apache-2.0
// The service corelane.v1.Macs (api/bridge.proto).
#include <errno.h>
#include <string.h>

#include <rte_cycles.h>

#include "api/api.h"
#include "bridge.pb-c.h"
#include "l2/mac.h"
#include "port/registry.h"

static int mac_api_decode_target(const Corelane__V1__Mac *in, struct mac_entry *e, struct error *err)
{
	const struct port *p;

	if (in->target_case == CORELANE__V1__MAC__TARGET_NEXTHOP) {
		e->nexthop = in->nexthop;
		return 0;
	}
	p = port_find(in->port);
	if (p == NULL)
		return error_set(err, ENOENT, "mac.port", in->port, "the name of a port", "there is no such port");
	e->port = p->id;
	return 0;
}

static int mac_api_decode_key(const char *bridge, const char *mac, struct mac_entry *e, struct error *err)
{
	const struct bridge *b = bridge_find_err(bridge, "mac.bridge", err);

	*e = (struct mac_entry){0};
	if (b == NULL)
		return -ENOENT;
	e->bridge = b->id;
	return mac_parse(mac, "mac.mac", &e->mac, err);
}

static void mac_api_encode(struct api_call *call, const struct mac_entry *e, Corelane__V1__Mac *out)
{
	const struct bridge *b = bridge_get(e->bridge);
	const struct port *p = port_get(e->port);
	uint64_t now = bridge_clock();
	char text[IP_TEXT];

	out->bridge = api_strdup(call, b ? b->cfg.name : "");
	out->mac = api_strdup(call, mac_format(&e->mac, text));
	out->learnt = e->learnt;
	if (e->learnt && now > e->seen)
		out->age_seconds = (uint32_t)((now - e->seen) / rte_get_tsc_hz());
	if (e->nexthop) {
		out->target_case = CORELANE__V1__MAC__TARGET_NEXTHOP;
		out->nexthop = e->nexthop;
	} else {
		out->target_case = CORELANE__V1__MAC__TARGET_PORT;
		out->port = api_strdup(call, p ? p->cfg.name : "");
	}
	if (e->learnt && e->remote.family)
		out->remote = api_strdup(call, ip_format_addr(&e->remote, text));
}

static int mac_api_add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__Mac *in = ((const Corelane__V1__MacAddRequest *)req)->mac;
	struct mac_entry e;
	int ret = mac_api_decode_key(in->bridge, in->mac, &e, err);

	if (ret == 0)
		ret = mac_api_decode_target(in, &e, err);
	if (ret == 0)
		ret = mac_set(&e, err);
	if (ret == 0)
		mac_api_encode(call, &e, resp);
	return ret;
}

static int mac_api_del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__MacDelRequest *in = req;
	struct mac_entry e;
	int ret = mac_api_decode_key(in->bridge, in->mac, &e, err);

	return ret < 0 ? ret : mac_unset(e.bridge, &e.mac, err);
}

struct mac_cursor {
	struct mac_entry last; // the entry that was sent last: its domain and MAC
	uint16_t only;         // the requested domain, 0 = all
	bool started;
};

static int mac_api_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__MacListRequest *in = req;
	struct mac_cursor *c = cursor;
	const struct bridge *b;
	struct mac_entry e;

	if (!c->started && *in->bridge) {
		b = bridge_find_err(in->bridge, "bridge", err);
		if (b == NULL)
			return -ENOENT;
		c->last.bridge = c->only = b->id;
	}
	c->started = true;
	if (!mac_next(&c->last, &e) || (c->only && e.bridge != c->only))
		return 0;
	c->last = e;
	mac_api_encode(call, &e, item);
	return 1;
}

#define SERVICE "corelane.v1.Macs"

static const struct api_method methods[] = {
	{SERVICE, "Add", &corelane__v1__mac_add_request__descriptor, &corelane__v1__mac__descriptor,
	 .unary = mac_api_add},
	{SERVICE, "Del", &corelane__v1__mac_del_request__descriptor, &corelane__v1__empty__descriptor,
	 .unary = mac_api_del},
	{SERVICE, "List", &corelane__v1__mac_list_request__descriptor, &corelane__v1__mac__descriptor,
	 .next = mac_api_list, .cursor_size = sizeof(struct mac_cursor)},
};
API_METHODS(methods)
