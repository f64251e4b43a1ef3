// SPDX-License-Identifier: Apache-2.0
// What a port's configuration says about IPv6 on the guest's link, and its check.
#include <errno.h>
#include <string.h>

#include "boot/boot_private.h"
#include "neighbor/answer.h"

#define LEAST_MTU 1280 // RFC 8200, 5

static bool link6_is_link_local(const struct ip_addr *a)
{
	return a->family == IPV6 && a->bytes[0] == 0xfe && (a->bytes[1] & 0xc0) == 0x80;
}

static const struct ip_addr *link6_router(const struct port_config *cfg)
{
	const struct boot_config *b = boot_config(cfg);
	unsigned i;

	for (i = 0; i < b->n_routers; i++)
		if (b->routers[i].family == IPV6)
			return &b->routers[i];
	return NULL;
}

bool boot_router6(const struct port_config *cfg, const struct rte_ether_addr *mac, uint8_t router[16])
{
	const struct ip_addr *other = link6_router(cfg);

	if (other)
		memcpy(router, other->bytes, 16);
	else
		answer_link_local(mac, router);
	return other || cfg->vrf != UINT16_MAX;
}

static unsigned link6_add(struct ip_prefix out[PORT_MAX_ADDRS], unsigned n, const struct ip_prefix *address)
{
	struct ip_prefix subnet = ip_prefix_of(&address->addr, address->len);
	unsigned i;

	if (address->addr.family != IPV6 || link6_is_link_local(&address->addr))
		return n;
	for (i = 0; i < n; i++)
		if (out[i].len == subnet.len && ip_addr_eq(&out[i].addr, &subnet.addr))
			return n;
	out[n] = subnet;
	return n + 1;
}

unsigned boot_prefixes6(const struct port_config *cfg, struct ip_prefix out[PORT_MAX_ADDRS])
{
	struct boot_lease lease;
	unsigned i, n = 0;

	for (i = 0; i < cfg->n_gateways; i++)
		n = link6_add(out, n, &cfg->gateways[i]);
	boot_lease_of(cfg, IPV6, &lease);
	return n > 0 || lease.addr.len == 128 ? n : link6_add(out, n, &lease.addr);
}

// --- Checks. ---

// An advertisement says of each route that it leads to its own sender.
static bool link6_is_via_router(const struct port_config *cfg, const struct ip_addr *via)
{
	const struct ip_addr *other = link6_router(cfg);
	unsigned i;

	if (other)
		return ip_addr_eq(other, via);
	for (i = 0; i < cfg->n_gateways; i++)
		if (ip_addr_eq(&cfg->gateways[i].addr, via))
			return true;
	return false;
}

static int link6_check_routes(const struct port_config *cfg, struct error *err)
{
	const struct boot_config *b = boot_config(cfg);
	char text[IP_TEXT];
	unsigned i;

	for (i = 0; i < b->n_routes; i++)
		if (b->routes[i].to.addr.family == IPV6 && !link6_is_via_router(cfg, &b->routes[i].via))
			return error_set(err, EINVAL, "port.boot_routes", ip_format_addr(&b->routes[i].via, text),
					 "the router that is advertised: a gateway, or else the one of boot_routers",
					 "is not the router of the IPv6 routes");
	return 0;
}

static bool link6_has_slaac_prefix(const struct port_config *cfg)
{
	struct ip_prefix list[PORT_MAX_ADDRS];
	unsigned i, n = boot_prefixes6(cfg, list);

	for (i = 0; i < n; i++)
		if (list[i].len == BOOT_SLAAC_LEN)
			return true;
	return false;
}

int boot_check6(const struct port_config *cfg, struct error *err)
{
	const struct boot_config *b = boot_config(cfg);
	const struct ip_addr *router = link6_router(cfg);
	char text[IP_TEXT];

	if (b->slaac && (!b->advert || !link6_has_slaac_prefix(cfg)))
		return error_set(err, EINVAL, "port.slaac", "true",
				 "router_advertisements, and an IPv6 gateway or boot address of length 64",
				 "has no prefix in which the guest could make its addresses");
	if ((b->advert || b->dhcp6) && cfg->mtu < LEAST_MTU)
		return error_set(err, EINVAL, "port.mtu", NULL, "1280 or more", "is too small for IPv6 (RFC 8200)");
	if (!b->advert)
		return 0;
	if (router && !link6_is_link_local(router))
		return error_set(err, EINVAL, "port.boot_routers", ip_format_addr(router, text),
				 "a link-local address, such as fe80::1",
				 "is not an address by which a router is advertised (RFC 4861)");
	return link6_check_routes(cfg, err);
}
