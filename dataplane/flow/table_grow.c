// SPDX-License-Identifier: Apache-2.0
// Growth of the flow table: insertions go to the new array, and the entries of the old one move there, one bucket at a
// time.
#include <errno.h>
#include <stdlib.h>

#include "base/rcu.h"
#include "flow/table_place.h"

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

int flow_table_grow_begin(struct flow_table *t, uint64_t entries)
{
	struct flow_array *a;
	struct flow_view *v;

	if (t->view->next)
		return -EBUSY;
	a = flow_array_create(entries);
	v = a ? flow_view_create(t->view->now, a) : NULL;
	if (v == NULL) {
		flow_array_free(a);
		return -ENOMEM;
	}
	t->grown = 0;
	t->ready = false;
	table_grow_publish(t, v);
	rcu_defer(table_grow_seen_by_all, t);
	return 0;
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
