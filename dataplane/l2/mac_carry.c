// SPDX-License-Identifier: Apache-2.0
#include "l2/mac_carry.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "keep/carry.h"
#include "l2/mac.h"
#include "port/port_carry.h"

#define SCAN 8192 // slots that one call looks at

// Bridges are found by name: a file that is a little older than the state may name one that was deleted, whose id
// another one has now.
struct bridge_carried {
	uint16_t id;
	char name[BRIDGE_NAME];
};

struct mac_carried {
	uint16_t bridge;
	uint16_t port;  // family 0
	uint32_t idle;  // tenths of a second
	uint8_t family; // of the remote end behind which it was learnt; 0: a local port
	uint8_t unused;
	struct rte_ether_addr mac;
	uint8_t remote[16];
};
static_assert(sizeof(struct mac_carried) == 32, "no gaps");

static uint16_t mac_bridges[BRIDGE_MAX]; // the present id, 0: it is gone

static unsigned mac_carry_save_bridges(uint64_t *at, void *records, unsigned n)
{
	struct bridge_carried *out = records;
	const struct bridge *b;
	unsigned i = 0;

	while (i < n && ++*at < BRIDGE_MAX) {
		b = bridge_get((uint16_t)*at);
		if (b == NULL)
			continue;
		out[i] = (struct bridge_carried){.id = b->id};
		snprintf(out[i++].name, sizeof(out->name), "%s", b->cfg.name);
	}
	if (*at >= BRIDGE_MAX)
		*at = CARRY_END;
	return i;
}

static bool mac_carry_load_bridge(const void *record, uint32_t seconds)
{
	const struct bridge_carried *in = record;
	const struct bridge *b = memchr(in->name, '\0', sizeof(in->name)) ? bridge_find(in->name) : NULL;

	if (b == NULL || in->id >= BRIDGE_MAX)
		return false;
	mac_bridges[in->id] = b->id;
	return true;
}

static void mac_carry_fill(uint32_t slot, struct mac_carried *out)
{
	struct mac_entry e;

	mac_describe(mac_slot_key(slot), mac_slot_target(slot), &e);
	*out = (struct mac_carried){.bridge = e.bridge,
				    .port = e.port,
				    .idle = mac_clock - mac_slot_seen(slot),
				    .family = e.remote.family,
				    .mac = e.mac};
	memcpy(out->remote, e.remote.bytes, sizeof(out->remote));
}

static unsigned mac_carry_save(uint64_t *at, void *records, unsigned n)
{
	uint64_t slots = mac_table_slots(), end = RTE_MIN(*at + SCAN, slots);
	struct mac_carried *out = records;
	unsigned i = 0;

	for (; i < n && *at < end; ++*at)
		if (mac_slot_key((uint32_t)*at) != MAC_FREE && (mac_slot_target((uint32_t)*at) & MAC_LEARNT))
			mac_carry_fill((uint32_t)*at, &out[i++]);
	if (*at >= slots)
		*at = CARRY_END;
	return i;
}

static bool mac_carry_load(const void *record, uint32_t seconds)
{
	const struct mac_carried *in = record;
	uint16_t id = in->bridge < BRIDGE_MAX ? mac_bridges[in->bridge] : 0;
	struct ip_addr remote = {.family = in->family};

	if (bridge_get(id) == NULL || (in->family != 0 && in->family != IPV4 && in->family != IPV6) ||
	    !rte_is_valid_assigned_ether_addr(&in->mac))
		return false;
	memcpy(remote.bytes, in->remote, in->family ? ip_bytes(in->family) : 0);
	return mac_learn_again(mac_key(id, &in->mac), port_names_carried(in->port), &remote,
			       (uint64_t)in->idle + 10ull * seconds);
}

static void mac_carry_loaded(unsigned taken, unsigned all)
{
	if (all > 0)
		LOG(INFO, "bridges: %u of %u learnt MACs are known after the restart", taken, all);
}

void mac_carry_init(void)
{
	static struct carry_part bridges = {.name = "mac-bridges",
					    .version = 1,
					    .size = sizeof(struct bridge_carried),
					    .save = mac_carry_save_bridges,
					    .load = mac_carry_load_bridge};
	static struct carry_part macs = {.name = "macs",
					 .version = 1,
					 .size = sizeof(struct mac_carried),
					 .save = mac_carry_save,
					 .load = mac_carry_load,
					 .loaded = mac_carry_loaded};

	carry_add(&bridges);
	carry_add(&macs);
}
