// SPDX-License-Identifier: Apache-2.0
#include "flow/table_fixture.h"

#include <stdio.h>

void fixture_secret(uint64_t seed)
{
	struct flow_secret s;
	unsigned i;

	for (i = 0; i < sizeof(s) / 8; i++)
		((uint64_t *)&s)[i] = fixture_random(&seed);
	flow_secret_init(&s);
}

struct flow_key fixture_key(uint32_t number, bool v6)
{
	struct flow_key k = {.proto = number & 1 ? 6 : 17, .zone = 1, .family = v6 ? 6 : 4};
	uint32_t host = number >> 10 & 0xffff, peer = number >> 5 & 0x3ff;

	k.src_port = rte_cpu_to_be_16((uint16_t)(1024 + (number & 0x3ff) + (number >> 26 << 10)));
	k.dst_port = rte_cpu_to_be_16(443);
	if (v6) {
		k.addr[0] = rte_cpu_to_be_64(0x20010db800000001);
		k.addr[1] = rte_cpu_to_be_64(0x0200000000000000 | host);
		k.addr[2] = rte_cpu_to_be_64(0x20010db800000002);
		k.addr[3] = rte_cpu_to_be_64(0x0200000000000000 | peer);
	} else {
		k.src4 = rte_cpu_to_be_32(10u << 24 | host);
		k.dst4 = rte_cpu_to_be_32(172u << 24 | 16u << 16 | peer);
	}
	return k;
}

void fixture_flow(uint32_t f, const struct flow_key *key)
{
	flows[f].dir[0].key = *key;
	flows[f].dir[1].key = flow_key_reverse(key);
}

static void wrong(struct fixture_sum *sum, uint32_t bucket, const char *what)
{
	if (sum->errors++ < 10)
		printf("# bucket %u: %s\n", bucket, what);
}

static void check_slot(struct fixture_sum *sum, const struct flow_array *a, uint32_t bucket, unsigned slot)
{
	flow_entry_t entry = a->b[bucket].entry[slot], e = entry & ~FLOW_SECOND;
	const struct flow_key *key = flow_entry_key(e);
	uint64_t hash = key->family == 6 ? flow_hash(key, true) : flow_hash(key, false);
	uint32_t first = flow_first(a, hash), second = flow_other(a, first, flow_sig(hash));

	sum->entries++;
	if (a->b[bucket].sig[slot] != flow_sig(hash))
		wrong(sum, bucket, "signature of another key");
	if (bucket != (entry & FLOW_SECOND ? second : first))
		wrong(sum, bucket, "entry of another bucket");
	if (!(entry & FLOW_SECOND))
		return;
	sum->second++;
	if (!(a->b[first].moved & flow_moved_bit(hash)))
		wrong(sum, first, "does not know of a moved key");
}

static void check_array(struct fixture_sum *sum, const struct flow_array *a)
{
	uint64_t moved = 0, before = sum->second;
	uint32_t i;
	unsigned k;

	for (i = 0; i < a->n; i++) {
		moved += a->b[i].n_moved;
		if (a->b[i].n_moved == 0 && a->b[i].moved != 0)
			wrong(sum, i, "bits of keys that are back");
		if (rte_spinlock_is_locked((rte_spinlock_t *)(uintptr_t)&a->b[i].lock))
			wrong(sum, i, "locked");
		for (k = 0; k < FLOW_SLOTS; k++)
			if (a->b[i].sig[k] != 0)
				check_slot(sum, a, i, k);
	}
	if (moved != sum->second - before)
		wrong(sum, i, "counts of moved keys do not add up");
}

struct fixture_sum fixture_check(const struct flow_table *t)
{
	struct fixture_sum sum = {0};

	check_array(&sum, t->view->now);
	if (t->view->next)
		check_array(&sum, t->view->next);
	if (sum.entries != flow_table_used(t))
		wrong(&sum, 0, "entries are not as many as counted");
	return sum;
}
