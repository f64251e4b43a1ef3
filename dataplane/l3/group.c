// SPDX-License-Identifier: Apache-2.0
// ECMP groups. A flow's hash picks one of 256 buckets; a bucket keeps its member for as long as that member works, so
// that a change moves only the flows that it must (resilient hashing).
#include "l3/fib.h"
#include "l3/nexthop.h"

struct share {
	uint32_t id;
	unsigned weight, target, have;
};

static unsigned group_working_members(const struct nexthop_config *cfg, struct share *out)
{
	const struct nexthop_entry *m;
	unsigned i, n = 0;

	for (i = 0; i < cfg->group.n; i++) {
		m = nexthop_get(cfg->group.member[i].nexthop);
		if (m && m->resolved)
			out[n++] = (struct share){.id = m->cfg.id, .weight = cfg->group.member[i].weight};
	}
	return n;
}

// Gives each member buckets in proportion to its weight; the first ones get what rounding leaves. A member whose exact
// share is below one bucket may get none: 256 buckets carry weights of up to 1:255.
static void group_set_targets(struct share *s, unsigned n)
{
	unsigned i, total = 0, given = 0;

	for (i = 0; i < n; i++)
		total += s[i].weight;
	for (i = 0; i < n; i++) {
		s[i].target = GROUP_BUCKETS * s[i].weight / total;
		given += s[i].target;
	}
	for (i = 0; given < GROUP_BUCKETS; i = (i + 1) % n, given++)
		s[i].target++;
}

static struct share *group_find(struct share *s, unsigned n, uint32_t id)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (s[i].id == id)
			return &s[i];
	return NULL;
}

static void group_keep_old(struct nexthop *nh, const struct nexthop *old, struct share *s, unsigned n)
{
	struct share *m;
	unsigned i;

	for (i = 0; i < GROUP_BUCKETS; i++) {
		m = group_find(s, n, old->bucket[i]);
		if (m && m->have < m->target) {
			nh->bucket[i] = m->id;
			m->have++;
		}
	}
}

void group_build(struct nexthop_entry *e, struct nexthop *nh, const struct nexthop *old)
{
	struct share s[GROUP_MAX_MEMBERS];
	unsigned i, k = 0, n = group_working_members(&e->cfg, s);

	nh->edge = NH_EDGE_DROP;
	e->resolved = n > 0;
	if (n == 0)
		return;
	group_set_targets(s, n);
	if (old && old->kind == NH_GROUP)
		group_keep_old(nh, old, s, n);
	for (i = 0; i < GROUP_BUCKETS; i++) {
		if (nh->bucket[i] != FIB_NONE)
			continue;
		while (s[k].have == s[k].target)
			k = (k + 1) % n;
		nh->bucket[i] = s[k].id;
		s[k].have++;
		k = (k + 1) % n; // interleaved
	}
}
