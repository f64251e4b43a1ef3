// SPDX-License-Identifier: Apache-2.0
// Address groups in the form that workers read: which outer sources a label or VNI accepts packets from.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/ip.h"
#include "policy/rules.h"

struct address_range {
	struct ip_addr first, last; // of one family
};

struct address_set { // immutable, replaced as a whole
	size_t n;
	struct address_range range[]; // sorted, disjoint
};

extern struct address_set *address_sets[ADDRESS_GROUPS_MAX]; // workers: ro (RCU), NULL = nothing holds the group

bool address_set_has(const struct address_set *s, const struct ip_addr *a);

// Master thread. While a group is held, address_sets[] follows its prefixes, and it cannot be deleted.
int address_group_hold(struct address_group *g, struct error *err);
void address_group_release(struct address_group *g);

// Internal to the address groups: builds the set of a group's prefixes, which are sorted, and replaces the one that
// workers read.
struct address_set *address_set_make(const struct address_group *g);            // NULL: no memory
void address_set_publish(const struct address_group *g, struct address_set *s); // NULL: none
