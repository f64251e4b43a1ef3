// SPDX-License-Identifier: Apache-2.0
// Growth of the flow table: insertions go to the new array, and the entries of the old one move there, one bucket at a
// time.
#include <errno.h>
#include <stdlib.h>

#include "base/rcu.h"
#include "flow/table_place.h"

#define FILL_SHARE (4u << 20) // bytes that the kernel zeroes in one turn of the master

static void table_grow_publish(struct flow_table *t, struct flow_view *v)
{
	struct flow_view *old = t->view;

	rcu_publish(t->view, v);
	rcu_defer(free, old);
}

static void table_grow_seen_by_all(void *arg)
{
	struct flow_table *t = arg;

	t->ready = true;
}

// Gives the new array more of its memory, and publishes it once it has all. -ENOMEM: the next step tries again.
static int table_grow_fill(struct flow_table *t)
{
	struct flow_view *v;

	if (flow_array_fill(t->filling, FILL_SHARE) < 0)
		return -ENOMEM;
	if (!flow_array_full(t->filling))
		return 0;
	v = flow_view_create(t->view->now, t->filling);
	if (v == NULL)
		return -ENOMEM;
	t->filling = NULL;
	t->grown = 0;
	t->ready = false;
	table_grow_publish(t, v);
	rcu_defer(table_grow_seen_by_all, t);
	return 0;
}

int flow_table_grow_begin(struct flow_table *t, uint64_t entries)
{
	int ret;

	if (flow_table_growing(t))
		return -EBUSY;
	t->filling = flow_array_reserve(entries);
	if (t->filling == NULL)
		return -ENOMEM;
	ret = table_grow_fill(t);
	if (ret < 0) {
		flow_array_free(t->filling);
		t->filling = NULL;
	}
	return ret;
}

// Moves an entry to the new array. Returns false if that has no room.
static bool table_grow_step(struct flow_table *t, struct flow_bucket *b, unsigned slot)
{
	struct flow_locked l = {.n_spots = 1};
	struct flow_spot *s = &l.spot[0];
	struct flow_place *p = s->in;
	struct flow_slot free_slot;
	bool done = true;

	// An entry that was removed meanwhile is still readable; the check under the lock skips it.
	flow_spot_init(s, __atomic_load_n(&b->entry[slot], __ATOMIC_RELAXED) & ~FLOW_SECOND);
	flow_lock(t, &l);
	if (b->sig[slot] == s->sig && (b->entry[slot] & ~FLOW_SECOND) == s->entry &&
	    (p[0].first == b || p[0].second == b)) {
		done = flow_place_slot(&p[1], NULL, &free_slot);
		if (done) {
			flow_place_set(&p[1], s, &free_slot);
			flow_place_remove(&p[0], s);
		}
	}
	flow_unlock(&l);
	return done || flow_make_room(&p[1], NULL);
}

static void table_grow_finish(struct flow_table *t, struct flow_view *done)
{
	struct flow_array *old = t->view->now;

	table_grow_publish(t, done);
	rcu_defer(flow_array_free, old); // after table_grow_publish(): only readers of the old view still use it
}

bool flow_table_grow_step(struct flow_table *t, unsigned n)
{
	const struct flow_view *view = t->view;
	struct flow_view *done;
	unsigned i;

	if (t->filling) {
		table_grow_fill(t);
		return false;
	}
	if (view->next == NULL)
		return true;
	for (; t->ready && n > 0 && t->grown < view->now->n; n--) {
		struct flow_bucket *b = &view->now->b[t->grown];

		for (i = 0; i < FLOW_SLOTS; i++)
			while (__atomic_load_n(&b->sig[i], __ATOMIC_ACQUIRE) != 0)
				if (!table_grow_step(t, b, i))
					return false; // full: retry after removals
		t->grown++;
	}
	if (t->grown < view->now->n)
		return false;
	done = flow_view_create(view->next, NULL);
	if (done == NULL)
		return false;
	table_grow_finish(t, done);
	return true;
}
