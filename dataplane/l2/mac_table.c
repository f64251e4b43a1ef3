// SPDX-License-Identifier: Apache-2.0
#include "l2/mac_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_malloc.h>
#include <rte_random.h>

#include "base/rcu.h"
#include "l2/bridge.h"

#define MAC_FIRST (1u << 16) // about 5 MB; the largest table takes 110 MB
#define GROW_AGAIN 100       // tenths of a second after there was no memory for it

struct mac_table *mac_table;
uint32_t mac_clock;
static uint64_t secret;

struct rte_ether_addr mac_key_addr(uint64_t key)
{
	struct rte_ether_addr mac;
	unsigned i;

	for (i = 0; i < sizeof(mac.addr_bytes); i++)
		mac.addr_bytes[i] = (uint8_t)(key >> (40 - 8 * i));
	return mac;
}

// Guests choose their addresses: with the secret they cannot choose ones that collide.
uint32_t mac_hash(uint64_t key)
{
	key = (key ^ secret) * 0xff51afd7ed558ccd;
	key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53;
	return (uint32_t)(key >> 32);
}

static uint32_t hash_key(const void *key, uint32_t len, uint32_t init)
{
	return mac_hash(*(const uint64_t *)key);
}

static void table_free(void *arg)
{
	struct mac_table *t = arg;

	rte_hash_free(t->hash);
	rte_free(t->slots);
	free(t->order.links);
	free(t);
}

// A quarter more positions than addresses, for those whose readers have not passed yet.
static struct rte_hash *hash_create(uint32_t capacity)
{
	static unsigned serial;
	struct rte_hash_rcu_config rcu = {.v = rcu_qsbr(), .mode = RTE_HASH_QSBR_MODE_DQ};
	char name[RTE_HASH_NAMESIZE];
	struct rte_hash_parameters p = {.name = name,
					.entries = capacity + capacity / 4,
					.key_len = sizeof(uint64_t),
					.hash_func = hash_key,
					.socket_id = SOCKET_ID_ANY,
					.extra_flag = RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF};
	struct rte_hash *h;

	snprintf(name, sizeof(name), "macs%u", serial++);
	h = rte_hash_create(&p);
	if (h && rte_hash_rcu_qsbr_add(h, &rcu) == 0)
		return h;
	rte_hash_free(h);
	return NULL;
}

static struct mac_table *table_create(uint32_t capacity)
{
	struct mac_table *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->capacity = capacity;
	t->hash = hash_create(capacity);
	if (t->hash) {
		t->n_slots = (uint32_t)rte_hash_max_key_id(t->hash) + 1;
		t->slots = rte_zmalloc("macs", t->n_slots * sizeof(*t->slots), RTE_CACHE_LINE_SIZE);
		t->order.links = malloc(t->n_slots * sizeof(*t->order.links));
	}
	t->order.root = ORDER_NONE;
	t->order.slots = t->slots;
	if (t->hash && t->slots && t->order.links)
		return t;
	table_free(t);
	return NULL;
}

int mac_table_init(struct error *err)
{
	secret = rte_rand();
	mac_table = table_create(MAC_FIRST);
	return mac_table ? 0 : error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for the MAC table");
}

// Workers may find the position before the slot is written, and then still see who had it before: the key comes last, and they
// compare it.
static int table_add(struct mac_table *t, uint64_t key, uint64_t target, uint32_t seen)
{
	int32_t at = rte_hash_add_key(t->hash, &key);
	struct mac_slot *s;

	if (at < 0)
		return at;
	s = &t->slots[at];
	__atomic_store_n(&s->seen, seen, __ATOMIC_RELAXED);
	__atomic_store_n(&s->target, target, __ATOMIC_RELAXED);
	__atomic_store_n(&s->key, key, __ATOMIC_RELEASE);
	mac_order_insert(&t->order, (uint32_t)at);
	t->n++;
	return 0;
}

static int table_grow(void)
{
	static uint32_t not_before; // after a failure
	struct mac_table *old = mac_table, *t;
	uint32_t i;
	int ret = 0;

	if (old->capacity >= MAC_MAX)
		return -ENOSPC;
	if (mac_clock < not_before)
		return -ENOMEM;
	t = table_create(old->capacity * 2);
	if (t == NULL) {
		not_before = mac_clock + GROW_AGAIN;
		return -ENOMEM;
	}
	for (i = 0; i < old->n_slots && ret == 0; i++)
		if (old->slots[i].key)
			ret = table_add(t, old->slots[i].key, old->slots[i].target, old->slots[i].seen);
	if (ret < 0) {
		table_free(t);
		return ret;
	}
	rcu_publish(mac_table, t);
	rcu_defer(table_free, old);
	return 0;
}

int mac_table_add(uint64_t key, uint64_t target)
{
	int ret = mac_table->n < mac_table->capacity ? 0 : table_grow();

	return ret < 0 ? ret : table_add(mac_table, key, target, mac_clock);
}

struct mac_slot *mac_table_find(uint64_t key)
{
	int32_t at = rte_hash_lookup(mac_table->hash, &key);

	return at < 0 ? NULL : &mac_table->slots[at];
}

// The position is used again only when no worker can hold it any more (hash_create).
void mac_table_remove(struct mac_slot *s)
{
	uint64_t key = s->key;

	mac_order_erase(&mac_table->order, (uint32_t)(s - mac_table->slots));
	__atomic_store_n(&s->key, 0, __ATOMIC_RELAXED);
	rte_hash_del_key(mac_table->hash, &key);
	mac_table->n--;
}

struct mac_slot *mac_table_after(uint64_t key)
{
	uint32_t at = mac_order_after(&mac_table->order, key);

	return at == ORDER_NONE ? NULL : &mac_table->slots[at];
}
