// SPDX-License-Identifier: Apache-2.0
// FIB, the workers' side. See fib_private.h for the trie and fib.c for why this needs no lock.
#include <rte_branch_prediction.h>
#include <rte_byteorder.h>
#include <rte_prefetch.h>

#include "l3/fib_private.h"

#define CHUNK 32 // lookups under way at a time
#define FEW 4    // fewer lookups are faster one after the other

// The rest of a key, from the top bit on. IPv4 uses the upper half of hi.
struct key {
	uint64_t hi, lo;
	unsigned taken; // bits in front of the rest
};

static __rte_always_inline struct key fib_lookup_key_load(enum family family, const void *key)
{
	rte_be64_t words[2];
	rte_be32_t v4;

	if (family == IPV4) {
		memcpy(&v4, key, sizeof(v4));
		return (struct key){.hi = (uint64_t)rte_be_to_cpu_32(v4) << 32};
	}
	memcpy(words, key, sizeof(words));
	return (struct key){.hi = rte_be_to_cpu_64(words[0]), .lo = rte_be_to_cpu_64(words[1])};
}

// Moves on by 63 - inverted bits. Only the lowest six bits of `inverted` are used, so a caller can pass a node's skip
// or a FIB's root.
static __rte_always_inline void fib_key_shift(enum family family, struct key *key, uint64_t inverted)
{
	key->taken += ~inverted & 63;
	key->hi <<= ~inverted & 63;
	if (family == IPV4)
		return;
	key->hi |= (key->lo >> 1) >> (inverted & 63);
	key->lo <<= ~inverted & 63;
}

// Returns where the first word is.
static __rte_always_inline const uint32_t *fib_find_first(enum family family, const struct fib *fib, struct key *key)
{
	uint64_t root = __atomic_load_n(&fib->root, FIB_LOAD);
	const uint32_t *first = fib_root_word(root, key->hi);

	fib_key_shift(family, key, root);
	return first;
}

// Returns where the next word is, in the node that `word` refers to.
static __rte_always_inline const uint32_t *fib_find_word(enum family family, const uint8_t *arena, uint32_t word,
							 struct key *key, uint32_t *best)
{
	static const uint32_t elsewhere = FIB_INHERIT; // the key differs from what the node skips
	const struct fib_node *node = (const struct fib_node *)(arena + (uint64_t)word * FIB_UNIT);
	uint64_t skip = node->skip, differs = ((key->hi ^ skip) >> 1) >> (skip & 63);
	uint32_t cover = fib_load(&node->cover);
	const uint32_t *next;
	uint64_t runs;

	fib_key_shift(family, key, skip);
	// fib_node_index(), the slot being the top byte
	runs = node->runs[key->hi >> 62] << (~(key->hi >> 56) & 63);
	next = &node->words[(uint64_t)node->base[key->hi >> 62] + (uint64_t)__builtin_popcountll(runs) - 1];
	fib_key_shift(family, key, 63 - FIB_STRIDE);
	*best = RTE_MAX(*best, cover);
	return differs ? &elsewhere : next;
}

// *last: the last word on the way. *decided: so many bits of the key decided the way.
static __rte_always_inline uint32_t fib_lookup_walk(enum family family, const struct fib *fib, const void *key,
						    uint32_t *last, unsigned *decided)
{
	const uint8_t *arena = fib_arena;
	struct key rest = fib_lookup_key_load(family, key);
	uint32_t word = fib_load(fib_find_first(family, fib, &rest));
	uint32_t best = word; // a child is less than any leaf

	while (!fib_is_leaf(word)) {
		word = fib_load(fib_find_word(family, arena, word, &rest, &best));
		best = RTE_MAX(best, word);
	}
	*last = word;
	*decided = rest.taken;
	return best;
}

static __rte_always_inline uint32_t removals_begin(void)
{
	return __atomic_load_n(&fib_removals, __ATOMIC_ACQUIRE);
}

static __rte_always_inline bool removals_passed(uint32_t since)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return unlikely(__atomic_load_n(&fib_removals, __ATOMIC_RELAXED) != since);
}

static __rte_always_inline uint32_t fib_lookup_decided(enum family family, const struct fib *fib, const void *key,
						       unsigned *decided)
{
	uint32_t since, last, best;

	do {
		since = removals_begin();
		best = fib_lookup_walk(family, fib, key, &last, decided);
	} while (last == FIB_INHERIT && removals_passed(since));
	return fib_leaf_nexthop(best);
}

static __rte_always_inline uint32_t fib_lookup_one(enum family family, const struct fib *fib, const void *key)
{
	unsigned decided;

	return fib_lookup_decided(family, fib, key, &decided);
}

// keys: as in fib4_lookup_bulk() and fib6_lookup_bulk().
static __rte_always_inline const void *fib_key_at(enum family family, const void *keys, unsigned i)
{
	return family == IPV4 ? (const void *)((const uint32_t *)keys + i) : ((const uint8_t *const *)keys)[i];
}

// Fetches the word's node if it refers to one. Returns whether it does, as 0 or -1. (Without a branch, which nothing
// could predict. Unit 0 is mapped because a page walk that fails is slow and would be repeated each time.)
static __rte_always_inline uint32_t prefetch_node(const uint8_t *arena, uint32_t word)
{
	uint32_t child = (word >> 31) - 1;

	rte_prefetch0(arena + (uint64_t)(word & child) * FIB_UNIT);
	return child;
}

// Without direct table. The few nodes are in the cache.
static __rte_always_inline bool fib_is_small(const struct fib *fib)
{
	return fib_root_bits(__atomic_load_n(&fib->root, __ATOMIC_RELAXED)) == 0;
}

// Whether interleaving only costs: a few lookups, or all in one small FIB.
static __rte_always_inline bool fib_one_by_one(const struct fib *const *fibs, unsigned n)
{
	uintptr_t differ = 0;
	unsigned i;

	if (n < FEW)
		return true;
	for (i = 1; i < n; i++)
		differ |= (uintptr_t)fibs[i] ^ (uintptr_t)fibs[0];
	return differ == 0 && fib_is_small(fibs[0]);
}

static __rte_always_inline void fib_lookup_each(enum family family, const struct fib *const *fibs, const void *keys,
						uint32_t *nexthops, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		nexthops[i] = fib_lookup_one(family, fibs[i], fib_key_at(family, keys, i));
}

// All lookups of the chunk go down a level together; active[] lists those that are not at a leaf yet.
static __rte_always_inline void fib_lookup_chunk(enum family family, const struct fib *const *fibs, const void *keys,
						 uint32_t *nexthops, unsigned n)
{
	const uint8_t *arena = fib_arena;
	uint32_t since = removals_begin();
	uint32_t word[CHUNK], best[CHUNK];
	uint64_t hi[CHUNK], lo[CHUNK];
	const uint32_t *next[CHUNK];
	uint8_t active[CHUNK];
	unsigned i, k, left, still;
	struct key key;

	if (fib_one_by_one(fibs, n)) {
		fib_lookup_each(family, fibs, keys, nexthops, n);
		return;
	}
	for (i = 0; i < n; i++) {
		key = fib_lookup_key_load(family, fib_key_at(family, keys, i));
		next[i] = fib_find_first(family, fibs[i], &key);
		hi[i] = key.hi;
		lo[i] = key.lo;
		rte_prefetch0(next[i]);
	}
	for (i = 0, left = 0; i < n; i++) {
		word[i] = best[i] = fib_load(next[i]);
		active[left] = (uint8_t)i;
		left -= prefetch_node(arena, word[i]);
	}
	for (; left > 0; left = still) {
		for (k = 0; k < left; k++) {
			i = active[k];
			key = (struct key){.hi = hi[i], .lo = family == IPV4 ? 0 : lo[i]};
			next[k] = fib_find_word(family, arena, word[i], &key, &best[i]);
			hi[i] = key.hi;
			if (family != IPV4)
				lo[i] = key.lo;
			rte_prefetch0(next[k]);
		}
		for (k = 0, still = 0; k < left; k++) {
			i = active[k];
			word[i] = fib_load(next[k]);
			best[i] = RTE_MAX(best[i], word[i]);
			active[still] = (uint8_t)i;
			still -= prefetch_node(arena, word[i]);
		}
	}
	for (i = 0; i < n; i++)
		nexthops[i] = fib_leaf_nexthop(best[i]);
	if (!removals_passed(since))
		return;
	for (i = 0; i < n; i++)
		if (word[i] == FIB_INHERIT)
			nexthops[i] = fib_lookup_one(family, fibs[i], fib_key_at(family, keys, i));
}

static __rte_always_inline void fib_lookup_chunks(enum family family, const struct fib *const *fibs, const void *keys,
						  uint32_t *nexthops, unsigned n)
{
	const size_t key_size = family == IPV4 ? sizeof(uint32_t) : sizeof(uint8_t *);
	unsigned i, len;

	for (i = 0; i < n; i += len) {
		len = RTE_MIN(n - i, (unsigned)CHUNK);
		fib_lookup_chunk(family, fibs + i, (const uint8_t *)keys + i * key_size, nexthops + i, len);
	}
}

static __rte_noinline void fib4_lookup_many(const struct fib *const *fibs, const uint32_t *keys, uint32_t *nexthops,
					    unsigned n)
{
	fib_lookup_chunks(IPV4, fibs, keys, nexthops, n);
}

static __rte_noinline void fib6_lookup_many(const struct fib *const *fibs, const uint8_t *const *keys,
					    uint32_t *nexthops, unsigned n)
{
	fib_lookup_chunks(IPV6, fibs, keys, nexthops, n);
}

// Lookups one by one need no arrays on the stack, which the compiler would check in each call.
void fib4_lookup_bulk(const struct fib *const *fibs, const uint32_t *keys, uint32_t *nexthops, unsigned n)
{
	if (n <= CHUNK && fib_one_by_one(fibs, n))
		fib_lookup_each(IPV4, fibs, keys, nexthops, n);
	else
		fib4_lookup_many(fibs, keys, nexthops, n);
}

void fib6_lookup_bulk(const struct fib *const *fibs, const uint8_t *const *keys, uint32_t *nexthops, unsigned n)
{
	if (n <= CHUNK && fib_one_by_one(fibs, n))
		fib_lookup_each(IPV6, fibs, keys, nexthops, n);
	else
		fib6_lookup_many(fibs, keys, nexthops, n);
}

void fib_recent_begin(struct fib_recent *r, const struct fib *fib)
{
	r->none = 1;
	r->near = fib_is_small(fib) ? fib : NULL;
}

static inline uint64_t fib_high_bits(unsigned n)
{
	return n == 0 ? 0 : UINT64_MAX << (64 - RTE_MIN(n, 64u));
}

void fib4_recent_find(struct fib_recent *r, const uint8_t *key)
{
	unsigned decided;

	r->none = 0;
	r->nexthop = fib_lookup_decided(IPV4, r->near, key, &decided);
	r->key[0] = *(const unaligned_uint32_t *)key;
	r->decided[0] = rte_cpu_to_be_32((uint32_t)(fib_high_bits(decided) >> 32));
}

void fib6_recent_find(struct fib_recent *r, const uint8_t *key)
{
	unsigned decided;

	r->none = 0;
	r->nexthop = fib_lookup_decided(IPV6, r->near, key, &decided);
	memcpy(r->key, key, sizeof(r->key));
	r->decided[0] = rte_cpu_to_be_64(fib_high_bits(decided));
	r->decided[1] = rte_cpu_to_be_64(fib_high_bits(decided - RTE_MIN(decided, 64u)));
}

uint32_t fib_lookup(const struct fib *fib, const struct ip_addr *addr)
{
	return addr->family == IPV4 ? fib_lookup_one(IPV4, fib, addr->bytes) : fib_lookup_one(IPV6, fib, addr->bytes);
}
