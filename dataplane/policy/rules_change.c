// SPDX-License-Identifier: Apache-2.0
// Adds, replaces and deletes rules. A change is prepared on a copy, which replaces the list once nothing can fail any
// more.
#include "policy/rules_change.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/groups.h"

void rules_change_free(struct rules_change *c)
{
	free(c->rules);
	free(c->gone);
	free(c->slots);
}

bool rules_change_count(struct rules_change *c, size_t *bad)
{
	uint64_t sum[2] = {0, 0};
	size_t i;

	for (i = 0; i < c->n; i++) {
		sum[0] += rule_entries(&c->rules[i], 0);
		sum[1] += rule_entries(&c->rules[i], 1);
		if (sum[0] > RULE_LIST_ENTRIES || sum[1] > RULE_LIST_ENTRIES) {
			*bad = i;
			return false;
		}
	}
	c->entries[0] = (uint32_t)sum[0];
	c->entries[1] = (uint32_t)sum[1];
	return true;
}

int rules_no_memory(struct error *err)
{
	return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for rules");
}

void rules_change_take(struct rule_list *l, struct rules_change *c, struct rules_set *set)
{
	free(l->rules);
	l->rules = c->rules;
	l->n = c->n;
	l->seq = c->seq;
	memcpy(l->entries, c->entries, sizeof(l->entries));
	rules_publish(l, set, c->slots, c->n_slots, true);
	l->wanted = rules_set_stale(l->set);
	c->rules = NULL;
	c->slots = NULL;
}

static int rules_change_commit(struct rule_list *l, struct rules_change *c, struct error *err)
{
	struct rules_set *set = rules_set_make(l, c->rules, c->n, l->allow, l->set->base);

	if (set == NULL)
		return rules_no_memory(err);
	rules_shadow(c->rules, c->n, l->seq, c->gone, c->n_gone);
	rules_change_take(l, c, set);
	return 0;
}

static int rules_change_refuse_id(int code, uint32_t id, size_t index, const char *valid, const char *text,
				  struct error *err)
{
	char buf[16];
	int ret;

	snprintf(buf, sizeof(buf), "%u", id);
	ret = error_set(err, code, "rule.id", buf, valid, "%s", text);
	if (err)
		err->index = (uint32_t)index;
	return ret;
}

struct order { // sort key of a request's rules
	uint32_t id, index;
};

static int rules_change_by_id(const void *a, const void *b)
{
	const struct order *x = a, *y = b;

	return x->id != y->id ? (x->id < y->id ? -1 : 1) : x->index < y->index ? -1 : 1;
}

static int rules_change_check_ids(const struct rule_list *l, const struct order *o, size_t n, bool replace,
				  struct error *err)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (i > 0 && o[i].id == o[i - 1].id)
			return rules_change_refuse_id(EINVAL, o[i].id, o[i].index, "each id once", "is given twice",
						      err);
		if (!replace && rules_get(l, o[i].id))
			return rules_change_refuse_id(EEXIST, o[i].id, o[i].index, "a free id", "is taken", err);
	}
	return 0;
}

static struct order *rules_change_order(const struct rule *r, size_t n)
{
	struct order *o = malloc((n + 1) * sizeof(*o));
	size_t i;

	for (i = 0; o && i < n; i++)
		o[i] = (struct order){r[i].id, (uint32_t)i};
	if (o)
		qsort(o, n, sizeof(*o), rules_change_by_id);
	return o;
}

// Merges the list and the new rules in the order of ids. A replaced rule keeps its counter.
static int rules_change_merge(const struct rule_list *l, const struct rule *r, const struct order *o, size_t n,
			      struct rules_change *c)
{
	size_t i = 0, j = 0;

	c->seq = l->seq + 1;
	c->rules = malloc((l->n + n + 1) * sizeof(*c->rules));
	c->gone = malloc((n + 1) * sizeof(*c->gone));
	if (c->rules == NULL || c->gone == NULL)
		return -ENOMEM;
	while (i < l->n || j < n) {
		struct rule *out = &c->rules[c->n++];

		if (j == n || (i < l->n && l->rules[i].id < o[j].id)) {
			*out = l->rules[i++];
			continue;
		}
		*out = r[o[j++].index];
		out->slot = out->shadowed_by = 0;
		out->seq = c->seq;
		if (i < l->n && l->rules[i].id == out->id) {
			c->gone[c->n_gone++] = out->id;
			out->slot = l->rules[i++].slot;
		}
	}
	return 0;
}

static int rules_change_check_size(const struct rule_list *l, const struct rules_change *c, struct error *err)
{
	if (c->n > RULE_LIST_RULES)
		return error_full(err, ENOSPC, "rule.list", l->name, RULE_LIST_RULES, "rules in a list");
	if (c->n - l->n > rule_slots_left())
		return error_full(err, ENOSPC, "rule.list", l->name, RULE_SLOTS - 1, "rules in all lists");
	return 0;
}

static int rules_change_check_entries(const struct order *o, size_t n, struct rules_change *c, struct error *err)
{
	size_t bad, i;
	int ret;

	if (rules_change_count(c, &bad))
		return 0;
	ret = rules_change_refuse_id(ENOSPC, c->rules[bad].id, 0, RULE_LIST_ENTRIES_VALID,
				     "brings the list above its limit", err);
	for (i = 0; i < n && err; i++)
		if (o[i].id == c->rules[bad].id)
			err->index = o[i].index;
	return ret;
}

static int rules_change_prepare(const struct rule_list *l, const struct rule *r, const struct order *o, size_t n,
				bool replace, struct rules_change *c, struct error *err)
{
	int ret = rules_change_check_ids(l, o, n, replace, err);

	if (ret < 0)
		return ret;
	if (rules_change_merge(l, r, o, n, c) < 0)
		return rules_no_memory(err);
	ret = rules_change_check_size(l, c, err);
	return ret < 0 ? ret : rules_change_check_entries(o, n, c, err);
}

static void rules_change_take_slots(struct rules_change *c)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (c->rules[i].slot == 0)
			c->rules[i].slot = rule_slot_get();
}

static void rules_change_put_slots(struct rules_change *c, const struct rule_list *l)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (c->rules[i].seq == c->seq && rules_get(l, c->rules[i].id) == NULL)
			rule_slot_put(c->rules[i].slot);
}

static void rules_change_swap_refs(const struct rule_list *l, const struct rule *r, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		const struct rule *old = rules_get(l, r[i].id);

		groups_ref(&r[i]);
		if (old)
			groups_unref(old);
	}
}

static void rules_change_unswap_refs(const struct rule_list *l, const struct rule *r, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		const struct rule *old = rules_get(l, r[i].id);

		groups_unref(&r[i]);
		if (old)
			groups_ref(old);
	}
}

static int rules_change_list(struct rule_list *l, struct rule *r, size_t n, bool replace, bool for_real,
			     struct error *err)
{
	struct order *o = rules_change_order(r, n);
	struct rules_change c = {0};
	size_t i;
	int ret = o ? rules_change_prepare(l, r, o, n, replace, &c, err) : rules_no_memory(err);

	if (ret == 0 && for_real && n > 0) {
		rules_change_take_slots(&c);
		rules_change_swap_refs(l, r, n);
		ret = rules_change_commit(l, &c, err);
		if (ret < 0) {
			rules_change_unswap_refs(l, r, n);
			rules_change_put_slots(&c, l);
		}
		for (i = 0; i < n && ret == 0; i++)
			r[i] = *rules_get(l, r[i].id);
	}
	rules_change_free(&c);
	free(o);
	return ret;
}

int rules_add(struct rule_list *l, struct rule *r, size_t n, bool replace, struct error *err)
{
	return rules_change_list(l, r, n, replace, true, err);
}

int rules_check(const struct rule_list *l, struct rule *r, size_t n, bool replace, struct error *err)
{
	return rules_change_list((struct rule_list *)(uintptr_t)l, r, n, replace, false, err);
}

// Copies the list without the rules o[], which are sorted.
static int rules_change_without(const struct rule_list *l, const struct order *o, size_t n, struct rules_change *c)
{
	size_t i, j = 0;

	c->seq = l->seq + 1;
	c->rules = malloc((l->n + 1) * sizeof(*c->rules));
	c->gone = malloc((n + 1) * sizeof(*c->gone));
	c->slots = malloc((n + 1) * sizeof(*c->slots));
	if (c->rules == NULL || c->gone == NULL || c->slots == NULL)
		return -ENOMEM;
	for (i = 0; i < l->n; i++) {
		if (j == n || l->rules[i].id != o[j].id) {
			c->rules[c->n++] = l->rules[i];
			continue;
		}
		c->gone[c->n_gone++] = o[j].id;
		c->slots[c->n_slots++] = l->rules[i].slot;
		while (j < n && o[j].id == l->rules[i].id) // skip duplicates
			j++;
	}
	return 0;
}

static struct order *rules_change_order_ids(const struct rule_list *l, const uint32_t *ids, size_t n, struct error *err)
{
	struct order *o = malloc((n + 1) * sizeof(*o));
	size_t i;

	if (o == NULL) {
		rules_no_memory(err);
		return NULL;
	}
	for (i = 0; i < n; i++) {
		o[i] = (struct order){ids[i], (uint32_t)i};
		if (rules_get(l, ids[i]) == NULL) {
			rules_change_refuse_id(ENOENT, ids[i], i, NULL, "there is no such rule in the list", err);
			free(o);
			errno = ENOENT;
			return NULL;
		}
	}
	qsort(o, n, sizeof(*o), rules_change_by_id);
	return o;
}

int rules_del(struct rule_list *l, const uint32_t *ids, size_t n, struct error *err)
{
	struct order *o;
	struct rules_change c = {0};
	size_t bad, i;
	int ret;

	errno = ENOMEM;
	o = rules_change_order_ids(l, ids, n, err);
	if (o == NULL)
		return -errno;
	ret = rules_change_without(l, o, n, &c) < 0 ? rules_no_memory(err) : 0;
	if (ret == 0 && n > 0) {
		struct rule *copy = malloc((c.n_gone + 1) * sizeof(*copy)); // the deleted rules

		rules_change_count(&c, &bad);
		for (i = 0; copy && i < c.n_gone; i++)
			copy[i] = *rules_get(l, c.gone[i]);
		ret = copy ? rules_change_commit(l, &c, err) : rules_no_memory(err);
		for (i = 0; ret == 0 && i < c.n_gone; i++)
			groups_unref(&copy[i]);
		free(copy);
	}
	rules_change_free(&c);
	free(o);
	return ret;
}
