// SPDX-License-Identifier: Apache-2.0
// Routes that come and go with a port: its own addresses (local), the subnets of its link (connected), its guests.
#include "l3/underlay.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_malloc.h>

#include "base/log.h"
#include "l3/nexthop.h"
#include "l3/vrf.h"
#include "port/registry.h"

struct underlay_addrs *underlay_addrs;

static int addrs_publish(const struct port *without)
{
	struct underlay_addrs *u = rte_zmalloc("underlay", sizeof(*u), RTE_CACHE_LINE_SIZE), *old = underlay_addrs;
	struct port *p;
	unsigned i;

	if (u == NULL)
		return -ENOMEM;
	for (p = port_next(NULL); p; p = port_next(p)) {
		for (i = 0; p != without && i < p->cfg.n_addrs; i++) {
			const struct ip_addr *a = &p->cfg.addrs[i].addr;

			if (a->family == IPV4 && u->n4 < UNDERLAY_ADDRS)
				u->ip4[u->n4++] = ip4_be(a);
			else if (a->family == IPV6 && u->n6 < UNDERLAY_ADDRS)
				memcpy(u->ip6[u->n6++], a->bytes, 16);
		}
	}
	rcu_publish(underlay_addrs, u);
	if (old)
		rcu_defer(rte_free, old);
	return 0;
}

static struct ip_prefix port_routes_host(const struct ip_addr *a)
{
	return ip_prefix_of(a, (uint8_t)ip_bits(a->family));
}

// A system next hop with one reference, held by the route that is about to use it.
static uint32_t port_routes_nexthop(struct nexthop_config *cfg, struct error *err)
{
	cfg->id = nexthop_alloc();
	return cfg->id && nexthop_add(cfg, false, err) == 0 ? cfg->id : 0;
}

static void port_routes_set(struct vrf *v, const struct ip_prefix *p, uint32_t nexthop, enum route_origin origin)
{
	struct error err = {0};
	char text[IP_TEXT];

	if (nexthop && route_set(v, p, &(struct rib_route){nexthop, (uint8_t)origin}, &err) == 0)
		return;
	LOG(ERR, "route %s of VRF %s: %s", ip_format_prefix(p, text), v->name, err.message);
	if (nexthop > NH_ID_DISCARD && nexthop_get(nexthop) && nexthop_get(nexthop)->refs == 0)
		nexthop_del(nexthop, NULL);
}

static void port_routes_add_fabric(struct port *p)
{
	struct vrf *v = vrf_get(VRF_FABRIC);
	struct nexthop_config glean = {.kind = NH_GLEAN, .port.id = p->id};
	struct ip_prefix pre;
	unsigned i;

	for (i = 0; i < p->cfg.n_addrs; i++) {
		pre = port_routes_host(&p->cfg.addrs[i].addr);
		port_routes_set(v, &pre, NH_ID_LOCAL, ROUTE_LOCAL);
		pre = ip_prefix_of(&p->cfg.addrs[i].addr, p->cfg.addrs[i].len);
		if (pre.len < ip_bits(pre.addr.family))
			port_routes_set(v, &pre, port_routes_nexthop(&glean, NULL), ROUTE_CONNECTED);
	}
}

static void port_routes_add_tenant(struct port *p)
{
	struct vrf *v = vrf_get(p->cfg.vrf);
	struct nexthop_config cfg = {.kind = NH_PORT, .port = {.id = p->id, .mac = p->cfg.guest_mac}};
	struct ip_prefix pre;
	unsigned i;

	for (i = 0; v && i < p->cfg.n_gateways; i++) {
		pre = port_routes_host(&p->cfg.gateways[i].addr);
		port_routes_set(v, &pre, NH_ID_LOCAL, ROUTE_LOCAL);
	}
	for (i = 0; v && i < p->cfg.n_guests; i++) {
		cfg.port.addr = p->cfg.guests[i].addr;
		port_routes_set(v, &p->cfg.guests[i], port_routes_nexthop(&cfg, NULL), ROUTE_GUEST);
	}
}

// Gateways are anycast: another port of the VRF may have the same one.
static bool port_routes_gateway_elsewhere(const struct port *port, uint16_t vrf, const struct ip_addr *a)
{
	struct port *p;
	unsigned i;

	for (p = port_next(NULL); p; p = port_next(p)) {
		for (i = 0; p != port && p->cfg.role == PORT_TENANT && p->cfg.vrf == vrf && i < p->cfg.n_gateways; i++)
			if (ip_addr_eq(&p->cfg.gateways[i].addr, a))
				return true;
	}
	return false;
}

static void port_routes_del(const struct port *p, const struct port_config *c)
{
	struct vrf *v = vrf_get(c->role == PORT_FABRIC ? VRF_FABRIC : c->vrf);
	struct ip_prefix pre;
	unsigned i;

	for (i = 0; i < c->n_addrs; i++) {
		pre = port_routes_host(&c->addrs[i].addr);
		route_unset(v, &pre, ROUTE_LOCAL, NULL);
		pre = ip_prefix_of(&c->addrs[i].addr, c->addrs[i].len);
		route_unset(v, &pre, ROUTE_CONNECTED, NULL);
	}
	for (i = 0; v && i < c->n_gateways; i++) {
		pre = port_routes_host(&c->gateways[i].addr);
		if (!port_routes_gateway_elsewhere(p, c->vrf, &c->gateways[i].addr))
			route_unset(v, &pre, ROUTE_LOCAL, NULL);
	}
	for (i = 0; v && i < c->n_guests; i++)
		route_unset(v, &c->guests[i], ROUTE_GUEST, NULL);
}

static void port_routes_ref_vrf(const struct port_config *c, int step)
{
	struct vrf *v = c->role == PORT_TENANT && c->vrf != UINT16_MAX ? vrf_get(c->vrf) : NULL;

	if (v)
		v->refs += (uint32_t)step;
}

static bool port_routes_has_prefix(const struct ip_prefix *list, unsigned n, const struct ip_prefix *p)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (list[i].len == p->len && ip_addr_eq(&list[i].addr, &p->addr))
			return true;
	return false;
}

static int port_routes_check_addr(const char *field, const struct ip_prefix *p, struct error *err)
{
	char text[IP_TEXT];

	if (!ip_is_multicast(&p->addr) && !ip_is_unspecified(&p->addr))
		return 0;
	return error_set(err, EINVAL, field, ip_format_prefix(p, text), "a unicast address",
			 "cannot be an interface's address");
}

// A prefix is free for this port if it has no route, or the port's own.
static int port_routes_check_route(const struct port *old, struct vrf *v, const struct ip_prefix *p,
				   enum route_origin origin, const char *field, bool mine, struct error *err)
{
	struct rib_route *r = rib_get(v->rib[family_index(p->addr.family)], p);
	char text[IP_TEXT];

	if (r == NULL || mine)
		return 0;
	return error_set(err, EEXIST, field, ip_format_prefix(p, text), "an address that is free in the VRF",
			 "is a %s route of VRF '%s' already", route_origin_name(r->origin), v->name);
}

static int port_routes_check_fabric(const struct port *old, const struct port_config *c, struct error *err)
{
	struct vrf *v = vrf_get(VRF_FABRIC);
	struct ip_prefix pre;
	unsigned i;
	bool mine;
	int ret = 0;

	for (i = 0; i < c->n_addrs && ret == 0; i++) {
		mine = old && port_routes_has_prefix(old->cfg.addrs, old->cfg.n_addrs, &c->addrs[i]);
		pre = port_routes_host(&c->addrs[i].addr);
		ret = port_routes_check_addr("port.addresses", &c->addrs[i], err);
		if (ret == 0)
			ret = port_routes_check_route(old, v, &pre, ROUTE_LOCAL, "port.addresses", mine, err);
		pre = ip_prefix_of(&c->addrs[i].addr, c->addrs[i].len);
		if (ret == 0 && pre.len < ip_bits(pre.addr.family))
			ret = port_routes_check_route(old, v, &pre, ROUTE_CONNECTED, "port.addresses", mine, err);
	}
	return ret;
}

static int port_routes_check_tenant(const struct port *old, const struct port_config *c, struct error *err)
{
	struct vrf *v = vrf_get(c->vrf);
	struct rib_route *r;
	struct ip_prefix pre;
	unsigned i;
	bool mine;
	int ret = 0;

	if (c->vrf != UINT16_MAX && v == NULL)
		return error_set(err, ENOENT, "port.vrf", NULL, NULL, "there is no such VRF");
	for (i = 0; v && i < c->n_gateways && ret == 0; i++) {
		pre = port_routes_host(&c->gateways[i].addr);
		r = rib_get(v->rib[family_index(pre.addr.family)], &pre);
		ret = port_routes_check_addr("port.gateways", &c->gateways[i], err);
		if (ret == 0)
			ret = port_routes_check_route(old, v, &pre, ROUTE_LOCAL, "port.gateways",
						      r && r->origin == ROUTE_LOCAL, err);
	}
	for (i = 0; i < c->n_guests && ret == 0; i++) {
		mine = old && old->cfg.vrf == c->vrf &&
		       port_routes_has_prefix(old->cfg.guests, old->cfg.n_guests, &c->guests[i]);
		ret = port_routes_check_addr("port.guest_addresses", &c->guests[i], err);
		if (v && ret == 0)
			ret = port_routes_check_route(old, v, &c->guests[i], ROUTE_GUEST, "port.guest_addresses", mine,
						      err);
	}
	return ret;
}

static int port_routes_on_check(const struct port *old, const struct port_config *c, struct error *err)
{
	return c->role == PORT_FABRIC ? port_routes_check_fabric(old, c, err) : port_routes_check_tenant(old, c, err);
}

PORT_SETTINGS(routed_config)

static void port_routes_forward(const struct port_config *cfg, struct port_fwd *out)
{
	out->mss = (uint16_t)routed_config(cfg)->mss_clamp;
	out->gateway_echo = !routed_config(cfg)->no_gateway_echo;
	out->unresolved_rate = routed_config(cfg)->unresolved_rate ? routed_config(cfg)->unresolved_rate
								   : LIMIT_PORT_UNRESOLVED_RATE_MAX;
}

static void port_routes_on_added(struct port *p)
{
	if (p->cfg.role == PORT_FABRIC)
		port_routes_add_fabric(p);
	else
		port_routes_add_tenant(p);
	port_routes_ref_vrf(&p->cfg, 1);
	addrs_publish(NULL);
	nexthop_underlay_changed();
}

// Removes from list a what list b has. Returns how many are left.
static unsigned port_routes_subtract(struct ip_prefix *a, unsigned n, const struct ip_prefix *b, unsigned n_b)
{
	unsigned i, k = 0;

	for (i = 0; i < n; i++)
		if (!port_routes_has_prefix(b, n_b, &a[i]))
			a[k++] = a[i];
	return k;
}

// Routes that stay are replaced in place, so that no packet finds one missing.
static void port_routes_on_changed(struct port *p, const struct port_config *old)
{
	const struct port_config *now = &p->cfg;
	struct port_config gone = *old;

	if (old->vrf == now->vrf) {
		gone.n_addrs = port_routes_subtract(gone.addrs, gone.n_addrs, now->addrs, now->n_addrs);
		gone.n_gateways = port_routes_subtract(gone.gateways, gone.n_gateways, now->gateways, now->n_gateways);
		gone.n_guests = port_routes_subtract(gone.guests, gone.n_guests, now->guests, now->n_guests);
	}
	port_routes_on_added(p);
	port_routes_del(p, &gone);
	port_routes_ref_vrf(old, -1);
	addrs_publish(NULL);
}

static void port_routes_on_removed(struct port *p)
{
	port_routes_del(p, &p->cfg);
	port_routes_ref_vrf(&p->cfg, -1);
	addrs_publish(p);
	nexthop_underlay_changed();
}

static void port_routes_on_link(struct port *p)
{
	nexthop_underlay_changed();
}

static bool port_routes_has_vrf(const struct port_config *c, uint32_t vrf)
{
	return c->role == PORT_TENANT && c->vrf == vrf;
}

static bool port_routes_find(uint32_t vrf, char *text, size_t size)
{
	const struct port *p = port_next(NULL);

	while (p && !port_routes_has_vrf(&p->cfg, vrf))
		p = port_next(p);
	if (p)
		snprintf(text, size, "port '%s'", p->cfg.name);
	return p != NULL;
}

int underlay_init(struct error *err)
{
	static struct referrer ports = {.find = port_routes_find};
	static struct port_listener listener = {.check = port_routes_on_check,
						.forward = port_routes_forward,
						.added = port_routes_on_added,
						.changed = port_routes_on_changed,
						.removed = port_routes_on_removed,
						.link = port_routes_on_link};

	port_listen(&listener);
	vrf_refer(&ports);
	return addrs_publish(NULL) < 0 ? error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for addresses") : 0;
}
