// SPDX-License-Identifier: Apache-2.0
// Insertion into the flow table and removal from it.
#include "flow/table.h"

#include <errno.h>

#include "flow/table_place.h"

#define TRIES 16 // attempts to make room while other writers take it

void flow_table_prefetch(const struct flow_table *t, const struct flow_key *key, uint64_t hash[2])
{
	const struct flow_view *v = rcu_read(t->view);
	const struct flow_array *a = v->next ? v->next : v->now;
	struct flow_key back = flow_key_reverse(key);

	hash[0] = flow_key_hash(key);
	prefetch_write(&a->b[flow_first(a, hash[0])]);
	hash[1] = flow_key_hash(&back);
	prefetch_write(&a->b[flow_first(a, hash[1])]);
}

static flow_entry_t table_find_spot(const struct flow_locked *l, unsigned i)
{
	flow_entry_t e = flow_place_find(&l->spot[i].in[0], &l->spot[i]);

	return e == 0 && l->n_arrays == 2 ? flow_place_find(&l->spot[i].in[1], &l->spot[i]) : e;
}

// Returns 0, -EEXIST, or -ENOSPC with the index of the spot without room in *full. Publishes nothing unless all spots
// have room.
static int table_insert_locked(struct flow_table *t, struct flow_locked *l, flow_entry_t *found, unsigned *full,
			       struct flow_slot *slot)
{
	unsigned i, to = l->n_arrays - 1;

	for (i = 0; i < l->n_spots; i++) {
		*found = table_find_spot(l, i);
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
	flow_table_counts(t, l->n_spots, 0);
	return 0;
}

// Finds a free slot other than `taken` for a key in its first bucket, whose lock is held. -EAGAIN: there is none, or
// the key may be in its second bucket.
static inline int table_slot_first(struct flow_bucket *b, uint64_t hash, const struct flow_key *key,
				   const struct flow_slot *taken, struct flow_slot *slot, flow_entry_t *found)
{
	int at = flow_slot_of_key(b, flow_sig(hash), key);

	if (unlikely(at >= 0)) {
		*found = b->entry[at] & ~FLOW_SECOND;
		return -EEXIST;
	}
	return unlikely(b->moved & flow_moved_bit(hash)) || unlikely(!flow_bucket_slot(b, taken, slot)) ? -EAGAIN : 0;
}

// The common case, with two locks instead of four: both keys have room in their first bucket, and neither can be in its
// second one. Returns -EAGAIN in all other cases.
static inline int table_insert_first(struct flow_table *t, flow_entry_t x, flow_entry_t y, const uint64_t hash[2],
				     flow_entry_t *found)
{
	const struct flow_view *view = rcu_read(t->view);
	struct flow_bucket *b = &view->now->b[flow_first(view->now, hash[0])], *c, *low, *high;
	struct flow_slot slot[2];
	int ret = -EAGAIN;

	if (unlikely(view->next != NULL))
		return -EAGAIN;
	c = y ? &view->now->b[flow_first(view->now, hash[1])] : b;
	low = RTE_MIN(b, c); // ordered by address: no deadlock
	high = RTE_MAX(b, c);
	rte_spinlock_lock(&low->lock);
	if (likely(high != low))
		rte_spinlock_lock(&high->lock);
	if (likely(rcu_read(t->view) == view))
		ret = table_slot_first(b, hash[0], flow_entry_key(x), NULL, &slot[0], found);
	if (likely(ret == 0) && y)
		ret = table_slot_first(c, hash[1], flow_entry_key(y), &slot[0], &slot[1], found);
	if (likely(ret == 0)) {
		flow_slot_set(b, slot[0].i, flow_sig(hash[0]), x);
		if (y)
			flow_slot_set(c, slot[1].i, flow_sig(hash[1]), y);
		flow_table_counts(t, y ? 2 : 1, 0);
	}
	if (likely(high != low))
		flow_bucket_unlock(high);
	flow_bucket_unlock(low);
	return ret;
}

// All other cases.
static __rte_noinline int table_insert_any(struct flow_table *t, flow_entry_t a, flow_entry_t b, const uint64_t hash[2],
					   flow_entry_t *found)
{
	unsigned tries, full = 0;
	struct flow_slot slot[2];
	struct flow_locked l;
	int ret;

	l.n_spots = b ? 2 : 1;
	flow_spot_init_by(&l.spot[0], a, hash[0]);
	if (b)
		flow_spot_init_by(&l.spot[1], b, hash[1]);
	for (tries = 0; tries < TRIES; tries++) {
		flow_lock(t, &l);
		ret = table_insert_locked(t, &l, found, &full, slot);
		flow_unlock(&l);
		if (likely(ret != -ENOSPC))
			return ret;
		if (!flow_make_room(&l.spot[full].in[l.n_arrays - 1], full ? slot[0].bucket : NULL))
			return l.n_arrays == 2 ? -EAGAIN : -ENOSPC;
	}
	return -EAGAIN;
}

int flow_table_insert(struct flow_table *t, flow_entry_t a, flow_entry_t b, flow_entry_t *found)
{
	const uint64_t hash[] = {flow_key_hash(flow_entry_key(a)), b ? flow_key_hash(flow_entry_key(b)) : 0};

	return flow_table_insert_by(t, a, b, hash, found);
}

int flow_table_insert_by(struct flow_table *t, flow_entry_t a, flow_entry_t b, const uint64_t hash[2],
			 flow_entry_t *found)
{
	int ret = table_insert_first(t, a, b, hash, found);

	return likely(ret != -EAGAIN) ? ret : table_insert_any(t, a, b, hash, found);
}

// Returns false if the entry is not in its first bucket.
static bool table_remove_first(struct flow_table *t, const struct flow_spot *s)
{
	const struct flow_view *view = rcu_read(t->view);
	struct flow_bucket *b = &view->now->b[flow_first(view->now, s->hash)];
	unsigned match;
	bool done = false;

	if (unlikely(view->next != NULL))
		return false;
	rte_spinlock_lock(&b->lock);
	if (likely(rcu_read(t->view) == view)) {
		for (match = flow_match(b, s->sig); match && !done; match &= match - 1) {
			done = b->entry[__builtin_ctz(match)] == s->entry;
			if (done)
				flow_slot_clear(b, (unsigned)__builtin_ctz(match));
		}
	}
	flow_bucket_unlock(b);
	return done;
}

// Removes an entry from any of its buckets. Returns how many slots it freed.
static unsigned table_remove_anywhere(struct flow_table *t, const struct flow_spot *spot)
{
	struct flow_locked l = {.n_spots = 1, .spot = {*spot}};
	unsigned k, n = 0;

	flow_lock(t, &l);
	for (k = 0; k < l.n_arrays; k++)
		n += flow_place_remove(&l.spot[0].in[k], &l.spot[0]);
	flow_unlock(&l);
	return n;
}

void flow_table_remove(struct flow_table *t, const flow_entry_t *entries, unsigned n)
{
	const struct flow_array *a = rcu_read(t->view)->now;
	struct flow_spot spot[FLOW_REMOVE];
	unsigned i, freed = 0;

	for (i = 0; i < n; i++) {
		flow_spot_init(&spot[i], entries[i]);
		prefetch_write(&a->b[flow_first(a, spot[i].hash)]);
	}
	for (i = 0; i < n; i++)
		freed += table_remove_first(t, &spot[i]) ? 1 : table_remove_anywhere(t, &spot[i]);
	if (freed > 0)
		flow_table_counts(t, 0, freed);
}
