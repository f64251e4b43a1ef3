// SPDX-License-Identifier: Apache-2.0
// Address groups: internal interface between the files of the rules.
#pragma once

#include "policy/rules.h"

// Count the references of a rule to its address groups, meter and mirror.
void groups_ref(const struct rule *r);
void groups_unref(const struct rule *r);
void groups_init(void); // says which rules name a meter, a mirror or an address group
void groups_fini(void);
int rules_group_changed(uint16_t group, struct error *err); // rules_group.c
