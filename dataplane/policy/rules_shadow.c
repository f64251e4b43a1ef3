// SPDX-License-Identifier: Apache-2.0
// Which rules can never decide, because an earlier one matches all that they match. One earlier rule has to do so alone, as it is
// written: protocol, prefixes, ports and ICMP types are compared as ranges, address groups by their names.
#include <string.h>

#include <rte_byteorder.h>

#include "policy/rules_private.h"

static inline bool range_within(const uint16_t a[2], const uint16_t b[2])
{
	return a[0] <= b[0] && b[1] <= a[1];
}

static bool within(const struct ip_prefix *a, uint16_t a_group, const struct ip_prefix *b, uint16_t b_group)
{
	if (a_group || b_group)
		return a_group == b_group || (a_group == 0 && a->addr.family == 0);
	if (a->addr.family == 0)
		return true;
	return a->addr.family == b->addr.family && a->len <= b->len && ip_prefix_covers(a, &b->addr);
}

static bool covers(const struct rule *a, const struct rule *b)
{
	return range_within(a->ports[1], b->ports[1]) && range_within(a->ports[0], b->ports[0]) &&
	       (a->proto < 0 || a->proto == b->proto) && within(&a->src, a->src_group, &b->src, b->src_group) &&
	       within(&a->dst, a->dst_group, &b->dst, b->dst_group);
}

// What most pairs differ in, for a look without branches.
struct shape {
	uint64_t src, src_mask, dst, dst_mask; // the first half of the addresses
	uint16_t first[2], last[2];
	int16_t proto, proto_mask;
};

static uint64_t head(const struct ip_prefix *p, uint64_t *mask)
{
	unsigned bits = p->len < 64 ? p->len : 64;
	uint64_t word;

	*mask = p->addr.family == 0 || bits == 0 ? 0 : UINT64_MAX << (64 - bits);
	memcpy(&word, p->addr.bytes, sizeof(word));
	return rte_be_to_cpu_64(word);
}

static struct shape shape_of(const struct rule *r)
{
	struct shape s = {.first = {r->ports[0][0], r->ports[1][0]}, .last = {r->ports[0][1], r->ports[1][1]}, .proto = r->proto};

	s.proto_mask = r->proto < 0 ? 0 : -1;
	s.src = head(&r->src, &s.src_mask);
	s.dst = head(&r->dst, &s.dst_mask);
	return s;
}

static inline bool may_cover(const struct shape *a, const struct shape *b)
{
	uint64_t differ = ((a->src ^ b->src) & a->src_mask) | ((a->dst ^ b->dst) & a->dst_mask);

	differ |= (uint64_t)(uint16_t)((a->proto ^ b->proto) & a->proto_mask);
	differ |= (uint64_t)((a->first[0] > b->first[0]) | (a->first[1] > b->first[1]) | (a->last[0] < b->last[0]) |
			     (a->last[1] < b->last[1]));
	return differ == 0;
}

static bool contains(const uint32_t *ids, size_t n, uint32_t id)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (ids[mid] == id)
			return true;
		if (ids[mid] < id)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

// What has changed is compared with all, the rest only with what has changed. gone: ids that were deleted or replaced, sorted.
void rules_shadow(struct rule *rules, size_t n, uint64_t since, const uint32_t *gone, size_t n_gone)
{
	size_t i, j, n_new = 0;
	static uint32_t news[RULES_SHADOW_MAX]; // positions of rules that are new
	static struct shape shapes[RULES_SHADOW_MAX];

	for (i = 0; i < n; i++) {
		struct rule *r = &rules[i];
		bool anew = r->seq > since || (r->shadowed_by && contains(gone, n_gone, r->shadowed_by));

		if (n > RULES_SHADOW_MAX || anew)
			r->shadowed_by = 0;
		if (n > RULES_SHADOW_MAX)
			continue;
		shapes[i] = shape_of(r);
		for (j = 0; j < (anew ? i : n_new); j++) {
			uint32_t at = anew ? (uint32_t)j : news[j];

			if (!may_cover(&shapes[at], &shapes[i]))
				continue;
			if (r->shadowed_by && rules[at].id >= r->shadowed_by)
				break;
			if (covers(&rules[at], r)) {
				r->shadowed_by = rules[at].id;
				break;
			}
		}
		if (r->seq > since)
			news[n_new++] = (uint32_t)i;
	}
}
