// SPDX-License-Identifier: Apache-2.0
// The flow table: finds the number of an entry by its key. A cuckoo hash of buckets of one cache line.
//
// A key may lie in two buckets of eight slots each. A slot is a signature of 16 bits and the entry's number; the key itself lies with the
// entry (flow_entry_key()) and is read only where a signature matches. A bucket also remembers (`moved`, a Bloom filter) which of the keys
// that belong here have had to go to their other bucket, so that most lookups, and nearly all of keys that are not there, read one line.
//
// Readers never lock. They may miss a key that is being moved at that moment: flow_table_insert() looks again under locks. Writers lock the
// buckets of their keys, so any number of threads may insert and remove at once.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "flow/key.h"

#define FLOW_SLOTS 8
#define FLOW_BATCH 256 // keys in one bulk lookup
#define FLOW_REMOVE 64 // entries that are removed at once

typedef uint32_t flow_entry_t; // flow << 1 | direction; 0 and 1: none

struct flow_table;

// Room for `entries` (two per flow) at a load of 0.9. NULL with errno: no memory.
struct flow_table *flow_table_create(uint64_t entries);
void flow_table_destroy(struct flow_table *t); // nobody uses it any more

// Readers. n <= FLOW_BATCH. out[i] is 0 where there is no such key. All keys are of one family.
void flow_table_lookup4(const struct flow_table *t, const struct flow_key *keys, flow_entry_t *out, unsigned n);
void flow_table_lookup6(const struct flow_table *t, const struct flow_key *keys, flow_entry_t *out, unsigned n);
void flow_table_prefetch(const struct flow_table *t, const struct flow_key *key); // for an insertion
flow_entry_t flow_table_find(const struct flow_table *t, const struct flow_key *key);

// Inserts the entries a and b (0: only a) as one step, their keys in place. Returns 0; -EEXIST when one of the keys is there already,
// with its entry in *found; -ENOSPC when no slot can be made free; -EAGAIN: the table is growing and full, try later.
int flow_table_insert(struct flow_table *t, flow_entry_t a, flow_entry_t b, flow_entry_t *found);
// n <= FLOW_REMOVE. What is not there is left alone.
void flow_table_remove(struct flow_table *t, const flow_entry_t *entries, unsigned n);

uint64_t flow_table_used(const struct flow_table *t); // slots taken
uint64_t flow_table_slots(const struct flow_table *t);
uint64_t flow_table_memory(const struct flow_table *t); // bytes
bool flow_table_growing(const struct flow_table *t);

// Grows without stopping anybody: control thread only, in steps. begin: -ENOMEM, -EBUSY while it grows already.
// step moves up to n buckets; returns true when all is done. The old buckets are freed after a grace period.
int flow_table_grow_begin(struct flow_table *t, uint64_t entries);
bool flow_table_grow_step(struct flow_table *t, unsigned n);
