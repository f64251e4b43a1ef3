// SPDX-License-Identifier: Apache-2.0
// A treap of MAC keys.
#include "l2/mac_order.h"

#include "l2/mac_table.h"

static uint64_t mac_order_key_of(const struct mac_order *o, uint32_t slot)
{
	return o->buckets[slot / MAC_WAYS].key[slot % MAC_WAYS];
}

// A slot's priority is a hash that guests cannot predict, so they cannot choose addresses that make the tree deep.
static uint32_t mac_order_priority(const struct mac_order *o, uint32_t slot)
{
	return (uint32_t)(mac_hash(mac_order_key_of(o, slot)) >> 16); // not the bits that select the bucket
}

// Splits the tree at `slot`: keys below `key` go to *left, the others to *right.
static void mac_order_split(struct mac_order *o, uint32_t slot, uint64_t key, uint32_t *left, uint32_t *right)
{
	while (slot != ORDER_NONE) {
		if (mac_order_key_of(o, slot) < key) {
			*left = slot;
			left = &o->links[slot].right;
			slot = *left;
		} else {
			*right = slot;
			right = &o->links[slot].left;
			slot = *right;
		}
	}
	*left = *right = ORDER_NONE;
}

void mac_order_insert(struct mac_order *o, uint32_t slot)
{
	uint64_t key = mac_order_key_of(o, slot);
	uint32_t own = mac_order_priority(o, slot), *link = &o->root;

	while (*link != ORDER_NONE && mac_order_priority(o, *link) >= own)
		link = key < mac_order_key_of(o, *link) ? &o->links[*link].left : &o->links[*link].right;
	mac_order_split(o, *link, key, &o->links[slot].left, &o->links[slot].right);
	*link = slot;
}

void mac_order_erase(struct mac_order *o, uint32_t slot)
{
	uint32_t a = o->links[slot].left, b = o->links[slot].right, *link = &o->root;
	uint64_t key = mac_order_key_of(o, slot);

	while (*link != slot)
		link = key < mac_order_key_of(o, *link) ? &o->links[*link].left : &o->links[*link].right;
	while (a != ORDER_NONE && b != ORDER_NONE) {
		if (mac_order_priority(o, a) >= mac_order_priority(o, b)) {
			*link = a;
			link = &o->links[a].right;
			a = *link;
		} else {
			*link = b;
			link = &o->links[b].left;
			b = *link;
		}
	}
	*link = a != ORDER_NONE ? a : b;
}

uint32_t mac_order_after(const struct mac_order *o, uint64_t key)
{
	uint32_t slot = o->root, best = ORDER_NONE;

	while (slot != ORDER_NONE) {
		if (mac_order_key_of(o, slot) > key) {
			best = slot;
			slot = o->links[slot].left;
		} else {
			slot = o->links[slot].right;
		}
	}
	return best;
}
