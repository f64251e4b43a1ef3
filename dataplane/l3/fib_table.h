// SPDX-License-Identifier: Apache-2.0
// FIB: the first level. A table of words, indexed by the address's first `bits` bits, holds the routes of length 0 to
// `bits`. `bits` is 16 (the direct table) or 0 (one word within struct fib, so that an empty FIB is one cache line).
#pragma once

#include <rte_common.h>

#include "l3/fib_node.h"

#define FIB_DIRECT_BITS 16
#define FIB_DIRECT_SLOTS (1u << FIB_DIRECT_BITS)

// Direct table: its words, then a bit per shorter route (length 0 .. 15). Words change in place.
struct fib_table {
	uint32_t words[FIB_DIRECT_SLOTS];
	uint32_t shorter[FIB_DIRECT_SLOTS / 32];
};

// master: rw. Workers read root and word.
struct fib {
	uint32_t word; // the table of bits = 0
	uint32_t routes;
	uint64_t root; // address of the table | 63 - bits: one less than the shift of the address
	uint8_t family;
} __rte_cache_aligned;

static inline uint64_t fib_root(uint32_t *table, unsigned bits)
{
	return (uint64_t)(uintptr_t)table | (63 - bits);
}

static inline unsigned fib_root_bits(uint64_t root)
{
	return ~root & 63;
}

static inline uint32_t *fib_root_table(uint64_t root)
{
	return (uint32_t *)(uintptr_t)(root & ~63ull);
}

// key: the address's first 64 bits.
static inline uint32_t *fib_root_word(uint64_t root, uint64_t key)
{
	return fib_root_table(root) + ((key >> 1) >> (root & 63));
}

// Counts removals of routes from all FIBs, each before workers can see it (fib.c). master: rw, workers: ro.
extern uint32_t fib_removals;

bool fib_table_has(const struct fib *fib, unsigned key16, unsigned len);
// Applies an addition or removal of a route of length <= bits.
void fib_table_change(struct fib *fib, unsigned key16, const struct fib_change *c);

void fib_table_grow(struct fib *fib);         // to the direct table; no change if there is no memory for it
void fib_table_reset(struct fib *fib);        // back to one word, without routes
void fib_table_retire(const struct fib *fib); // frees a direct table after a grace period
uint64_t fib_table_memory(void);              // bytes of all direct tables
