// SPDX-License-Identifier: Apache-2.0
// API of next hops (api/nexthop.proto).
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>

#include "api/api.h"
#include "base/field_limits.h"
#include "base/owner.h"
#include "l3/nexthop.h"
#include "l3/path_mtu.h"
#include "neighbor/adjacency.h"
#include "nexthop.pb-c.h"
#include "port/registry.h"

#define PbNexthop Corelane__V1__Nexthop

static int nexthop_api_decode_port(const Corelane__V1__PortNexthop *in, struct nexthop_config *c, struct error *err)
{
	struct port *p = port_find(in->port);
	int ret = 0;

	c->kind = NH_PORT;
	if (p == NULL)
		return error_set(err, ENOENT, "nexthop.port.port", in->port, "the name of a port that exists",
				 "there is no such port");
	if (p->role == PORT_HOST)
		return error_set(err, EINVAL, "nexthop.port.port", in->port, "a fabric or tenant port",
				 "is a host port: packets are not routed to the kernel");
	c->port.id = p->id;
	if (*in->address)
		ret = ip_parse_addr(in->address, "nexthop.port.address", &c->port.addr, err);
	if (ret == 0 && *in->mac)
		ret = mac_parse(in->mac, "nexthop.port.mac", &c->port.mac, err);
	return ret;
}

// The API's values are named after the encapsulations: ENCAP_VXLAN.
static Corelane__V1__Encap nexthop_api_encode_encap(const struct encap_ops *ops)
{
	const ProtobufCEnumValue *v;
	char name[32];
	unsigned i;

	snprintf(name, sizeof(name), "ENCAP_%s", ops->name);
	for (i = 0; name[i]; i++)
		name[i] = (char)toupper((unsigned char)name[i]);
	v = protobuf_c_enum_descriptor_get_value_by_name(&corelane__v1__encap__descriptor, name);
	return v ? (Corelane__V1__Encap)v->value : CORELANE__V1__ENCAP__ENCAP_UNSPECIFIED;
}

static const struct encap_ops *nexthop_api_decode_encap(Corelane__V1__Encap in)
{
	const struct encap_ops *ops;

	for (ops = encap_next(NULL); ops && nexthop_api_encode_encap(ops) != in; ops = encap_next(ops))
		;
	return ops;
}

static int nexthop_api_decode_tunnel(const Corelane__V1__TunnelNexthop *in, struct nexthop_config *c, struct error *err)
{
	struct tunnel_config *t = &c->tunnel;
	int ret;

	c->kind = NH_TUNNEL;
	t->encap = nexthop_api_decode_encap(in->encap);
	if (t->encap && t->encap->mirrors_only)
		return error_set(err, EINVAL, "nexthop.tunnel.encap", t->encap->name, encap_names(),
				 "is for mirrors only: see `corelane mirror add`");
	t->label = in->label;
	t->vni = in->vni;
	t->dscp = (uint8_t)in->dscp;
	t->ttl = (uint8_t)in->ttl;
	t->uniform = in->mode == CORELANE__V1__TUNNEL_MODE__TUNNEL_MODE_UNIFORM;
	t->fixed_dscp = in->fixed_dscp;
	t->gre_key = in->gre_key;
	t->gre_has_key = in->gre_has_key;
	t->udp6_checksum = (uint8_t)in->udp6_checksum;
	ret = ip_parse_addr(in->remote, "nexthop.tunnel.remote", &t->remote, err);
	if (ret == 0 && *in->local)
		ret = ip_parse_addr(in->local, "nexthop.tunnel.local", &t->local, err);
	if (ret == 0 && *in->router_mac)
		ret = mac_parse(in->router_mac, "nexthop.tunnel.router_mac", &t->router_mac, err);
	return ret;
}

static void nexthop_api_decode_group(const Corelane__V1__GroupNexthop *in, struct nexthop_config *c)
{
	size_t i;

	c->kind = NH_GROUP;
	c->group.n = (unsigned)in->n_members;
	for (i = 0; i < in->n_members; i++) {
		c->group.member[i].nexthop = in->members[i]->nexthop;
		c->group.member[i].weight = in->members[i]->weight ? in->members[i]->weight : 1;
	}
}

static int nexthop_api_decode(const PbNexthop *in, struct nexthop_config *c, struct error *err)
{
	memset(c, 0, sizeof(*c));
	c->id = in->id;
	switch (in->kind_case) {
	case CORELANE__V1__NEXTHOP__KIND_PORT:
		return nexthop_api_decode_port(in->port, c, err);
	case CORELANE__V1__NEXTHOP__KIND_TUNNEL:
		return nexthop_api_decode_tunnel(in->tunnel, c, err);
	case CORELANE__V1__NEXTHOP__KIND_GROUP:
		nexthop_api_decode_group(in->group, c);
		return 0;
	case CORELANE__V1__NEXTHOP__KIND_DISCARD:
		c->kind = NH_DISCARD;
		return 0;
	case CORELANE__V1__NEXTHOP__KIND_LOCAL:
		c->kind = NH_LOCAL;
		return 0;
	case CORELANE__V1__NEXTHOP__KIND_REJECT:
		c->kind = NH_REJECT;
		return 0;
	default:
		return -EINVAL; // api/nexthop.proto has no other
	}
}

static char *nexthop_api_encode_addr(struct api_call *call, const struct ip_addr *a)
{
	char text[IP_TEXT];

	return api_strdup(call, a->family ? ip_format_addr(a, text) : "");
}

static char *nexthop_api_encode_mac(struct api_call *call, const struct rte_ether_addr *mac)
{
	char text[18];

	return api_strdup(call, rte_is_zero_ether_addr(mac) ? "" : mac_format(mac, text));
}

static void nexthop_api_encode_port(struct api_call *call, const struct nexthop_config *c, PbNexthop *out)
{
	const struct port *p = port_get(c->port.id);

	out->kind_case = CORELANE__V1__NEXTHOP__KIND_PORT;
	out->port = api_alloc(call, sizeof(*out->port));
	corelane__v1__port_nexthop__init(out->port);
	out->port->port = api_strdup(call, p ? p->cfg.name : "");
	out->port->address = nexthop_api_encode_addr(call, &c->port.addr);
	out->port->mac = nexthop_api_encode_mac(call, &c->port.mac);
}

static void nexthop_api_encode_tunnel(struct api_call *call, const struct tunnel_config *t, PbNexthop *out)
{
	Corelane__V1__TunnelNexthop *o = api_alloc(call, sizeof(*o));

	corelane__v1__tunnel_nexthop__init(o);
	out->kind_case = CORELANE__V1__NEXTHOP__KIND_TUNNEL;
	out->tunnel = o;
	o->encap = nexthop_api_encode_encap(t->encap);
	o->local = nexthop_api_encode_addr(call, &t->local);
	o->remote = nexthop_api_encode_addr(call, &t->remote);
	o->label = t->label;
	o->vni = t->vni;
	o->router_mac = nexthop_api_encode_mac(call, &t->router_mac);
	o->mode = t->uniform ? CORELANE__V1__TUNNEL_MODE__TUNNEL_MODE_UNIFORM
			     : CORELANE__V1__TUNNEL_MODE__TUNNEL_MODE_PIPE;
	o->dscp = t->dscp;
	o->fixed_dscp = t->fixed_dscp;
	o->ttl = t->ttl;
	o->gre_key = t->gre_key;
	o->gre_has_key = t->gre_has_key;
	o->udp6_checksum = (Corelane__V1__Udp6Checksum)t->udp6_checksum;
}

static void nexthop_api_encode_group(struct api_call *call, const struct nexthop_config *c, PbNexthop *out)
{
	unsigned i;

	out->kind_case = CORELANE__V1__NEXTHOP__KIND_GROUP;
	out->group = api_alloc(call, sizeof(*out->group));
	corelane__v1__group_nexthop__init(out->group);
	out->group->n_members = c->group.n;
	out->group->members = api_alloc(call, c->group.n * sizeof(*out->group->members));
	for (i = 0; i < c->group.n; i++) {
		out->group->members[i] = api_alloc(call, sizeof(**out->group->members));
		corelane__v1__group_member__init(out->group->members[i]);
		out->group->members[i]->nexthop = c->group.member[i].nexthop;
		out->group->members[i]->weight = c->group.member[i].weight;
	}
}

static Corelane__V1__Empty *nexthop_api_empty(struct api_call *call)
{
	Corelane__V1__Empty *e = api_alloc(call, sizeof(*e));

	corelane__v1__empty__init(e);
	return e;
}

static void nexthop_api_encode_kind(struct api_call *call, const struct nexthop_config *c, PbNexthop *out)
{
	switch (c->kind) {
	case NH_PORT:
	case NH_GLEAN:
		nexthop_api_encode_port(call, c, out);
		break;
	case NH_TUNNEL:
		nexthop_api_encode_tunnel(call, &c->tunnel, out);
		break;
	case NH_GROUP:
		nexthop_api_encode_group(call, c, out);
		break;
	case NH_DISCARD:
		out->kind_case = CORELANE__V1__NEXTHOP__KIND_DISCARD;
		out->discard = nexthop_api_empty(call);
		break;
	case NH_LOCAL:
		out->kind_case = CORELANE__V1__NEXTHOP__KIND_LOCAL;
		out->local = nexthop_api_empty(call);
		break;
	case NH_REJECT:
		out->kind_case = CORELANE__V1__NEXTHOP__KIND_REJECT;
		out->reject = nexthop_api_empty(call);
		break;
	}
}

static char *nexthop_api_path_text(struct api_call *call, uint32_t adj)
{
	const struct adjacency *a = adjacency_table[adj];
	const struct port *p = port_get(a->port);
	char mac[18];

	if (!a->resolved)
		return api_printf(call, "%s, neighbor not resolved", p ? p->cfg.name : "-");
	return api_printf(call, "%s lladdr %s", p ? p->cfg.name : "-",
			  mac_format((const struct rte_ether_addr *)(a->l2 + sizeof(a->l2) - a->l2_len), mac));
}

static void nexthop_api_encode_paths(struct api_call *call, const struct nexthop *nh, Corelane__V1__NexthopState *s)
{
	unsigned i, n = nh->kind == NH_TUNNEL ? nh->n_paths : nh->kind == NH_PORT && nh->edge != NH_EDGE_DROP ? 1 : 0;

	s->paths = api_alloc(call, (n + 1) * sizeof(*s->paths));
	for (i = 0; i < n; i++) {
		char *text = nexthop_api_path_text(call, nh->kind == NH_TUNNEL ? nh->path[i] : nh->adj);

		if (s->n_paths == 0 || strcmp(s->paths[s->n_paths - 1], text) != 0)
			s->paths[s->n_paths++] = text;
	}
}

static void nexthop_api_encode_path_mtu(struct api_call *call, const struct nexthop_entry *e,
					Corelane__V1__NexthopState *s)
{
	const struct path_mtu *path = e->cfg.kind == NH_TUNNEL ? path_mtu_of(&e->cfg.tunnel.remote) : NULL;
	uint64_t now = path_mtu_clock();

	s->path_mtu_hop = nexthop_api_encode_addr(call, path ? &path->hop : &(struct ip_addr){0});
	if (path == NULL)
		return;
	s->path_mtu = path->mtu;
	s->path_mtu_seconds = path->until > now ? (uint32_t)((path->until - now) / rte_get_tsc_hz()) : 0;
}

static void nexthop_api_encode(struct api_call *call, const struct nexthop_entry *e, PbNexthop *out)
{
	const struct nexthop *nh = nexthop_table[e->cfg.id];
	Corelane__V1__NexthopState *s = api_alloc(call, sizeof(*s));

	corelane__v1__nexthop_state__init(s);
	out->id = e->cfg.id;
	nexthop_api_encode_kind(call, &e->cfg, out);
	s->resolved = e->resolved;
	s->references = e->refs;
	s->mtu = nh->mtu == UINT16_MAX ? 0 : nh->mtu;
	s->overhead = e->overhead;
	nexthop_api_encode_path_mtu(call, e, s);
	s->origin = api_strdup(call, e->cfg.id < NEXTHOP_API_MAX ? owner_name(e->cfg.owner) : "system");
	nexthop_api_encode_paths(call, nh, s);
	out->state = s;
}

// Returns 0 also if there is no such next hop.
static int nexthop_api_owns(const struct api_call *call, uint32_t id, struct error *err)
{
	const struct nexthop_entry *e = nexthop_get(id);
	char text[16];

	snprintf(text, sizeof(text), "%u", id);
	return e ? api_owns(call, e->cfg.owner, "nexthop.id", text, err) : 0;
}

static int nexthop_api_add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__NexthopAddRequest *in = req;
	struct nexthop_config c;
	int ret = nexthop_api_decode(in->nexthop, &c, err);

	c.owner = api_client(call)->owner;
	if (ret == 0 && in->replace)
		ret = nexthop_api_owns(call, c.id, err);
	if (ret == 0)
		ret = nexthop_add(&c, in->replace, err);
	if (ret == 0)
		nexthop_api_encode(call, nexthop_get(c.id), resp);
	return ret;
}

// When one is refused, those before it are removed; the last one first, because a group uses its members.
static int nexthop_api_add_all(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__NexthopAddAllRequest *in = req;
	Corelane__V1__NexthopAddAllReply *out = resp;
	struct nexthop_config c;
	size_t n = 0;
	int ret = 0;

	while (n < in->n_nexthops && ret == 0) {
		ret = nexthop_api_decode(in->nexthops[n], &c, err);
		c.owner = api_client(call)->owner;
		if (ret == 0)
			ret = nexthop_add(&c, false, err);
		n += ret == 0;
	}
	if (ret == 0) {
		out->added = (uint32_t)n;
		return 0;
	}
	err->index = (uint32_t)n;
	while (n-- > 0)
		nexthop_del(in->nexthops[n]->id, NULL);
	return ret;
}

static int nexthop_api_may_del(struct api_call *call, uint32_t id, struct error *err)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", id);
	if (id >= NEXTHOP_API_MAX)
		return error_set(err, EPERM, "nexthop.id", text, LIMIT_NEXTHOP_ID_VALID,
				 "belongs to the router itself");
	return nexthop_api_owns(call, id, err);
}

static int nexthop_api_del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	uint32_t id = ((const Corelane__V1__NexthopDelRequest *)req)->id;
	int ret = nexthop_api_may_del(call, id, err);

	return ret < 0 ? ret : nexthop_del(id, err);
}

static int nexthop_api_del_all(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__NexthopDelAllRequest *in = req;
	size_t i;
	int ret = 0;

	for (i = 0; i < in->n_ids && ret == 0; i++) {
		ret = nexthop_api_may_del(call, in->ids[i], err);
		if (ret < 0)
			err->index = (uint32_t)i;
	}
	if (ret == 0)
		ret = nexthop_del_all(in->ids, in->n_ids, err);
	if (ret == 0)
		((Corelane__V1__NexthopDelAllReply *)resp)->deleted = (uint32_t)in->n_ids;
	return ret;
}

static int nexthop_api_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__NexthopListRequest *in = req;
	uint32_t *last = cursor;
	struct nexthop_entry *e = in->id && *last == 0 ? nexthop_get(in->id) : nexthop_next(*last);
	char text[16];

	if (in->id) {
		snprintf(text, sizeof(text), "%u", in->id);
		if (*last)
			return 0;
		if (e == NULL)
			return error_set(err, ENOENT, "nexthop.id", text, NULL, "there is no such next hop");
	}
	if (e == NULL || (e->cfg.id >= NEXTHOP_API_MAX && !in->all && !in->id))
		return 0;
	*last = e->cfg.id;
	nexthop_api_encode(call, e, item);
	return 1;
}

static const struct api_method methods[] = {
	{"corelane.v1.Nexthops", "Add", &corelane__v1__nexthop_add_request__descriptor,
	 &corelane__v1__nexthop__descriptor, .unary = nexthop_api_add},
	{"corelane.v1.Nexthops", "AddAll", &corelane__v1__nexthop_add_all_request__descriptor,
	 &corelane__v1__nexthop_add_all_reply__descriptor, .unary = nexthop_api_add_all},
	{"corelane.v1.Nexthops", "Del", &corelane__v1__nexthop_del_request__descriptor,
	 &corelane__v1__empty__descriptor, .unary = nexthop_api_del},
	{"corelane.v1.Nexthops", "DelAll", &corelane__v1__nexthop_del_all_request__descriptor,
	 &corelane__v1__nexthop_del_all_reply__descriptor, .unary = nexthop_api_del_all},
	{"corelane.v1.Nexthops", "List", &corelane__v1__nexthop_list_request__descriptor,
	 &corelane__v1__nexthop__descriptor, .next = nexthop_api_list, .cursor_size = sizeof(uint32_t)},
};
API_METHODS(methods)
