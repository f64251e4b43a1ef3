// SPDX-License-Identifier: Apache-2.0
// Private to the FIB: its words, nodes and tables. fib.c finds the place of a route and changes it, fib_node.c builds
// nodes, fib_table.c has the direct table, fib_arena.c the memory, and fib_lookup.c what workers do.
//
// A word is either a leaf (top bit set: prefix length and next hop of a route) or the unit of a child node (top bit
// clear). FIB_INHERIT is a leaf without a route: the best match so far stands. A longer route is a greater leaf and a
// child is less than any leaf, so the best match is simply the maximum of the words on the way down.
//
// A node at depth d (bits above it) holds the routes of length d+1 .. d+8: each of its 256 slots is the longest of
// these that contains the slot, or a child, whose `cover` then holds that route. Runs of equal slots are stored once.
// Levels without a route and with one child only are left out: the child's `skip` holds their bytes of the key.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include "base/sanitizers.h"
#include "l3/fib.h"

// --- The memory of nodes (fib_arena.c). ---

// One reserved address range. A block is one to FIB_MAX_UNITS units of 64 bytes and is named by the number of its
// first unit; 0 is none. Master thread only, except fib_at().
#define FIB_UNIT 64
#define FIB_MAX_UNITS 18 // of the largest node

extern uint8_t *fib_arena; // workers: ro, set once by fib_init()

static inline void *fib_at(uint32_t unit)
{
	return fib_arena + (uint64_t)unit * FIB_UNIT;
}

// 0: no memory. Some is kept for removals (removal = true), so that routes can still be deleted when the range is full.
uint32_t fib_arena_alloc(unsigned units, bool removal);
void fib_arena_free(uint32_t unit);   // at once: a block that no worker has seen
void fib_arena_retire(uint32_t unit); // after a grace period
void fib_arena_flush(void);           // starts the grace period of what was retired up to now
uint64_t fib_arena_used(void);        // bytes handed out, retired ones included

// --- Words and nodes (fib_node.c). ---

#define FIB_STRIDE 8
#define FIB_SLOTS 256
#define FIB_INHERIT (1u << 31)
#define FIB_MAX_SKIP 7
#define FIB_SHORTER 0x80 // in skip: has routes of less than the whole stride
#define FIB_SHORTER_WORDS (FIB_SLOTS / 32)

// Immutable once published, except `cover` and the words that refer to children: each changes in one store.
struct fib_node {
	uint64_t runs[4]; // bit s: slot s begins a run; bit 0 is always set
	uint64_t skip;    // up to FIB_MAX_SKIP bytes from the top; lowest six bits: 63 less their bits; FIB_SHORTER
	uint8_t base[4];  // index in words[] of the first run that begins in runs[i], or would
	uint32_t cover;   // leaf: the parent's route for this slot
	uint32_t words[]; // one per run; with FIB_SHORTER then 256 bits: which shorter routes exist
};

static inline bool fib_is_leaf(uint32_t word)
{
	return word >> 31;
}

static inline uint32_t fib_leaf(unsigned len, uint32_t nexthop)
{
	return FIB_INHERIT | len << 22 | nexthop;
}

static inline unsigned fib_leaf_len(uint32_t leaf)
{
	return (leaf & ~FIB_INHERIT) >> 22;
}

static inline uint32_t fib_leaf_nexthop(uint32_t leaf)
{
	return leaf & FIB_MAX_NEXTHOP;
}

// Whether the leaf is a route of this length. (FIB_INHERIT is not a route.)
static inline bool fib_leaf_is(uint32_t leaf, unsigned len)
{
	return leaf != FIB_INHERIT && fib_leaf_len(leaf) == len;
}

// How lookups load words and roots. Relaxed: what a word refers to is read through it, and every CPU keeps such reads
// in order. The compiler stays free to keep a lookup's state in registers.
#ifdef WITH_TSAN
#define FIB_LOAD __ATOMIC_ACQUIRE
#else
#define FIB_LOAD __ATOMIC_RELAXED
#endif

static inline uint32_t fib_load(const uint32_t *word)
{
	return __atomic_load_n(word, FIB_LOAD);
}

static inline void fib_store(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static inline struct fib_node *fib_child(uint32_t word)
{
	return fib_at(word);
}

static inline unsigned fib_node_index(const struct fib_node *node, unsigned slot)
{
	return node->base[slot >> 6] + (unsigned)__builtin_popcountll(node->runs[slot >> 6] << (~slot & 63)) - 1u;
}

static inline unsigned fib_skip_bits(uint64_t skip)
{
	return 63 - (skip & 63);
}

uint64_t fib_skip_of(const uint8_t *bytes, unsigned n);
uint64_t fib_skip_from(uint64_t skip, unsigned n);                     // without its first n bytes
uint64_t fib_skip_join(uint64_t above, unsigned slot, uint64_t below); // n bytes, one, and m; 0 if they are too many

// The slots that a route covers in its level, and its number among the shorter routes (those of less than the level's
// whole stride). rel: the route's length below the level's first bit.
struct fib_span {
	unsigned from, to; // slots [from, to)
	unsigned number;   // heap order: 1 << rel | its rel bits
};

struct fib_span fib_span(unsigned slot, unsigned rel, unsigned stride);

// What a change does to a leaf.
struct fib_change {
	enum { FIB_FILL, FIB_ADD, FIB_REMOVE } kind;
	unsigned len;  // ADD, REMOVE: of the route
	uint32_t word; // FILL: what the slots become; ADD: the route's leaf; REMOVE: what takes its place
};

uint32_t fib_change_leaf(const struct fib_change *c, uint32_t leaf);
// Applies the change to the covers of the node's children in these slots.
void fib_node_change_covers(const struct fib_node *node, const struct fib_span *span, const struct fib_change *c);

// A node under construction.
struct fib_build {
	unsigned n;
	uint32_t cover;
	uint64_t skip;
	uint64_t runs[4];
	uint64_t shorter[4];
	uint32_t words[FIB_SLOTS];
};

// Begins as a copy of the node (NULL: an empty one) with the change applied to the slots of span.
void fib_build_edit(struct fib_build *b, const struct fib_node *node, const struct fib_span *span,
		    const struct fib_change *c);
void fib_build_again(struct fib_build *b, const struct fib_span *span, const struct fib_change *c); // one more change
void fib_build_copy(struct fib_build *b, const struct fib_node *node);
bool fib_build_empty(const struct fib_build *b);
// The only child of a node without routes, and its slot; 0: the node is not of that kind.
uint32_t fib_build_lone_child(const struct fib_build *b, unsigned *slot);
// Records whether the route of this span exists. Routes of the whole stride need no record.
void fib_build_mark(struct fib_build *b, const struct fib_span *span, bool shorter);
// Returns the word of the new node; 0: no memory.
uint32_t fib_build_node(const struct fib_build *b, bool removal);

bool fib_node_has_shorter(const struct fib_node *node, unsigned number);
void fib_node_retire_all(uint32_t word); // with all its children
// The same in shares, for a FIB without readers: retires at most *left nodes, subtracts them, and returns false if some
// are left.
bool fib_node_retire_share(uint32_t *word, unsigned *left);

// --- The first level (fib_table.c). ---

// A table of words, indexed by the address's first `bits` bits, holds the routes of length 0 to `bits`. `bits` is 16
// (the direct table) or 0 (one word within struct fib, so that an empty FIB is one cache line).
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
