// SPDX-License-Identifier: Apache-2.0
// Changes of rule lists: internal interface between the files that make them.
#pragma once

#include "policy/rules_private.h"

// A list as it will be after the change.
struct rules_change {
	struct rule *rules;
	size_t n;
	uint64_t seq;
	uint32_t *gone; // ids of deleted and replaced rules, sorted
	size_t n_gone;
	uint32_t *slots; // counters of deleted rules
	size_t n_slots;
	uint32_t entries[2];
};

void rules_change_free(struct rules_change *c);
bool rules_change_count(struct rules_change *c, size_t *bad); // false: rule `bad` exceeds the list's limit
// Applies the change to the list and publishes `set`, which holds the new rules. Takes ownership of c->rules and
// c->slots.
void rules_change_take(struct rule_list *l, struct rules_change *c, struct rules_set *set);
int rules_no_memory(struct error *err);
