// SPDX-License-Identifier: Apache-2.0
// Decodes a port's message into its configuration (api/port.proto).
#include "control/port_boot.h"
#include "control/port_message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/fields.h"
#include "eth/source_check.h"
#include "flow/quota.h"
#include "l2/bridge.h"
#include "l3/underlay.h"
#include "l3/vrf.h"
#include "neighbor/neighbor.h"
#include "policy/meter.h"
#include "policy/mirror.h"
#include "policy/rules.h"
#include "port/devargs.h"
#include "port/registry.h"
#include "worker/spread.h"

#define PORT_DECODE_TEXT(to, from) snprintf(to, sizeof(to), "%s", from) // longer texts were refused before

static int port_decode_access(const char *owner, const char *group, const char *mode, struct port_config *c,
			      struct error *err)
{
	PORT_DECODE_TEXT(c->socket_owner, owner);
	PORT_DECODE_TEXT(c->socket_group, group);
	PORT_DECODE_TEXT(c->socket_mode, mode);
	if (!c->client || !(*owner || *group || *mode))
		return 0;
	return error_set(err, EINVAL, "port.socket_mode", mode, "a server",
			 "a client connects to a socket of its peer, which sets owner, group and mode");
}

static int port_decode_tap(const PbPort *in, struct port_config *c, struct error *err)
{
	const char *ifname = *in->tap->ifname ? in->tap->ifname : in->name;

	if (strlen(ifname) >= sizeof(c->ifname))
		return error_set(err, EINVAL, "port.tap.ifname", NULL, NOTATION_INTERFACE_VALID,
				 "missing, and the port's name '%s' is too long for the kernel", in->name);
	PORT_DECODE_TEXT(c->ifname, ifname);
	PORT_DECODE_TEXT(c->netns, in->tap->netns);
	return 0;
}

static int port_decode_subport(const PbPort *in, struct port_config *c, struct error *err)
{
	const struct port *parent = port_find(in->subport->parent);

	if (parent == NULL)
		return error_set(err, ENOENT, "port.subport.parent", in->subport->parent, "the name of a tenant port",
				 "there is no such port");
	c->parent = parent->id;
	c->tag = (uint16_t)in->subport->vlan;
	c->outer_tag = (uint16_t)in->subport->outer_vlan;
	return 0;
}

static int port_decode_device(const PbPort *in, struct port_config *c, struct error *err)
{
	int ret;

	switch (in->device_case) {
	case CORELANE__V1__PORT__DEVICE_DPDK:
		c->kind = "dpdk";
		ret = devargs_memif(in->dpdk->devargs, c, err);
		if (ret == 0)
			PORT_DECODE_TEXT(c->devargs, in->dpdk->devargs);
		return RTE_MIN(ret, 0);
	case CORELANE__V1__PORT__DEVICE_TAP:
		c->kind = "tap";
		return port_decode_tap(in, c, err);
	case CORELANE__V1__PORT__DEVICE_MEMIF:
		c->kind = "memif";
		c->memif_id = in->memif->id;
		c->client = in->memif->role == CORELANE__V1__MEMIF_ROLE__MEMIF_ROLE_CLIENT;
		c->ring_size = in->memif->ring_size;
		c->buffer_size = in->memif->buffer_size;
		c->whole_segments = in->memif->whole_segments;
		PORT_DECODE_TEXT(c->secret, in->memif->secret);
		PORT_DECODE_TEXT(c->socket, in->memif->socket);
		return port_decode_access(in->memif->socket_owner, in->memif->socket_group, in->memif->socket_mode, c,
					  err);
	case CORELANE__V1__PORT__DEVICE_VHOST:
		c->kind = "vhost";
		c->client = in->vhost->client;
		PORT_DECODE_TEXT(c->socket, in->vhost->socket);
		return port_decode_access(in->vhost->socket_owner, in->vhost->socket_group, in->vhost->socket_mode, c,
					  err);
	case CORELANE__V1__PORT__DEVICE_SUBPORT:
		c->kind = "subport";
		return port_decode_subport(in, c, err);
	default:
		return -EINVAL; // api/port.proto has no other
	}
}

static int port_decode_ifaddrs(const char *field, char **in, size_t n, bool hosts, struct ip_prefix *out,
			       unsigned *n_out, struct error *err)
{
	char text[IP_TEXT];
	unsigned i, j;
	int ret;

	for (i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "%s%s", in[i],
			 hosts && !strchr(in[i], '/') ? (strchr(in[i], ':') ? "/128" : "/32") : "");
		ret = hosts ? ip_parse_prefix(text, field, &out[i], err) : ip_parse_ifaddr(text, field, &out[i], err);
		if (ret < 0)
			return ret;
		for (j = 0; j < i; j++)
			if (ip_addr_eq(&out[j].addr, &out[i].addr) && (!hosts || out[j].len == out[i].len))
				return error_set(err, EINVAL, field, in[i], "each address once", "is given twice");
	}
	*n_out = (unsigned)n;
	return 0;
}

static int port_decode_vrf(const PbPort *in, struct port_config *c, struct error *err)
{
	struct vrf *v;

	c->vrf = UINT16_MAX;
	if (*in->vrf == '\0')
		return 0;
	v = vrf_find_err(in->vrf, "port.vrf", err);
	if (v == NULL)
		return -ENOENT;
	c->vrf = v->id;
	return 0;
}

static int port_decode_bridge(const PbPort *in, struct port_config *c, struct error *err)
{
	struct bridge *b;

	c->bridge = UINT16_MAX;
	if (*in->bridge == '\0')
		return 0;
	b = bridge_find_err(in->bridge, "port.bridge", err);
	if (b == NULL)
		return -ENOENT;
	c->bridge = b->id;
	return 0;
}

static int port_decode_meter(const char *field, const char *name, uint16_t *out, struct error *err)
{
	struct meter *m = *name ? meter_find_err(name, field, err) : NULL;

	if (*name && m == NULL)
		return -ENOENT;
	*out = m ? m->id : 0;
	return 0;
}

static int port_decode_mirror(const PbPort *in, struct port_config *c, struct error *err)
{
	struct mirror *m = *in->mirror ? mirror_find_err(in->mirror, "port.mirror", err) : NULL;

	if (*in->mirror && m == NULL)
		return -ENOENT;
	mirroring_config_edit(c)->mirror = m ? m->id : 0;
	return 0;
}

static int port_decode_rules(const char *name, const char *field, uint16_t *out, struct error *err)
{
	struct rule_list *l = *name ? rule_list_find_err(name, field, err) : NULL;

	*out = l ? rule_list_id(l) : 0;
	return *name && l == NULL ? -ENOENT : 0;
}

static int port_decode_fabric(const char *name, struct port_config *c, struct error *err)
{
	struct port *p = *name ? port_find(name) : NULL;

	if (*name && p == NULL)
		return error_set(err, ENOENT, "port.fabric", name, "the name of a fabric port",
				 "there is no such port");
	c->fabric = p ? p->id : 0;
	return 0;
}

static int port_decode_ether(const char *field, const char *text, struct rte_ether_addr *out, struct error *err)
{
	memset(out, 0, sizeof(*out));
	return *text ? mac_parse(text, field, out, err) : 0;
}

// Functions named after a field of the message decode it.
#define PORT_DECODE(field) static int port_decode_##field(const PbPort *in, struct port_config *c, struct error *err)

#define PORT_DECODE_VALUE(field, to)        \
	PORT_DECODE(field)                  \
	{                                   \
		to = (typeof(to))in->field; \
		return 0;                   \
	}

PORT_DECODE_VALUE(mtu, c->mtu)
PORT_DECODE_VALUE(disabled, c->disabled)
PORT_DECODE_VALUE(vlan, c->vlan)
PORT_DECODE_VALUE(proxy_arp, neighbor_config_edit(c)->proxy_arp)
PORT_DECODE_VALUE(mss_clamp, routed_config_edit(c)->mss_clamp)
PORT_DECODE_VALUE(unresolved_rate, routed_config_edit(c)->unresolved_rate)
PORT_DECODE_VALUE(no_anycast_gateway, routed_config_edit(c)->no_gateway_echo)
PORT_DECODE_VALUE(stateful, c->stateful)
PORT_DECODE_VALUE(source_check, source_check_config_edit(c)->check)
PORT_DECODE_VALUE(allow_router, source_check_config_edit(c)->allow_router)
PORT_DECODE_VALUE(allow_dhcp_server, source_check_config_edit(c)->allow_dhcp_server)
PORT_DECODE_VALUE(flow_limit, flow_quota_config_edit(c)->limit)
PORT_DECODE_VALUE(flow_rate, flow_quota_config_edit(c)->rate)
PORT_DECODE_VALUE(mode, spread_config_edit(c)->mode)
PORT_DECODE_VALUE(ring_full, spread_config_edit(c)->ring_full)

PORT_DECODE_VALUE(dhcp4, boot_config_edit(c)->dhcp4)
PORT_DECODE_VALUE(dhcp6, boot_config_edit(c)->dhcp6)
PORT_DECODE_VALUE(router_advertisements, boot_config_edit(c)->advert)
PORT_DECODE_VALUE(slaac, boot_config_edit(c)->slaac)
PORT_DECODE_VALUE(lease_seconds, boot_config_edit(c)->lease_seconds)

PORT_DECODE(boot_addresses)
{
	return port_boot_addresses(in, boot_config_edit(c), err);
}

PORT_DECODE(boot_routers)
{
	struct boot_config *b = boot_config_edit(c);

	return port_boot_hosts("port.boot_routers", in->boot_routers, in->n_boot_routers, b->routers, &b->n_routers,
			       err);
}

PORT_DECODE(boot_routes)
{
	return port_boot_routes(in, boot_config_edit(c), err);
}

PORT_DECODE(dns_servers)
{
	struct boot_config *b = boot_config_edit(c);

	return port_boot_hosts("port.dns_servers", in->dns_servers, in->n_dns_servers, b->dns, &b->n_dns, err);
}

PORT_DECODE(ntp_servers)
{
	struct boot_config *b = boot_config_edit(c);

	return port_boot_hosts("port.ntp_servers", in->ntp_servers, in->n_ntp_servers, b->ntp, &b->n_ntp, err);
}

PORT_DECODE(dns_domain)
{
	struct boot_config *b = boot_config_edit(c);

	return port_boot_domain("port.dns_domain", in->dns_domain, b->domain, sizeof(b->domain), err);
}

PORT_DECODE(host_name)
{
	struct boot_config *b = boot_config_edit(c);

	return port_boot_domain("port.host_name", in->host_name, b->host, sizeof(b->host), err);
}

PORT_DECODE(boot_file)
{
	struct boot_config *b = boot_config_edit(c);

	memset(b->file, 0, sizeof(b->file));
	PORT_DECODE_TEXT(b->file, in->boot_file);
	return 0;
}

PORT_DECODE(boot_server)
{
	return port_boot_server(in, boot_config_edit(c), err);
}

PORT_DECODE(addresses)
{
	return port_decode_ifaddrs("port.addresses", in->addresses, in->n_addresses, false, c->addrs, &c->n_addrs, err);
}

PORT_DECODE(gateways)
{
	return port_decode_ifaddrs("port.gateways", in->gateways, in->n_gateways, false, c->gateways, &c->n_gateways,
				   err);
}

PORT_DECODE(guest_addresses)
{
	return port_decode_ifaddrs("port.guest_addresses", in->guest_addresses, in->n_guest_addresses, true, c->guests,
				   &c->n_guests, err);
}

PORT_DECODE(guest_mac)
{
	return port_decode_ether("port.guest_mac", in->guest_mac, &c->guest_mac, err);
}

PORT_DECODE(egress_meter)
{
	return port_decode_meter("port.egress_meter", in->egress_meter, &meters_config_edit(c)->egress, err);
}

PORT_DECODE(ingress_meter)
{
	return port_decode_meter("port.ingress_meter", in->ingress_meter, &meters_config_edit(c)->ingress, err);
}

PORT_DECODE(egress_rules)
{
	return port_decode_rules(in->egress_rules, "port.egress_rules", &rules_config_edit(c)->lists[RULES_EGRESS],
				 err);
}

PORT_DECODE(ingress_rules)
{
	return port_decode_rules(in->ingress_rules, "port.ingress_rules", &rules_config_edit(c)->lists[RULES_INGRESS],
				 err);
}

PORT_DECODE(spread_workers)
{
	return port_decode_weights(in->spread_workers, in->n_spread_workers, spread_config_edit(c), err);
}

PORT_DECODE(polled_by)
{
	return port_decode_pollers(in->polled_by, in->n_polled_by, spread_config_edit(c), err);
}

#define FIELD(name)                       \
	{                                 \
#name, port_decode_##name \
	}
static const struct port_field {
	const char *name;
	int (*decode)(const PbPort *in, struct port_config *c, struct error *err);
} port_fields[] = {
	FIELD(mtu),
	FIELD(disabled),
	FIELD(vlan),
	FIELD(addresses),
	FIELD(vrf),
	FIELD(bridge),
	FIELD(gateways),
	FIELD(guest_mac),
	FIELD(guest_addresses),
	FIELD(proxy_arp),
	FIELD(mss_clamp),
	FIELD(no_anycast_gateway),
	FIELD(stateful),
	FIELD(flow_limit),
	FIELD(flow_rate),
	FIELD(source_check),
	FIELD(allow_router),
	FIELD(allow_dhcp_server),
	FIELD(egress_rules),
	FIELD(ingress_rules),
	FIELD(egress_meter),
	FIELD(ingress_meter),
	FIELD(mirror),
	FIELD(mode),
	FIELD(ring_full),
	FIELD(spread_workers),
	FIELD(polled_by),
	FIELD(unresolved_rate),
	FIELD(dhcp4),
	FIELD(dhcp6),
	FIELD(router_advertisements),
	FIELD(slaac),
	FIELD(boot_addresses),
	FIELD(boot_routers),
	FIELD(boot_routes),
	FIELD(dns_servers),
	FIELD(dns_domain),
	FIELD(host_name),
	FIELD(ntp_servers),
	FIELD(lease_seconds),
	FIELD(boot_file),
	FIELD(boot_server),
};

API_FIELDS(port, port_fields)

int port_decode_field(const PbPort *in, const char *field, struct port_config *c, struct error *err)
{
	return API_FIELD_FIND(port_fields, field)->decode(in, c, err);
}

int port_decode(const PbPort *in, struct port_config *c, struct error *err)
{
	unsigned i;
	int ret;

	*c = (struct port_config){.role = (enum port_role)in->role,
				  .vrf = UINT16_MAX,
				  .bridge = UINT16_MAX,
				  .offload = (enum port_offload)in->offload};
	PORT_DECODE_TEXT(c->name, in->name);
	ret = port_decode_device(in, c, err);
	if (ret == 0)
		ret = port_decode_ether("port.mac", in->mac, &c->mac, err);
	if (ret == 0)
		ret = port_decode_fabric(in->fabric, c, err);
	for (i = 0; i < RTE_DIM(port_fields) && ret == 0; i++)
		ret = port_fields[i].decode(in, c, err);
	c->queues = (uint16_t)in->queues;
	return ret;
}
