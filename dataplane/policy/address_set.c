// SPDX-License-Identifier: Apache-2.0
// A set is a sorted array of ranges. It is built when the first label or VNI names the group.
#include "policy/address_set.h"

#include <errno.h>
#include <stdlib.h>

#include "base/rcu.h"

static_assert(sizeof(struct ip_addr) == 17, "addresses compare as bytes, the family first");

struct address_set *address_sets[ADDRESS_GROUPS_MAX];

static int by_address(const struct ip_addr *a, const struct ip_addr *b)
{
	return memcmp(a, b, sizeof(*a));
}

bool address_set_has(const struct address_set *s, const struct ip_addr *a)
{
	size_t low = 0, high = s->n, mid;

	while (low < high) { // the first range that begins behind a
		mid = low + (high - low) / 2;
		if (by_address(&s->range[mid].first, a) <= 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low > 0 && by_address(a, &s->range[low - 1].last) <= 0;
}

static struct address_range address_set_range(const struct ip_prefix *p)
{
	struct address_range r = {p->addr, p->addr};
	unsigned bit;

	for (bit = p->len; bit < ip_bits(p->addr.family); bit++)
		r.last.bytes[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	return r;
}

struct address_set *address_set_make(const struct address_group *g)
{
	struct address_set *s = calloc(1, sizeof(*s) + g->n * sizeof(s->range[0]));
	size_t i;

	for (i = 0; s && i < g->n; i++) // a prefix comes behind those that cover it
		if (s->n == 0 || by_address(&g->prefixes[i].addr, &s->range[s->n - 1].last) > 0)
			s->range[s->n++] = address_set_range(&g->prefixes[i]);
	return s;
}

void address_set_publish(const struct address_group *g, struct address_set *s)
{
	struct address_set *old = address_sets[g->id];

	rcu_publish(address_sets[g->id], s);
	if (old)
		rcu_defer(free, old);
}

int address_group_hold(struct address_group *g, struct error *err)
{
	struct address_set *s;

	if (g->holders == 0) {
		s = address_set_make(g);
		if (s == NULL)
			return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for an address group");
		address_set_publish(g, s);
	}
	g->holders++;
	return 0;
}

void address_group_release(struct address_group *g)
{
	if (--g->holders == 0)
		address_set_publish(g, NULL);
}
