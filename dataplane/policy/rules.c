// SPDX-License-Identifier: Apache-2.0
// Lists of rules: creation, lookup and deletion. rules_change.c changes their rules.
#include "policy/rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id_table.h"
#include "policy/groups.h"
#include "policy/rules_private.h"

static struct rule_list *lists[RULE_LISTS_MAX];

int rules_init(struct error *err)
{
	if (rule_slots_init() < 0)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for the rules' counters");
	if (rules_compile_start() < 0)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "the thread svc-rules cannot be started");
	rules_port_init();
	groups_init();
	return 0;
}

void rules_poll(void)
{
	rules_compile_poll();
	rule_slots_poll();
}

// --- Lists. ---

struct rule_list *rule_list_get(uint16_t id)
{
	return id < RULE_LISTS_MAX ? lists[id] : NULL;
}

const char *rule_list_name(uint16_t id)
{
	return rule_list_get(id) ? lists[id]->name : "";
}

uint16_t rule_list_id(const struct rule_list *l)
{
	return l->id;
}

struct rule_list *rule_list_next(const struct rule_list *l)
{
	return id_table_next(lists, RULE_LISTS_MAX, l ? l->id + 1u : 1);
}

static struct rule_list *rules_find(const char *name)
{
	return id_table_find(lists, RULE_LISTS_MAX, offsetof(struct rule_list, name), name);
}

struct rule_list *rule_list_find_err(const char *name, const char *field, struct error *err)
{
	struct rule_list *l = name ? rules_find(name) : NULL;

	if (l == NULL)
		error_set(err, ENOENT, field, name ? name : "", "the name of an existing rule list",
			  "there is no such rule list");
	return l;
}

static void rules_list_free(struct rule_list *l)
{
	free(l->rules);
	free(l);
}

struct rule_list *rule_list_add(const char *name, bool allow, struct error *err)
{
	uint16_t id = (uint16_t)id_table_free(lists, RULE_LISTS_MAX, 1);
	struct rule_list *l;

	if (rules_find(name)) {
		error_set(err, EEXIST, "rule_list.name", name, "a new name", "is taken");
		return NULL;
	}
	l = id < RULE_LISTS_MAX ? calloc(1, sizeof(*l)) : NULL;
	if (l) {
		snprintf(l->name, sizeof(l->name), "%s", name);
		*l = (struct rule_list){.id = id, .allow = allow, .seq = 1, .slot = rule_slot_get()};
		snprintf(l->name, sizeof(l->name), "%s", name);
		l->set = rules_set_make(l, NULL, 0, allow, NULL);
	}
	if (l == NULL || l->slot == 0 || l->set == NULL) {
		if (l) {
			rule_slot_put(l->slot);
			rules_set_free(l->set);
			rules_list_free(l);
		}
		error_full(err, id < RULE_LISTS_MAX ? ENOMEM : ENOSPC, "rule_list", name, RULE_LISTS_MAX - 1, "lists");
		return NULL;
	}
	return lists[id] = l;
}

int rule_list_del(const char *name, struct error *err)
{
	struct rule_list *l = rule_list_find_err(name, "rule_list.name", err);
	uint32_t *slots;
	size_t i, n;

	if (l == NULL)
		return -ENOENT;
	if (l->refs)
		return error_set(err, EBUSY, "rule_list.name", name, "a list that no port uses",
				 "is attached to ports %u times", l->refs);
	n = l->n + 1;
	slots = malloc(n * sizeof(*slots));
	for (i = 0; slots && i < l->n; i++)
		slots[i] = l->rules[i].slot;
	if (slots)
		slots[l->n] = l->slot;
	for (i = 0; i < l->n; i++)
		groups_unref(&l->rules[i]);
	lists[l->id] = NULL;
	rules_publish(l, NULL, slots, slots ? n : 0, false);
	rules_list_free(l);
	return 0;
}

// --- Rules of a list. ---

const struct rule *rules_next(const struct rule_list *l, uint32_t after)
{
	size_t low = 0, high = l->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (l->rules[mid].id <= after)
			low = mid + 1;
		else
			high = mid;
	}
	return low < l->n ? &l->rules[low] : NULL;
}

const struct rule *rules_get(const struct rule_list *l, uint32_t id)
{
	const struct rule *r = id ? rules_next(l, id - 1) : NULL;

	return r && r->id == id ? r : NULL;
}

int rule_list_set(struct rule_list *l, bool allow)
{
	struct rules_set *set;

	if (l->allow == allow)
		return 0;
	set = rules_set_make(l, l->rules, l->n, allow, l->set->base);
	if (set == NULL)
		return -ENOMEM;
	l->allow = allow;
	rules_publish(l, set, NULL, 0, true);
	return 0;
}

void rules_fini(void)
{
	struct rule_list *l;

	rules_compile_stop();
	while ((l = rule_list_next(NULL)) != NULL) {
		lists[l->id] = NULL;
		rules_set_free(l->set);
		rules_list_free(l);
	}
	groups_fini();
	rule_slots_fini();
}
