// SPDX-License-Identifier: Apache-2.0
#include "port/port_carry.h"

#include <stdio.h>
#include <string.h>

#include "graph/counters.h"
#include "keep/carry.h"
#include "port/registry.h"

struct port_carried {
	char port[PORT_NAME];
	struct port_counters n;
};

#define REASON_NAME 64

struct drop_carried {
	char port[PORT_NAME]; // empty: the router's own
	char reason[REASON_NAME];
	uint64_t packets;
};

static bool port_name_is_whole(const char *name, size_t size)
{
	return memchr(name, '\0', size) != NULL;
}

static unsigned port_carry_save(uint64_t *at, void *records, unsigned n)
{
	struct port_carried *out = records;
	const struct port *p;
	unsigned i = 0;

	while (i < n && ++*at < PORT_MAX) {
		p = port_get((uint16_t)*at);
		if (p == NULL)
			continue;
		memset(&out[i], 0, sizeof(out[i]));
		snprintf(out[i].port, sizeof(out[i].port), "%s", p->cfg.name);
		counters_port(p->id, &out[i++].n);
	}
	if (*at >= PORT_MAX)
		*at = CARRY_END;
	return i;
}

// Into the master's own counters, which are part of each sum.
static bool port_carry_load(const void *record, uint32_t seconds)
{
	const struct port_carried *in = record;
	const struct port *p = port_name_is_whole(in->port, sizeof(in->port)) ? port_find(in->port) : NULL;
	struct port_counters *c;

	if (p == NULL)
		return false;
	c = &counters->port[p->id];
	c->rx_packets += in->n.rx_packets;
	c->rx_bytes += in->n.rx_bytes;
	c->tx_packets += in->n.tx_packets;
	c->tx_bytes += in->n.tx_bytes;
	c->tx_refused += in->n.tx_refused;
	return true;
}

static bool drop_carry_fill(uint16_t port, uint16_t reason, struct drop_carried *out)
{
	const struct port *p = port_get(port);
	uint64_t packets = counters_drops(port, reason);

	if (packets == 0 || (port > 0 && p == NULL))
		return false;
	memset(out, 0, sizeof(*out));
	snprintf(out->port, sizeof(out->port), "%s", p ? p->cfg.name : "");
	snprintf(out->reason, sizeof(out->reason), "%s", drop_reason_get(reason)->name);
	out->packets = packets;
	return true;
}

// The place is the port's id, and the reason in the lower 16 bits.
static unsigned drop_carry_save(uint64_t *at, void *records, unsigned n)
{
	struct drop_carried *out = records;
	unsigned i = 0;

	for (; i < n && *at >> 16 < PORT_MAX; ++*at) {
		if (drop_reason_get((uint16_t)*at) == NULL ||
		    (*at >> 16 > 0 && port_get((uint16_t)(*at >> 16)) == NULL))
			*at |= 0xffff; // the next port
		else
			i += drop_carry_fill((uint16_t)(*at >> 16), (uint16_t)*at, &out[i]);
	}
	if (*at >> 16 >= PORT_MAX)
		*at = CARRY_END;
	return i;
}

static bool drop_carry_load(const void *record, uint32_t seconds)
{
	const struct drop_carried *in = record;
	const struct drop_reason *r;
	const struct port *p; // the router's own drops: NULL

	if (!port_name_is_whole(in->port, sizeof(in->port)) || !port_name_is_whole(in->reason, sizeof(in->reason)))
		return false;
	r = drop_reason_find(in->reason);
	p = port_find(in->port);
	if (r == NULL || (p == NULL && in->port[0] != '\0'))
		return false;
	counters->drops[p ? p->id : 0][r->id] += in->packets;
	return true;
}

// --- Names. ---

struct port_name_carried {
	uint16_t id;
	char name[PORT_NAME];
};

static uint16_t port_ids[PORT_MAX]; // the present one, 0: it is gone

static unsigned port_names_save(uint64_t *at, void *records, unsigned n)
{
	struct port_name_carried *out = records;
	const struct port *p;
	unsigned i = 0;

	while (i < n && ++*at < PORT_MAX) {
		p = port_get((uint16_t)*at);
		if (p == NULL)
			continue;
		out[i] = (struct port_name_carried){.id = p->id};
		snprintf(out[i++].name, sizeof(out->name), "%s", p->cfg.name);
	}
	if (*at >= PORT_MAX)
		*at = CARRY_END;
	return i;
}

static bool port_names_load(const void *record, uint32_t seconds)
{
	const struct port_name_carried *in = record;
	const struct port *p = port_name_is_whole(in->name, sizeof(in->name)) ? port_find(in->name) : NULL;

	if (p == NULL || in->id >= PORT_MAX)
		return false;
	port_ids[in->id] = p->id;
	return true;
}

uint16_t port_names_carried(uint16_t was)
{
	uint16_t id = was < PORT_MAX ? port_ids[was] : 0;

	return port_get(id) ? id : 0;
}

void port_names_carry_init(void)
{
	static struct carry_part names = {.name = "port-names",
					  .version = 1,
					  .size = sizeof(struct port_name_carried),
					  .save = port_names_save,
					  .load = port_names_load};

	carry_add(&names);
}

void port_carry_init(void)
{
	static struct carry_part ports = {.name = "ports",
					  .version = 1,
					  .size = sizeof(struct port_carried),
					  .save = port_carry_save,
					  .load = port_carry_load};
	static struct carry_part drops = {.name = "drops",
					  .version = 1,
					  .size = sizeof(struct drop_carried),
					  .save = drop_carry_save,
					  .load = drop_carry_load};

	carry_add(&ports);
	carry_add(&drops);
}
