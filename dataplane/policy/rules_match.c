// SPDX-License-Identifier: Apache-2.0
// Expands rules into entries, and finds the first entry that matches a key.
#include <netinet/in.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_byteorder.h>

#include "policy/rules_acl.h"
#include "policy/rules_private.h"

// --- Entries. ---

static const struct ip_prefix anywhere;

// The prefixes of a source or destination: the group's, the rule's own, or `anywhere`.
static const struct ip_prefix *rules_match_prefixes(const struct ip_prefix *p, uint16_t group, size_t *n)
{
	const struct address_group *g = group ? address_group_get(group) : NULL;

	*n = g ? g->n : 1;
	return g ? g->prefixes : p->addr.family ? p : &anywhere;
}

static bool of_family(const struct ip_prefix *p, unsigned f)
{
	return p->addr.family == 0 || p->addr.family == (f ? IPV6 : IPV4);
}

static bool protocol_of_family(const struct rule *r, unsigned f)
{
	return r->proto != (f ? IPPROTO_ICMP : IPPROTO_ICMPV6);
}

static uint32_t rules_match_count(const struct ip_prefix *p, uint16_t group, unsigned f)
{
	const struct ip_prefix *list;
	size_t i, n;
	uint32_t found = 0;

	list = rules_match_prefixes(p, group, &n);
	for (i = 0; i < n; i++)
		found += of_family(&list[i], f);
	return found;
}

uint32_t rule_entries(const struct rule *r, unsigned f)
{
	return protocol_of_family(r, f)
		       ? rules_match_count(&r->src, r->src_group, f) * rules_match_count(&r->dst, r->dst_group, f)
		       : 0;
}

// Writes words and masks in the layout of flow_key.addr. half: 0 = source, 1 = destination.
static void rules_match_write_prefix(const struct ip_prefix *p, unsigned f, unsigned half, uint64_t addr[4],
				     uint64_t mask[4])
{
	unsigned width = f ? 16 : 4, i;
	uint8_t *a = (uint8_t *)addr + half * width, *m = (uint8_t *)mask + half * width;

	for (i = 0; i < width; i++) {
		int bits = (int)p->len - (int)i * 8;

		m[i] = bits >= 8 ? 0xff : bits <= 0 ? 0 : (uint8_t)(0xff << (8 - bits));
		a[i] = p->addr.bytes[i] & m[i];
	}
}

static void rules_match_write_entry(const struct rule *r, unsigned f, const struct ip_prefix *src,
				    const struct ip_prefix *dst, struct rule_match *e)
{
	uint64_t addr[4] = {0}, mask[4] = {0};
	unsigned i;

	rules_match_write_prefix(src, f, 0, addr, mask);
	rules_match_write_prefix(dst, f, 1, addr, mask);
	memset(e, 0, sizeof(*e));
	e->addr0 = addr[0];
	e->mask0 = mask[0];
	memcpy(e->addr, addr + 1, sizeof(e->addr));
	memcpy(e->mask, mask + 1, sizeof(e->mask));
	for (i = 0; i < 2; i++) {
		e->ports[i][0] = r->ports[i][0];
		e->ports[i][1] = (uint16_t)(r->ports[i][1] - r->ports[i][0]);
	}
	e->proto = r->proto < 0 ? 0 : (uint8_t)r->proto;
	e->proto_mask = r->proto < 0 ? 0 : 0xff;
	e->flags = (r->allow ? RULE_ALLOW : 0) | (r->log ? RULE_LOG : 0);
	e->id = r->id;
	e->slot = r->slot;
	e->extras = r->extras;
}

uint32_t rule_expand(const struct rule *r, unsigned f, struct rule_match *out)
{
	const struct ip_prefix *src, *dst;
	size_t n_src, n_dst, i, j;
	uint32_t n = 0;

	if (!protocol_of_family(r, f))
		return 0;
	src = rules_match_prefixes(&r->src, r->src_group, &n_src);
	dst = rules_match_prefixes(&r->dst, r->dst_group, &n_dst);
	for (i = 0; i < n_src; i++)
		for (j = 0; j < n_dst && of_family(&src[i], f); j++)
			if (of_family(&dst[j], f))
				rules_match_write_entry(r, f, &src[i], &dst[j], &out[n++]);
	return n;
}

// --- Lookup. ---

struct query {
	const uint64_t *addr;
	uint16_t port[2]; // host byte order
	uint8_t proto;
};

static inline bool rules_match_is_icmp(const struct flow_key *k)
{
	return k->proto == (k->family == 6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
}

static struct query query_of(const struct flow_key *k)
{
	struct query q = {.addr = k->addr,
			  .proto = k->proto,
			  .port = {rte_be_to_cpu_16(k->src_port), rte_be_to_cpu_16(k->dst_port)}};

	if (rules_match_is_icmp(k)) { // type and code
		bool echo = k->src_port == k->dst_port;

		q.port[1] = echo ? 0 : q.port[0] & 0xff;
		q.port[0] = echo ? (k->family == 6 ? 128 : 8) : q.port[0] >> 8;
	}
	return q;
}

static inline __attribute__((always_inline)) bool rule_matches(const struct rule_match *m, const struct query *q,
							       const bool v6)
{
	uint64_t diff = (q->addr[0] ^ m->addr0) & m->mask0;

	if (v6)
		diff |= ((q->addr[1] ^ m->addr[0]) & m->mask[0]) | ((q->addr[2] ^ m->addr[1]) & m->mask[1]) |
			((q->addr[3] ^ m->addr[2]) & m->mask[2]);
	return (diff | ((uint64_t)(q->proto ^ m->proto) & m->proto_mask)) == 0 &&
	       (uint16_t)(q->port[0] - m->ports[0][0]) <= m->ports[0][1] &&
	       (uint16_t)(q->port[1] - m->ports[1][0]) <= m->ports[1][1];
}

static inline __attribute__((always_inline)) uint32_t rules_match_walk(const struct rule_match *m, uint32_t i,
								       uint32_t n, const uint64_t *dead,
								       const struct query *q, const bool v6)
{
	for (; i < n; i++)
		if (rule_matches(&m[i], q, v6) && !(dead && (dead[i / 64] >> i % 64 & 1)))
			break;
	return i;
}

static inline uint32_t rules_match_first(const struct rule_match *m, uint32_t i, uint32_t n, const uint64_t *dead,
					 const struct query *q, unsigned f)
{
	return f ? rules_match_walk(m, i, n, dead, q, true) : rules_match_walk(m, i, n, dead, q, false);
}

// The entry that rte_acl finds may have been removed or replaced since. Then the later entries are searched linearly,
// until the list has been compiled again.
static uint32_t first_compiled(const struct rules_base *b, const uint64_t *dead, const struct query *q, unsigned f)
{
	uint32_t i;

	if (b->acl[f] == NULL)
		return rules_match_first(b->m[f], 0, b->n[f], dead, q, f);
	i = acl_classify(b->acl[f], f, q->addr, q->port, q->proto);
	if (i == 0)
		return b->n[f];
	i--;
	if (dead && (dead[i / 64] >> i % 64 & 1))
		return rules_match_first(b->m[f], i + 1, b->n[f], dead, q, f);
	return i;
}

bool rules_lookup(const struct rules_set *s, const struct flow_key *key, struct rule_verdict *out)
{
	const struct query q = query_of(key);
	const struct rules_base *b = s->base;
	const struct rule_match *hit = NULL;
	unsigned f = key->family == 6;
	uint32_t i;

	if (b) {
		i = first_compiled(b, s->dead[f], &q, f);
		if (i < b->n[f])
			hit = &b->m[f][i];
	}
	i = rules_match_first(s->m[f], 0, s->n[f], NULL, &q, f);
	if (i < s->n[f] && (hit == NULL || s->m[f][i].id < hit->id))
		hit = &s->m[f][i];
	if (hit == NULL) {
		*out = (struct rule_verdict){.denied = !s->allow, .slot = s->slot};
		return false;
	}
	*out = (struct rule_verdict){.denied = !(hit->flags & RULE_ALLOW),
				     .log = (hit->flags & RULE_LOG) != 0,
				     .rule = hit->id,
				     .extras = hit->extras,
				     .slot = hit->slot};
	return true;
}
