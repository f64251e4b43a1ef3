// SPDX-License-Identifier: Apache-2.0
// API of mirrors (api/mirror.proto).
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "mirror.pb-c.h"
#include "policy/mirror.h"
#include "port/registry.h"

typedef Corelane__V1__Mirror PbMirror;

static int mirror_api_decode_ends(const char *noun, const char *remote, const char *local, struct tunnel_config *t,
				  struct error *err)
{
	char field[32];
	int ret;

	snprintf(field, sizeof(field), "mirror.%s.remote", noun);
	ret = ip_parse_addr(remote, field, &t->remote, err);
	if (ret < 0 || *local == '\0')
		return ret;
	snprintf(field, sizeof(field), "mirror.%s.local", noun);
	return ip_parse_addr(local, field, &t->local, err);
}

static int mirror_api_decode_target(const PbMirror *in, struct mirror_config *c, struct error *err)
{
	struct port *p;

	c->target = MIRROR_TUNNEL;
	c->tunnel = (struct tunnel_config){0};
	switch (in->target_case) {
	case CORELANE__V1__MIRROR__TARGET_PORT:
		p = port_find(in->port);
		if (p == NULL)
			return error_set(err, ENOENT, "mirror.port", in->port, "the name of a port that exists",
					 "there is no such port");
		c->target = MIRROR_PORT;
		c->port = p->id;
		return 0;
	case CORELANE__V1__MIRROR__TARGET_VXLAN:
		c->tunnel.encap = encap_find("vxlan");
		c->tunnel.vni = in->vxlan->vni;
		return mirror_api_decode_ends("vxlan", in->vxlan->remote, in->vxlan->local, &c->tunnel, err);
	case CORELANE__V1__MIRROR__TARGET_ERSPAN:
		c->tunnel.encap = encap_find("erspan");
		c->tunnel.session = in->erspan->session;
		return mirror_api_decode_ends("erspan", in->erspan->remote, in->erspan->local, &c->tunnel, err);
	default:
		return -EINVAL; // api/mirror.proto has no other
	}
}

static int mirror_api_decode_field(const char *field, const PbMirror *in, struct mirror_config *c, struct error *err)
{
	if (strcmp(field, "target") == 0)
		return mirror_api_decode_target(in, c, err);
	if (strcmp(field, "direction") == 0)
		return c->direction = (enum mirror_direction)in->direction, 0;
	c->snap = in->snap_length; // api/mirror.proto has no other
	return 0;
}

static void mirror_api_encode_target(struct api_call *call, const struct mirror_config *c, PbMirror *out)
{
	const struct tunnel_config *t = &c->tunnel;
	char remote[IP_TEXT], local[IP_TEXT] = "";

	if (c->target == MIRROR_PORT) {
		out->target_case = CORELANE__V1__MIRROR__TARGET_PORT;
		out->port = api_strdup(call, port_get(c->port) ? port_get(c->port)->cfg.name : "");
		return;
	}
	ip_format_addr(&t->remote, remote);
	if (t->local.family)
		ip_format_addr(&t->local, local);
	if (t->encap == encap_find("vxlan")) {
		out->target_case = CORELANE__V1__MIRROR__TARGET_VXLAN;
		out->vxlan = api_alloc(call, sizeof(*out->vxlan));
		corelane__v1__mirror_vxlan__init(out->vxlan);
		out->vxlan->remote = api_strdup(call, remote);
		out->vxlan->local = api_strdup(call, local);
		out->vxlan->vni = t->vni;
	} else {
		out->target_case = CORELANE__V1__MIRROR__TARGET_ERSPAN;
		out->erspan = api_alloc(call, sizeof(*out->erspan));
		corelane__v1__mirror_erspan__init(out->erspan);
		out->erspan->remote = api_strdup(call, remote);
		out->erspan->local = api_strdup(call, local);
		out->erspan->session = t->session;
	}
}

static void mirror_api_encode(struct api_call *call, const struct mirror *m, PbMirror *out)
{
	Corelane__V1__MirrorState *s = api_alloc(call, sizeof(*s));
	struct mirror_count count = mirror_count(m);

	out->name = api_strdup(call, m->cfg.name);
	mirror_api_encode_target(call, &m->cfg, out);
	out->direction = (Corelane__V1__MirrorDirection)m->cfg.direction;
	out->snap_length = m->cfg.snap;
	corelane__v1__mirror_state__init(s);
	s->packets = count.packets;
	s->bytes = count.bytes;
	s->lost = count.lost;
	s->users = m->refs;
	s->resolved =
		m->nexthop ? nexthop_get(m->nexthop)->resolved : port_get(m->cfg.port) && port_get(m->cfg.port)->up;
	out->state = s;
}

static int mirror_api_add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const PbMirror *in = ((const Corelane__V1__MirrorAddRequest *)req)->mirror;
	struct mirror_config c = {0};
	struct mirror *m;
	int ret;

	snprintf(c.name, sizeof(c.name), "%s", in->name);
	c.snap = in->snap_length;
	c.direction = (enum mirror_direction)in->direction;
	ret = mirror_api_decode_target(in, &c, err);
	if (ret < 0)
		return ret;
	m = mirror_add(&c, err);
	if (m == NULL)
		return -err->code;
	mirror_api_encode(call, m, resp);
	return 0;
}

static int mirror_api_set(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__MirrorSetRequest *in = req;
	struct mirror_config c;
	struct mirror *m;
	size_t i;
	int ret = 0;

	m = mirror_find_err(in->mirror->name, "mirror.name", err);
	if (m == NULL)
		return -ENOENT;
	c = m->cfg;
	for (i = 0; i < in->n_fields && ret == 0; i++)
		ret = mirror_api_decode_field(in->fields[i], in->mirror, &c, err);
	if (ret == 0)
		ret = mirror_set(m, &c, err);
	if (ret == 0)
		mirror_api_encode(call, m, resp);
	return ret;
}

static int mirror_api_del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	return mirror_del(((const Corelane__V1__MirrorDelRequest *)req)->name, err);
}

static int mirror_api_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__MirrorListRequest *in = req;
	uint16_t *last = cursor;
	struct mirror *m;

	if (*in->name && *last == 0 && mirror_find_err(in->name, "mirror.name", err) == NULL)
		return -ENOENT;
	while (++*last < MIRROR_MAX) {
		m = mirror_get(*last);
		if (m == NULL || (*in->name && strcmp(in->name, m->cfg.name) != 0))
			continue;
		mirror_api_encode(call, m, item);
		return 1;
	}
	return 0;
}

static const struct api_method methods[] = {
	{"corelane.v1.Mirrors", "Add", &corelane__v1__mirror_add_request__descriptor, &corelane__v1__mirror__descriptor,
	 .unary = mirror_api_add},
	{"corelane.v1.Mirrors", "Set", &corelane__v1__mirror_set_request__descriptor, &corelane__v1__mirror__descriptor,
	 .unary = mirror_api_set},
	{"corelane.v1.Mirrors", "Del", &corelane__v1__mirror_del_request__descriptor, &corelane__v1__empty__descriptor,
	 .unary = mirror_api_del},
	{"corelane.v1.Mirrors", "List", &corelane__v1__mirror_list_request__descriptor,
	 &corelane__v1__mirror__descriptor, .next = mirror_api_list, .cursor_size = sizeof(uint16_t)},
};
API_METHODS(methods)
