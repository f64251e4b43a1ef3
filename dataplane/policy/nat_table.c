// SPDX-License-Identifier: Apache-2.0
// The hash table of NAT rules by VRF, side and address. Workers walk chains while the master changes them; removed
// nodes, and outgrown tables with all their nodes, are freed after a grace period.
#include <errno.h>
#include <stdlib.h>

#include "policy/nat_private.h"

#define FIRST_BUCKETS 1024u

struct nat_table *nat_table;
static uint32_t n_nodes;

static struct nat_table *nat_table_create(uint32_t buckets)
{
	struct nat_table *t = calloc(1, sizeof(*t) + buckets * sizeof(t->bucket[0]));

	if (t)
		t->mask = buckets - 1;
	return t;
}

static void nat_table_destroy(void *arg)
{
	struct nat_table *t = arg;
	struct nat_node *n, *next;
	uint32_t i;

	for (i = 0; i <= t->mask; i++) {
		for (n = t->bucket[i]; n; n = next) {
			next = n->next;
			free(n);
		}
	}
	free(t);
}

static struct nat_node **nat_table_bucket(struct nat_table *t, uint32_t where, const struct nat_words *addr)
{
	return &t->bucket[nat_hash(where, addr) >> 8 & t->mask];
}

static int policy_nat_table_insert(struct nat_table *t, uint32_t where, const struct nat_words *addr,
				   const struct nat_rule *rule)
{
	struct nat_node **head = nat_table_bucket(t, where, addr), *n = malloc(sizeof(*n));

	if (n == NULL)
		return -ENOMEM;
	*n = (struct nat_node){*head, *addr, where, rule};
	rcu_publish(*head, n);
	return 0;
}

// Readers may walk chains of the old table, so the new one gets its own nodes. Without memory the old table stays.
static void nat_table_grow(void)
{
	struct nat_table *old = nat_table, *t = nat_table_create((old->mask + 1) * 2);
	const struct nat_node *n;
	uint32_t i;

	if (t == NULL)
		return;
	for (i = 0; i <= old->mask; i++) {
		for (n = old->bucket[i]; n; n = n->next) {
			if (policy_nat_table_insert(t, n->where, &n->addr, n->rule) < 0) {
				nat_table_destroy(t);
				return;
			}
		}
	}
	rcu_publish(nat_table, t);
	rcu_defer(nat_table_destroy, old);
}

int nat_table_insert(uint32_t where, const struct nat_words *addr, const struct nat_rule *rule)
{
	struct nat_table *t = nat_table;
	int ret;

	if (t == NULL) {
		t = nat_table_create(FIRST_BUCKETS);
		if (t == NULL)
			return -ENOMEM;
		rcu_publish(nat_table, t);
	}
	ret = policy_nat_table_insert(t, where, addr, rule);
	if (ret == 0 && ++n_nodes > t->mask && t->mask < UINT32_MAX >> 9) // the hash has 24 bits
		nat_table_grow();
	return ret;
}

void nat_table_remove(uint32_t where, const struct nat_words *addr, const struct nat_rule *rule)
{
	struct nat_node **p = nat_table_bucket(nat_table, where, addr), *n;

	for (n = *p; n && (n->rule != rule || n->where != where); n = *p)
		p = &n->next;
	if (n == NULL)
		return;
	rcu_publish(*p, n->next);
	rcu_defer(free, n);
	n_nodes--;
}
