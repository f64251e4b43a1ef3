// SPDX-License-Identifier: Apache-2.0
#include "l3/vrf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/id_table.h"
#include "base/notify.h"
#include "base/owner.h"
#include "base/rcu.h"
#include "l3/nexthop.h"

struct vrf_fibs vrf_fibs[VRF_MAX];
static struct vrf_listener *listeners;
static struct referrer *vrf_referrers;
static struct vrf *vrfs[VRF_MAX];
static struct fib *empty[2]; // what workers find in a VRF that does not exist
static uint64_t n_routes[2];
static struct vrf *deleted; // list
uint64_t vrf_deletions;

#define DEL_SHARE 4096 // routes, or nodes of a FIB: about 2 ms

static const char *const origin_names[] = {
	[ROUTE_API] = "api", [ROUTE_CONNECTED] = "connected", [ROUTE_LOCAL] = "local", [ROUTE_GUEST] = "guest"};

const char *route_origin_name(uint8_t origin)
{
	return origin < ROUTE_OWNED ? origin_names[origin] : owner_name((uint8_t)(origin - ROUTE_OWNED));
}

uint8_t route_origin_of(uint8_t owner)
{
	return owner == OWNER_API ? ROUTE_API : (uint8_t)(ROUTE_OWNED + owner);
}

bool route_is_given(uint8_t origin)
{
	return origin == ROUTE_API || origin > ROUTE_OWNED;
}

static int route_refuse(int code, const struct vrf *v, const struct ip_prefix *p, uint8_t origin, struct error *err)
{
	char text[IP_TEXT];

	ip_format_prefix(p, text);
	if (route_is_given(origin))
		return error_set(err, EPERM, "route.prefix", text, NULL, "belongs to owner '%s' in VRF '%s'",
				 route_origin_name(origin), v->name);
	if (code == EEXIST)
		return error_set(err, EEXIST, "route.prefix", text, "another prefix", "is a %s route of VRF '%s'",
				 route_origin_name(origin), v->name);
	return error_set(err, EPERM, "route.prefix", text, NULL, "is a %s route: it is removed with its port",
			 route_origin_name(origin));
}

// Looks at so many routes at most, about 10 ms: an error that does not name the route is better than a daemon that
// keeps its other clients waiting.
#define FIND_LOOKS 65536

static bool route_find_nexthop(uint32_t id, char *text, size_t size)
{
	unsigned left = FIND_LOOKS, i;
	const struct rib_route *r;
	char prefix[IP_TEXT];
	const struct vrf *v;
	struct ip_prefix p;

	for (v = vrf_next(NULL); v; v = vrf_next(v))
		for (i = 0; i < 2; i++)
			for (r = rib_next(v->rib[i], NULL, &p); r && left > 0; r = rib_next(v->rib[i], &p, &p), left--)
				if (r->nexthop == id) {
					ip_format_prefix(&p, prefix);
					snprintf(text, size, "route %s of VRF '%s'", prefix, v->name);
					return true;
				}
	return false;
}

int vrf_init(struct error *err)
{
	static struct referrer routes = {.find = route_find_nexthop};
	unsigned i;

	nexthop_refer(&routes);
	empty[0] = fib_create(IPV4);
	empty[1] = fib_create(IPV6);
	if (empty[0] == NULL || empty[1] == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for routing tables");
	for (i = 0; i < VRF_MAX; i++)
		vrf_fibs[i] = (struct vrf_fibs){empty[0], empty[1]};
	return vrf_add("fabric", UINT32_MAX, err) ? 0 : -ENOMEM;
}

static int vrf_check_name(const char *name, struct error *err)
{
	if (vrf_find(name))
		return error_set(err, EEXIST, "vrf.name", name, "a new name", "is taken");
	return 0;
}

static int vrf_check_id(uint32_t *id, struct error *err)
{
	char text[16];

	if (*id == UINT32_MAX) { // the fabric's
		*id = 0;
		return 0;
	}
	if (*id == 0)
		*id = id_table_free(vrfs, VRF_MAX, 1);
	if (*id == VRF_MAX)
		return error_set(err, ENOSPC, "vrf.id", NULL, NULL, "all %u ids are taken", VRF_MAX - 1);
	snprintf(text, sizeof(text), "%u", *id);
	if (vrfs[*id])
		return error_set(err, EEXIST, "vrf.id", text, "a free id from " LIMIT_VRF_ID_VALID, "is taken by '%s'",
				 vrfs[*id]->name);
	return 0;
}

static void vrf_free(struct vrf *v)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		if (v->fib[i])
			fib_destroy(v->fib[i]);
		if (v->rib[i])
			rib_destroy(v->rib[i]);
	}
	free(v);
}

struct vrf *vrf_add(const char *name, uint32_t id, struct error *err)
{
	struct vrf *v;

	if (vrf_check_name(name, err) < 0 || vrf_check_id(&id, err) < 0)
		return NULL;
	v = calloc(1, sizeof(*v));
	if (v) {
		snprintf(v->name, sizeof(v->name), "%s", name);
		v->id = (uint16_t)id;
		v->fib[0] = fib_create(IPV4);
		v->fib[1] = fib_create(IPV6);
		v->rib[0] = rib_create(IPV4);
		v->rib[1] = rib_create(IPV6);
	}
	if (v == NULL || !v->fib[0] || !v->fib[1] || !v->rib[0] || !v->rib[1]) {
		if (v)
			vrf_free(v);
		error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for VRF '%s'", name);
		return NULL;
	}
	vrfs[id] = v;
	rcu_publish(vrf_fibs[id].fib4, v->fib[0]);
	rcu_publish(vrf_fibs[id].fib6, v->fib[1]);
	return v;
}

static bool vrf_drop_routes(struct vrf *v, unsigned *left)
{
	struct ip_prefix p;
	struct rib_route *r;
	unsigned i;

	for (i = 0; i < 2; i++) {
		while ((r = rib_next(v->rib[i], NULL, &p)) != NULL) {
			if (*left == 0)
				return false;
			--*left;
			nexthop_unref(r->nexthop);
			rib_del(v->rib[i], &p);
			n_routes[i]--;
		}
	}
	return true;
}

static bool vrf_drop_fibs(struct vrf *v, unsigned *left)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		if (v->fib[i] && !fib_destroy_share(v->fib[i], left))
			return false;
		v->fib[i] = NULL;
	}
	return true;
}

bool vrf_has_routes(uint64_t serial)
{
	unsigned left = DEL_SHARE;
	struct vrf *v;

	for (v = deleted; v && v->serial != serial; v = v->next)
		;
	return v && !vrf_drop_routes(v, &left);
}

// A VRF whose readers have not gone does not hold up the others.
bool vrf_del_share(void)
{
	unsigned left = DEL_SHARE;
	struct vrf **at = &deleted, *v;

	while ((v = *at) != NULL && left > 0) {
		if (!vrf_drop_routes(v, &left) || !rcu_passed(v->token) || !vrf_drop_fibs(v, &left)) {
			at = &v->next;
			continue;
		}
		*at = v->next;
		vrf_free(v);
	}
	return deleted != NULL;
}

void vrf_poll(void)
{
	vrf_del_share();
}

int vrf_del(const char *name, struct error *err)
{
	struct vrf *v = vrf_find_err(name, "vrf.name", err);

	if (v == NULL)
		return -ENOENT;
	if (v->id == VRF_FABRIC)
		return error_set(err, EPERM, "vrf.name", name, NULL, "is the underlay's and cannot be deleted");
	if (v->refs > 0)
		return referrer_error(vrf_referrers, v->id, v->refs, "vrf.name", name, err);
	vrfs[v->id] = NULL;
	rcu_publish(vrf_fibs[v->id].fib4, empty[0]);
	rcu_publish(vrf_fibs[v->id].fib6, empty[1]);
	v->token = rcu_token();
	v->serial = ++vrf_deletions;
	v->next = deleted;
	deleted = v;
	return 0;
}

struct vrf *vrf_get(uint16_t id)
{
	return id < VRF_MAX ? vrfs[id] : NULL;
}

struct vrf *vrf_next(const struct vrf *v)
{
	return id_table_next(vrfs, VRF_MAX, v ? v->id + 1u : 0);
}

struct vrf *vrf_find(const char *name)
{
	return id_table_find(vrfs, VRF_MAX, offsetof(struct vrf, name), name);
}

struct vrf *vrf_find_err(const char *name, const char *field, struct error *err)
{
	struct vrf *v = name ? vrf_find(name) : NULL;

	if (v == NULL)
		error_set(err, ENOENT, field, name ? name : "", "the name of a VRF that exists",
			  "there is no such VRF");
	return v;
}

unsigned vrf_count(void)
{
	return id_table_count(vrfs, VRF_MAX);
}

int route_check(struct vrf *v, const struct ip_prefix *p, uint8_t origin, struct error *err)
{
	struct rib_route *r = rib_get(v->rib[family_index(p->addr.family)], p);

	return r == NULL || r->origin == origin ? 0 : route_refuse(EEXIST, v, p, r->origin, err);
}

void vrf_listen(struct vrf_listener *l)
{
	LISTEN(listeners, l);
}

void vrf_refer(struct referrer *r)
{
	LISTEN(vrf_referrers, r);
}

static void vrf_changed(const struct vrf *v)
{
	const struct vrf_listener *l;

	if (v->id == VRF_FABRIC)
		nexthop_underlay_changed();
	for (l = listeners; l; l = l->next)
		if (l->route_changed)
			l->route_changed(v->id);
}

int route_set(struct vrf *v, const struct ip_prefix *p, const struct rib_route *route, struct error *err)
{
	unsigned f = family_index(p->addr.family);
	struct rib_route *r;
	bool created;
	int ret = route_check(v, p, route->origin, err);

	if (ret < 0)
		return ret;
	r = rib_add(v->rib[f], p, &created);
	if (r == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a route");
	if (!created && r->nexthop == route->nexthop)
		return 0;
	ret = fib_set(v->fib[f], p, route->nexthop);
	if (ret < 0) {
		if (created)
			rib_del(v->rib[f], p);
		return error_set(err, -ret, NULL, NULL, NULL, "no memory for a route");
	}
	nexthop_ref(route->nexthop);
	if (created)
		n_routes[f]++;
	else
		nexthop_unref(r->nexthop);
	*r = *route;
	vrf_changed(v);
	return 0;
}

int route_unset(struct vrf *v, const struct ip_prefix *p, uint8_t origin, struct error *err)
{
	unsigned f = family_index(p->addr.family);
	struct rib_route *r = rib_get(v->rib[f], p), *c;
	struct ip_prefix cover;
	char text[IP_TEXT];

	ip_format_prefix(p, text);
	if (r == NULL)
		return error_set(err, ENOENT, "route.prefix", text, NULL, "there is no such route in VRF '%s'",
				 v->name);
	if (r->origin != origin)
		return route_refuse(EPERM, v, p, r->origin, err);
	c = rib_cover(v->rib[f], p, &cover);
	if (fib_unset(v->fib[f], p, c ? &cover : NULL, c ? c->nexthop : FIB_NONE) < 0)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory to change the FIB");
	nexthop_unref(r->nexthop);
	rib_del(v->rib[f], p);
	n_routes[f]--;
	vrf_changed(v);
	return 0;
}

uint64_t route_count(uint8_t family)
{
	return n_routes[family_index(family)];
}
