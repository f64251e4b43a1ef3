// SPDX-License-Identifier: Apache-2.0
// The service corelane.v1.Nat (api/nat.proto).
#include <errno.h>
#include <netinet/in.h>

#include "api/api.h"
#include "base/field_limits.h"
#include "l3/vrf.h"
#include "nat.pb-c.h"
#include "policy/nat.h"

typedef Corelane__V1__NatRule rule_msg;

static int nat_api_decode_floating(const Corelane__V1__FloatingNat *in, struct nat_config *c, struct error *err)
{
	int ret = ip_parse_addr(in->inside, "rule.floating.inside", &c->inside.addr, err);

	c->kind = NAT_FLOATING;
	c->inside.len = (uint8_t)ip_bits(c->inside.addr.family);
	return ret < 0 ? ret : ip_parse_addr(in->outside, "rule.floating.outside", &c->outside, err);
}

static int nat_api_decode_source(const Corelane__V1__SourceNat *in, struct nat_config *c, struct error *err)
{
	int ret = ip_parse_prefix(in->prefix, "rule.source.prefix", &c->inside, err);

	c->kind = NAT_SOURCE;
	c->first_port = (uint16_t)in->first_port;
	c->last_port = (uint16_t)in->last_port;
	if (ret == 0)
		ret = ip_parse_addr(in->first, "rule.source.first", &c->outside, err);
	if (ret == 0 && *in->last)
		ret = ip_parse_addr(in->last, "rule.source.last", &c->last, err);
	return ret;
}

static int nat_api_decode_backend(const Corelane__V1__NatBackend *in, struct nat_backend *b, struct error *err)
{
	b->port = (uint16_t)in->port;
	b->weight = in->weight;
	return ip_parse_addr(in->address, "rule.destination.backends.address", &b->addr, err);
}

static int nat_api_decode_destination(struct api_call *call, const Corelane__V1__DestinationNat *in,
				      struct nat_config *c, struct error *err)
{
	struct nat_backend *b = api_alloc(call, in->n_backends * sizeof(*b));
	int ret = ip_parse_addr(in->address, "rule.destination.address", &c->outside, err);
	size_t i;

	c->kind = NAT_DESTINATION;
	c->first_port = (uint16_t)in->port;
	c->backends = b;
	c->n_backends = (unsigned)in->n_backends;
	for (i = 0; i < c->n_backends && ret == 0; i++)
		ret = nat_api_decode_backend(in->backends[i], &b[i], err);
	return ret;
}

static int nat_api_decode_kind(struct api_call *call, const rule_msg *in, struct nat_config *c, struct error *err)
{
	switch (in->kind_case) {
	case CORELANE__V1__NAT_RULE__KIND_FLOATING:
		return nat_api_decode_floating(in->floating, c, err);
	case CORELANE__V1__NAT_RULE__KIND_SOURCE:
		return nat_api_decode_source(in->source, c, err);
	case CORELANE__V1__NAT_RULE__KIND_DESTINATION:
		return nat_api_decode_destination(call, in->destination, c, err);
	default:
		return -EINVAL; // api/nat.proto has no other
	}
}

static int nat_api_decode_match(struct api_call *call, const rule_msg *in, struct nat_config *c, struct error *err)
{
	struct ip_prefix *except = api_alloc(call, (in->n_except + 1) * sizeof(*except));
	size_t i;
	int ret = 0;

	c->protocol = (uint8_t)in->protocol;
	c->to_first_port = (uint16_t)in->first_port;
	c->to_last_port = (uint16_t)in->last_port;
	if (*in->to)
		ret = ip_parse_prefix(in->to, "rule.to", &c->to, err);
	c->except = except;
	c->n_except = (unsigned)in->n_except;
	for (i = 0; i < c->n_except && ret == 0; i++)
		ret = ip_parse_prefix(in->except[i], "rule.except", &except[i], err);
	return ret;
}

static int nat_api_decode(struct api_call *call, const rule_msg *in, struct nat_config *c, struct error *err)
{
	const struct vrf *vrf, *external;
	int ret;

	*c = (struct nat_config){.id = in->id};
	vrf = vrf_find_err(in->vrf, "rule.vrf", err);
	external = vrf && *in->external_vrf ? vrf_find_err(in->external_vrf, "rule.external_vrf", err) : vrf;
	if (external == NULL)
		return -ENOENT;
	c->vrf = vrf->id;
	c->external = external->id;
	ret = nat_api_decode_kind(call, in, c, err);
	return ret < 0 ? ret : nat_api_decode_match(call, in, c, err);
}

// --- Replies. ---

static char *nat_api_encode_addr(struct api_call *call, const struct ip_addr *a)
{
	char text[IP_TEXT];

	return api_strdup(call, ip_format_addr(a, text));
}

static char *nat_api_encode_prefix(struct api_call *call, const struct ip_prefix *p)
{
	char text[IP_TEXT];

	return api_strdup(call, ip_format_prefix(p, text));
}

static void nat_api_encode_floating(struct api_call *call, const struct nat_config *c, rule_msg *out)
{
	Corelane__V1__FloatingNat *f = api_alloc(call, sizeof(*f));

	corelane__v1__floating_nat__init(f);
	f->inside = nat_api_encode_addr(call, &c->inside.addr);
	f->outside = nat_api_encode_addr(call, &c->outside);
	out->kind_case = CORELANE__V1__NAT_RULE__KIND_FLOATING;
	out->floating = f;
}

static void nat_api_encode_source(struct api_call *call, const struct nat_config *c, rule_msg *out)
{
	Corelane__V1__SourceNat *s = api_alloc(call, sizeof(*s));

	corelane__v1__source_nat__init(s);
	s->prefix = nat_api_encode_prefix(call, &c->inside);
	s->first = nat_api_encode_addr(call, &c->outside);
	s->last = nat_api_encode_addr(call, &c->last);
	s->first_port = c->first_port;
	s->last_port = c->last_port;
	out->kind_case = CORELANE__V1__NAT_RULE__KIND_SOURCE;
	out->source = s;
}

static void nat_api_encode_destination(struct api_call *call, const struct nat_config *c, rule_msg *out)
{
	Corelane__V1__DestinationNat *d = api_alloc(call, sizeof(*d));
	Corelane__V1__NatBackend *b;
	unsigned i;

	corelane__v1__destination_nat__init(d);
	d->address = nat_api_encode_addr(call, &c->outside);
	d->port = c->first_port;
	d->n_backends = c->n_backends;
	d->backends = api_alloc(call, c->n_backends * sizeof(*d->backends));
	for (i = 0; i < c->n_backends; i++) {
		b = d->backends[i] = api_alloc(call, sizeof(*b));
		corelane__v1__nat_backend__init(b);
		b->address = nat_api_encode_addr(call, &c->backends[i].addr);
		b->port = c->backends[i].port;
		b->weight = c->backends[i].weight;
	}
	out->kind_case = CORELANE__V1__NAT_RULE__KIND_DESTINATION;
	out->destination = d;
}

static void nat_api_encode(struct api_call *call, const struct nat_config *c, rule_msg *out)
{
	unsigned i;

	out->id = c->id;
	out->vrf = api_strdup(call, vrf_get(c->vrf)->name);
	if (c->external != c->vrf)
		out->external_vrf = api_strdup(call, vrf_get(c->external)->name);
	if (c->kind == NAT_FLOATING)
		nat_api_encode_floating(call, c, out);
	else if (c->kind == NAT_SOURCE)
		nat_api_encode_source(call, c, out);
	else
		nat_api_encode_destination(call, c, out);
	if (c->to.addr.family)
		out->to = nat_api_encode_prefix(call, &c->to);
	out->n_except = c->n_except;
	out->except = api_alloc(call, (c->n_except + 1) * sizeof(*out->except));
	for (i = 0; i < c->n_except; i++)
		out->except[i] = nat_api_encode_prefix(call, &c->except[i]);
	out->protocol = c->protocol == IPPROTO_ICMPV6 ? CORELANE__V1__NAT_PROTOCOL__NAT_PROTOCOL_ICMP
						      : (Corelane__V1__NatProtocol)c->protocol;
	out->first_port = c->to_first_port;
	out->last_port = c->to_last_port;
	out->flows = nat_flows(c->id);
}

static int nat_api_add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	struct nat_config c;
	int ret = nat_api_decode(call, ((const Corelane__V1__NatAddRequest *)req)->rule, &c, err);

	if (ret == 0)
		ret = nat_add(&c, err);
	if (ret == 0)
		nat_api_encode(call, nat_get(c.id), resp);
	return ret;
}

static int nat_api_set(struct api_call *call, const void *req, void *resp, struct error *err)
{
	struct nat_config c;
	int ret = nat_api_decode(call, ((const Corelane__V1__NatSetRequest *)req)->rule, &c, err);

	if (ret == 0)
		ret = nat_set(&c, err);
	if (ret == 0)
		nat_api_encode(call, nat_get(c.id), resp);
	return ret;
}

static int nat_api_del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	return nat_del(((const Corelane__V1__NatDelRequest *)req)->id, err);
}

static int nat_api_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__NatListRequest *in = req;
	const struct vrf *v = NULL;
	uint32_t *last = cursor, id;

	if (*in->vrf) {
		v = vrf_find_err(in->vrf, "vrf", err);
		if (v == NULL)
			return -ENOENT;
	}
	for (id = nat_next(*last); id && v && nat_get(id)->vrf != v->id; id = nat_next(id))
		;
	if (id == 0)
		return *last = NAT_RULES_MAX, 0;
	*last = id;
	nat_api_encode(call, nat_get(id), item);
	return 1;
}

#define SERVICE "corelane.v1.Nat"

static const struct api_method methods[] = {
	{SERVICE, "Add", &corelane__v1__nat_add_request__descriptor, &corelane__v1__nat_rule__descriptor,
	 .unary = nat_api_add},
	{SERVICE, "Set", &corelane__v1__nat_set_request__descriptor, &corelane__v1__nat_rule__descriptor,
	 .unary = nat_api_set},
	{SERVICE, "Del", &corelane__v1__nat_del_request__descriptor, &corelane__v1__empty__descriptor,
	 .unary = nat_api_del},
	{SERVICE, "List", &corelane__v1__nat_list_request__descriptor, &corelane__v1__nat_rule__descriptor,
	 .next = nat_api_list, .cursor_size = sizeof(uint32_t)},
};
API_METHODS(methods)
