// SPDX-License-Identifier: Apache-2.0
// The flow table maps a key to an entry number. It is a cuckoo hash table with buckets of one cache line.
//
// A key may be in either of two buckets of eight slots each. A slot holds a 16-bit signature and the entry number; the
// key itself is stored with the entry (flow_entry_key()) and is read only where a signature matches. Each bucket has a
// Bloom filter (`moved`) of the keys that overflowed from it into their second bucket, so that most lookups, and nearly
// all misses, read one bucket.
//
// Readers never lock. They may miss a key that is being moved at that moment, so flow_table_insert() looks again under
// locks. Writers lock the buckets of their keys; any number of threads may insert and remove concurrently.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "flow/key.h"

#define FLOW_SLOTS 8
#define FLOW_BATCH 256 // keys in one bulk lookup
#define FLOW_REMOVE 64 // entries in one bulk removal

typedef uint32_t flow_entry_t; // flow << 1 | direction; 0 and 1: none

struct flow_table;

// Creates a table for `entries` (two per flow) at a load of 0.9. NULL sets errno (ENOMEM, E2BIG).
struct flow_table *flow_table_create(uint64_t entries);
void flow_table_destroy(struct flow_table *t); // no thread may use it any more

// Readers. n <= FLOW_BATCH. out[i] is 0 where the key is not found. All keys have the family that the name says.
void flow_table_lookup4(const struct flow_table *t, const struct flow_key *keys, flow_entry_t *out, unsigned n);
void flow_table_lookup6(const struct flow_table *t, const struct flow_key *keys, flow_entry_t *out, unsigned n);

// Prefetches for the insertion of a flow. Sets the hashes of the key and of its reverse, for flow_table_insert_by().
void flow_table_prefetch(const struct flow_table *t, const struct flow_key *key, uint64_t hash[2]);
flow_entry_t flow_table_find(const struct flow_table *t, const struct flow_key *key);

// Inserts the entries a and b (0: only a), both or neither; the caller has filled in their keys. Returns 0; -EEXIST if
// one of the keys exists, with its entry in *found; -ENOSPC if no slot can be freed; -EAGAIN if the table is full while
// it grows, or other writers took every slot that was freed: retry later.
int flow_table_insert(struct flow_table *t, flow_entry_t a, flow_entry_t b, flow_entry_t *found);
// The same with the hashes of both keys.
int flow_table_insert_by(struct flow_table *t, flow_entry_t a, flow_entry_t b, const uint64_t hash[2],
			 flow_entry_t *found);

// n <= FLOW_REMOVE. Entries that are not in the table are skipped.
void flow_table_remove(struct flow_table *t, const flow_entry_t *entries, unsigned n);

uint64_t flow_table_used(const struct flow_table *t); // occupied slots
uint64_t flow_table_slots(const struct flow_table *t);
uint64_t flow_table_memory(const struct flow_table *t); // bytes
bool flow_table_growing(const struct flow_table *t);

// Grows in steps while readers and writers go on. Control thread only. begin: -ENOMEM; -EBUSY while the table is
// growing. step moves up to n buckets and returns true when nothing is left. The old buckets are freed after a grace
// period.
int flow_table_grow_begin(struct flow_table *t, uint64_t entries);
bool flow_table_grow_step(struct flow_table *t, unsigned n);
