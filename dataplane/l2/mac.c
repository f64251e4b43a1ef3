// SPDX-License-Identifier: Apache-2.0
// Addition and removal of MACs, and each domain's counts of them.
#include "l2/mac.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_cycles.h>

#include "l2/mac_watch.h"
#include "l3/nexthop.h"
#include "port/registry.h"

static uint32_t learnt_at_port[PORT_MAX];

static struct bridge_via *via_find(const struct bridge *b, uint32_t nexthop)
{
	unsigned i;

	for (i = 0; i < b->n_vias; i++)
		if (b->vias[i].nexthop == nexthop)
			return &b->vias[i];
	return NULL;
}

bool bridge_has_via(const struct bridge *b, uint32_t nexthop)
{
	return via_find(b, nexthop) != NULL;
}

static int via_hold(struct bridge *b, uint32_t nexthop)
{
	struct bridge_via *v = via_find(b, nexthop);

	if (v == NULL) {
		v = realloc(b->vias, (b->n_vias + 1) * sizeof(*v));
		if (v == NULL)
			return -ENOMEM;
		b->vias = v;
		v += b->n_vias++;
		*v = (struct bridge_via){.nexthop = nexthop};
		nexthop_ref(nexthop);
	}
	v->macs++;
	return 0;
}

static void via_release(struct bridge *b, uint32_t nexthop)
{
	struct bridge_via *v = via_find(b, nexthop);

	if (--v->macs > 0)
		return;
	*v = b->vias[--b->n_vias];
	if (!bridge_floods_to(b, nexthop))
		mac_flush_tunnel(b, nexthop);
	nexthop_unref(nexthop);
}

static bool by_hand_on_tunnel(uint64_t target)
{
	return (target & MAC_TUNNEL) && !(target & MAC_LEARNT);
}

void mac_count_learnt(struct bridge *b, uint64_t target, int n)
{
	if (!(target & MAC_LEARNT))
		return;
	b->n_learnt += n;
	if (!(target & MAC_TUNNEL))
		learnt_at_port[MAC_ID(target)] += n;
	else
		b->n_learnt_by_tunnels += n;
}

uint32_t mac_learnt_at(const struct bridge *b, uint64_t target)
{
	return target & MAC_TUNNEL ? b->n_learnt_by_tunnels : learnt_at_port[MAC_ID(target)];
}

int mac_add(struct bridge *b, uint64_t key, uint64_t target)
{
	int ret = by_hand_on_tunnel(target) ? via_hold(b, MAC_ID(target)) : 0;

	if (ret < 0)
		return ret;
	ret = mac_table_add(key, target);
	if (ret < 0) {
		if (by_hand_on_tunnel(target))
			via_release(b, MAC_ID(target));
		return ret;
	}
	b->n_macs++;
	mac_count_learnt(b, target, 1);
	return 0;
}

void mac_remove(uint32_t slot)
{
	struct bridge *b = bridge_get(mac_key_bridge(mac_slot_key(slot)));
	uint64_t target = mac_slot_target(slot);

	if (target & MAC_LEARNT)
		mac_change_note(MAC_IS_GONE, mac_slot_key(slot), target);
	else
		mac_ip_remove(mac_slot_key(slot));
	mac_table_remove(slot);
	b->n_macs--;
	mac_count_learnt(b, target, -1);
	if (by_hand_on_tunnel(target))
		via_release(b, MAC_ID(target));
}

// Removes the domain's MACs whose target equals `want` in the bits of `mask`.
static void mac_flush(uint16_t bridge, uint64_t want, uint64_t mask)
{
	uint32_t slot, n = mac_table_slots();

	for (slot = 0; slot < n; slot++)
		if (mac_key_bridge(mac_slot_key(slot)) == bridge && (mac_slot_target(slot) & mask) == want)
			mac_remove(slot);
}

void mac_flush_bridge(struct bridge *b, bool learnt_only)
{
	if (b->n_macs)
		mac_flush(b->id, learnt_only ? MAC_LEARNT : 0, learnt_only ? MAC_LEARNT : 0);
}

void mac_flush_port(uint16_t bridge, uint16_t port)
{
	if (bridge_get(bridge)->n_macs)
		mac_flush(bridge, port, MAC_ID(UINT64_MAX) | MAC_TUNNEL);
}

void mac_flush_tunnel(struct bridge *b, uint32_t nexthop)
{
	if (b->n_learnt)
		mac_flush(b->id, nexthop | MAC_TUNNEL | MAC_LEARNT, MAC_ID(UINT64_MAX) | MAC_TUNNEL | MAC_LEARNT);
}

static int mac_check_port(const struct bridge *b, uint16_t id, struct error *err)
{
	const struct port *p = port_get(id);

	if (p == NULL)
		return error_set(err, ENOENT, "mac.port", NULL, "the name of a port", "there is no such port");
	if (p->cfg.bridge != b->id)
		return error_set(err, EINVAL, "mac.port", p->cfg.name, "a port of the bridge", "is not in bridge '%s'",
				 b->cfg.name);
	return 0;
}

static int mac_check(const struct bridge *b, const struct mac_entry *e, struct error *err)
{
	char text[18];

	mac_format(&e->mac, text);
	if (!rte_is_valid_assigned_ether_addr(&e->mac))
		return error_set(err, EINVAL, "mac.mac", text, "a unicast address that is not zero",
				 "is not the address of a station");
	if (bridge_is_gateway(b, &e->mac))
		return error_set(err, EINVAL, "mac.mac", text, "another address", "is the gateway's");
	return e->nexthop ? bridge_check_tunnel(e->nexthop, "mac.nexthop", err) : mac_check_port(b, e->port, err);
}

int mac_set(const struct mac_entry *e, struct error *err)
{
	struct bridge *b = bridge_get(e->bridge);
	uint64_t key = mac_key(e->bridge, &e->mac);
	uint32_t slot;
	char text[18];
	int ret;

	if (b == NULL)
		return error_set(err, ENOENT, "mac.bridge", NULL, "the name of a bridge", "there is no such bridge");
	ret = mac_check(b, e, err);
	if (ret < 0)
		return ret;
	slot = mac_table_find(key);
	if (slot != MAC_NONE && !(mac_slot_target(slot) & MAC_LEARNT))
		return error_set(err, EEXIST, "mac.mac", mac_format(&e->mac, text), "a new address",
				 "is already set in bridge '%s'", b->cfg.name);
	if (slot != MAC_NONE)
		mac_remove(slot);
	ret = mac_ip_add(key, e->addrs, e->n_addrs, err);
	if (ret < 0)
		return ret;
	ret = mac_add(b, key, MAC_OWNED(e->owner) | (e->nexthop ? MAC_TUNNEL | e->nexthop : e->port));
	if (ret == 0)
		return 0;
	mac_ip_remove(key);
	return error_set(err, ENOSPC, "mac", NULL, "1048576 addresses in all bridges, and memory for them",
			 "no room for another one");
}

int mac_unset(uint16_t bridge, const struct rte_ether_addr *mac, struct error *err)
{
	uint32_t slot = mac_table_find(mac_key(bridge, mac));
	char text[18];

	if (slot == MAC_NONE)
		return error_set(err, ENOENT, "mac.mac", mac_format(mac, text), NULL,
				 "there is no such address in the bridge");
	mac_remove(slot);
	return 0;
}

void mac_describe(uint64_t key, uint64_t target, struct mac_entry *out)
{
	const struct nexthop_entry *nh;

	*out = (struct mac_entry){
		.bridge = mac_key_bridge(key), .mac = mac_key_addr(key), .learnt = (target & MAC_LEARNT) != 0};
	if (!out->learnt)
		out->owner = MAC_OWNER(target);
	if (!(target & MAC_TUNNEL)) {
		out->port = (uint16_t)MAC_ID(target);
		return;
	}
	out->nexthop = MAC_ID(target);
	nh = nexthop_get(out->nexthop);
	if (nh && nh->cfg.kind == NH_TUNNEL)
		out->remote = nh->cfg.tunnel.remote;
}

static void mac_describe_slot(uint32_t slot, struct mac_entry *out)
{
	mac_describe(mac_slot_key(slot), mac_slot_target(slot), out);
	if (!out->learnt)
		out->n_addrs = mac_ip_get(mac_slot_key(slot), out->addrs);
	out->seen = (uint64_t)mac_slot_seen(slot) * (rte_get_tsc_hz() / 10);
}

bool mac_get(uint16_t bridge, const struct rte_ether_addr *mac, struct mac_entry *out)
{
	uint32_t slot = mac_table_find(mac_key(bridge, mac));

	if (slot != MAC_NONE)
		mac_describe_slot(slot, out);
	return slot != MAC_NONE;
}

bool mac_next(const struct mac_entry *after, struct mac_entry *out)
{
	uint32_t slot = mac_table_after(after ? mac_key(after->bridge, &after->mac) : 0);

	if (slot != MAC_NONE)
		mac_describe_slot(slot, out);
	return slot != MAC_NONE;
}

unsigned mac_count(void)
{
	return mac_table->n;
}
