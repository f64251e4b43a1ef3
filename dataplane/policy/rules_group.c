// SPDX-License-Identifier: Apache-2.0
// Applies a changed address group to the lists that name it.
#include <errno.h>
#include <stdlib.h>

#include "policy/groups.h"
#include "policy/rules_change.h"

// Copies the list and marks the rules that name the group as changed.
static int group_touch(struct rule_list *l, uint16_t group, struct rules_change *c)
{
	size_t i;

	c->seq = l->seq + 1;
	c->rules = malloc((l->n + 1) * sizeof(*c->rules));
	if (c->rules == NULL)
		return -ENOMEM;
	c->n = l->n;
	for (i = 0; i < l->n; i++) {
		c->rules[i] = l->rules[i];
		if (l->rules[i].src_group == group || l->rules[i].dst_group == group)
			c->rules[i].seq = c->seq;
	}
	return 0;
}

static bool uses_group(const struct rule_list *l, uint16_t group)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (l->rules[i].src_group == group || l->rules[i].dst_group == group)
			return true;
	return false;
}

// The group already has its new prefixes. Either all lists that name it get new sets, or none does.
int rules_group_changed(uint16_t group, struct error *err)
{
	struct rules_change *c = calloc(RULE_LISTS_MAX, sizeof(*c));
	struct rules_set **sets = calloc(RULE_LISTS_MAX, sizeof(*sets));
	struct rule_list *l;
	size_t bad;
	int ret = c && sets ? 0 : rules_no_memory(err); // analyzer: core.NullDereference: negative

	for (l = rule_list_next(NULL); l && ret == 0; l = rule_list_next(l)) {
		if (!uses_group(l, group))
			continue;
		if (group_touch(l, group, &c[l->id]) < 0)
			ret = rules_no_memory(err);
		else if (!rules_change_count(&c[l->id], &bad))
			ret = error_set(err, ENOSPC, "group.prefixes", NULL, RULE_LIST_ENTRIES_VALID,
					"rule %u brings the list '%s' above its limit", l->rules[bad].id, l->name);
		else if ((sets[l->id] = rules_set_make(l, c[l->id].rules, l->n, l->allow, l->set->base)) == NULL)
			ret = rules_no_memory(err);
	}
	for (l = rule_list_next(NULL); l && c && sets; l = rule_list_next(l)) {
		struct rules_change *own = &c[l->id];

		if (ret == 0 && own->rules) {
			rules_change_take(l, own, sets[l->id]);
		} else {
			rules_set_free(sets[l->id]);
		}
		rules_change_free(own);
	}
	free(c);
	free(sets);
	return ret;
}
