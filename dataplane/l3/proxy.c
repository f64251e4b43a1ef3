// SPDX-License-Identifier: Apache-2.0
// What the neighbour table needs of routes and next hops: for which addresses a proxy answers, and when adjacencies may
// be freed.
#include "base/rcu.h"
#include "l3/nexthop.h"
#include "l3/vrf.h"
#include "neighbor/neighbor.h"

static bool proxy_nexthop_elsewhere(uint32_t id, uint16_t port)
{
	const struct nexthop *nh = id < NEXTHOP_MAX ? rcu_read(nexthop_table[id]) : NULL;

	if (nh == NULL || nh->kind == NH_DISCARD || nh->kind == NH_REJECT)
		return false;
	return (nh->kind != NH_PORT && nh->kind != NH_GLEAN) || nh->port != port;
}

static bool proxy_leads_elsewhere(uint16_t vrf, const struct ip_addr *target, uint16_t port)
{
	const struct vrf_fibs *fibs;
	uint32_t id;

	if (vrf >= VRF_MAX)
		return false;
	fibs = &vrf_fibs[vrf];
	id = fib_lookup(target->family == IPV4 ? rcu_read(fibs->fib4) : rcu_read(fibs->fib6), target);
	return id != FIB_NONE && proxy_nexthop_elsewhere(id, port);
}

void nexthop_follow_neighbors(void)
{
	static struct neighbor_listener listener = {
		.changed = nexthop_underlay_changed,
		.rebuilding = nexthop_rebuilding,
		.leads_elsewhere = proxy_leads_elsewhere,
	};

	neighbor_listen(&listener);
}
