// SPDX-License-Identifier: Apache-2.0
// Writers of the flow table.
#include "flow/table.h"

#include <errno.h>

#include "flow/table_place.h"

#define TRIES 16 // rounds of making room and being overtaken by others

void flow_table_prefetch(const struct flow_table *t, const struct flow_key *key)
{
	const struct flow_view *v = rcu_read(t->view);
	const struct flow_array *a = v->next ? v->next : v->now;
	uint64_t hash = flow_key_hash(key);
	uint32_t first = flow_first(a, hash);

	prefetch_write(&a->b[first]);
	prefetch_write(&a->b[flow_other(a, first, flow_sig(hash))]);
}

static flow_entry_t find_spot(const struct flow_locked *l, unsigned i)
{
	flow_entry_t e = flow_place_find(&l->spot[i].in[0], &l->spot[i]);

	return e == 0 && l->n_arrays == 2 ? flow_place_find(&l->spot[i].in[1], &l->spot[i]) : e;
}

// 0, -EEXIST, or -ENOSPC with the spot that found no room in *full. Nothing is visible before there is room for all.
static int insert_locked(struct flow_table *t, struct flow_locked *l, flow_entry_t *found, unsigned *full, struct flow_slot *slot)
{
	unsigned i, to = l->n_arrays - 1;

	for (i = 0; i < l->n_spots; i++) {
		*found = find_spot(l, i);
		if (unlikely(*found != 0))
			return -EEXIST;
	}
	for (i = 0; i < l->n_spots; i++) {
		if (unlikely(!flow_place_slot(&l->spot[i].in[to], i ? &slot[0] : NULL, &slot[i]))) {
			*full = i;
			return -ENOSPC;
		}
	}
	for (i = 0; i < l->n_spots; i++)
		flow_place_set(&l->spot[i].in[to], &l->spot[i], &slot[i]);
	__atomic_add_fetch(&t->used, l->n_spots, __ATOMIC_RELAXED);
	return 0;
}

static void spots(struct flow_locked *l, flow_entry_t a, flow_entry_t b)
{
	l->n_spots = b ? 2 : 1;
	flow_spot_init(&l->spot[0], a);
	if (b)
		flow_spot_init(&l->spot[1], b);
}

int flow_table_insert(struct flow_table *t, flow_entry_t a, flow_entry_t b, flow_entry_t *found)
{
	unsigned tries, full = 0;
	struct flow_slot slot[2];
	struct flow_locked l;
	int ret;

	spots(&l, a, b);
	for (tries = 0; tries < TRIES; tries++) {
		flow_lock(t, &l);
		ret = insert_locked(t, &l, found, &full, slot);
		flow_unlock(&l);
		if (likely(ret != -ENOSPC))
			return ret;
		if (!flow_make_room(&l.spot[full].in[l.n_arrays - 1], full ? slot[0].bucket : NULL))
			return l.n_arrays == 2 ? -EAGAIN : -ENOSPC;
	}
	return -EAGAIN;
}

void flow_table_remove(struct flow_table *t, flow_entry_t a, flow_entry_t b)
{
	struct flow_locked l;
	unsigned i, k, n = 0;

	spots(&l, a, b);
	flow_lock(t, &l);
	for (i = 0; i < l.n_spots; i++)
		for (k = 0; k < l.n_arrays; k++)
			n += flow_place_remove(&l.spot[i].in[k], &l.spot[i]);
	flow_unlock(&l);
	__atomic_sub_fetch(&t->used, n, __ATOMIC_RELAXED);
}
