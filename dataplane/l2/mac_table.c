// SPDX-License-Identifier: Apache-2.0
// The MAC table, as its only writer, the master, changes it.
#include "l2/mac_table.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_malloc.h>
#include <rte_random.h>

#include "base/rcu.h"
#include "l2/bridge.h"

#define BUCKETS_FIRST (1u << 14) // 3 MB
#define BUCKETS_LAST (1u << 18)  // 48 MB: MAC_MAX addresses in twice as many slots
#define GROW_AGAIN 100           // tenths of a second until growth is retried after a failure

struct mac_table *mac_table;
uint32_t mac_clock;
uint64_t mac_secret;

struct rte_ether_addr mac_key_addr(uint64_t key)
{
	struct rte_ether_addr mac = {0};
	unsigned i;

	for (i = 0; i < sizeof(mac.addr_bytes); i++)
		mac.addr_bytes[i] = (uint8_t)(key >> (40 - 8 * i));
	return mac;
}

static void mac_table_free(void *arg)
{
	struct mac_table *t = arg;

	rte_free(t->buckets);
	free(t->order.links);
	free(t);
}

static struct mac_table *table_create(uint32_t buckets)
{
	struct mac_table *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->mask = buckets - 1;
	t->buckets = rte_zmalloc("macs", buckets * sizeof(*t->buckets), RTE_CACHE_LINE_SIZE);
	t->order.links = malloc((size_t)buckets * MAC_WAYS * sizeof(*t->order.links));
	t->order.root = ORDER_NONE;
	t->order.buckets = t->buckets;
	if (t->buckets && t->order.links)
		return t;
	mac_table_free(t);
	return NULL;
}

int mac_table_init(struct error *err)
{
	mac_secret = rte_rand();
	mac_table = table_create(BUCKETS_FIRST);
	return mac_table ? 0 : error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for the MAC table");
}

// A free way of the bucket, MAC_WAYS if it is full.
static unsigned mac_free_way(const struct mac_bucket *b)
{
	unsigned hits = mac_match(b, MAC_FREE);

	return hits ? (unsigned)__builtin_ctz(hits) : MAC_WAYS;
}

static uint32_t mac_slot_of(const struct mac_table *t, const struct mac_bucket *b, unsigned way)
{
	return (uint32_t)(b - t->buckets) * MAC_WAYS + way;
}

static void mac_table_write(struct mac_table *t, struct mac_bucket *b, unsigned way, uint64_t key, uint64_t target,
			    uint32_t seen)
{
	// A worker that still reads the slot for its old key must see the key change before it can see the new target.
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&b->seen[way], seen, __ATOMIC_RELAXED);
	__atomic_store_n(&b->target[way], target, __ATOMIC_RELAXED);
	__atomic_store_n(&b->key[way], key, __ATOMIC_RELEASE);
	mac_order_insert(&t->order, mac_slot_of(t, b, way));
}

// Moves a MAC from a full bucket to its second one. Returns the way that is now free, MAC_WAYS if no MAC could move.
// The MAC is in its second bucket before it leaves the first, where workers look first.
static unsigned mac_table_make_room(struct mac_table *t, struct mac_bucket *b)
{
	struct mac_bucket *to;
	unsigned way, free;
	uint64_t hash;

	for (way = 0; way < MAC_WAYS; way++) {
		hash = mac_hash(b->key[way]);
		to = mac_bucket_second(t, hash);
		if (mac_bucket_first(t, hash) != b || to == b)
			continue;
		free = mac_free_way(to);
		if (free == MAC_WAYS)
			continue;
		mac_order_erase(&t->order, mac_slot_of(t, b, way));
		mac_table_write(t, to, free, b->key[way], b->target[way], b->seen[way]);
		__atomic_store_n(&b->key[way], MAC_FREE, __ATOMIC_RELEASE);
		return way;
	}
	return MAC_WAYS;
}

static int mac_table_table_add(struct mac_table *t, uint64_t key, uint64_t target, uint32_t seen)
{
	uint64_t hash = mac_hash(key);
	struct mac_bucket *b = mac_bucket_first(t, hash);
	unsigned way = mac_free_way(b);

	if (way == MAC_WAYS) {
		b = mac_bucket_second(t, hash);
		way = mac_free_way(b);
	}
	if (way == MAC_WAYS) {
		b = mac_bucket_first(t, hash);
		way = mac_table_make_room(t, b);
	}
	if (way == MAC_WAYS)
		return -ENOSPC;
	mac_table_write(t, b, way, key, target, seen);
	t->n++;
	return 0;
}

static int mac_table_copy(struct mac_table *to, const struct mac_table *from)
{
	uint32_t i, way;
	int ret = 0;

	for (i = 0; i <= from->mask && ret == 0; i++) {
		const struct mac_bucket *b = &from->buckets[i];

		for (way = 0; way < MAC_WAYS && ret == 0; way++)
			if (b->key[way] != MAC_FREE)
				ret = mac_table_table_add(to, b->key[way], b->target[way], b->seen[way]);
	}
	return ret;
}

static int table_grow(void)
{
	static uint32_t not_before; // after a failure
	struct mac_table *old = mac_table, *t;

	if (old->mask + 1 >= BUCKETS_LAST)
		return -ENOSPC;
	if (mac_clock < not_before)
		return -ENOMEM;
	t = table_create((old->mask + 1) * 2);
	if (t == NULL || mac_table_copy(t, old) < 0) {
		not_before = mac_clock + GROW_AGAIN;
		if (t)
			mac_table_free(t);
		return -ENOMEM;
	}
	rcu_publish(mac_table, t);
	rcu_defer(mac_table_free, old);
	return 0;
}

// Keeps the table at most half full.
int mac_table_add(uint64_t key, uint64_t target)
{
	int ret = mac_table->n < mac_table_slots() / 2 ? 0 : table_grow();

	return ret < 0 ? ret : mac_table_table_add(mac_table, key, target, mac_clock);
}

uint32_t mac_table_find(uint64_t key)
{
	uint64_t hash = mac_hash(key);
	struct mac_bucket *b = mac_bucket_first(mac_table, hash);
	unsigned hits = mac_match(b, key);

	if (hits == 0) {
		b = mac_bucket_second(mac_table, hash);
		hits = mac_match(b, key);
	}
	return hits ? mac_slot_of(mac_table, b, (unsigned)__builtin_ctz(hits)) : MAC_NONE;
}

void mac_table_remove(uint32_t slot)
{
	mac_order_erase(&mac_table->order, slot);
	__atomic_store_n(&mac_table->buckets[slot / MAC_WAYS].key[slot % MAC_WAYS], MAC_FREE, __ATOMIC_RELAXED);
	mac_table->n--;
}

uint32_t mac_table_after(uint64_t key)
{
	return mac_order_after(&mac_table->order, key);
}

void mac_slot_set(uint32_t slot, uint64_t target)
{
	struct mac_bucket *b = &mac_table->buckets[slot / MAC_WAYS];

	__atomic_store_n(&b->target[slot % MAC_WAYS], target, __ATOMIC_RELAXED);
	__atomic_store_n(&b->seen[slot % MAC_WAYS], mac_clock, __ATOMIC_RELAXED);
}
