// SPDX-License-Identifier: Apache-2.0
// The buckets in which a key may be, their locks, and changes of one bucket.
#pragma once

#include "base/prefetch.h"
#include "base/rcu.h"
#include "flow/table_private.h"

struct flow_place { // the two buckets of one key in one array
	struct flow_array *a;
	struct flow_bucket *first, *second;
};

struct flow_spot {
	const struct flow_key *key;
	flow_entry_t entry;
	uint64_t hash;
	uint16_t sig;
	struct flow_place in[2]; // in the current array, and in the one that it grows into
};

struct flow_locked {
	const struct flow_view *view;
	struct flow_spot spot[2];
	unsigned n_spots, n_arrays, n_locks;
	struct flow_bucket *lock[8];
};

static inline void flow_spot_init_by(struct flow_spot *s, flow_entry_t entry, uint64_t hash)
{
	s->entry = entry;
	s->key = flow_entry_key(entry);
	s->hash = hash;
	s->sig = flow_sig(s->hash);
}

static inline void flow_spot_init(struct flow_spot *s, flow_entry_t entry)
{
	flow_spot_init_by(s, entry, flow_key_hash(flow_entry_key(entry)));
}

static inline void flow_spot_place(struct flow_spot *s, unsigned i, struct flow_array *a)
{
	uint32_t first = flow_first(a, s->hash);

	s->in[i] = (struct flow_place){a, &a->b[first], &a->b[flow_other(a, first, s->sig)]};
	prefetch_write(s->in[i].first); // prefetches all buckets before the first one is locked
	prefetch_write(s->in[i].second);
}

static inline void flow_lock_add(struct flow_locked *l, struct flow_bucket *b)
{
	unsigned i = l->n_locks, k;

	for (k = 0; k < i; k++)
		if (l->lock[k] == b)
			return;
	for (; i > 0 && l->lock[i - 1] > b; i--) // ordered by address: no deadlock
		l->lock[i] = l->lock[i - 1];
	l->lock[i] = b;
	l->n_locks++;
}

static inline void flow_unlock(struct flow_locked *l)
{
	while (l->n_locks > 0)
		flow_bucket_unlock(l->lock[--l->n_locks]);
}

// Locks all buckets in which the spots' keys may be. Retries if the view was replaced meanwhile: a thread that already
// used the new view has held the same locks, so the new view is visible once they are held.
static inline void flow_lock(struct flow_table *t, struct flow_locked *l)
{
	unsigned i, k;

	for (;;) {
		l->view = rcu_read(t->view);
		l->n_arrays = l->view->next ? 2 : 1;
		l->n_locks = 0;
		for (i = 0; i < l->n_spots; i++) {
			for (k = 0; k < l->n_arrays; k++) {
				flow_spot_place(&l->spot[i], k, k ? l->view->next : l->view->now);
				flow_lock_add(l, l->spot[i].in[k].first);
				flow_lock_add(l, l->spot[i].in[k].second);
			}
		}
		for (i = 0; i < l->n_locks; i++)
			rte_spinlock_lock(&l->lock[i]->lock);
		if (likely(rcu_read(t->view) == l->view))
			return;
		flow_unlock(l);
	}
}

// --- Changes of one bucket; its lock is held. ---

static inline int flow_slot_free(const struct flow_bucket *b)
{
	unsigned match = flow_match(b, 0);

	return match ? __builtin_ctz(match) : -1;
}

static inline void flow_slot_set(struct flow_bucket *b, unsigned i, uint16_t sig, flow_entry_t entry)
{
	__atomic_store_n(&b->entry[i], entry, __ATOMIC_RELEASE);
	__atomic_store_n(&b->sig[i], sig, __ATOMIC_RELEASE);
}

static inline void flow_slot_clear(struct flow_bucket *b, unsigned i)
{
	__atomic_store_n(&b->sig[i], 0, __ATOMIC_RELEASE);
}

static inline void flow_moved_add(struct flow_bucket *first, uint64_t hash)
{
	first->n_moved++;
	__atomic_store_n(&first->moved, first->moved | flow_moved_bit(hash), __ATOMIC_RELEASE);
}

static inline void flow_moved_sub(struct flow_bucket *first)
{
	if (--first->n_moved == 0)
		__atomic_store_n(&first->moved, 0, __ATOMIC_RELEASE);
}

static inline int flow_slot_of_key(const struct flow_bucket *b, uint16_t sig, const struct flow_key *key)
{
	unsigned match = flow_match(b, sig);

	for (; match; match &= match - 1) {
		unsigned i = (unsigned)__builtin_ctz(match);

		if (flow_key_equal(flow_entry_key(b->entry[i] & ~FLOW_SECOND), key, key->family == 6))
			return (int)i;
	}
	return -1;
}

static inline flow_entry_t flow_place_find(const struct flow_place *p, const struct flow_spot *s)
{
	int i = flow_slot_of_key(p->first, s->sig, s->key);

	if (i >= 0)
		return p->first->entry[i] & ~FLOW_SECOND;
	i = flow_slot_of_key(p->second, s->sig, s->key);
	return i >= 0 ? p->second->entry[i] & ~FLOW_SECOND : 0;
}

struct flow_slot {
	struct flow_bucket *bucket;
	unsigned i;
};

static inline bool flow_bucket_slot(struct flow_bucket *b, const struct flow_slot *taken, struct flow_slot *slot)
{
	unsigned match = flow_match(b, 0);

	if (taken && taken->bucket == b)
		match &= ~(1u << taken->i);
	if (match == 0)
		return false;
	*slot = (struct flow_slot){b, (unsigned)__builtin_ctz(match)};
	return true;
}

// Finds a free slot other than `taken`, in the first bucket if possible.
static inline bool flow_place_slot(const struct flow_place *p, const struct flow_slot *taken, struct flow_slot *slot)
{
	return flow_bucket_slot(p->first, taken, slot) || flow_bucket_slot(p->second, taken, slot);
}

static inline void flow_place_set(const struct flow_place *p, const struct flow_spot *s, const struct flow_slot *slot)
{
	bool second = slot->bucket != p->first;

	if (second)
		flow_moved_add(p->first, s->hash);
	flow_slot_set(slot->bucket, slot->i, s->sig, s->entry | (second ? FLOW_SECOND : 0));
}

static inline bool flow_place_remove(const struct flow_place *p, const struct flow_spot *s)
{
	struct flow_bucket *b[2] = {p->first, p->second};
	unsigned k, i;

	for (k = 0; k < 2; k++) {
		for (i = 0; i < FLOW_SLOTS; i++) {
			if (b[k]->sig[i] == 0 || (b[k]->entry[i] & ~FLOW_SECOND) != s->entry)
				continue;
			if (b[k]->entry[i] & FLOW_SECOND)
				flow_moved_sub(p->first);
			flow_slot_clear(b[k], i);
			return true;
		}
	}
	return false;
}

// Returns false if no free slot is within reach. True: one of the two buckets had a free slot a moment ago (two if it
// is `taken`, the bucket of the other key of the same insertion), or another writer interfered. The caller retries in
// both cases.
bool flow_make_room(const struct flow_place *p, const struct flow_bucket *taken);
