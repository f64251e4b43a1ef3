// SPDX-License-Identifier: Apache-2.0
#include "neighbor/neighbor_carry.h"

#include <string.h>

#include <rte_cycles.h>

#include "base/log.h"
#include "keep/carry.h"
#include "neighbor/answer.h"
#include "neighbor/neighbor_private.h"
#include "port/port_carry.h"
#include "port/registry.h"

#define SCAN 4096 // adjacencies that one call looks at

struct neighbor_carried {
	uint16_t port;
	uint8_t family, reachable;
	uint32_t idle; // seconds since it last answered
	struct rte_ether_addr mac;
	uint8_t addr[16], unused[2];
};
static_assert(sizeof(struct neighbor_carried) == 32, "no gaps");

static bool neighbor_carry_wants(const struct neighbor *n)
{
	return n && n->port && n->addr.family &&
	       (n->state == NEIGH_REACHABLE || n->state == NEIGH_STALE || n->state == NEIGH_PROBE);
}

static void neighbor_carry_fill(const struct neighbor *n, struct neighbor_carried *out)
{
	*out = (struct neighbor_carried){.port = n->port,
					 .family = n->addr.family,
					 .reachable = n->state == NEIGH_REACHABLE,
					 .idle = (uint32_t)((neighbor_clock() - n->confirmed) / rte_get_tsc_hz()),
					 .mac = n->mac};
	memcpy(out->addr, n->addr.bytes, ip_bytes(n->addr.family));
}

static unsigned neighbor_carry_save(uint64_t *at, void *records, unsigned n)
{
	uint64_t end = RTE_MIN(*at + SCAN, (uint64_t)neighbor_end);
	struct neighbor_carried *out = records;
	unsigned i = 0;

	for (; i < n && *at < end; ++*at)
		if (neighbor_carry_wants(neighbor_at((uint32_t)*at)))
			neighbor_carry_fill(neighbor_at((uint32_t)*at), &out[i++]);
	if (*at >= neighbor_end)
		*at = CARRY_END;
	return i;
}

static bool neighbor_carry_valid(const struct neighbor_carried *in, uint16_t port, struct ip_addr *addr)
{
	if (port == 0 || (in->family != IPV4 && in->family != IPV6) || !rte_is_valid_assigned_ether_addr(&in->mac))
		return false;
	*addr = (struct ip_addr){.family = in->family};
	memcpy(addr->bytes, in->addr, ip_bytes(in->family));
	return !ip_is_multicast(addr) && !ip_is_unspecified(addr) && !answer_is_own(port_fwds[port], addr);
}

static bool neighbor_carry_load(const void *record, uint32_t seconds)
{
	const struct neighbor_carried *in = record;
	uint16_t port = port_names_carried(in->port);
	uint64_t idle = (uint64_t)in->idle + seconds;
	struct neighbor *n;
	struct ip_addr addr;

	if (!neighbor_carry_valid(in, port, &addr))
		return false;
	n = neighbor_unheld(port, &addr, false);
	if (n == NULL || neighbor_usable(n)) // configured, or learnt since
		return false;
	if (in->reachable && idle < neighbor_age_seconds && idle * rte_get_tsc_hz() < neighbor_clock()) {
		n->confirmed = neighbor_clock() - idle * rte_get_tsc_hz();
		neighbor_change(n, NEIGH_REACHABLE, &in->mac);
	} else {
		neighbor_change(n, NEIGH_STALE, &in->mac);
	}
	neighbor_flush(n);
	return neighbor_usable(n);
}

static void neighbor_carry_loaded(unsigned taken, unsigned all)
{
	if (all > 0)
		LOG(INFO, "neighbours: %u of %u are known after the restart", taken, all);
}

void neighbor_carry_init(void)
{
	static struct carry_part part = {.name = "neighbours",
					 .version = 1,
					 .size = sizeof(struct neighbor_carried),
					 .save = neighbor_carry_save,
					 .load = neighbor_carry_load,
					 .loaded = neighbor_carry_loaded};

	carry_add(&part);
}
