// SPDX-License-Identifier: Apache-2.0
// All NAT rules of the node: their store, their changes, and their publication to workers.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/notify.h"
#include "policy/nat_private.h"
#include "policy/service.h"

#define PAGE 4096u

struct page { // never freed: workers count in it
	struct nat_rule *rule[PAGE];
	uint64_t flows[PAGE]; // workers: atomic
};

struct nat_zone *nat_zones[VRF_MAX];
static struct nat_listener *listeners;
static struct page *pages[NAT_RULES_MAX / PAGE];
static unsigned n_rules;
struct nat_pools nat_pools = LIST_HEAD_INITIALIZER(nat_pools);

static struct nat_rule *policy_nat_get(uint32_t id)
{
	const struct page *p = id < NAT_RULES_MAX ? pages[id / PAGE] : NULL;

	return p ? p->rule[id % PAGE] : NULL;
}

const struct nat_config *nat_get(uint32_t id)
{
	const struct nat_rule *r = policy_nat_get(id);

	return r ? &r->cfg : NULL;
}

uint32_t nat_next(uint32_t after)
{
	uint32_t id = after + 1;

	while (id < NAT_RULES_MAX) {
		if (pages[id / PAGE] == NULL)
			id = (id / PAGE + 1) * PAGE;
		else if (policy_nat_get(id) == NULL)
			id++;
		else
			return id;
	}
	return 0;
}

unsigned nat_count(void)
{
	return n_rules;
}

static void policy_nat_count(uint32_t id)
{
	struct page *p = id < NAT_RULES_MAX ? rcu_read(pages[id / PAGE]) : NULL;

	if (id && p)
		__atomic_add_fetch(&p->flows[id % PAGE], 1, __ATOMIC_RELAXED);
}

void nat_flow_made(const struct nat_verdict *v)
{
	service_flow_made(v->rule);
	policy_nat_count(v->rule);
	policy_nat_count(v->also);
}

uint64_t nat_flows(uint32_t id)
{
	const struct page *p = id < NAT_RULES_MAX ? pages[id / PAGE] : NULL;

	return p ? __atomic_load_n(&p->flows[id % PAGE], __ATOMIC_RELAXED) : 0;
}

bool nat_used(uint16_t vrf)
{
	return vrf < VRF_MAX && nat_zones[vrf] && nat_zones[vrf]->rules > 0;
}

// --- Publication to workers. ---

static bool has_inside(const struct nat_config *c)
{
	return c->kind == NAT_FLOATING || c->kind == NAT_SOURCE;
}

static bool has_outside(const struct nat_config *c) // an address that is looked up by destination
{
	return c->kind != NAT_SOURCE;
}

static struct nat_zone *policy_nat_zone(uint16_t vrf)
{
	if (nat_zones[vrf] == NULL)
		rcu_publish(nat_zones[vrf], calloc(1, sizeof(struct nat_zone)));
	return nat_zones[vrf];
}

static uint32_t where_inside(const struct nat_rule *r, unsigned *len)
{
	*len = r->kind == NAT_FLOATING ? ip_bits(r->family) : r->cfg.inside.len;
	return NAT_WHERE(r->vrf, NAT_INSIDE, r->family, *len);
}

static uint32_t where_outside(const struct nat_rule *r)
{
	return NAT_WHERE(r->external, NAT_OUTSIDE, r->family, ip_bits(r->family));
}

static void count_inside(const struct nat_rule *r, unsigned len, int step)
{
	struct nat_zone *z = nat_zones[r->vrf];
	bool v6 = r->family == IPV6;
	uint64_t *bits = &z->lens[v6][len / 64], bit = 1ull << len % 64;

	z->n[v6][len] += (uint32_t)step;
	z->leads += r->external != r->vrf ? (uint32_t)step : 0;
	__atomic_store_n(bits, z->n[v6][len] ? *bits | bit : *bits & ~bit, __ATOMIC_RELEASE);
}

static bool nat_find_vrf(uint32_t vrf, char *text, size_t size)
{
	uint32_t id = 0;

	while ((id = nat_next(id)) != 0 && nat_get(id)->vrf != vrf && nat_get(id)->external != vrf)
		;
	snprintf(text, size, "NAT rule %u", id);
	return id != 0;
}

int nat_publish(struct nat_rule *r)
{
	static struct referrer of_vrfs = {.find = nat_find_vrf};
	unsigned len;
	uint32_t where = where_inside(r, &len);

	if (policy_nat_zone(r->vrf) == NULL || policy_nat_zone(r->external) == NULL)
		return -ENOMEM;
	if (has_outside(&r->cfg) && nat_table_insert(where_outside(r), &r->outside, r) < 0)
		return -ENOMEM;
	if (has_inside(&r->cfg) && nat_table_insert(where, &r->inside, r) < 0) {
		if (has_outside(&r->cfg))
			nat_table_remove(where_outside(r), &r->outside, r);
		return -ENOMEM;
	}
	if (has_outside(&r->cfg))
		nat_zones[r->external]->outside++;
	if (has_inside(&r->cfg))
		count_inside(r, len, 1);
	if (r->kind == NAT_SOURCE)
		LIST_INSERT_HEAD(&nat_pools, r, pool);
	nat_zones[r->vrf]->rules++;
	nat_zones[r->external]->rules++;
	vrf_refer(&of_vrfs);
	vrf_get(r->vrf)->refs++;
	vrf_get(r->external)->refs++;
	return 0;
}

void nat_withdraw(struct nat_rule *r)
{
	unsigned len;
	uint32_t where = where_inside(r, &len);

	if (has_outside(&r->cfg)) {
		nat_zones[r->external]->outside--;
		nat_table_remove(where_outside(r), &r->outside, r);
	}
	if (has_inside(&r->cfg)) {
		count_inside(r, len, -1);
		nat_table_remove(where, &r->inside, r);
	}
	if (r->kind == NAT_SOURCE)
		LIST_REMOVE(r, pool);
	nat_zones[r->vrf]->rules--;
	nat_zones[r->external]->rules--;
	vrf_get(r->vrf)->refs--;
	vrf_get(r->external)->refs--;
	rcu_defer(free, r);
}

void nat_listen(struct nat_listener *l)
{
	LISTEN(listeners, l);
}

int nat_begin(struct error *err)
{
	const struct nat_listener *l;

	for (l = listeners; l; l = l->next)
		if (l->begin && l->begin(err) < 0)
			return -err->code;
	return 0;
}

static void nat_tell_vrf(uint16_t vrf)
{
	const struct nat_listener *l;

	for (l = listeners; l; l = l->next)
		if (l->changed)
			l->changed(vrf);
}

void nat_tell(const uint16_t *vrfs, unsigned n)
{
	unsigned i, j;

	for (i = 0; i < n; i++) {
		for (j = 0; j < i && vrfs[j] != vrfs[i]; j++)
			;
		if (j == i)
			nat_tell_vrf(vrfs[i]);
	}
}

// --- Changes. ---

static int policy_nat_check(struct nat_config *c, struct error *err)
{
	int ret = nat_check(c, err);

	if (ret == 0)
		ret = nat_conflict_rules(c, err);
	return ret < 0 ? ret : nat_conflict_ports(c, err);
}

static int no_memory(struct error *err)
{
	return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a NAT rule");
}

static struct nat_rule *nat_prepare(struct nat_config *cfg, struct error *err)
{
	struct nat_rule *r;

	if (policy_nat_check(cfg, err) < 0)
		return NULL;
	r = nat_compile(cfg);
	if (r == NULL || nat_publish(r) < 0) {
		free(r);
		no_memory(err);
		return NULL;
	}
	return r;
}

static void id_text(uint32_t id, char text[16])
{
	snprintf(text, 16, "%u", id);
}

int nat_add(struct nat_config *cfg, struct error *err)
{
	struct nat_rule *r;
	struct page *p;
	char text[16];

	id_text(cfg->id, text);
	if (policy_nat_get(cfg->id))
		return error_set(err, EEXIST, "rule.id", text, "a free id from " LIMIT_NAT_RULE_ID_VALID, "is taken");
	if (cfg->id < NAT_RULES_MAX && pages[cfg->id / PAGE] == NULL) {
		p = calloc(1, sizeof(*p));
		if (p == NULL)
			return no_memory(err);
		rcu_publish(pages[cfg->id / PAGE], p);
	}
	if (nat_begin(err) < 0)
		return -err->code;
	r = nat_prepare(cfg, err);
	if (r == NULL)
		return -err->code;
	p = pages[r->id / PAGE];
	p->rule[r->id % PAGE] = r;
	__atomic_store_n(&p->flows[r->id % PAGE], 0, __ATOMIC_RELAXED);
	n_rules++;
	nat_tell((uint16_t[]){r->vrf, r->external}, 2);
	return 0;
}

static struct nat_rule *nat_existing(uint32_t id, struct error *err)
{
	char text[16];

	id_text(id, text);
	if (policy_nat_get(id) == NULL)
		error_set(err, ENOENT, "rule.id", text, "the id of an existing rule", "there is no such NAT rule");
	return policy_nat_get(id);
}

// Publishes the new rule before it withdraws the old one, so that workers always find one of them.
int nat_set(struct nat_config *cfg, struct error *err)
{
	struct nat_rule *old = nat_existing(cfg->id, err), *r;
	uint16_t vrfs[4];

	if (old == NULL)
		return -ENOENT;
	r = nat_prepare(cfg, err);
	if (r == NULL)
		return -err->code;
	pages[r->id / PAGE]->rule[r->id % PAGE] = r;
	memcpy(vrfs, (uint16_t[]){r->vrf, r->external, old->vrf, old->external}, sizeof(vrfs));
	nat_withdraw(old);
	nat_tell(vrfs, 4);
	return 0;
}

int nat_del(uint32_t id, struct error *err)
{
	struct nat_rule *r = nat_existing(id, err);
	uint16_t vrfs[2];

	if (r == NULL)
		return -ENOENT;
	vrfs[0] = r->vrf;
	vrfs[1] = r->external;
	pages[id / PAGE]->rule[id % PAGE] = NULL;
	n_rules--;
	nat_withdraw(r);
	nat_tell(vrfs, 2);
	return 0;
}
