// SPDX-License-Identifier: Apache-2.0
// Address groups: sets of prefixes that rules name.
#include "policy/groups.h"
#include "base/id_table.h"
#include "base/notify.h"
#include "policy/address_set.h"
#include "policy/meter.h"
#include "policy/mirror.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct address_group *groups[ADDRESS_GROUPS_MAX];
static struct referrer *group_referrers;

struct address_group *address_group_get(uint16_t id)
{
	return id < ADDRESS_GROUPS_MAX ? groups[id] : NULL;
}

struct address_group *address_group_next(const struct address_group *g)
{
	return id_table_next(groups, ADDRESS_GROUPS_MAX, g ? g->id + 1u : 1);
}

static struct address_group *groups_find(const char *name)
{
	return id_table_find(groups, ADDRESS_GROUPS_MAX, offsetof(struct address_group, name), name);
}

struct address_group *address_group_find_err(const char *name, const char *field, struct error *err)
{
	struct address_group *g = name ? groups_find(name) : NULL;

	if (g == NULL)
		error_set(err, ENOENT, field, name ? name : "", "the name of an existing address group",
			  "there is no such address group");
	return g;
}

static int by_prefix(const void *a, const void *b)
{
	const struct ip_prefix *x = a, *y = b;
	int c = (int)x->addr.family - (int)y->addr.family;

	if (c == 0)
		c = memcmp(x->addr.bytes, y->addr.bytes, sizeof(x->addr.bytes));
	return c ? c : (int)x->len - (int)y->len;
}

// Makes a sorted copy without duplicates.
static int groups_copy(const struct ip_prefix *p, size_t n, struct ip_prefix **out, size_t *n_out, struct error *err)
{
	size_t i, kept = 0;

	*out = malloc((n + 1) * sizeof(**out));
	if (*out == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for an address group");
	if (n > 0)
		memcpy(*out, p, n * sizeof(*p));
	qsort(*out, n, sizeof(**out), by_prefix);
	for (i = 0; i < n; i++)
		if (i == 0 || by_prefix(&(*out)[i], &(*out)[kept - 1]) != 0)
			(*out)[kept++] = (*out)[i];
	*n_out = kept;
	return 0;
}

struct address_group *address_group_add(const char *name, const struct ip_prefix *p, size_t n, struct error *err)
{
	uint16_t id = (uint16_t)id_table_free(groups, ADDRESS_GROUPS_MAX, 1);
	struct address_group *g;

	if (groups_find(name)) {
		error_set(err, EEXIST, "group.name", name, "a new name", "is taken");
		return NULL;
	}
	g = id < ADDRESS_GROUPS_MAX ? calloc(1, sizeof(*g)) : NULL;
	if (g == NULL) {
		error_full(err, id < ADDRESS_GROUPS_MAX ? ENOMEM : ENOSPC, "group", name, ADDRESS_GROUPS_MAX - 1,
			   "address groups");
		return NULL;
	}
	if (groups_copy(p, n, &g->prefixes, &g->n, err) < 0) {
		free(g);
		return NULL;
	}
	g->id = id;
	snprintf(g->name, sizeof(g->name), "%s", name);
	return groups[id] = g;
}

int address_group_set(struct address_group *g, const struct ip_prefix *p, size_t n, struct error *err)
{
	struct address_group old = *g;
	struct address_set *s = NULL;
	int ret = groups_copy(p, n, &g->prefixes, &g->n, err);

	if (ret == 0 && g->holders && (s = address_set_make(g)) == NULL)
		ret = error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for an address group");
	if (ret == 0)
		ret = rules_group_changed(g->id, err);
	if (ret < 0) {
		free(s);
		if (g->prefixes != old.prefixes)
			free(g->prefixes);
		*g = old;
		return ret;
	}
	if (s)
		address_set_publish(g, s);
	free(old.prefixes);
	return 0;
}

void address_group_refer(struct referrer *r)
{
	LISTEN(group_referrers, r);
}

int address_group_del(const char *name, struct error *err)
{
	struct address_group *g = address_group_find_err(name, "group.name", err);

	if (g == NULL)
		return -ENOENT;
	if (g->rules || g->holders)
		return referrer_error(group_referrers, g->id, g->rules + g->holders, "group.name", name, err);
	groups[g->id] = NULL;
	free(g->prefixes);
	free(g);
	return 0;
}

static void groups_count(const struct rule *r, int step)
{
	struct address_group *src = address_group_get(r->src_group), *dst = address_group_get(r->dst_group);

	if (src)
		src->rules += (uint32_t)step;
	if (dst && dst != src)
		dst->rules += (uint32_t)step;
	step > 0 ? meter_ref(r->extras.meter) : meter_unref(r->extras.meter);
	step > 0 ? mirror_ref(r->extras.mirror) : mirror_unref(r->extras.mirror);
}

void groups_ref(const struct rule *r)
{
	groups_count(r, 1);
}

void groups_unref(const struct rule *r)
{
	groups_count(r, -1);
}

// --- Which rule names a meter, a mirror or an address group. ---

static bool groups_find_rule(bool (*match)(const struct rule *r, uint32_t id), uint32_t id, char *text, size_t size)
{
	const struct rule_list *l;
	size_t i;

	for (l = rule_list_next(NULL); l; l = rule_list_next(l))
		for (i = 0; i < l->n; i++)
			if (match(&l->rules[i], id)) {
				snprintf(text, size, "rule %u of list '%s'", l->rules[i].id, l->name);
				return true;
			}
	return false;
}

static bool groups_has_meter(const struct rule *r, uint32_t id)
{
	return r->extras.meter == id;
}

static bool groups_has_mirror(const struct rule *r, uint32_t id)
{
	return r->extras.mirror == id;
}

static bool groups_has_group(const struct rule *r, uint32_t id)
{
	return r->src_group == id || r->dst_group == id;
}

static bool groups_find_meter(uint32_t id, char *text, size_t size)
{
	return groups_find_rule(groups_has_meter, id, text, size);
}

static bool groups_find_mirror(uint32_t id, char *text, size_t size)
{
	return groups_find_rule(groups_has_mirror, id, text, size);
}

static bool groups_find_group(uint32_t id, char *text, size_t size)
{
	return groups_find_rule(groups_has_group, id, text, size);
}

void groups_init(void)
{
	static struct referrer of_meters = {.find = groups_find_meter}, of_mirrors = {.find = groups_find_mirror},
			       of_groups = {.find = groups_find_group};

	address_group_refer(&of_groups);
	meter_refer(&of_meters);
	mirror_refer(&of_mirrors);
}

void groups_fini(void)
{
	unsigned i;

	for (i = 0; i < ADDRESS_GROUPS_MAX; i++) {
		if (groups[i])
			free(groups[i]->prefixes);
		free(groups[i]);
		groups[i] = NULL;
		free(address_sets[i]);
		address_sets[i] = NULL;
	}
}
