// SPDX-License-Identifier: Apache-2.0
// The file of what is carried over a restart. Bits of the first byte: with 1 the other bytes are the file; else they
// are blocks, each a byte that chooses the part (0x80: of another version), one with the number of its records, and
// these. With 2 the checksums are made to fit, as those of a file that an attacker has written.
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "flow/flow_carry.h"
#include "flow/flow_private.h"
#include "fuzz_frame.h"
#include "keep/carry_private.h"
#include "l2/mac.h"
#include "l2/mac_carry.h"
#include "neighbor/neighbor_carry.h"
#include "neighbor/neighbor_private.h"
#include "policy/nat.h"
#include "port/port_carry.h"
#include "testing/router_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

enum { WHOLE = 1, FITS = 2 };
#define ROOM (1 << 16)

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct nat_config source = {.id = 1, .kind = NAT_SOURCE, .vrf = RED, .external = RED};
	struct error err = {0};
	struct port_config cfg;

	FUZZ_ASSERT(router_setup(NULL) == 0);
	flow_secret_init(&(struct flow_secret){
		.add = {1, 2, 3, 4, 5}, .mul = {7, 9, 11, 13, 15}, .seed = {17, 19}}); // the same each time
	cfg = router_config(RED0);
	cfg.stateful = true;
	router_set(RED0, &cfg);
	source.inside = (struct ip_prefix){router_addr("10.0.0.0"), 24};
	source.outside = source.last = router_addr("198.18.0.3");
	FUZZ_ASSERT(nat_add(&source, &err) == 0);
	port_carry_init();
	flow_carry_init();
	port_names_carry_init();
	neighbor_carry_init();
	mac_carry_init();
	flow_changes_take_effect();
	return 0;
}

static const struct carry_part *choose(unsigned number)
{
	const struct carry_part *p = carry_parts;

	for (; p && number > 0; number--)
		p = p->next;
	return p;
}

static size_t add_block(uint8_t *out, size_t at, const struct carry_block *b, const uint8_t *records)
{
	if (at + sizeof(*b) + b->length > ROOM)
		return at;
	memcpy(out + at, b, sizeof(*b));
	memcpy(out + at + sizeof(*b), records, b->length);
	return at + sizeof(*b) + b->length;
}

static size_t make_file(const uint8_t *data, size_t size, uint8_t *out)
{
	struct carry_block last = {.part = CARRY_LAST, .version = 1, .size = 1};
	size_t at = CARRY_MAGIC_SIZE;

	memcpy(out, CARRY_MAGIC, CARRY_MAGIC_SIZE);
	while (size >= 2) {
		const struct carry_part *p = choose(data[0] & 15);
		struct carry_block b = {.version = (uint16_t)(data[0] >> 7)};
		unsigned n = data[1] & 15;

		data += 2;
		size -= 2;
		if (p == NULL || size < (size_t)n * p->size)
			break;
		memcpy(b.part, p->name, strlen(p->name));
		b.version = (uint16_t)(p->version + b.version);
		b.size = p->size;
		b.length = n * p->size;
		at = add_block(out, at, &b, data);
		data += b.length;
		size -= b.length;
	}
	return add_block(out, at, &last, data);
}

static void fit(uint8_t *file, size_t size)
{
	size_t at = CARRY_MAGIC_SIZE;

	while (size >= at + sizeof(struct carry_block)) {
		struct carry_block b;

		memcpy(&b, file + at, sizeof(b));
		if (b.length > size - at - sizeof(b))
			break;
		b.time = carry_clock();
		b.crc = carry_crc(&b, file + at + sizeof(b));
		memcpy(file + at, &b, sizeof(b));
		at += sizeof(b) + b.length;
	}
}

static void check_flow(const struct flow *f)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		const struct flow_key *k = &f->dir[i].key;

		FUZZ_ASSERT(k->zone < VRF_MAX && flow_zones[k->zone].stateful);
		FUZZ_ASSERT(flow_table_find(flow_table, k) == flow_entry(f, i));
		FUZZ_ASSERT(f->dir[i].gen == 0); // nothing passes before there is a decision
		FUZZ_ASSERT(f->port[i] == 0 || port_get(f->port[i]));
	}
	FUZZ_ASSERT(f->owner == 0 || port_get(f->owner));
	FUZZ_ASSERT(f->nat == 0 || nat_get(f->nat));
}

static void check_neighbor(const struct neighbor *n)
{
	FUZZ_ASSERT(port_get(n->port) && rte_is_valid_assigned_ether_addr(&n->mac) && neighbor_usable(n));
	FUZZ_ASSERT(neighbor_find(n->port, &n->addr) == n && n->confirmed <= neighbor_clock());
}

// Those of next hops stay.
static void end_neighbors(void)
{
	struct error err = {0};
	uint32_t i;

	for (i = 1; i < neighbor_end; i++) {
		struct neighbor *n = neighbor_at(i);

		if (n == NULL || n->refs > 0)
			continue;
		check_neighbor(n);
		FUZZ_ASSERT(neighbor_del(n->port, &n->addr, &err) == 0);
	}
	adjacency_poll();
}

static void end_macs(void)
{
	const struct bridge *b;
	uint32_t slot;

	for (slot = 0; slot < mac_table_slots(); slot++) {
		uint64_t key = mac_slot_key(slot), target = mac_slot_target(slot);
		struct rte_ether_addr mac = mac_key_addr(key);

		if (key == MAC_FREE)
			continue;
		b = bridge_get(mac_key_bridge(key));
		FUZZ_ASSERT(b && (target & MAC_LEARNT) && rte_is_valid_assigned_ether_addr(&mac));
		FUZZ_ASSERT((target & MAC_TUNNEL) || port_get((uint16_t)MAC_ID(target))->cfg.bridge == b->id);
		FUZZ_ASSERT(mac_slot_seen(slot) <= mac_clock);
		mac_remove(slot);
	}
	FUZZ_ASSERT(mac_count() == 0);
}

// The rules decide about them, as about idle flows, and then they end.
static void end_flows(void)
{
	static uint64_t tsc;
	uint32_t i;

	tsc += flow_tsc_hz;
	flow_poll();
	flow_age(0, tsc);
	for (i = 1; i < flow_used_range(); i++)
		if (flows[i].state == FLOW_LIVE)
			flow_end(&flows[i]);
	for (i = 0; i < 100 && flow_count() > 0; i++) {
		tsc += flow_tsc_hz;
		flow_age(0, tsc);
	}
	FUZZ_ASSERT(flow_count() == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *file = malloc(ROOM), *exact;
	size_t n;
	uint32_t i;

	if (size == 0 || size > ROOM || file == NULL) {
		free(file);
		return 0;
	}
	if (data[0] & WHOLE)
		memcpy(file, data + 1, n = size - 1);
	else
		n = make_file(data + 1, size - 1, file);
	if (data[0] & FITS)
		fit(file, n);
	exact = malloc(n ? n : 1); // so that a read behind its end is seen
	memcpy(exact, file, n);
	free(file);
	if (carry_read(exact, n) == 0) {
		for (i = 1; i < flow_used_range(); i++)
			if (flows[i].state == FLOW_LIVE)
				check_flow(&flows[i]);
		end_flows();
		end_neighbors();
		end_macs();
	}
	free(exact);
	return 0;
}
