// SPDX-License-Identifier: Apache-2.0
// Changes of learnt addresses, for listeners. The last MAC_CHANGES are kept; a reader that falls behind reads the table
// again. Master thread only.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MAC_CHANGES 16384

enum mac_change_kind { MAC_WAS_LEARNT, MAC_HAS_MOVED, MAC_IS_GONE, MAC_WAS_SEEN }; // api/bridge.proto explains them

struct mac_change {
	uint64_t key, target; // l2/mac_table.h
	enum mac_change_kind kind;
};

void mac_change_note(enum mac_change_kind kind, uint64_t key, uint64_t target);
uint64_t mac_change_last(void); // number of the newest one, from 1; 0: there was none
// The change with this number; NULL: it is overwritten, or not there yet.
const struct mac_change *mac_change_get(uint64_t number);

struct mac_change_listener {
	void (*noted)(void); // after each change
	struct mac_change_listener *next;
};
void mac_change_listen(struct mac_change_listener *l);
