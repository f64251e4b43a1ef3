// SPDX-License-Identifier: Apache-2.0
// The MAC table of all domains: a hash of DPDK that workers read without locks gives a slot, the slot says where the MAC is.
// It grows by being built anew, up to MAC_MAX addresses.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_ether.h>
#include <rte_hash.h>

#include "base/error.h"
#include "l2/mac_order.h"

// Domain and MAC in one word, in the order of lists. Never 0: no domain has the id 0.
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

// Where a MAC is, in one word. Bits 63..32: print of the remote end that it was learnt behind.
#define MAC_ID(t) ((uint32_t)(t)&0xffffff) // port or next hop
#define MAC_TUNNEL (1u << 31)
#define MAC_LEARNT (1u << 30)

// Of an outer source address: tells workers that a MAC has moved to another host.
static inline uint32_t mac_print(const uint8_t *addr, bool v6)
{
	const unaligned_uint64_t *q = (const unaligned_uint64_t *)addr;
	uint64_t x;

	if (!v6)
		return *(const unaligned_uint32_t *)addr;
	x = (q[0] ^ q[1] << 32 ^ q[1] >> 32) * 0x9e3779b97f4a7c15;
	return (uint32_t)(x >> 32);
}

struct mac_slot {
	uint64_t key;    // master: rw, workers: ro; 0 = free
	uint64_t target; // master: rw, workers: ro (relaxed)
	uint32_t seen;   // mac_clock; master and workers: rw (relaxed)
};

struct mac_table {
	struct rte_hash *hash;
	struct mac_slot *slots; // by the hash's positions
	uint32_t n_slots;
	uint32_t capacity, n;   // master only
	struct mac_order order; // master only
};

extern struct mac_table *mac_table; // workers: ro (RCU)
extern uint32_t mac_clock;          // tenths of a second. Master: rw, workers: ro (relaxed)

// Workers: of the position that the hash gave for this key, NULL = there is none, or no longer.
static inline struct mac_slot *mac_slot_at(const struct mac_table *t, int32_t at, uint64_t key)
{
	return at >= 0 && __atomic_load_n(&t->slots[at].key, __ATOMIC_ACQUIRE) == key ? &t->slots[at] : NULL;
}

// Master thread only.
int mac_table_init(struct error *err);
uint32_t mac_hash(uint64_t key);
struct mac_slot *mac_table_find(uint64_t key);    // NULL
int mac_table_add(uint64_t key, uint64_t target); // a new key, seen now; -ENOSPC: MAC_MAX, -ENOMEM
void mac_table_remove(struct mac_slot *s);
struct mac_slot *mac_table_after(uint64_t key); // NULL
