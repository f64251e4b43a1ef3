// SPDX-License-Identifier: Apache-2.0
// Finds shadowed rules: rules that never decide because a single earlier rule matches everything that they match.
// Protocols, prefixes, ports and ICMP types are compared as ranges, address groups by identity; several earlier rules
// together do not count.
#include <string.h>

#include <rte_byteorder.h>
#include <rte_hash_crc.h>

#include "policy/rules_private.h"

static inline bool range_within(const uint16_t a[2], const uint16_t b[2])
{
	return a[0] <= b[0] && b[1] <= a[1];
}

static bool rules_shadow_within(const struct ip_prefix *a, uint16_t a_group, const struct ip_prefix *b,
				uint16_t b_group)
{
	if (a_group || b_group)
		return a_group == b_group || (a_group == 0 && a->addr.family == 0);
	if (a->addr.family == 0)
		return true;
	return a->addr.family == b->addr.family && a->len <= b->len && ip_prefix_covers(a, &b->addr);
}

static bool rules_shadow_covers(const struct rule *a, const struct rule *b)
{
	return range_within(a->ports[1], b->ports[1]) && range_within(a->ports[0], b->ports[0]) &&
	       (a->proto < 0 || a->proto == b->proto) &&
	       rules_shadow_within(&a->src, a->src_group, &b->src, b->src_group) &&
	       rules_shadow_within(&a->dst, a->dst_group, &b->dst, b->dst_group);
}

// A digest of a rule, for a branch-free check that rejects most pairs.
struct shape {
	uint64_t src, src_mask, dst, dst_mask; // the first half of the addresses
	uint16_t first[2], last[2];
	int16_t proto, proto_mask;
};

static uint64_t rules_shadow_head(const struct ip_prefix *p, uint64_t *mask)
{
	unsigned bits = p->len < 64 ? p->len : 64;
	uint64_t word;

	*mask = p->addr.family == 0 || bits == 0 ? 0 : UINT64_MAX << (64 - bits);
	memcpy(&word, p->addr.bytes, sizeof(word));
	return rte_be_to_cpu_64(word);
}

static struct shape shape_of(const struct rule *r)
{
	struct shape s = {
		.first = {r->ports[0][0], r->ports[1][0]}, .last = {r->ports[0][1], r->ports[1][1]}, .proto = r->proto};

	s.proto_mask = r->proto < 0 ? 0 : -1;
	s.src = rules_shadow_head(&r->src, &s.src_mask);
	s.dst = rules_shadow_head(&r->dst, &s.dst_mask);
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

// --- All rules at once: tuple space search for the rules that can cover another one. ---

#define TUPLES 256
#define HEADS 32768

// Rules of the same tuple differ only in addresses, groups and ports.
struct tuple {
	int16_t proto;
	uint8_t src, src_len, dst, dst_len; // 0 = any, IPV4, IPV6, GROUP
};
#define GROUP 1

static struct tuple tuples[TUPLES];
static uint32_t heads[HEADS], nexts[RULES_SHADOW_MAX]; // chains of rules (position + 1), in the order of the list

static struct tuple tuple_of(const struct rule *r)
{
	return (struct tuple){r->proto, r->src_group ? GROUP : r->src.addr.family, r->src_group ? 0 : r->src.len,
			      r->dst_group ? GROUP : r->dst.addr.family, r->dst_group ? 0 : r->dst.len};
}

static bool side_covers(uint8_t kind, uint8_t len, const struct ip_prefix *p, uint16_t group)
{
	return kind == 0 || (kind == GROUP ? group != 0 : group == 0 && p->addr.family == kind && len <= p->len);
}

static bool tuple_covers(const struct tuple *t, const struct rule *r)
{
	return (t->proto < 0 || t->proto == r->proto) && side_covers(t->src, t->src_len, &r->src, r->src_group) &&
	       side_covers(t->dst, t->dst_len, &r->dst, r->dst_group);
}

static uint32_t side_hash(uint8_t kind, uint8_t len, const struct ip_prefix *p, uint16_t group, uint32_t h)
{
	struct ip_prefix cut;

	if (kind == 0)
		return h;
	if (kind == GROUP)
		return rte_hash_crc_4byte(group, h);
	cut = ip_prefix_of(&p->addr, len);
	return rte_hash_crc(cut.addr.bytes, ip_bytes(kind), h);
}

// The chain with those rules of tuple t that could cover r.
static uint32_t *rules_shadow_chain(unsigned t, const struct rule *r)
{
	uint32_t h = side_hash(tuples[t].src, tuples[t].src_len, &r->src, r->src_group, t);

	return &heads[side_hash(tuples[t].dst, tuples[t].dst_len, &r->dst, r->dst_group, h) % HEADS];
}

static unsigned tuple_find(const struct rule *r, unsigned *n)
{
	struct tuple t = tuple_of(r);
	unsigned i;

	for (i = 0; i < *n; i++)
		if (memcmp(&tuples[i], &t, sizeof(t)) == 0)
			return i;
	if (*n < TUPLES)
		tuples[(*n)++] = t;
	return i;
}

static void shadow_one(struct rule *rules, size_t i, unsigned n_tuples)
{
	uint32_t at, best = (uint32_t)i;
	unsigned t;

	for (t = 0; t < n_tuples; t++) {
		if (!tuple_covers(&tuples[t], &rules[i]))
			continue;
		for (at = *rules_shadow_chain(t, &rules[i]); at && at - 1 < best; at = nexts[at - 1])
			if (rules_shadow_covers(&rules[at - 1], &rules[i]))
				best = at - 1;
	}
	rules[i].shadowed_by = best < i ? rules[best].id : 0;
}

// Returns false if there are too many tuples.
static bool shadow_all(struct rule *rules, size_t n)
{
	unsigned n_tuples = 0, t;
	uint32_t *head;
	size_t i;

	memset(heads, 0, sizeof(heads));
	for (i = n; i-- > 0;) {
		t = tuple_find(&rules[i], &n_tuples);
		if (t == TUPLES)
			return false;
		head = rules_shadow_chain(t, &rules[i]);
		nexts[i] = *head;
		*head = (uint32_t)i + 1;
	}
	for (i = 0; i < n; i++)
		shadow_one(rules, i, n_tuples);
	return true;
}

// --- Few rules, or too many tuples: comparison of pairs. ---

static bool rules_shadow_contains(const uint32_t *ids, size_t n, uint32_t id)
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

// Compares changed rules with all rules, and the others only with changed ones.
void rules_shadow(struct rule *rules, size_t n, uint64_t since, const uint32_t *gone, size_t n_gone)
{
	size_t i, j, n_new = 0, n_anew = 0;
	static uint32_t news[RULES_SHADOW_MAX]; // positions of changed rules
	static struct shape shapes[RULES_SHADOW_MAX];

	for (i = 0; i < n; i++)
		n_anew += rules[i].seq > since ||
			  (rules[i].shadowed_by && rules_shadow_contains(gone, n_gone, rules[i].shadowed_by));
	if (n <= RULES_SHADOW_MAX && n_anew > 64 && shadow_all(rules, n))
		return;
	for (i = 0; i < n; i++) {
		struct rule *r = &rules[i];
		bool anew = r->seq > since || (r->shadowed_by && rules_shadow_contains(gone, n_gone, r->shadowed_by));

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
			if (rules_shadow_covers(&rules[at], r)) {
				r->shadowed_by = rules[at].id;
				break;
			}
		}
		if (r->seq > since)
			news[n_new++] = (uint32_t)i;
	}
}
