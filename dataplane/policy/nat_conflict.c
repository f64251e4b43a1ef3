// SPDX-License-Identifier: Apache-2.0
// Conflicts of a NAT rule with other rules, and with the addresses of guests and gateways.
#include <errno.h>

#include "policy/nat_private.h"
#include "policy/service.h"
#include "port/registry.h"

static const struct ip_addr *nat_conflict_last(const struct nat_config *c)
{
	return c->kind == NAT_SOURCE ? &c->last : &c->outside;
}

static bool nat_conflict_pools(const struct nat_config *a, const struct nat_config *b)
{
	unsigned n = ip_bytes(a->outside.family);

	return a->external == b->external && a->outside.family == b->outside.family &&
	       memcmp(a->outside.bytes, nat_conflict_last(b)->bytes, n) <= 0 &&
	       memcmp(b->outside.bytes, nat_conflict_last(a)->bytes, n) <= 0;
}

static const char *nat_conflict_field(const struct nat_config *c)
{
	static const char *const fields[] = {"rule.floating.outside", "rule.source.first", "rule.destination.address",
					     "service.address"};

	return fields[c->kind];
}

static bool nat_conflict_service(const struct nat_config *a, const struct nat_config *b)
{
	return a->kind >= NAT_DESTINATION && b->kind >= NAT_DESTINATION && a->protocol == b->protocol &&
	       a->first_port == b->first_port;
}

static int nat_conflict_refuse(const struct nat_config *c, const struct nat_rule *other, struct error *err)
{
	char text[IP_TEXT];

	ip_format_addr(&c->outside, text);
	if (other->service)
		return error_set(err, EEXIST, nat_conflict_field(c), text, "another address, port or protocol",
				 "is in use by service '%s'", other->service->cfg.name);
	if (c->kind == NAT_FLOATING || other->kind == NAT_FLOATING)
		return error_set(err, EEXIST, nat_conflict_field(c), text,
				 "an outside address that no other rule of the VRF has",
				 "is also used by rule %u, and one of the two is floating", other->id);
	return error_set(err, EEXIST, nat_conflict_field(c), text, "another address, port or protocol",
			 "is the service of rule %u", other->id);
}

// Returns another rule that has this outside address and conflicts with c, or NULL.
static const struct nat_rule *nat_conflict_at(const struct nat_config *c, const struct nat_words *a)
{
	uint32_t where = NAT_WHERE(c->external, NAT_OUTSIDE, c->outside.family, ip_bits(c->outside.family));
	const struct nat_node *n;

	for (n = nat_chain(where, a); n; n = n->next)
		if (n->where == where && nat_words_equal(&n->addr, a) && n->rule->id != c->id &&
		    (c->kind == NAT_FLOATING || n->rule->kind == NAT_FLOATING ||
		     nat_conflict_service(c, &n->rule->cfg)))
			return n->rule;
	return NULL;
}

int nat_conflict_rules(const struct nat_config *c, struct error *err)
{
	uint32_t i, n = c->kind == NAT_SOURCE ? nat_pool_size(c) : 1;
	struct nat_words first = nat_words(&c->outside), a;
	const struct nat_rule *r;

	for (i = 0; i < n; i++) {
		a = nat_pool_address(&first, c->outside.family, i);
		r = nat_conflict_at(c, &a);
		if (r)
			return nat_conflict_refuse(c, r, err);
	}
	if (c->kind != NAT_FLOATING)
		return 0;
	LIST_FOREACH (r, &nat_pools, pool)
		if (r->id != c->id && nat_conflict_pools(c, &r->cfg))
			return nat_conflict_refuse(c, r, err);
	return 0;
}

static bool nat_conflict_prefix(const struct ip_prefix *p, const struct nat_config *c)
{
	struct ip_addr end = p->addr;
	unsigned i, n = ip_bytes(p->addr.family);

	if (p->addr.family != c->outside.family)
		return false;
	for (i = p->len; i < n * 8; i++)
		end.bytes[i / 8] |= (uint8_t)(0x80 >> i % 8);
	return memcmp(p->addr.bytes, nat_conflict_last(c)->bytes, n) <= 0 &&
	       memcmp(c->outside.bytes, end.bytes, n) <= 0;
}

int nat_conflict_ports(const struct nat_config *c, struct error *err)
{
	const struct port *p;
	struct ip_prefix host;
	char text[IP_TEXT];
	unsigned i;

	for (p = port_next(NULL); p; p = port_next(p)) {
		if (p->cfg.role != PORT_TENANT || p->cfg.vrf != c->external)
			continue;
		for (i = 0; i < p->cfg.n_guests; i++)
			if (nat_conflict_prefix(&p->cfg.guests[i], c))
				return error_set(err, EEXIST, nat_conflict_field(c), ip_format_addr(&c->outside, text),
						 "addresses that no guest of the VRF uses",
						 "is in use by a guest of port '%s', or the pool includes its address",
						 p->cfg.name);
		for (i = 0; i < p->cfg.n_gateways; i++) {
			host = (struct ip_prefix){p->cfg.gateways[i].addr,
						  (uint8_t)ip_bits(p->cfg.gateways[i].addr.family)};
			if (nat_conflict_prefix(&host, c))
				return error_set(err, EEXIST, nat_conflict_field(c), ip_format_addr(&c->outside, text),
						 "addresses that are not gateways",
						 "is the gateway of port '%s', or the pool includes it", p->cfg.name);
		}
	}
	return 0;
}
