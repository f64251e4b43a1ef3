// SPDX-License-Identifier: Apache-2.0
// The listeners of the neighbour table: the modules whose routes and next hops lead to neighbours.
#include "base/notify.h"
#include "neighbor/neighbor_private.h"

static struct neighbor_listener *neighbor_listeners;

void neighbor_listen(struct neighbor_listener *l)
{
	LISTEN(neighbor_listeners, l);
}

void neighbor_notify_changed(void)
{
	struct neighbor_listener *l;

	for (l = neighbor_listeners; l; l = l->next)
		if (l->changed)
			l->changed();
}

bool neighbor_rebuilding(void)
{
	struct neighbor_listener *l;

	for (l = neighbor_listeners; l; l = l->next)
		if (l->rebuilding && l->rebuilding())
			return true;
	return false;
}

bool neighbor_leads_elsewhere(uint16_t vrf, const struct ip_addr *target, uint16_t port)
{
	struct neighbor_listener *l;

	for (l = neighbor_listeners; l; l = l->next)
		if (l->leads_elsewhere && l->leads_elsewhere(vrf, target, port))
			return true;
	return false;
}
