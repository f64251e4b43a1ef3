// SPDX-License-Identifier: Apache-2.0
// API of mirrors (api/mirror.proto).
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "api/fields.h"
#include "mirror.pb-c.h"
#include "policy/mirror.h"
#include "port/registry.h"

typedef Corelane__V1__Mirror PbMirror;

// The member of a message with this name; NULL if the message has none.
static void *mirror_api_member(const ProtobufCMessage *m, const char *name)
{
	const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field_by_name(m->descriptor, name);

	return f ? RTE_PTR_ADD(m, f->offset) : NULL;
}

// A collector's case of the target has the name of its encapsulation; its message has some fields of TunnelNexthop.
static int mirror_api_decode_collector(const ProtobufCFieldDescriptor *of, const PbMirror *in, struct tunnel_config *t,
				       struct error *err)
{
	const ProtobufCMessage *m = *(ProtobufCMessage *const *)RTE_PTR_ADD(in, of->offset);
	const char *remote = *(char **)mirror_api_member(m, "remote"), *local = *(char **)mirror_api_member(m, "local");
	const uint32_t *vni = mirror_api_member(m, "vni"), *session = mirror_api_member(m, "session");
	char field[48];
	int ret;

	*t = (struct tunnel_config){
		.encap = encap_find(of->name), .vni = vni ? *vni : 0, .session = session ? *session : 0};
	if (t->encap == NULL || !t->encap->mirrors)
		return error_set(err, ENOTSUP, "mirror.target", of->name, NULL, "cannot carry the copies of mirrors");
	snprintf(field, sizeof(field), "mirror.%s.remote", of->name);
	ret = ip_parse_addr(remote, field, &t->remote, err);
	if (ret < 0 || *local == '\0')
		return ret;
	snprintf(field, sizeof(field), "mirror.%s.local", of->name);
	return ip_parse_addr(local, field, &t->local, err);
}

static int mirror_api_decode_target(const PbMirror *in, struct mirror_config *c, struct error *err)
{
	const ProtobufCFieldDescriptor *of;
	struct port *p;

	if (in->target_case != CORELANE__V1__MIRROR__TARGET_PORT) {
		of = protobuf_c_message_descriptor_get_field(&corelane__v1__mirror__descriptor, in->target_case);
		c->target = MIRROR_TUNNEL;
		return mirror_api_decode_collector(of, in, &c->tunnel, err);
	}
	p = port_find(in->port);
	if (p == NULL)
		return error_set(err, ENOENT, "mirror.port", in->port, "the name of a port that exists",
				 "there is no such port");
	c->target = MIRROR_PORT;
	c->port = p->id;
	return 0;
}

static int mirror_api_decode_direction(const PbMirror *in, struct mirror_config *c, struct error *err)
{
	c->direction = (enum mirror_direction)in->direction;
	return 0;
}

static int mirror_api_decode_snap(const PbMirror *in, struct mirror_config *c, struct error *err)
{
	c->snap = in->snap_length;
	return 0;
}

static const struct {
	const char *name;
	int (*decode)(const PbMirror *in, struct mirror_config *c, struct error *err);
} mirror_fields[] = {
	{"target", mirror_api_decode_target},
	{"direction", mirror_api_decode_direction},
	{"snap_length", mirror_api_decode_snap},
};
API_FIELDS(mirror, mirror_fields)

static void mirror_api_encode_collector(struct api_call *call, const struct tunnel_config *t, PbMirror *out)
{
	const ProtobufCFieldDescriptor *of =
		protobuf_c_message_descriptor_get_field_by_name(&corelane__v1__mirror__descriptor, t->encap->name);
	const ProtobufCMessageDescriptor *type = of->descriptor;
	ProtobufCMessage *m = api_alloc(call, type->sizeof_message);
	char remote[IP_TEXT], local[IP_TEXT] = "";
	uint32_t *number;

	protobuf_c_message_init(type, m);
	ip_format_addr(&t->remote, remote);
	if (t->local.family)
		ip_format_addr(&t->local, local);
	*(char **)mirror_api_member(m, "remote") = api_strdup(call, remote);
	*(char **)mirror_api_member(m, "local") = api_strdup(call, local);
	number = mirror_api_member(m, "vni");
	if (number)
		*number = t->vni;
	number = mirror_api_member(m, "session");
	if (number)
		*number = t->session;
	out->target_case = (Corelane__V1__Mirror__TargetCase)of->id;
	*(ProtobufCMessage **)RTE_PTR_ADD(out, of->offset) = m;
}

static void mirror_api_encode(struct api_call *call, const struct mirror *m, PbMirror *out)
{
	Corelane__V1__MirrorState *s = api_alloc(call, sizeof(*s));
	struct mirror_count count = mirror_count(m);

	out->name = api_strdup(call, m->cfg.name);
	if (m->cfg.target == MIRROR_TUNNEL) {
		mirror_api_encode_collector(call, &m->cfg.tunnel, out);
	} else {
		out->target_case = CORELANE__V1__MIRROR__TARGET_PORT;
		out->port = api_strdup(call, port_get(m->cfg.port) ? port_get(m->cfg.port)->cfg.name : "");
	}
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
		ret = API_FIELD_FIND(mirror_fields, in->fields[i])->decode(in->mirror, &c, err);
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
