// SPDX-License-Identifier: Apache-2.0
// Between the files that change lists.
#pragma once

#include "policy/rules_private.h"

// A list as it is to be.
struct rules_change {
	struct rule *rules;
	size_t n;
	uint64_t seq;
	uint32_t *gone; // ids that are deleted or replaced, sorted
	size_t n_gone;
	uint32_t *slots; // of rules that go
	size_t n_slots;
	uint32_t entries[2];
};

void rules_change_free(struct rules_change *c);
bool rules_change_count(struct rules_change *c, size_t *bad); // entries; false: rule `bad` brings the list above its limit
// The list becomes what it is to be, with this set of the new rules. Takes over rules and slots.
void rules_change_take(struct rule_list *l, struct rules_change *c, struct rules_set *set);
int rules_no_memory(struct error *err);
