// SPDX-License-Identifier: Apache-2.0
// The order of MAC keys, for lists: a treap over slots by their index. Master thread only; workers never look.
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

void mac_order_insert(struct mac_order *o, uint32_t slot);         // its key is set and new
void mac_order_erase(struct mac_order *o, uint32_t slot);          // its key is still set
uint32_t mac_order_after(const struct mac_order *o, uint64_t key); // slot of the smallest key above, ORDER_NONE
