// SPDX-License-Identifier: Apache-2.0
// FIB, the workers' side. See fib_node.h for the trie and fib.c for why this needs no lock.
#include <rte_branch_prediction.h>
#include <rte_byteorder.h>
#include <rte_prefetch.h>

#include "l3/fib_removals.h"
#include "l3/fib_table.h"

#define CHUNK 32 // lookups under way at a time
#define FEW 4    // below, one after the other is quicker

// What is left of the key: IPv4: its bits at the top of 32; IPv6: the address of its next byte.
static __rte_always_inline unsigned key_start(enum family family, const void *key, unsigned bits, uint64_t *rest)
{
	uint32_t v4;

	if (family == IPV4) {
		v4 = rte_be_to_cpu_32(*(const unaligned_uint32_t *)key);
		*rest = v4 << bits;
		return v4 >> 16;
	}
	*rest = (uintptr_t)key + bits / 8;
	return rte_be_to_cpu_16(*(const unaligned_uint16_t *)key);
}

static __rte_always_inline unsigned key_byte(enum family family, uint64_t *rest)
{
	unsigned byte;

	if (family == IPV4) {
		byte = (uint32_t)*rest >> 24;
		*rest = (uint32_t)*rest << 8;
		return byte;
	}
	return *(const uint8_t *)(uintptr_t)(*rest)++;
}

static __rte_always_inline uint32_t first_word(enum family family, const struct fib *fib, const void *key, uint64_t *rest)
{
	uint64_t root = __atomic_load_n(&fib->root, __ATOMIC_ACQUIRE);
	unsigned key16 = key_start(family, key, fib_root_bits(root), rest);

	return fib_load(fib_root_word(root, key16));
}

// One level down from the node that word refers to.
static __rte_always_inline uint32_t next_word(const uint8_t *arena, uint32_t word, unsigned slot, uint32_t *best)
{
	const struct fib_node *node = (const struct fib_node *)(arena + (uint64_t)word * FIB_UNIT);
	uint32_t cover = fib_load(&node->cover);
	uint32_t next = fib_load(&node->words[fib_node_index(node, slot)]);

	cover = RTE_MAX(*best, cover);
	*best = RTE_MAX(cover, next);
	return next;
}

static __rte_always_inline uint32_t walk(enum family family, const struct fib *fib, const void *key, uint32_t *last)
{
	const uint8_t *arena = fib_arena;
	uint64_t rest;
	uint32_t word = first_word(family, fib, key, &rest);
	uint32_t best = RTE_MAX(word, FIB_INHERIT);

	while (!fib_is_leaf(word))
		word = next_word(arena, word, key_byte(family, &rest), &best);
	*last = word;
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

static __rte_always_inline uint32_t lookup_one(enum family family, const struct fib *fib, const void *key)
{
	uint32_t since, last, best;

	do {
		since = removals_begin();
		best = walk(family, fib, key, &last);
	} while (last == FIB_INHERIT && removals_passed(since));
	return fib_leaf_nexthop(best);
}

// keys: as in fib4_lookup_bulk() and fib6_lookup_bulk().
static __rte_always_inline const void *key_at(enum family family, const void *keys, unsigned i)
{
	return family == IPV4 ? (const void *)((const uint32_t *)keys + i) : ((const uint8_t *const *)keys)[i];
}

// All lookups of the chunk go down a level together; active[] lists those that are not at a leaf yet.
static __rte_always_inline void lookup_chunk(enum family family, const struct fib *const *fibs, const void *keys,
					     uint32_t *nexthops, unsigned n)
{
	const uint8_t *arena = fib_arena;
	uint32_t since = removals_begin();
	uint32_t word[CHUNK], best[CHUNK];
	uint64_t rest[CHUNK];
	uint8_t active[CHUNK];
	unsigned i, k, left, still;

	for (i = 0, left = 0; i < n; i++) {
		word[i] = first_word(family, fibs[i], key_at(family, keys, i), &rest[i]);
		best[i] = RTE_MAX(word[i], FIB_INHERIT);
		active[left] = (uint8_t)i;
		left += !fib_is_leaf(word[i]);
		rte_prefetch0(arena + (fib_is_leaf(word[i]) ? 0 : (uint64_t)word[i] * FIB_UNIT));
	}
	for (; left > 0; left = still) {
		for (k = 0, still = 0; k < left; k++) {
			i = active[k];
			word[i] = next_word(arena, word[i], key_byte(family, &rest[i]), &best[i]);
			active[still] = (uint8_t)i;
			still += !fib_is_leaf(word[i]);
			rte_prefetch0(arena + (fib_is_leaf(word[i]) ? 0 : (uint64_t)word[i] * FIB_UNIT));
		}
	}
	for (i = 0; i < n; i++)
		nexthops[i] = fib_leaf_nexthop(best[i]);
	if (!removals_passed(since))
		return;
	for (i = 0; i < n; i++)
		if (word[i] == FIB_INHERIT)
			nexthops[i] = lookup_one(family, fibs[i], key_at(family, keys, i));
}

static __rte_always_inline void lookup_bulk(enum family family, const struct fib *const *fibs, const void *keys,
					    uint32_t *nexthops, unsigned n)
{
	const size_t key_size = family == IPV4 ? sizeof(uint32_t) : sizeof(uint8_t *);
	unsigned i, len;

	for (i = 0; n - i >= FEW; i += len) {
		len = RTE_MIN(n - i, (unsigned)CHUNK);
		lookup_chunk(family, fibs + i, (const uint8_t *)keys + i * key_size, nexthops + i, len);
	}
	for (; i < n; i++)
		nexthops[i] = lookup_one(family, fibs[i], key_at(family, keys, i));
}

void fib4_lookup_bulk(const struct fib *const *fibs, const uint32_t *keys, uint32_t *nexthops, unsigned n)
{
	lookup_bulk(IPV4, fibs, keys, nexthops, n);
}

void fib6_lookup_bulk(const struct fib *const *fibs, const uint8_t *const *keys, uint32_t *nexthops, unsigned n)
{
	lookup_bulk(IPV6, fibs, keys, nexthops, n);
}

uint32_t fib_lookup(const struct fib *fib, const struct ip_addr *addr)
{
	return addr->family == IPV4 ? lookup_one(IPV4, fib, addr->bytes) : lookup_one(IPV6, fib, addr->bytes);
}
