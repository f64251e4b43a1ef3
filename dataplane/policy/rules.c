// SPDX-License-Identifier: Apache-2.0
// Lists of rules. A change is made aside, on a copy; when nothing is left that could fail it takes the list's place.
#include "policy/rules.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/groups.h"
#include "policy/rules_private.h"

static struct rule_list *lists[RULE_LISTS_MAX];

int rules_init(struct error *err)
{
	if (rule_slots_init() < 0)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for the rules' counters");
	if (rules_compile_start() < 0)
		return error_set(err, EAGAIN, NULL, NULL, NULL, "the thread svc-rules cannot be started");
	rules_port_init();
	return 0;
}

void rules_poll(void)
{
	rules_compile_poll();
}

int policy_check_name(const char *name, const char *field, struct error *err)
{
	const char *s;

	for (s = name ? name : ""; *s; s++)
		if (!isalnum((unsigned char)*s) && strchr("._-", *s) == NULL)
			break;
	if (name == NULL || *name == '\0' || *s || strlen(name) >= RULE_NAME)
		return error_set(err, EINVAL, field, name, "1 to 31 of A-Z a-z 0-9 . _ -", "is not a name");
	return 0;
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
	unsigned i = l ? l->id + 1u : 1;

	while (i < RULE_LISTS_MAX && lists[i] == NULL)
		i++;
	return i < RULE_LISTS_MAX ? lists[i] : NULL;
}

static struct rule_list *find(const char *name)
{
	struct rule_list *l;

	for (l = rule_list_next(NULL); l; l = rule_list_next(l))
		if (strcmp(l->name, name) == 0)
			return l;
	return NULL;
}

struct rule_list *rule_list_find_err(const char *name, const char *field, struct error *err)
{
	struct rule_list *l = name ? find(name) : NULL;

	if (l == NULL)
		error_set(err, ENOENT, field, name ? name : "", "the name of a rule list that exists",
			  "there is no such rule list");
	return l;
}

static void list_free(struct rule_list *l)
{
	free(l->rules);
	free(l);
}

struct rule_list *rule_list_add(const char *name, bool allow, struct error *err)
{
	struct rule_list *l;
	uint16_t id = 1;

	if (policy_check_name(name, "rule_list.name", err) < 0)
		return NULL;
	if (find(name)) {
		error_set(err, EEXIST, "rule_list.name", name, "a new name", "is taken");
		return NULL;
	}
	while (id < RULE_LISTS_MAX && lists[id])
		id++;
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
			list_free(l);
		}
		error_set(err, ENOSPC, "rule_list", name, "up to 4095 lists", "no room for another list");
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
		return error_set(err, EBUSY, "rule_list.name", name, "a list that no port has", "is in use by ports, %u times",
				 l->refs);
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
	list_free(l);
	return 0;
}

// --- Changes. ---

// A list as it is to be.
struct change {
	struct rule *rules;
	size_t n;
	uint64_t seq;
	uint32_t *gone; // ids that are deleted or replaced, sorted
	size_t n_gone;
	uint32_t *slots; // of rules that go
	size_t n_slots;
	uint32_t entries[2];
};

static void change_free(struct change *c)
{
	free(c->rules);
	free(c->gone);
	free(c->slots);
}

static bool count_entries(const struct rule *rules, size_t n, uint32_t entries[2], size_t *bad)
{
	uint64_t sum[2] = {0, 0};
	size_t i;

	for (i = 0; i < n; i++) {
		sum[0] += rule_entries(&rules[i], 0);
		sum[1] += rule_entries(&rules[i], 1);
		if (sum[0] > RULE_LIST_ENTRIES || sum[1] > RULE_LIST_ENTRIES) {
			*bad = i;
			return false;
		}
	}
	entries[0] = (uint32_t)sum[0];
	entries[1] = (uint32_t)sum[1];
	return true;
}

static int no_memory(struct error *err)
{
	return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for rules");
}

static int commit(struct rule_list *l, struct change *c, struct error *err)
{
	struct rules_set *set = rules_set_make(l, c->rules, c->n, l->allow, l->set->base);

	if (set == NULL)
		return no_memory(err);
	rules_shadow(c->rules, c->n, l->seq, c->gone, c->n_gone);
	free(l->rules);
	l->rules = c->rules;
	l->n = c->n;
	l->seq = c->seq;
	l->entries[0] = c->entries[0];
	l->entries[1] = c->entries[1];
	rules_publish(l, set, c->slots, c->n_slots, true);
	l->wanted = rules_set_stale(l->set);
	c->rules = NULL;
	c->slots = NULL;
	return 0;
}

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

static int refuse_id(int code, uint32_t id, size_t index, const char *valid, const char *text, struct error *err)
{
	char buf[16];
	int ret;

	snprintf(buf, sizeof(buf), "%u", id);
	ret = error_set(err, code, "rule.id", buf, valid, "%s", text);
	if (err)
		err->index = (uint32_t)index;
	return ret;
}

struct order { // of a request's rules
	uint32_t id, index;
};

static int by_id(const void *a, const void *b)
{
	const struct order *x = a, *y = b;

	return x->id != y->id ? (x->id < y->id ? -1 : 1) : x->index < y->index ? -1 : 1;
}

static int check_ids(const struct rule_list *l, const struct order *o, size_t n, bool replace, struct error *err)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (o[i].id == 0 || o[i].id > RULE_ID_MAX)
			return refuse_id(ERANGE, o[i].id, o[i].index, "1 to 16777216", "is out of range", err);
		if (i > 0 && o[i].id == o[i - 1].id)
			return refuse_id(EINVAL, o[i].id, o[i].index, "each id once", "is given twice", err);
		if (!replace && rules_get(l, o[i].id))
			return refuse_id(EEXIST, o[i].id, o[i].index, "a free id", "is taken", err);
	}
	return 0;
}

static struct order *order(const struct rule *r, size_t n)
{
	struct order *o = malloc((n + 1) * sizeof(*o));
	size_t i;

	for (i = 0; o && i < n; i++)
		o[i] = (struct order){r[i].id, (uint32_t)i};
	if (o)
		qsort(o, n, sizeof(*o), by_id);
	return o;
}

// The list and the new rules, in the order of ids. What is replaced keeps its counter.
static int merge(const struct rule_list *l, const struct rule *r, const struct order *o, size_t n, struct change *c)
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

static int check_size(const struct rule_list *l, const struct change *c, struct error *err)
{
	if (c->n > RULE_LIST_RULES)
		return error_set(err, ENOSPC, "rule.list", l->name, "up to 65536 rules in a list", "is full");
	if (c->n - l->n > rule_slots_left())
		return error_set(err, ENOSPC, "rule.list", l->name, "up to 262143 rules in all lists", "there are too many rules");
	return 0;
}

static int check_entries(const struct order *o, size_t n, struct change *c, struct error *err)
{
	size_t bad, i;
	int ret;

	if (count_entries(c->rules, c->n, c->entries, &bad))
		return 0;
	ret = refuse_id(ENOSPC, c->rules[bad].id, 0, "up to 131072 entries in a list once groups are spelled out",
			"brings the list above its limit", err);
	for (i = 0; i < n && err; i++)
		if (o[i].id == c->rules[bad].id)
			err->index = o[i].index;
	return ret;
}

static int prepare(const struct rule_list *l, const struct rule *r, const struct order *o, size_t n, bool replace, struct change *c,
		   struct error *err)
{
	int ret = check_ids(l, o, n, replace, err);

	if (ret < 0)
		return ret;
	if (merge(l, r, o, n, c) < 0)
		return no_memory(err);
	ret = check_size(l, c, err);
	return ret < 0 ? ret : check_entries(o, n, c, err);
}

static void take_slots(struct change *c)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (c->rules[i].slot == 0)
			c->rules[i].slot = rule_slot_get();
}

static void put_slots(struct change *c, const struct rule_list *l)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (c->rules[i].seq == c->seq && rules_get(l, c->rules[i].id) == NULL)
			rule_slot_put(c->rules[i].slot);
}

static void swap_refs(const struct rule_list *l, const struct rule *r, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		const struct rule *old = rules_get(l, r[i].id);

		groups_ref(&r[i]);
		if (old)
			groups_unref(old);
	}
}

static void unswap_refs(const struct rule_list *l, const struct rule *r, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		const struct rule *old = rules_get(l, r[i].id);

		groups_unref(&r[i]);
		if (old)
			groups_ref(old);
	}
}

static int change_list(struct rule_list *l, struct rule *r, size_t n, bool replace, bool for_real, struct error *err)
{
	struct order *o = order(r, n);
	struct change c = {0};
	size_t i;
	int ret = o ? prepare(l, r, o, n, replace, &c, err) : no_memory(err);

	if (ret == 0 && for_real && n > 0) {
		take_slots(&c);
		swap_refs(l, r, n);
		ret = commit(l, &c, err);
		if (ret < 0) {
			unswap_refs(l, r, n);
			put_slots(&c, l);
		}
		for (i = 0; i < n && ret == 0; i++)
			r[i] = *rules_get(l, r[i].id);
	}
	change_free(&c);
	free(o);
	return ret;
}

int rules_add(struct rule_list *l, struct rule *r, size_t n, bool replace, struct error *err)
{
	return change_list(l, r, n, replace, true, err);
}

int rules_check(const struct rule_list *l, struct rule *r, size_t n, bool replace, struct error *err)
{
	return change_list((struct rule_list *)(uintptr_t)l, r, n, replace, false, err);
}

// The list without some rules, o[] in order.
static int without(const struct rule_list *l, const struct order *o, size_t n, struct change *c)
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
		while (j < n && o[j].id == l->rules[i].id) // named twice
			j++;
	}
	return 0;
}

static struct order *order_ids(const struct rule_list *l, const uint32_t *ids, size_t n, struct error *err)
{
	struct order *o = malloc((n + 1) * sizeof(*o));
	size_t i;

	if (o == NULL) {
		no_memory(err);
		return NULL;
	}
	for (i = 0; i < n; i++) {
		o[i] = (struct order){ids[i], (uint32_t)i};
		if (rules_get(l, ids[i]) == NULL) {
			refuse_id(ENOENT, ids[i], i, NULL, "there is no such rule in the list", err);
			free(o);
			errno = ENOENT;
			return NULL;
		}
	}
	qsort(o, n, sizeof(*o), by_id);
	return o;
}

int rules_del(struct rule_list *l, const uint32_t *ids, size_t n, struct error *err)
{
	struct order *o;
	struct change c = {0};
	struct rule *was = l->rules;
	size_t bad, i;
	int ret;

	errno = ENOMEM;
	o = order_ids(l, ids, n, err);
	if (o == NULL)
		return -errno;
	ret = without(l, o, n, &c) < 0 ? no_memory(err) : 0;
	if (ret == 0 && n > 0) {
		struct rule *copy = malloc((c.n_gone + 1) * sizeof(*copy)); // of the rules that go

		count_entries(c.rules, c.n, c.entries, &bad);
		for (i = 0; copy && i < c.n_gone; i++)
			copy[i] = *rules_get(l, c.gone[i]);
		was = copy;
		ret = copy ? commit(l, &c, err) : no_memory(err);
		for (i = 0; ret == 0 && i < c.n_gone; i++)
			groups_unref(&was[i]);
		free(copy);
	}
	change_free(&c);
	free(o);
	return ret;
}

// --- An address group has other prefixes. ---

// Rules that name the group have changed.
static int group_touch(struct rule_list *l, uint16_t group, struct change *c)
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

// The group has its new prefixes already. All lists that name it get new sets, or none.
int rules_group_changed(uint16_t group, struct error *err)
{
	struct change *c = calloc(RULE_LISTS_MAX, sizeof(*c));
	struct rules_set **sets = calloc(RULE_LISTS_MAX, sizeof(*sets));
	struct rule_list *l;
	size_t bad;
	int ret = c && sets ? 0 : no_memory(err);

	for (l = rule_list_next(NULL); l && ret == 0; l = rule_list_next(l)) {
		if (!uses_group(l, group))
			continue;
		if (group_touch(l, group, &c[l->id]) < 0)
			ret = no_memory(err);
		else if (!count_entries(c[l->id].rules, l->n, c[l->id].entries, &bad))
			ret = error_set(err, ENOSPC, "group.prefixes", NULL,
					"up to 131072 entries in a list once groups are spelled out",
					"rule %u brings the list '%s' above its limit", l->rules[bad].id, l->name);
		else if ((sets[l->id] = rules_set_make(l, c[l->id].rules, l->n, l->allow, l->set->base)) == NULL)
			ret = no_memory(err);
	}
	for (l = rule_list_next(NULL); l && c && sets; l = rule_list_next(l)) {
		struct change *own = &c[l->id];

		if (ret == 0 && own->rules) {
			free(l->rules);
			l->rules = own->rules;
			l->seq = own->seq;
			memcpy(l->entries, own->entries, sizeof(l->entries));
			rules_publish(l, sets[l->id], NULL, 0, true);
			l->wanted = rules_set_stale(l->set);
			own->rules = NULL;
		} else {
			rules_set_free(sets[l->id]);
		}
		change_free(own);
	}
	free(c);
	free(sets);
	return ret;
}

void rules_fini(void)
{
	struct rule_list *l;

	rules_compile_stop();
	while ((l = rule_list_next(NULL)) != NULL) {
		lists[l->id] = NULL;
		rules_set_free(l->set);
		list_free(l);
	}
	groups_fini();
	rule_slots_fini();
}
