// SPDX-License-Identifier: Apache-2.0
// Which ports there can be: their kinds, and what a configuration must and must not have. Master thread only.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "port/registry.h"

static const struct port_ops *const kinds[] = {&port_dpdk_ops, &port_tap_ops, &port_memif_ops, &port_vhost_ops,
					       &port_subport_ops};
static unsigned allowed_kinds = UINT_MAX; // bitmap of indexes of kinds

const struct port_ops *port_kind_find(const char *kind)
{
	unsigned i;

	for (i = 0; i < RTE_DIM(kinds); i++)
		if (kind && strcmp(kinds[i]->kind, kind) == 0)
			return kinds[i];
	return NULL;
}

static const char *port_kind_names(void)
{
	static char names[64];
	size_t n = 0;
	unsigned i;

	for (i = 0; i < RTE_DIM(kinds); i++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "", kinds[i]->kind);
	RTE_VERIFY(n < sizeof(names)); // known at start, which checks the option
	return names;
}

int port_allow_kinds(const char *list, struct error *err)
{
	unsigned i, found = 0;
	const char *p = list;
	char valid[80];
	size_t len;

	snprintf(valid, sizeof(valid), "a list of %s", port_kind_names());
	do {
		len = strcspn(p, ",");
		for (i = 0; i < RTE_DIM(kinds); i++)
			if (strlen(kinds[i]->kind) == len && strncmp(kinds[i]->kind, p, len) == 0)
				break;
		if (i == RTE_DIM(kinds))
			return error_set(err, EINVAL, "--port-kinds", list, valid, "'%.*s' is not a kind of port",
					 (int)len, p);
		found |= 1u << i;
		p += len;
	} while (*p++ == ',');
	allowed_kinds = found;
	return 0;
}

bool port_kind_allowed(const char *kind)
{
	unsigned i;

	for (i = 0; i < RTE_DIM(kinds); i++)
		if (strcmp(kinds[i]->kind, kind) == 0)
			return (allowed_kinds >> i & 1) != 0;
	return false;
}

// A host port has MAC, MTU and VLAN of its fabric port.
static int port_check_host(struct port_config *cfg, struct error *err)
{
	const struct port *fabric = port_get(cfg->fabric);
	char text[16], valid[16];

	if (fabric == NULL || fabric->role != PORT_FABRIC)
		return error_set(err, EINVAL, "port.fabric", fabric ? fabric->cfg.name : NULL,
				 "the name of a fabric port", "a host port shares a fabric port");
	if (strcmp(cfg->kind, "tap") != 0 && strcmp(cfg->kind, "dpdk") != 0)
		return error_set(err, EINVAL, "port.device", cfg->kind, "tap, dpdk",
				 "has no kernel interface, which a host port needs");
	if (cfg->vrf != UINT16_MAX || cfg->bridge != UINT16_MAX || cfg->n_addrs || cfg->n_gateways || cfg->n_guests ||
	    cfg->vlan || !rte_is_zero_ether_addr(&cfg->mac) || !rte_is_zero_ether_addr(&cfg->guest_mac))
		return error_set(err, EINVAL, "port.role", "host", "device, queues, fabric, disabled",
				 "accepts no other settings: the kernel sets its addresses, and the fabric port "
				 "everything else");
	snprintf(text, sizeof(text), "%u", cfg->mtu);
	snprintf(valid, sizeof(valid), "%u", fabric->cfg.mtu);
	if (cfg->mtu && cfg->mtu != fabric->cfg.mtu)
		return error_set(err, EINVAL, "port.mtu", text, valid, "a host port has the MTU of its fabric port");
	cfg->mtu = fabric->cfg.mtu;
	return 0;
}

// The device of a sub-port is another port.
static int port_check_subport(const struct port_config *cfg, struct error *err)
{
	const struct port *parent = port_get(cfg->parent);

	if (parent == NULL || parent->role != PORT_TENANT || parent->cfg.parent)
		return error_set(err, EINVAL, "port.subport.parent", parent ? parent->cfg.name : NULL,
				 "a tenant port with a device", "cannot have sub-ports");
	if (cfg->role != PORT_TENANT)
		return error_set(err, EINVAL, "port.role", NULL, "tenant", "only a tenant port can be a sub-port");
	if (cfg->queues > 1)
		return error_set(err, EINVAL, "port.queues", NULL, "no queues",
				 "a sub-port uses the queues of its parent");
	if (cfg->offload != PORT_OFFLOAD_ALL)
		return error_set(err, EINVAL, "port.offload", NULL, "no offload",
				 "a sub-port has the offloads of its parent");
	return 0;
}

static int port_check_role(const struct port_config *cfg, struct error *err)
{
	if (cfg->role == PORT_HOST)
		return 0; // port_check_host()
	if (cfg->fabric)
		return error_set(err, EINVAL, "port.fabric", NULL, "role host",
				 "only a host port shares a fabric port");
	if (cfg->role == PORT_FABRIC) {
		if (cfg->vrf != UINT16_MAX || cfg->bridge != UINT16_MAX || cfg->n_gateways || cfg->n_guests)
			return error_set(err, EINVAL, "port.role", "fabric", "role tenant",
					 "cannot have a VRF, a bridge, gateways or guests");
		return 0;
	}
	if (cfg->role != PORT_TENANT)
		return error_set(err, EINVAL, "port.role", NULL, "fabric, tenant, host", "a port needs a role");
	if (cfg->n_addrs)
		return error_set(err, EINVAL, "port.addresses", NULL, "gateways",
				 "a tenant port has gateways, not addresses of its own");
	if (cfg->whole_segments)
		return error_set(err, EINVAL, "port.memif.whole_segments", NULL, "role fabric",
				 "a guest's port has no tunnels");
	if (cfg->vlan)
		return error_set(err, EINVAL, "port.vlan", NULL, "role fabric", "only a fabric port tags its traffic");
	if (cfg->vrf == UINT16_MAX && cfg->bridge == UINT16_MAX)
		return error_set(err, EINVAL, "port.vrf", NULL, "a VRF, a bridge or both",
				 "a tenant port needs a VRF or a bridge");
	if (cfg->vrf == UINT16_MAX && cfg->n_gateways)
		return error_set(err, EINVAL, "port.gateways", NULL, "a VRF", "gateways need a VRF");
	if (cfg->vrf == 0)
		return error_set(err, EINVAL, "port.vrf", "fabric", "another VRF", "belongs to the underlay");
	return 0;
}

int port_config_check(struct port_config *cfg, struct error *err)
{
	int ret;

	if (port_kind_find(cfg->kind) != NULL && !port_kind_allowed(cfg->kind))
		return error_set(err, EPERM, "port.device", cfg->kind, "corelaned --port-kinds",
				 "this daemon was started without the rights for such ports");
	if (port_kind_find(cfg->kind) == NULL)
		return error_set(err, EINVAL, "port.device", cfg->kind, port_kind_names(), "a port needs a device");
	if (cfg->queues == 0)
		cfg->queues = 1;
	ret = cfg->role == PORT_HOST ? port_check_host(cfg, err) : 0;
	if (ret == 0 && strcmp(cfg->kind, "subport") == 0)
		ret = port_check_subport(cfg, err);
	if (ret < 0)
		return ret;
	if (cfg->mtu == 0)
		cfg->mtu = LIMIT_PORT_MTU_DEFAULT;
	return port_check_role(cfg, err);
}
