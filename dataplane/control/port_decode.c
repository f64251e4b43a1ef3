// SPDX-License-Identifier: Apache-2.0
// Decodes a port's message into its configuration (api/port.proto).
#include "control/port_message.h"

#include <errno.h>
#include <stdio.h>

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

static int port_decode_copy(const char *field, char *dst, size_t size, const char *src, struct error *err)
{
	char valid[48];

	if (strlen(src) < size) {
		snprintf(dst, size, "%s", src);
		return 0;
	}
	snprintf(valid, sizeof(valid), "up to %zu characters", size - 1);
	return error_set(err, EINVAL, field, src, valid, "is too long");
}

static int port_decode_access(const char *owner, const char *group, const char *mode, struct port_config *c,
			      struct error *err)
{
	int ret = port_decode_copy("port.socket_owner", c->socket_owner, sizeof(c->socket_owner), owner, err);

	if (ret == 0)
		ret = port_decode_copy("port.socket_group", c->socket_group, sizeof(c->socket_group), group, err);
	if (ret == 0)
		ret = port_decode_copy("port.socket_mode", c->socket_mode, sizeof(c->socket_mode), mode, err);
	if (ret < 0 || !c->client || !(*owner || *group || *mode))
		return ret;
	return error_set(err, EINVAL, "port.socket_mode", mode, "a server",
			 "a client connects to a socket of its peer, which sets owner, group and mode");
}

static int port_decode_device(const PbPort *in, struct port_config *c, struct error *err)
{
	int ret;

	switch (in->device_case) {
	case CORELANE__V1__PORT__DEVICE_DPDK:
		c->kind = "dpdk";
		ret = devargs_memif(in->dpdk->devargs, c, err);
		return ret != 0 ? RTE_MIN(ret, 0)
				: port_decode_copy("port.dpdk.devargs", c->devargs, sizeof(c->devargs),
						   in->dpdk->devargs, err);
	case CORELANE__V1__PORT__DEVICE_TAP:
		c->kind = "tap";
		ret = port_decode_copy("port.tap.ifname", c->ifname, sizeof(c->ifname),
				       *in->tap->ifname ? in->tap->ifname : c->name, err);
		return ret < 0 ? ret
			       : port_decode_copy("port.tap.netns", c->netns, sizeof(c->netns), in->tap->netns, err);
	case CORELANE__V1__PORT__DEVICE_MEMIF:
		c->kind = "memif";
		c->memif_id = in->memif->id;
		c->client = in->memif->role == CORELANE__V1__MEMIF_ROLE__MEMIF_ROLE_CLIENT;
		c->ring_size = in->memif->ring_size;
		c->buffer_size = in->memif->buffer_size;
		ret = port_decode_copy("port.memif.secret", c->secret, sizeof(c->secret), in->memif->secret, err);
		if (ret == 0)
			ret = port_decode_access(in->memif->socket_owner, in->memif->socket_group,
						 in->memif->socket_mode, c, err);
		return ret < 0 ? ret
			       : port_decode_copy("port.memif.socket", c->socket, sizeof(c->socket), in->memif->socket,
						  err);
	case CORELANE__V1__PORT__DEVICE_VHOST:
		c->kind = "vhost";
		c->client = in->vhost->client;
		ret = port_decode_access(in->vhost->socket_owner, in->vhost->socket_group, in->vhost->socket_mode, c,
					 err);
		return ret < 0 ? ret
			       : port_decode_copy("port.vhost.socket", c->socket, sizeof(c->socket), in->vhost->socket,
						  err);
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

static int port_decode_vrf(const char *name, struct port_config *c, struct error *err)
{
	struct vrf *v;

	c->vrf = UINT16_MAX;
	if (*name == '\0')
		return 0;
	v = vrf_find_err(name, "port.vrf", err);
	if (v == NULL)
		return -ENOENT;
	c->vrf = v->id;
	return 0;
}

static int port_decode_bridge(const char *name, struct port_config *c, struct error *err)
{
	struct bridge *b;

	c->bridge = UINT16_MAX;
	if (*name == '\0')
		return 0;
	b = bridge_find_err(name, "port.bridge", err);
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

static int port_decode_mirror(const char *name, struct port_config *c, struct error *err)
{
	struct mirror *m = *name ? mirror_find_err(name, "port.mirror", err) : NULL;

	if (*name && m == NULL)
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

static int port_decode_mac(const char *field, const char *text, struct rte_ether_addr *out, struct error *err)
{
	memset(out, 0, sizeof(*out));
	return *text ? mac_parse(text, field, out, err) : 0;
}

int port_decode_field(const PbPort *in, const char *field, struct port_config *c, struct error *err)
{
	if (strcmp(field, "mtu") == 0) {
		c->mtu = (uint16_t)in->mtu;
		return 0;
	}
	if (strcmp(field, "disabled") == 0)
		return c->disabled = in->disabled, 0;
	if (strcmp(field, "vlan") == 0)
		return c->vlan = (uint16_t)in->vlan, 0;
	if (strcmp(field, "addresses") == 0)
		return port_decode_ifaddrs("port.addresses", in->addresses, in->n_addresses, false, c->addrs,
					   &c->n_addrs, err);
	if (strcmp(field, "vrf") == 0)
		return port_decode_vrf(in->vrf, c, err);
	if (strcmp(field, "bridge") == 0)
		return port_decode_bridge(in->bridge, c, err);
	if (strcmp(field, "gateways") == 0)
		return port_decode_ifaddrs("port.gateways", in->gateways, in->n_gateways, false, c->gateways,
					   &c->n_gateways, err);
	if (strcmp(field, "guest_mac") == 0)
		return port_decode_mac("port.guest_mac", in->guest_mac, &c->guest_mac, err);
	if (strcmp(field, "guest_addresses") == 0)
		return port_decode_ifaddrs("port.guest_addresses", in->guest_addresses, in->n_guest_addresses, true,
					   c->guests, &c->n_guests, err);
	if (strcmp(field, "proxy_arp") == 0)
		return neighbor_config_edit(c)->proxy_arp = in->proxy_arp, 0;
	if (strcmp(field, "mss_clamp") == 0)
		return routed_config_edit(c)->mss_clamp = in->mss_clamp, 0;
	if (strcmp(field, "no_anycast_gateway") == 0)
		return routed_config_edit(c)->no_gateway_echo = in->no_anycast_gateway, 0;
	if (strcmp(field, "stateful") == 0)
		return c->stateful = in->stateful, 0;
	if (strcmp(field, "source_check") == 0)
		return source_check_config_edit(c)->check = (uint8_t)in->source_check, 0;
	if (strcmp(field, "flow_limit") == 0)
		return flow_quota_config_edit(c)->limit = in->flow_limit, 0;
	if (strcmp(field, "flow_rate") == 0)
		return flow_quota_config_edit(c)->rate = in->flow_rate, 0;
	if (strcmp(field, "egress_meter") == 0)
		return port_decode_meter("port.egress_meter", in->egress_meter, &meters_config_edit(c)->egress, err);
	if (strcmp(field, "ingress_meter") == 0)
		return port_decode_meter("port.ingress_meter", in->ingress_meter, &meters_config_edit(c)->ingress, err);
	if (strcmp(field, "mirror") == 0)
		return port_decode_mirror(in->mirror, c, err);
	if (strcmp(field, "egress_rules") == 0)
		return port_decode_rules(in->egress_rules, "port.egress_rules",
					 &rules_config_edit(c)->lists[RULES_EGRESS], err);
	if (strcmp(field, "ingress_rules") == 0)
		return port_decode_rules(in->ingress_rules, "port.ingress_rules",
					 &rules_config_edit(c)->lists[RULES_INGRESS], err);
	if (strcmp(field, "mode") == 0)
		return spread_config_edit(c)->mode = (uint8_t)in->mode, 0;
	if (strcmp(field, "ring_full") == 0)
		return spread_config_edit(c)->ring_full = (uint8_t)in->ring_full, 0;
	if (strcmp(field, "spread_workers") == 0)
		return port_decode_weights(in->spread_workers, in->n_spread_workers, spread_config_edit(c), err);
	// polled_by is the only other field that Set may name (api/port.proto).
	return port_decode_polled_by(in->polled_by, in->n_polled_by, spread_config_edit(c), err);
}

static const char *const settable[] = {"mtu",          "disabled",      "vlan",
				       "addresses",    "vrf",           "bridge",
				       "gateways",     "guest_mac",     "guest_addresses",
				       "proxy_arp",    "mss_clamp",     "no_anycast_gateway",
				       "stateful",     "flow_limit",    "flow_rate",
				       "source_check", "egress_rules",  "ingress_rules",
				       "egress_meter", "ingress_meter", "mirror",
				       "mode",         "ring_full",     "spread_workers",
				       "polled_by"};

int port_decode(const PbPort *in, struct port_config *c, struct error *err)
{
	unsigned i;
	int ret;

	*c = (struct port_config){.role = (enum port_role)in->role, .vrf = UINT16_MAX, .bridge = UINT16_MAX};
	ret = port_decode_copy("port.name", c->name, sizeof(c->name), in->name, err);
	if (ret == 0)
		ret = port_decode_device(in, c, err);
	if (ret == 0)
		ret = port_decode_mac("port.mac", in->mac, &c->mac, err);
	if (ret == 0)
		ret = port_decode_fabric(in->fabric, c, err);
	for (i = 0; i < RTE_DIM(settable) && ret == 0; i++)
		ret = port_decode_field(in, settable[i], c, err);
	c->queues = (uint16_t)in->queues;
	return ret;
}
