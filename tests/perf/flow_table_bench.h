// SPDX-License-Identifier: Apache-2.0
// The back ends that are compared. Each finds a flow's number by its key. All read the keys in the flows, except
// rte_hash, which has copies.
#pragma once

#include "flow/table_fixture.h"

struct backend {
	const char *name, *text;
	void *(*create)(uint64_t slots, uint64_t entries, bool v6); // NULL: shares the previous one
	bool (*insert)(void *table, flow_entry_t entry);            // both directions of a flow: its even entry
	void (*remove)(void *table, flow_entry_t entry);
	void (*destroy)(void *table);
	void (*lookup)(const void *table, const struct flow_key *keys, flow_entry_t *out, unsigned n);
	void (*lookup6)(const void *table, const struct flow_key *keys, flow_entry_t *out, unsigned n);
	bool (*supported)(void); // NULL: everywhere
};
extern const struct backend *const backends[]; // in the order of the steps; ends with NULL
extern const struct backend chained_plain, chained_signature, chained_crc, chained_batch;
