// SPDX-License-Identifier: Apache-2.0
#include "flow/table.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include <rte_debug.h>
#include <rte_malloc.h>

#include "base/prefetch.h"
#include "base/rcu.h"
#include "base/reserve.h"
#include "flow/table_private.h"

#define LOAD_PERCENT 90
#define PATH_NODES 1024 // buckets that the search for a free slot looks at
#define TRIES 16        // rounds of making room and being overtaken by others

struct flow_secret flow_secret;

void flow_secret_init(const struct flow_secret *fixed)
{
	unsigned i;

	if (fixed)
		flow_secret = *fixed;
	else if (getrandom(&flow_secret, sizeof(flow_secret), 0) != sizeof(flow_secret))
		rte_panic("the kernel gives no random numbers\n");
	for (i = 0; i < RTE_DIM(flow_secret.mul); i++)
		flow_secret.mul[i] |= 1;
}

// --- Arrays of buckets. ---

static struct flow_array *array_create(uint64_t entries)
{
	uint64_t n = entries * 100 / LOAD_PERCENT / FLOW_SLOTS + 2;
	uint64_t bytes = sizeof(struct flow_array) + n * sizeof(struct flow_bucket);
	struct flow_array *a;

	if (n > UINT32_MAX / 2) {
		errno = E2BIG;
		return NULL;
	}
	a = reserve_range(bytes);
	if (a == NULL)
		return NULL;
	if (reserve_fill(a, 0, bytes) < 0) {
		reserve_release(a, bytes);
		return NULL;
	}
	a->bytes = bytes;
	a->n = (uint32_t)n;
	return a;
}

static void array_free(void *arg)
{
	struct flow_array *a = arg;

	if (a)
		reserve_release(a, a->bytes);
}

static struct flow_view *view_create(struct flow_array *now, struct flow_array *next)
{
	struct flow_view *v = malloc(sizeof(*v));

	if (v)
		*v = (struct flow_view){now, next};
	return v;
}

struct flow_table *flow_table_create(uint64_t entries, int numa)
{
	struct flow_table *t = calloc(1, sizeof(*t));
	struct flow_array *a = array_create(entries);

	if (t && a)
		t->view = view_create(a, NULL);
	if (t && t->view) {
		t->numa = numa;
		return t;
	}
	array_free(a);
	free(t);
	errno = ENOMEM;
	return NULL;
}

void flow_table_destroy(struct flow_table *t)
{
	if (t == NULL)
		return;
	array_free(t->view->now);
	array_free(t->view->next);
	free(t->view);
	free(t);
}

// --- Where a key may lie, and the locks of these buckets. ---

struct place { // of one key in one array
	struct flow_array *a;
	struct flow_bucket *first, *second;
};

struct spot {
	const struct flow_key *key;
	flow_entry_t entry;
	uint64_t hash;
	uint16_t sig;
	struct place in[2]; // the array in use, and the one that it grows into
};

struct locked {
	const struct flow_view *view;
	struct spot spot[2];
	unsigned n_spots, n_arrays, n_locks;
	struct flow_bucket *lock[8];
};

static uint64_t hash_of(const struct flow_key *k)
{
	return k->family == 6 ? flow_hash(k, true) : flow_hash(k, false);
}

void flow_table_prefetch(const struct flow_table *t, const struct flow_key *key)
{
	const struct flow_view *v = rcu_read(t->view);
	const struct flow_array *a = v->next ? v->next : v->now;
	uint64_t hash = hash_of(key);
	uint32_t first = flow_first(a, hash);

	prefetch_write(&a->b[first]);
	prefetch_write(&a->b[flow_other(a, first, flow_sig(hash))]);
}

static void spot_init(struct spot *s, flow_entry_t entry)
{
	s->entry = entry;
	s->key = flow_entry_key(entry);
	s->hash = hash_of(s->key);
	s->sig = flow_sig(s->hash);
}

static void spot_place(struct spot *s, unsigned i, struct flow_array *a)
{
	uint32_t first = flow_first(a, s->hash);

	s->in[i] = (struct place){a, &a->b[first], &a->b[flow_other(a, first, s->sig)]};
}

static void add_lock(struct locked *l, struct flow_bucket *b)
{
	unsigned i = l->n_locks, k;

	for (k = 0; k < i; k++)
		if (l->lock[k] == b)
			return;
	for (; i > 0 && l->lock[i - 1] > b; i--) // by address: nobody waits in a circle
		l->lock[i] = l->lock[i - 1];
	l->lock[i] = b;
	l->n_locks++;
}

static void unlock(struct locked *l)
{
	while (l->n_locks > 0)
		rte_spinlock_unlock(&l->lock[--l->n_locks]->lock);
}

// Locks all buckets in which the spots' keys may lie. A view that is replaced meanwhile is seen once the locks are held: who used the new
// one before has held the same locks.
static void lock(struct flow_table *t, struct locked *l)
{
	unsigned i, k;

	for (;;) {
		l->view = rcu_read(t->view);
		l->n_arrays = l->view->next ? 2 : 1;
		l->n_locks = 0;
		for (i = 0; i < l->n_spots; i++) {
			for (k = 0; k < l->n_arrays; k++) {
				spot_place(&l->spot[i], k, k ? l->view->next : l->view->now);
				add_lock(l, l->spot[i].in[k].first);
				add_lock(l, l->spot[i].in[k].second);
			}
		}
		for (i = 0; i < l->n_locks; i++)
			rte_spinlock_lock(&l->lock[i]->lock);
		if (likely(rcu_read(t->view) == l->view))
			return;
		unlock(l);
	}
}

// --- Changes of one bucket; its lock is held. ---

static int slot_free(const struct flow_bucket *b)
{
	unsigned match = flow_match_plain(b, 0);

	return match ? __builtin_ctz(match) : -1;
}

static void slot_set(struct flow_bucket *b, unsigned i, uint16_t sig, flow_entry_t entry)
{
	__atomic_store_n(&b->entry[i], entry, __ATOMIC_RELEASE);
	__atomic_store_n(&b->sig[i], sig, __ATOMIC_RELEASE);
}

static void slot_clear(struct flow_bucket *b, unsigned i)
{
	__atomic_store_n(&b->sig[i], 0, __ATOMIC_RELEASE);
}

static void moved_add(struct flow_bucket *first, uint64_t hash)
{
	first->n_moved++;
	__atomic_store_n(&first->moved, first->moved | flow_moved_bit(hash), __ATOMIC_RELEASE);
}

static void moved_sub(struct flow_bucket *first)
{
	if (--first->n_moved == 0)
		__atomic_store_n(&first->moved, 0, __ATOMIC_RELEASE);
}

static int slot_of_key(const struct flow_bucket *b, uint16_t sig, const struct flow_key *key)
{
	unsigned match = flow_match_plain(b, sig);

	for (; match; match &= match - 1) {
		unsigned i = (unsigned)__builtin_ctz(match);

		if (flow_key_equal(flow_entry_key(b->entry[i] & ~FLOW_SECOND), key, key->family == 6))
			return (int)i;
	}
	return -1;
}

static flow_entry_t place_find(const struct place *p, const struct spot *s)
{
	int i = slot_of_key(p->first, s->sig, s->key);

	if (i >= 0)
		return p->first->entry[i] & ~FLOW_SECOND;
	i = slot_of_key(p->second, s->sig, s->key);
	return i >= 0 ? p->second->entry[i] & ~FLOW_SECOND : 0;
}

static bool place_insert(const struct place *p, const struct spot *s)
{
	int i = slot_free(p->first);

	if (i >= 0) {
		slot_set(p->first, (unsigned)i, s->sig, s->entry);
		return true;
	}
	i = slot_free(p->second);
	if (i < 0)
		return false;
	moved_add(p->first, s->hash);
	slot_set(p->second, (unsigned)i, s->sig, s->entry | FLOW_SECOND);
	return true;
}

static bool place_remove(const struct place *p, const struct spot *s)
{
	struct flow_bucket *b[2] = {p->first, p->second};
	unsigned k, i;

	for (k = 0; k < 2; k++) {
		for (i = 0; i < FLOW_SLOTS; i++) {
			if (b[k]->sig[i] == 0 || (b[k]->entry[i] & ~FLOW_SECOND) != s->entry)
				continue;
			if (b[k]->entry[i] & FLOW_SECOND)
				moved_sub(p->first);
			slot_clear(b[k], i);
			return true;
		}
	}
	return false;
}

// --- Making room: a free slot is looked for in breadth, then entries move towards it, the last one first. ---

struct path_node {
	uint32_t bucket;
	int16_t parent; // node, -1 = a bucket of the key
	uint8_t slot;   // of the parent, whose entry would move here
};

static int path_search(const struct flow_array *a, struct path_node *q, uint32_t first, uint32_t second)
{
	unsigned head, tail = 2, i;

	q[0] = (struct path_node){first, -1, 0};
	q[1] = (struct path_node){second, -1, 0};
	for (head = 0; head < tail; head++) {
		const struct flow_bucket *b = &a->b[q[head].bucket];

		if (slot_free(b) >= 0)
			return (int)head;
		for (i = 0; i < FLOW_SLOTS && tail < PATH_NODES; i++) {
			uint16_t sig = __atomic_load_n(&b->sig[i], __ATOMIC_RELAXED);

			q[tail++] = (struct path_node){flow_other(a, q[head].bucket, sig), (int16_t)head, (uint8_t)i};
		}
	}
	return -1;
}

// Moves the entry in slot `slot` of bucket `from` to its other bucket `to`, if that is still so and there is room.
static bool move(struct flow_array *a, uint32_t from, uint32_t to, unsigned slot)
{
	struct flow_bucket *x = &a->b[from], *y = &a->b[to];
	bool moved = false;
	flow_entry_t entry;
	uint16_t sig;
	int free_slot;

	if (from == to)
		return false;
	rte_spinlock_lock(from < to ? &x->lock : &y->lock);
	rte_spinlock_lock(from < to ? &y->lock : &x->lock);
	sig = x->sig[slot];
	entry = x->entry[slot];
	free_slot = slot_free(y);
	if (sig != 0 && free_slot >= 0 && flow_other(a, from, sig) == to) {
		if (!(entry & FLOW_SECOND))
			moved_add(x, hash_of(flow_entry_key(entry)));
		slot_set(y, (unsigned)free_slot, sig, entry ^ FLOW_SECOND);
		slot_clear(x, slot);
		if (entry & FLOW_SECOND)
			moved_sub(y);
		moved = true;
	}
	rte_spinlock_unlock(&y->lock);
	rte_spinlock_unlock(&x->lock);
	return moved;
}

// False: there is no room within reach. True: there was some a moment ago.
static bool make_room(struct flow_array *a, uint32_t first, uint32_t second)
{
	struct path_node q[PATH_NODES];
	int at = path_search(a, q, first, second);

	if (at < 0)
		return false;
	for (; q[at].parent >= 0; at = q[at].parent)
		if (!move(a, q[q[at].parent].bucket, q[at].bucket, q[at].slot))
			break; // somebody was faster: the caller looks again
	return true;
}

// --- Writers. ---

static bool insert_spot(struct locked *l, unsigned i)
{
	return place_insert(&l->spot[i].in[l->n_arrays - 1], &l->spot[i]);
}

static void remove_spot(struct flow_table *t, struct locked *l, unsigned i)
{
	unsigned k;

	for (k = 0; k < l->n_arrays; k++)
		if (place_remove(&l->spot[i].in[k], &l->spot[i]))
			__atomic_sub_fetch(&t->used, 1, __ATOMIC_RELAXED);
}

static flow_entry_t find_spot(const struct locked *l, unsigned i)
{
	flow_entry_t e = place_find(&l->spot[i].in[0], &l->spot[i]);

	return e == 0 && l->n_arrays == 2 ? place_find(&l->spot[i].in[1], &l->spot[i]) : e;
}

// 0, -EEXIST, or -ENOSPC with the spot that found no room in *full.
static int insert_locked(struct flow_table *t, struct locked *l, flow_entry_t *found, unsigned *full)
{
	unsigned i;

	for (i = 0; i < l->n_spots; i++) {
		*found = find_spot(l, i);
		if (*found != 0)
			return -EEXIST;
	}
	for (i = 0; i < l->n_spots; i++) {
		if (insert_spot(l, i)) {
			__atomic_add_fetch(&t->used, 1, __ATOMIC_RELAXED);
			continue;
		}
		*full = i;
		while (i-- > 0)
			remove_spot(t, l, i);
		return -ENOSPC;
	}
	return 0;
}

static void spots(struct locked *l, flow_entry_t a, flow_entry_t b)
{
	l->n_spots = b ? 2 : 1;
	spot_init(&l->spot[0], a);
	if (b)
		spot_init(&l->spot[1], b);
}

int flow_table_insert(struct flow_table *t, flow_entry_t a, flow_entry_t b, flow_entry_t *found)
{
	unsigned tries, full = 0;
	struct locked l;
	int ret;

	spots(&l, a, b);
	for (tries = 0; tries < TRIES; tries++) {
		struct place *p;

		lock(t, &l);
		ret = insert_locked(t, &l, found, &full);
		unlock(&l);
		if (likely(ret != -ENOSPC))
			return ret;
		p = &l.spot[full].in[l.n_arrays - 1];
		if (!make_room(p->a, (uint32_t)(p->first - p->a->b), (uint32_t)(p->second - p->a->b)))
			return -ENOSPC;
	}
	return -EAGAIN;
}

void flow_table_remove(struct flow_table *t, flow_entry_t a, flow_entry_t b)
{
	struct locked l;
	unsigned i;

	spots(&l, a, b);
	lock(t, &l);
	for (i = 0; i < l.n_spots; i++)
		remove_spot(t, &l, i);
	unlock(&l);
}

// --- Growing: everything new goes to the next array, what is in the old one is moved a bucket at a time. ---

static void publish(struct flow_table *t, struct flow_view *v)
{
	struct flow_view *old = t->view;

	rcu_publish(t->view, v);
	rcu_defer(free, old);
}

static void everybody_sees(void *arg)
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
	a = array_create(entries);
	v = a ? view_create(t->view->now, a) : NULL;
	if (v == NULL) {
		array_free(a);
		return -ENOMEM;
	}
	t->grown = 0;
	t->ready = false;
	publish(t, v);
	rcu_defer(everybody_sees, t);
	return 0;
}

// False: the new array had no room for the entry.
static bool move_on(struct flow_table *t, struct flow_bucket *b, unsigned slot)
{
	flow_entry_t entry = __atomic_load_n(&b->entry[slot], __ATOMIC_RELAXED) & ~FLOW_SECOND;
	struct locked l;
	struct place *p;
	bool done = true;

	spots(&l, entry, 0); // one that has gone meanwhile is still readable and is found nowhere
	lock(t, &l);
	p = l.spot[0].in;
	if (b->sig[slot] != 0 && (b->entry[slot] & ~FLOW_SECOND) == entry && (p[0].first == b || p[0].second == b)) {
		done = place_insert(&p[1], &l.spot[0]);
		if (done)
			place_remove(&p[0], &l.spot[0]);
	}
	unlock(&l);
	return done || make_room(p[1].a, (uint32_t)(p[1].first - p[1].a->b), (uint32_t)(p[1].second - p[1].a->b));
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
			while (__atomic_load_n(&b->sig[i], __ATOMIC_RELAXED) != 0)
				if (!move_on(t, b, i))
					return false; // full: some must be removed first
		t->grown++;
	}
	if (t->grown < view->now->n)
		return false;
	done = view_create(view->next, NULL);
	if (done == NULL)
		return false;
	rcu_defer(array_free, view->now);
	publish(t, done);
	return true;
}

uint64_t flow_table_used(const struct flow_table *t)
{
	return __atomic_load_n(&t->used, __ATOMIC_RELAXED);
}

uint64_t flow_table_slots(const struct flow_table *t)
{
	const struct flow_view *v = t->view;

	return (uint64_t)(v->next ? v->next : v->now)->n * FLOW_SLOTS;
}

uint64_t flow_table_memory(const struct flow_table *t)
{
	const struct flow_view *v = t->view;

	return v->now->bytes + (v->next ? v->next->bytes : 0);
}

bool flow_table_growing(const struct flow_table *t)
{
	return t->view->next != NULL;
}
