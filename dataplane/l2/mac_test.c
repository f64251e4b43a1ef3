// SPDX-License-Identifier: Apache-2.0
// The MAC table: many addresses, their order, growth while a reader looks up, flushes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/rcu.h"
#include "base/sanitizers.h"
#include "l2/bridge_fixture.h"

#define NONE UINT16_MAX
#define MANY TSAN_ROUNDS(100000u, 20000u)
#define GROWN TSAN_ROUNDS(300000u, 100000u) // the table grows twice

static struct bridge *lan, *other;

static int setup(void **state)
{
	struct bridge_config c;

	fixture_reset(state);
	lan = fixture_bridge("lan", 2);
	other = fixture_bridge("other", 0);
	c = lan->cfg;
	c.mac_limit = MAC_MAX;
	bridge_set(lan, &c, NULL);
	fixture_join(1, lan->id, NONE);
	fixture_join(2, lan->id, NONE);
	fixture_join(3, other->id, NONE);
	return 0;
}

// The i-th address in a scattered order: i times an odd number is different for each i below 2^40.
static uint64_t scattered(uint16_t bridge, uint64_t i)
{
	return (uint64_t)bridge << 48 | 0x020000000000 | ((i * 0x9e3779b1) & 0xffffffffff);
}

static void add_many(struct bridge *b, unsigned n, uint64_t target)
{
	unsigned i;

	for (i = 0; i < n; i++)
		assert_int_equal(mac_add(b, scattered(b->id, i), target), 0);
}

static unsigned walk(uint16_t bridge)
{
	struct mac_entry last = {.bridge = bridge}, e;
	uint64_t key = 0;
	unsigned n = 0;

	while (mac_next(&last, &e) && e.bridge == bridge) {
		assert_true(mac_key(e.bridge, &e.mac) > key);
		key = mac_key(e.bridge, &e.mac);
		last = e;
		n++;
	}
	return n;
}

static void keys(void **state)
{
	struct rte_ether_addr mac = {.addr_bytes = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55}},
			      back = mac_key_addr(mac_key(7, &mac));

	assert_int_equal(mac_key(7, &mac), 0x0007021122334455);
	assert_memory_equal(&mac, &back, 6);
	assert_int_equal(mac_key_bridge(mac_key(16383, &mac)), 16383);
}

static unsigned ms_since(clock_t start) // of this process's own time
{
	return (unsigned)((clock() - start) * 1000 / CLOCKS_PER_SEC);
}

static void many(void **state)
{
	clock_t start = clock();
	unsigned i;

	add_many(lan, MANY, MAC_LEARNT | 1);
	print_message("# %u MACs added in %u ms\n", MANY, ms_since(start));
	assert_int_equal(mac_count(), MANY);
	assert_int_equal(lan->n_learnt, MANY);
	for (i = 0; i < MANY; i++) {
		uint32_t slot = mac_table_find(scattered(lan->id, i));

		assert_int_not_equal(slot, MAC_NONE);
		assert_int_equal(mac_slot_key(slot), scattered(lan->id, i));
		assert_int_equal(mac_slot_target(slot), MAC_LEARNT | 1);
	}
	assert_int_equal(mac_table_find(scattered(other->id, 1)), MAC_NONE);
	start = clock();
	assert_int_equal(walk(lan->id), MANY);
	print_message("# listed in %u ms\n", ms_since(start));
	for (i = 0; i < MANY; i += 2)
		mac_remove(mac_table_find(scattered(lan->id, i)));
	assert_int_equal(walk(lan->id), MANY / 2);
	start = clock();
	fixture_leave(1);
	print_message("# the other half flushed in %u ms\n", ms_since(start));
	assert_int_equal(mac_count(), 0);
	assert_int_equal(lan->n_learnt, 0);
}

static void __rte_unused full(void **state)
{
	unsigned i;

	for (i = 0; i < 3000; i++) { // positions of removed ones come back
		assert_int_equal(mac_add(lan, scattered(lan->id, i), MAC_LEARNT | 1), 0);
		if (i >= 1000)
			mac_remove(mac_table_find(scattered(lan->id, i - 1000)));
	}
	assert_int_equal(mac_count(), 1000);
	assert_int_equal(walk(lan->id), 1000);
	mac_flush_bridge(lan, false);
	for (i = 0; i < MAC_MAX; i++)
		if (mac_add(lan, scattered(lan->id, i), MAC_LEARNT | 1) < 0)
			fail_msg("no room for MAC %u", i);
	assert_int_equal(mac_add(lan, scattered(lan->id, i), MAC_LEARNT | 1), -ENOSPC);
	assert_int_equal(mac_count(), MAC_MAX);
	assert_int_equal(lan->n_macs, MAC_MAX);
	assert_int_equal(walk(lan->id), MAC_MAX);
	mac_flush_bridge(lan, false);
	assert_int_equal(mac_count(), 0);
	assert_int_equal(mac_add(lan, scattered(lan->id, i), MAC_LEARNT | 1), 0);
}

static void flushes_are_exact(void **state)
{
	struct bridge_config c = lan->cfg;
	unsigned i;

	for (i = 0; i < 100; i++) {
		mac_add(lan, scattered(lan->id, i), MAC_LEARNT | 1);
		mac_add(lan, scattered(lan->id, 100 + i), MAC_LEARNT | 2);
		mac_add(lan, scattered(lan->id, 200 + i), (uint64_t)i << 32 | MAC_LEARNT | MAC_TUNNEL | 101);
		mac_add(lan, scattered(lan->id, 300 + i), (uint64_t)i << 32 | MAC_LEARNT | MAC_TUNNEL | 102);
		mac_add(lan, scattered(lan->id, 400 + i), MAC_TUNNEL | 104);
		mac_add(other, scattered(other->id, i), MAC_LEARNT | 3);
	}
	assert_int_equal(fixture_refs(104), 1);
	fixture_leave(1);
	assert_int_equal(mac_count(), 500);
	fixture_join(2, other->id, NONE); // moves to another domain
	assert_int_equal(mac_count(), 400);
	c.n_flood = 1; // 101 remains
	bridge_set(lan, &c, NULL);
	assert_int_equal(mac_count(), 300);
	assert_int_equal(fixture_refs(102), 0);
	mac_flush_bridge(lan, true);
	assert_int_equal(lan->n_macs, 100);
	assert_int_equal(other->n_macs, 100);
	mac_flush_bridge(lan, false);
	assert_int_equal(fixture_refs(104), 0);
	assert_int_equal(walk(other->id), 100);
}

static struct {
	uint16_t bridge;
	bool stop;
	uint64_t lookups, wrong, missing;
} reader;

// Half of the addresses are always in the table, the others are added and removed.
static void *read_on(void *arg)
{
	const struct mac_table *t;
	uint64_t key, target;
	unsigned i, at = 0;
	uint32_t *seen;

	rcu_reader_online(5);
	while (!__atomic_load_n(&reader.stop, __ATOMIC_RELAXED)) {
		t = rcu_read(mac_table);
		for (i = 0; i < 64; i++, at = (at + 1) % 40000) {
			key = scattered(reader.bridge, at);
			if (!mac_lookup(t, key, mac_hash(key), &target, &seen))
				reader.missing += at < 20000;
			else
				reader.wrong += target >> 32 != (key & 0xffffffff);
		}
		reader.lookups += 64;
		rcu_quiescent(5);
	}
	rcu_reader_offline(5);
	return NULL;
}

static void add_marked(unsigned i)
{
	uint64_t key = scattered(lan->id, i);

	assert_int_equal(mac_add(lan, key, (key & 0xffffffff) << 32 | MAC_LEARNT | 1), 0);
}

static void reader_sees_only_right_ones(void **state)
{
	pthread_t thread;
	unsigned i, round = 0;

	reader.bridge = lan->id;
	for (i = 0; i < 20000; i++)
		add_marked(i);
	assert_int_equal(pthread_create(&thread, NULL, read_on, NULL), 0);
	for (; round < TSAN_ROUNDS(10u, 3u); round++) {
		for (i = 20000; i < 40000; i++)
			add_marked(i);
		if (round == 0) // grows while it is read
			for (i = 40000; i < GROWN; i++)
				add_marked(i);
		for (i = 20000; i < (round == 0 ? GROWN : 40000); i++)
			mac_remove(mac_table_find(scattered(lan->id, i)));
		rcu_poll();
	}
	__atomic_store_n(&reader.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	print_message("# %lu lookups, %u rounds\n", reader.lookups, round);
	assert_true(reader.lookups > 0);
	assert_int_equal(reader.wrong, 0);
	assert_int_equal(reader.missing, 0);
}

#define T(fn) cmocka_unit_test_setup(fn, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {T(keys), T(many), T(reader_sees_only_right_ones), T(flushes_are_exact),
#ifndef WITH_TSAN // half a minute of one thread
					   T(full)
#endif
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
