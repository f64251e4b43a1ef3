// SPDX-License-Identifier: Apache-2.0
// Makes room in the flow table: a breadth-first search finds a free slot, then entries move along the path, the last
// one first.
#include "flow/table_place.h"

#define PATH_NODES 1024 // bound on the buckets searched

struct path_node {
	uint32_t bucket;
	int16_t parent; // index of a node, -1 = a bucket of the key
	uint8_t slot;   // slot of the parent with the entry that would move here
};

static int path_search(const struct flow_array *a, struct path_node *q, uint32_t first, uint32_t second,
		       const struct flow_bucket *taken)
{
	unsigned head, tail = 2, i;

	q[0] = (struct path_node){first, -1, 0};
	q[1] = (struct path_node){second, -1, 0};
	for (head = 0; head < tail; head++) {
		const struct flow_bucket *b = &a->b[q[head].bucket];

		if (__builtin_popcount(flow_match(b, 0)) > (b == taken))
			return (int)head;
		for (i = 0; i < FLOW_SLOTS && tail < PATH_NODES; i++) {
			uint16_t sig = __atomic_load_n(&b->sig[i], __ATOMIC_RELAXED);

			if (sig == 0) // the slot reserved in `taken`
				continue;
			q[tail++] = (struct path_node){flow_other(a, q[head].bucket, sig), (int16_t)head, (uint8_t)i};
		}
	}
	return -1;
}

// Moves the entry in slot `slot` of bucket `from` to its other bucket `to`, if `to` is still its other bucket and has
// room.
static bool table_room_move(struct flow_array *a, uint32_t from, uint32_t to, unsigned slot)
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
	free_slot = flow_slot_free(y);
	if (sig != 0 && free_slot >= 0 && flow_other(a, from, sig) == to) {
		if (!(entry & FLOW_SECOND))
			flow_moved_add(x, flow_key_hash(flow_entry_key(entry)));
		flow_slot_set(y, (unsigned)free_slot, sig, entry ^ FLOW_SECOND);
		flow_slot_clear(x, slot);
		if (entry & FLOW_SECOND)
			flow_moved_sub(y);
		moved = true;
	}
	flow_bucket_unlock(y);
	flow_bucket_unlock(x);
	return moved;
}

bool flow_make_room(const struct flow_place *p, const struct flow_bucket *taken)
{
	struct path_node q[PATH_NODES];
	struct flow_array *a = p->a;
	int at = path_search(a, q, (uint32_t)(p->first - a->b), (uint32_t)(p->second - a->b), taken);

	if (at < 0)
		return false;
	for (; q[at].parent >= 0; at = q[at].parent)
		if (!table_room_move(a, q[q[at].parent].bucket, q[at].bucket, q[at].slot))
			break; // another writer was faster: the caller retries
	return true;
}
