// SPDX-License-Identifier: Apache-2.0
// The MACs of guests that are configured (`guest_mac` of ports). Another local port of the domain cannot take them by
// sending with them; tunnels can, because a guest may move to another host.
#include <stdlib.h>

#include "l2/mac.h"
#include "port/registry.h"

struct mac_guest {
	uint64_t key;
	uint16_t port;
};

static struct mac_guest mac_guests[PORT_MAX]; // in the order of keys
static unsigned mac_guests_n;
static bool mac_guests_stale = true;

static int mac_guest_order(const void *a, const void *b)
{
	uint64_t x = ((const struct mac_guest *)a)->key, y = ((const struct mac_guest *)b)->key;

	return (x > y) - (x < y);
}

static void mac_guests_collect(void)
{
	const struct port *p;

	mac_guests_n = 0;
	for (p = port_next(NULL); p; p = port_next(p))
		if (p->cfg.bridge != BRIDGE_NONE && !rte_is_zero_ether_addr(&p->cfg.guest_mac))
			mac_guests[mac_guests_n++] =
				(struct mac_guest){mac_key(p->cfg.bridge, &p->cfg.guest_mac), p->id};
	qsort(mac_guests, mac_guests_n, sizeof(mac_guests[0]), mac_guest_order);
	mac_guests_stale = false;
}

void mac_guests_changed(void)
{
	mac_guests_stale = true;
}

bool mac_guest_of_another(uint64_t key, uint16_t port)
{
	const struct mac_guest want = {.key = key}, *g, *end;

	if (unlikely(mac_guests_stale)) // once after any number of changes
		mac_guests_collect();
	g = bsearch(&want, mac_guests, mac_guests_n, sizeof(want), mac_guest_order);
	if (g == NULL)
		return false;
	for (end = mac_guests + mac_guests_n; g > mac_guests && g[-1].key == key; g--)
		;
	for (; g < end && g->key == key; g++) // ports may share a MAC: any of them may have it
		if (g->port == port)
			return false;
	return true;
}
