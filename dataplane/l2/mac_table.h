// SPDX-License-Identifier: Apache-2.0
// The MAC table of all domains. Workers read it without locks while the master writes.
//
// A MAC is in one of two buckets of eight, in the second one only if the first was full. A table that is half full is
// replaced by one with twice the buckets. A slot may get another MAC at any time, so readers check its key again after
// they have read its target.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_ether.h>
#include <rte_prefetch.h>

#include "base/error.h"
#include "base/owner.h"
#include "base/sanitizers.h"
#include "l2/mac_order.h"

// Domain and MAC in one word, in the order of listings.
static inline uint64_t mac_key(uint16_t bridge, const struct rte_ether_addr *mac)
{
	const unaligned_uint32_t *high = (const unaligned_uint32_t *)mac;
	const unaligned_uint16_t *low = (const unaligned_uint16_t *)&mac->addr_bytes[4];

	return (uint64_t)bridge << 48 | (uint64_t)rte_be_to_cpu_32(*high) << 16 | rte_be_to_cpu_16(*low);
}

static inline uint16_t mac_key_bridge(uint64_t key)
{
	return (uint16_t)(key >> 48);
}

struct rte_ether_addr mac_key_addr(uint64_t key);

// The place of a MAC in one word. Bits 63..32: fingerprint of the remote end behind which it was learnt.
#define MAC_ID(t) ((uint32_t)(t)&0xffffff)         // port or next hop
#define MAC_OWNED(owner) ((uint32_t)(owner) << 24) // static: base/owner.h
#define MAC_OWNER(t) ((uint8_t)((t) >> 24 & (OWNERS - 1)))
#define MAC_TUNNEL (1u << 31)
#define MAC_LEARNT (1u << 30)

// Fingerprint of an outer source address, by which workers notice that a MAC has moved to another host.
static inline uint32_t mac_print(const uint8_t *addr, bool v6)
{
	const unaligned_uint64_t *q = (const unaligned_uint64_t *)addr;
	uint64_t x;

	if (!v6)
		return *(const unaligned_uint32_t *)addr;
	x = (q[0] ^ q[1] << 32 ^ q[1] >> 32) * 0x9e3779b97f4a7c15;
	return (uint32_t)(x >> 32);
}

#define MAC_FREE 0ull // no domain has the id 0
#define MAC_WAYS 8
#define MAC_NONE UINT32_MAX

struct mac_bucket {
	uint64_t key[MAC_WAYS];    // master: rw, workers: ro
	uint64_t target[MAC_WAYS]; // the same
	uint32_t seen[MAC_WAYS];   // mac_clock; master and workers: rw
} __rte_cache_aligned;

struct mac_table {
	struct mac_bucket *buckets;
	uint32_t mask;          // of buckets
	uint32_t n;             // master only
	struct mac_order order; // master only
};

extern struct mac_table *mac_table; // workers: ro (RCU)
extern uint32_t mac_clock;          // tenths of a second. Master: rw, workers: ro
extern uint64_t mac_secret;         // random, set at start

// Guests choose their addresses. Without the secret they cannot choose addresses that share buckets.
static inline uint64_t mac_hash(uint64_t key)
{
	key = (key ^ mac_secret) * 0xff51afd7ed558ccd;
	key = (key ^ key >> 32) * 0xc4ceb9fe1a85ec53;
	return key ^ key >> 29;
}

static inline struct mac_bucket *mac_bucket_first(const struct mac_table *t, uint64_t hash)
{
	return &t->buckets[(uint32_t)hash & t->mask];
}

static inline struct mac_bucket *mac_bucket_second(const struct mac_table *t, uint64_t hash)
{
	return &t->buckets[(uint32_t)(hash >> 32) & t->mask];
}

static inline void mac_prefetch(const struct mac_table *t, uint64_t hash, bool seen)
{
	const struct mac_bucket *b = mac_bucket_first(t, hash);

	rte_prefetch0(b->key);
	rte_prefetch0(b->target);
	if (seen)
		rte_prefetch0(b->seen);
}

// Returns a bitmap of the ways that have the key.
#if defined(__SSE4_1__) && !defined(WITH_TSAN)
#include <smmintrin.h>

// Keys may change during the load. Each is read whole, and readers check it again.
static inline unsigned mac_match(const struct mac_bucket *b, uint64_t key)
{
	const __m128i *keys = (const __m128i *)b->key, wanted = _mm_set1_epi64x((long long)key);
	__m128i low = _mm_packs_epi32(_mm_cmpeq_epi64(keys[0], wanted), _mm_cmpeq_epi64(keys[1], wanted));
	__m128i high = _mm_packs_epi32(_mm_cmpeq_epi64(keys[2], wanted), _mm_cmpeq_epi64(keys[3], wanted));

	return (unsigned)_mm_movemask_epi8(_mm_packs_epi16(_mm_packs_epi32(low, high), _mm_setzero_si128()));
}
#else
static inline unsigned mac_match(const struct mac_bucket *b, uint64_t key)
{
	unsigned i, hits = 0;

	for (i = 0; i < MAC_WAYS; i++)
		hits |= (unsigned)(__atomic_load_n(&b->key[i], __ATOMIC_ACQUIRE) == key) << i;
	return hits;
}
#endif

// Workers. Returns false if the key is unknown. The caller may write to *seen; if the slot has got another MAC by then,
// that one ages a little later.
static inline bool mac_lookup(const struct mac_table *t, uint64_t key, uint64_t hash, uint64_t *target, uint32_t **seen)
{
	struct mac_bucket *b = mac_bucket_first(t, hash);
	unsigned hits = mac_match(b, key), i;

	if (unlikely(hits == 0)) {
		b = mac_bucket_second(t, hash);
		hits = mac_match(b, key);
		if (hits == 0)
			return false;
	}
	i = (unsigned)__builtin_ctz(hits);
	*target = __atomic_load_n(&b->target[i], __ATOMIC_ACQUIRE);
	*seen = &b->seen[i];
	return __atomic_load_n(&b->key[i], __ATOMIC_RELAXED) == key;
}

// Master thread only. Slot numbers are valid until the next addition.
int mac_table_init(struct error *err);
uint32_t mac_table_find(uint64_t key);            // MAC_NONE
int mac_table_add(uint64_t key, uint64_t target); // a new key, seen now; -ENOSPC, -ENOMEM
void mac_table_remove(uint32_t slot);
uint32_t mac_table_after(uint64_t key); // slot of the next key in order, MAC_NONE

static inline uint32_t mac_table_slots(void)
{
	return (mac_table->mask + 1) * MAC_WAYS;
}

static inline uint64_t mac_slot_key(uint32_t slot) // MAC_FREE
{
	return mac_table->buckets[slot / MAC_WAYS].key[slot % MAC_WAYS];
}

static inline uint64_t mac_slot_target(uint32_t slot)
{
	return mac_table->buckets[slot / MAC_WAYS].target[slot % MAC_WAYS];
}

static inline uint32_t mac_slot_seen(uint32_t slot)
{
	return __atomic_load_n(&mac_table->buckets[slot / MAC_WAYS].seen[slot % MAC_WAYS], __ATOMIC_RELAXED);
}

static inline void mac_slot_set_seen(uint32_t slot, uint32_t seen)
{
	__atomic_store_n(&mac_table->buckets[slot / MAC_WAYS].seen[slot % MAC_WAYS], seen, __ATOMIC_RELAXED);
}

void mac_slot_set(uint32_t slot, uint64_t target); // also sets its time to now
