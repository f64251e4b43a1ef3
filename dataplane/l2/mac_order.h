// SPDX-License-Identifier: Apache-2.0
// Sorted order of the MAC keys, for listings: a treap whose nodes are slot numbers. Master thread only.
#pragma once

#include <stdint.h>

#define ORDER_NONE UINT32_MAX

struct mac_bucket;

struct mac_order {
	uint32_t root;
	struct mac_order_link {
		uint32_t left, right;
	} * links;                        // one for each slot
	const struct mac_bucket *buckets; // slot = bucket * MAC_WAYS + way
};

void mac_order_insert(struct mac_order *o, uint32_t slot); // its key is set, and is new
void mac_order_erase(struct mac_order *o, uint32_t slot);  // its key is still set
// Returns the slot of the smallest key above `key`, or ORDER_NONE.
uint32_t mac_order_after(const struct mac_order *o, uint64_t key);
