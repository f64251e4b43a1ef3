// SPDX-License-Identifier: Apache-2.0
// API of routes (api/route.proto).
#include <errno.h>
#include <string.h>

#include "api/api.h"
#include "l3/nexthop.h"
#include "l3/vrf.h"
#include "route.pb-c.h"

struct parsed {
	struct vrf *v;
	struct ip_prefix p;
	struct rib_route r;
};

// Consecutive routes mostly name the same VRF.
static struct vrf *route_api_find_vrf(const char *name, struct vrf *last, struct error *err)
{
	if (last && strcmp(last->name, name) == 0)
		return last;
	return vrf_find_err(name, "route.vrf", err);
}

static struct parsed *route_api_decode(struct api_call *call, Corelane__V1__Route *const *in, size_t n,
				       struct error *err)
{
	struct parsed *out = api_alloc(call, (n + 1) * sizeof(*out));
	uint8_t origin = route_origin_of(api_client(call)->owner);
	struct vrf *v = NULL;
	size_t i;

	for (i = 0; i < n; i++) {
		v = route_api_find_vrf(in[i]->vrf, v, err);
		if (v == NULL || ip_parse_prefix(in[i]->prefix, "route.prefix", &out[i].p, err) < 0) {
			err->index = (uint32_t)i;
			return NULL;
		}
		out[i].v = v;
		out[i].r = (struct rib_route){.nexthop = in[i]->nexthop, .origin = origin};
	}
	return out;
}

static int route_api_add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__RouteAddRequest *in = req;
	Corelane__V1__RouteReply *out = resp;
	struct parsed *r = route_api_decode(call, in->routes, in->n_routes, err);
	size_t i;
	int ret = 0;

	if (r == NULL)
		return -err->code;
	for (i = 0; i < in->n_routes && ret == 0; i++) {
		ret = nexthop_usable(r[i].r.nexthop, "route.nexthop", err);
		if (ret == 0)
			ret = nexthop_carries(r[i].r.nexthop, r[i].p.addr.family, "route.nexthop", err);
		if (ret == 0)
			ret = route_check(r[i].v, &r[i].p, r[i].r.origin, err);
		if (ret < 0)
			err->index = (uint32_t)i;
	}
	for (i = 0; i < in->n_routes && ret == 0; i++, out->changed += ret == 0) {
		ret = route_set(r[i].v, &r[i].p, &r[i].r, err);
		if (ret < 0)
			err->index = (uint32_t)i;
	}
	return ret;
}

static int route_api_del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__RouteDelRequest *in = req;
	Corelane__V1__RouteReply *out = resp;
	struct parsed *r = route_api_decode(call, in->routes, in->n_routes, err);
	struct rib_route *route;
	char text[IP_TEXT];
	size_t i;
	int ret = 0;

	if (r == NULL)
		return -err->code;
	for (i = 0; i < in->n_routes && ret == 0; i++) {
		route = rib_get(r[i].v->rib[family_index(r[i].p.addr.family)], &r[i].p);
		if (route == NULL)
			ret = error_set(err, ENOENT, "route.prefix", ip_format_prefix(&r[i].p, text), NULL,
					"there is no such route");
		else if (route->origin != r[i].r.origin)
			ret = route_unset(r[i].v, &r[i].p, r[i].r.origin, err); // says why it refuses
		if (ret < 0)
			err->index = (uint32_t)i;
	}
	for (i = 0; i < in->n_routes && ret == 0; i++) {
		if (route_unset(r[i].v, &r[i].p, r[i].r.origin, err) == 0)
			out->changed++; // a prefix that the request names twice is gone already
	}
	return ret;
}

static void route_api_encode(struct api_call *call, const struct vrf *v, const struct ip_prefix *p,
			     const struct rib_route *r, Corelane__V1__Route *out)
{
	char text[IP_TEXT];

	out->vrf = api_strdup(call, v->name);
	out->prefix = api_strdup(call, ip_format_prefix(p, text));
	out->nexthop = r->nexthop;
	out->origin = api_strdup(call, route_origin_name(r->origin));
}

struct cursor {
	bool begun, in_table;
	uint32_t vrf;
	unsigned family; // index
	struct ip_prefix last;
	struct ip_prefix under;
};

static int route_api_begin(const Corelane__V1__RouteListRequest *in, struct cursor *c, struct error *err)
{
	c->begun = true;
	if (*in->vrf) {
		struct vrf *v = vrf_find_err(in->vrf, "vrf", err);

		if (v == NULL)
			return -ENOENT;
		c->vrf = v->id;
	}
	return *in->under ? ip_parse_prefix(in->under, "under", &c->under, err) : 0;
}

static bool route_api_wanted(const Corelane__V1__RouteListRequest *in, const struct cursor *c,
			     const struct ip_prefix *p, const struct rib_route *r)
{
	if (c->under.addr.family && (p->len < c->under.len || !ip_prefix_covers(&c->under, &p->addr)))
		return false;
	return *in->origin == '\0' || strcmp(in->origin, route_origin_name(r->origin)) == 0;
}

// Moves on to the next table: IPv4 and IPv6 of each VRF.
static bool next_table(const Corelane__V1__RouteListRequest *in, struct cursor *c)
{
	c->in_table = false;
	if (c->family == 0) {
		c->family = 1;
		return true;
	}
	c->family = 0;
	c->vrf++;
	return *in->vrf == '\0' && c->vrf < VRF_MAX;
}

static int route_api_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__RouteListRequest *in = req;
	struct cursor *c = cursor;
	struct rib_route *r;
	struct vrf *v;
	int ret = c->begun ? 0 : route_api_begin(in, c, err);

	if (ret < 0)
		return ret;
	if (c->vrf >= VRF_MAX)
		return 0;
	do {
		v = vrf_get((uint16_t)c->vrf);
		if (v == NULL || (in->family && (unsigned)in->family != c->family + 1))
			continue;
		while ((r = rib_next(v->rib[c->family], c->in_table ? &c->last : NULL, &c->last)) != NULL) {
			c->in_table = true;
			if (route_api_wanted(in, c, &c->last, r)) {
				route_api_encode(call, v, &c->last, r, item);
				return 1;
			}
		}
	} while (next_table(in, c));
	c->vrf = VRF_MAX;
	return 0;
}

static int route_api_lookup(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__RouteLookupRequest *in = req;
	struct vrf *v = vrf_find_err(in->vrf, "vrf", err);
	struct ip_prefix match;
	struct rib_route *r;
	struct ip_addr a;

	if (v == NULL)
		return -ENOENT;
	if (ip_parse_addr(in->address, "address", &a, err) < 0)
		return -EINVAL;
	r = rib_match(v->rib[family_index(a.family)], &a, &match);
	if (r == NULL)
		return error_set(err, ENOENT, "address", in->address, NULL, "VRF '%s' has no route to it", v->name);
	route_api_encode(call, v, &match, r, resp);
	return 0;
}

static const struct api_method methods[] = {
	{"corelane.v1.Routes", "Add", &corelane__v1__route_add_request__descriptor,
	 &corelane__v1__route_reply__descriptor, .unary = route_api_add},
	{"corelane.v1.Routes", "Del", &corelane__v1__route_del_request__descriptor,
	 &corelane__v1__route_reply__descriptor, .unary = route_api_del},
	{"corelane.v1.Routes", "List", &corelane__v1__route_list_request__descriptor, &corelane__v1__route__descriptor,
	 .next = route_api_list, .cursor_size = sizeof(struct cursor)},
	{"corelane.v1.Routes", "Lookup", &corelane__v1__route_lookup_request__descriptor,
	 &corelane__v1__route__descriptor, .unary = route_api_lookup},
};
API_METHODS(methods)
