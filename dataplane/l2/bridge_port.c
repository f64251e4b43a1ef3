// SPDX-License-Identifier: Apache-2.0
// Port listener of bridge domains.
#include <errno.h>
#include <stdio.h>

#include "l2/mac.h"
#include "l2/snoop.h"
#include "port/registry.h"

static const struct rte_ether_addr *bridge_port_mac_of(const struct port *old, const struct port_config *cfg)
{
	if (old)
		return &old->mac;
	return rte_is_zero_ether_addr(&cfg->mac) ? &gateway_mac : &cfg->mac;
}

// All ports of a domain share the VRF and the gateway MAC, since a frame from another host's tunnel names only the
// domain.
static int bridge_port_check_gateway(const struct port *old, const struct port_config *cfg, const struct port *p,
				     struct error *err)
{
	char mac[18], text[16];

	snprintf(text, sizeof(text), "%u", cfg->vrf);
	if (p->cfg.vrf != cfg->vrf)
		return error_set(err, EINVAL, "port.vrf", text, "the VRF of the bridge's other ports",
				 "port '%s' of the same bridge is in another VRF", p->cfg.name);
	if (!rte_is_same_ether_addr(&p->mac, bridge_port_mac_of(old, cfg)))
		return error_set(err, EINVAL, "port.mac", mac_format(bridge_port_mac_of(old, cfg), mac),
				 "the gateway MAC of the bridge's other ports",
				 "port '%s' of the same bridge has another one", p->cfg.name);
	return 0;
}

static int bridge_port_check(const struct port *old, const struct port_config *cfg, struct error *err)
{
	const struct port *p;
	int ret = 0;

	if (cfg->bridge == BRIDGE_NONE)
		return 0;
	if (bridge_get(cfg->bridge) == NULL)
		return error_set(err, ENOENT, "port.bridge", NULL, "the name of an existing bridge",
				 "there is no such bridge");
	if (cfg->vrf == UINT16_MAX)
		return 0;
	for (p = port_next(NULL); p && ret == 0; p = port_next(p))
		if (p != old && p->cfg.bridge == cfg->bridge && p->cfg.vrf != UINT16_MAX)
			ret = bridge_port_check_gateway(old, cfg, p, err);
	return ret;
}

static void bridge_port_leave(uint16_t id, const struct port *p, uint16_t without)
{
	struct bridge *b = bridge_get(id);

	if (b == NULL)
		return;
	snoop_port_end(id, p->id);
	bridge_publish(b, without);
	mac_flush_port(id, p->id);
	b->refs--;
}

static void bridge_port_join(const struct port *p)
{
	struct bridge *b = bridge_get(p->cfg.bridge);

	if (b == NULL)
		return;
	b->refs++;
	bridge_publish(b, 0);
	snoop_port_begin(p->id);
}

static void bridge_port_on_added(struct port *p)
{
	mac_learn_begin_port(p->id);
	mac_guests_changed();
	bridge_port_join(p);
}

static void bridge_port_on_changed(struct port *p, const struct port_config *old)
{
	mac_guests_changed();
	if (p->cfg.bridge != old->bridge) {
		bridge_port_leave(old->bridge, p, 0);
		bridge_port_join(p);
	} else if (bridge_get(old->bridge) && p->cfg.vrf != old->vrf) {
		bridge_publish(bridge_get(old->bridge), 0);
	}
}

static void bridge_port_on_removed(struct port *p)
{
	mac_guests_changed();
	bridge_port_leave(p->cfg.bridge, p, p->id);
}

// Who has come may be a member of groups.
static void bridge_port_on_link(struct port *p)
{
	if (p->up)
		snoop_port_begin(p->id);
}

static bool bridge_port_find(uint32_t id, char *text, size_t size)
{
	const struct port *p = port_next(NULL);

	while (p && p->cfg.bridge != id)
		p = port_next(p);
	if (p)
		snprintf(text, size, "port '%s'", p->cfg.name);
	return p != NULL;
}

int bridge_ports_init(struct error *err)
{
	static struct referrer ports = {.find = bridge_port_find};
	static struct port_listener listener = {.check = bridge_port_check,
						.added = bridge_port_on_added,
						.changed = bridge_port_on_changed,
						.removed = bridge_port_on_removed,
						.link = bridge_port_on_link};

	port_listen(&listener);
	bridge_refer(&ports);
	return 0;
}
