// SPDX-License-Identifier: Apache-2.0
// FIB: longest prefix match of one VRF and family, read by workers without locks.
//
// A trie with a stride of 8 bits whose nodes are immutable and compressed: a bitmap marks where a run of equal slots
// begins, so a node costs 48 bytes and 4 per run, one cache line for most. Levels with a single way down are skipped. A
// change builds a new node and swaps one 32-bit word of its parent. A FIB that gets more than FIB_ROOT16 routes looks
// up the first 16 bits in one direct table, and keeps that table until it has no routes. Nodes live in one reserved
// address range and refer to each other by 32-bit numbers.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "base/ip.h"

#define FIB_NONE 0 // next hop id that means "no route"
#define FIB_MAX_NEXTHOP ((1u << 22) - 1)
#define FIB_ROOT16 1024 // routes from which on the first 16 bits are looked up directly

struct fib; // one VRF, one family

// Process-wide: reserves max_bytes of addresses for the nodes. Memory is allocated only as nodes are added.
int fib_init(uint64_t max_bytes);
void fib_fini(void);       // all FIBs destroyed, no reader online; before rcu_fini()
uint64_t fib_memory(void); // bytes in use by nodes and roots of all FIBs, freed ones in their grace period included

// Master thread only. All return 0 or -errno (-EINVAL, -ENOMEM, -ENOENT) and change nothing on error. Readers always
// see either the old or the new route.
struct fib *fib_create(enum family family);
void fib_destroy(struct fib *fib);                                              // after a grace period
int fib_set(struct fib *fib, const struct ip_prefix *prefix, uint32_t nexthop); // adds or replaces, nexthop != FIB_NONE
// Destroys a FIB that no reader can see any more, at most *left nodes at a time, and subtracts them. Returns true once
// it is gone.
bool fib_destroy_share(struct fib *fib, unsigned *left);
// cover: the next shorter route that contains the prefix (NULL = none) and its next hop.
int fib_unset(struct fib *fib, const struct ip_prefix *prefix, const struct ip_prefix *cover, uint32_t cover_nexthop);
uint32_t fib_routes(const struct fib *fib);

// Workers. Keys are addresses in network byte order; every packet may have its own FIB (its VRF's), all of the same
// family. nexthops[i] is FIB_NONE where there is no route. Lookups of a batch are interleaved with prefetches.
void fib4_lookup_bulk(const struct fib *const *fibs, const uint32_t *keys, uint32_t *nexthops, unsigned n);
void fib6_lookup_bulk(const struct fib *const *fibs, const uint8_t *const *keys, uint32_t *nexthops, unsigned n);
uint32_t fib_lookup(const struct fib *fib, const struct ip_addr *addr);

// Consecutive packets often have the same route. This remembers the last lookup, for the keys that have the bits by
// which it was decided. For one FIB and one walk of the graph.
struct fib_recent {
	const struct fib *near;      // NULL: the FIB is large, so its keys are looked up in bulk
	uint64_t none;               // 0: a lookup is remembered
	uint64_t key[2], decided[2]; // as in the packet; IPv4 uses four bytes
	uint32_t nexthop;
};

void fib_recent_begin(struct fib_recent *r, const struct fib *fib);
void fib4_recent_find(struct fib_recent *r, const uint8_t *key);
void fib6_recent_find(struct fib_recent *r, const uint8_t *key);

static __rte_always_inline bool fib_recent_has(const struct fib_recent *r, const uint8_t *key, const bool v6)
{
	const unaligned_uint64_t *q = (const unaligned_uint64_t *)key;
	uint64_t differ = v6 ? ((q[0] ^ r->key[0]) & r->decided[0]) | ((q[1] ^ r->key[1]) & r->decided[1])
			     : (*(const unaligned_uint32_t *)key ^ r->key[0]) & r->decided[0];

	return (differ | r->none) == 0;
}

// Sets r->nexthop. Returns false if the key is to be looked up with others, in bulk.
static __rte_always_inline bool fib_lookup_recent(struct fib_recent *r, const uint8_t *key, const bool v6)
{
	if (likely(fib_recent_has(r, key, v6)))
		return true;
	if (r->near == NULL)
		return false;
	if (v6)
		fib6_recent_find(r, key);
	else
		fib4_recent_find(r, key);
	return true;
}
