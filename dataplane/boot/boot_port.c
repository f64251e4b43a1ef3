// SPDX-License-Identifier: Apache-2.0
// The settings of a port about what its guest is told when it boots.
#include <errno.h>
#include <string.h>

#include "boot/boot.h"
#include "boot/boot_private.h"
#include "worker/punt.h"

static struct boot_counts counts[PORT_MAX];

PORT_SETTINGS(boot_config)

static bool boot_port_in_subnet(const struct ip_prefix *own, const struct ip_addr *a)
{
	struct ip_prefix net;

	if (own->addr.family != a->family)
		return false;
	net = ip_prefix_of(&own->addr, own->len);
	return ip_prefix_covers(&net, a);
}

// The gateway of this family that shares a subnet with a, or else the first one. NULL: there is none.
static const struct ip_prefix *boot_port_gateway(const struct port_config *cfg, uint8_t family, const struct ip_addr *a)
{
	const struct ip_prefix *first = NULL;
	unsigned i;

	for (i = 0; i < cfg->n_gateways; i++) {
		if (cfg->gateways[i].addr.family != family)
			continue;
		if (boot_port_in_subnet(&cfg->gateways[i], a))
			return &cfg->gateways[i];
		if (first == NULL)
			first = &cfg->gateways[i];
	}
	return first;
}

static bool boot_port_is_gateway(const struct port_config *cfg, const struct ip_addr *a)
{
	unsigned i;

	for (i = 0; i < cfg->n_gateways; i++)
		if (ip_addr_eq(&cfg->gateways[i].addr, a))
			return true;
	return false;
}

static void boot_port_address(const struct port_config *cfg, uint8_t family, struct ip_prefix *out)
{
	const struct boot_config *b = boot_config(cfg);
	const struct ip_prefix *gateway;
	unsigned i;

	for (i = 0; i < b->n_addresses; i++) {
		if (b->addresses[i].addr.family == family) {
			*out = b->addresses[i];
			return;
		}
	}
	for (i = 0; i < cfg->n_guests; i++) {
		if (cfg->guests[i].addr.family != family || cfg->guests[i].len != ip_bits(family) ||
		    boot_port_is_gateway(cfg, &cfg->guests[i].addr))
			continue;
		*out = cfg->guests[i];
		gateway = boot_port_gateway(cfg, family, &out->addr);
		if (gateway && boot_port_in_subnet(gateway, &out->addr))
			out->len = gateway->len;
		return;
	}
}

void boot_lease_of(const struct port_config *cfg, uint8_t family, struct boot_lease *out)
{
	const struct boot_config *b = boot_config(cfg);
	const struct ip_prefix *gateway;
	unsigned i;

	memset(out, 0, sizeof(*out));
	boot_port_address(cfg, family, &out->addr);
	gateway = boot_port_gateway(cfg, family, &out->addr.addr);
	for (i = 0; i < b->n_routers; i++)
		if (b->routers[i].family == family)
			out->router = b->routers[i];
	if (out->router.family == 0 && gateway)
		out->router = gateway->addr;
	out->gateway = gateway ? gateway->addr : out->router;
	// A bridge without a router: a server needs an address, though nobody answers at this one (RFC 3927). Clients
	// then renew by broadcast.
	if (out->gateway.family == 0 && family == IPV4)
		out->gateway = ip4_addr(RTE_BE32(RTE_IPV4(169u, 254u, 169u, 254u)));
}

// --- Checks. ---

static bool boot_port_is_empty(const struct boot_config *b)
{
	static const struct boot_config none;

	return memcmp(b, &none, sizeof(none)) == 0;
}

static bool boot_port_has_guest(const struct port_config *cfg, const struct ip_addr *a)
{
	unsigned i;

	for (i = 0; i < cfg->n_guests; i++)
		if (ip_prefix_covers(&cfg->guests[i], a))
			return true;
	return cfg->n_guests == 0;
}

static int boot_port_check_addresses(const struct port_config *cfg, struct error *err)
{
	const struct boot_config *b = boot_config(cfg);
	char text[IP_TEXT];
	unsigned i;

	for (i = 0; i < b->n_addresses; i++)
		if (!boot_port_has_guest(cfg, &b->addresses[i].addr))
			return error_set(err, EINVAL, "port.boot_addresses",
					 ip_format_addr(&b->addresses[i].addr, text), "one of guest_addresses",
					 "is not an address of the guest");
	if (b->n_addresses == 2 && b->addresses[0].addr.family == b->addresses[1].addr.family)
		return error_set(err, EINVAL, "port.boot_addresses", NULL, "one address of each family",
				 "the guest is given one address of each family");
	if (b->n_routers == 2 && b->routers[0].family == b->routers[1].family)
		return error_set(err, EINVAL, "port.boot_routers", NULL, "one router of each family",
				 "the guest is given one router of each family");
	return 0;
}

static int boot_port_check(const struct port *old, const struct port_config *cfg, struct error *err)
{
	const struct boot_config *b = boot_config(cfg);
	struct boot_lease lease;
	int ret;

	if (boot_port_is_empty(b))
		return 0;
	if (cfg->role != PORT_TENANT)
		return error_set(err, EINVAL, "port.dhcp4", NULL, "role tenant",
				 "only a tenant port has a guest that boots");
	if (b->server.family == IPV6)
		return error_set(err, EINVAL, "port.boot_server", NULL, "an IPv4 address",
				 "the next server of DHCPv4 has an IPv4 address");
	ret = boot_port_check_addresses(cfg, err);
	boot_lease_of(cfg, IPV4, &lease);
	if (ret == 0 && b->dhcp4 && lease.addr.addr.family == 0)
		return error_set(err, EINVAL, "port.dhcp4", "true",
				 "an IPv4 address in guest_addresses or boot_addresses",
				 "has no address to give to the guest");
	return ret < 0 ? ret : boot_check6(cfg, err);
}

// --- Workers. ---

static void boot_port_forward(const struct port_config *cfg, struct port_fwd *out)
{
	struct boot_lease lease;

	if (cfg->role == PORT_TENANT && boot_config(cfg)->advert)
		out->boot |= BOOT_ADVERT;
	if (cfg->role == PORT_TENANT && boot_config(cfg)->dhcp6)
		out->boot |= BOOT_DHCP6;
	if (cfg->role != PORT_TENANT || !boot_config(cfg)->dhcp4)
		return;
	boot_lease_of(cfg, IPV4, &lease);
	out->boot |= BOOT_DHCP4;
	out->boot_server4 = ip4_be(&lease.gateway);
}

static void boot_port_added(struct port *p)
{
	memset(&counts[p->id], 0, sizeof(counts[p->id]));
	advert_soon(p);
}

static void boot_port_changed(struct port *p, const struct port_config *old)
{
	if (boot_config(old)->advert && !boot_config(&p->cfg)->advert)
		advert_end(p, old);
	advert_soon(p);
}

const struct boot_counts *boot_counts(uint16_t port)
{
	return &counts[port];
}

struct boot_counts *boot_port_counts(uint16_t port)
{
	return &counts[port];
}

void boot_init(void)
{
	static struct port_listener listener = {.check = boot_port_check,
						.forward = boot_port_forward,
						.added = boot_port_added,
						.changed = boot_port_changed,
						.link = advert_link};

	port_listen(&listener);
	punt_register(PUNT_BOOT, boot_receive);
}
