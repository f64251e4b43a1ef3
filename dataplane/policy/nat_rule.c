// SPDX-License-Identifier: Apache-2.0
// One NAT rule: its checks, and the form that workers read.
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "policy/nat_private.h"

static int nat_rule_refuse(struct error *err, const char *field, uint64_t value, const char *valid, const char *text)
{
	char buf[24];

	snprintf(buf, sizeof(buf), "%llu", (unsigned long long)value);
	return error_set(err, ERANGE, field, buf, valid, "%s", text);
}

static int check_address(const struct ip_addr *a, uint8_t family, const char *field, struct error *err)
{
	char text[IP_TEXT];

	if (a->family == family)
		return 0;
	return error_set(err, EINVAL, field, ip_format_addr(a, text),
			 family == IPV4 ? "an IPv4 address" : "an IPv6 address",
			 "differs in IP version from the rule's other addresses; NAT between IPv4 and IPv6 is not "
			 "supported");
}

static uint8_t family_of(const struct nat_config *c)
{
	return c->kind >= NAT_DESTINATION ? c->outside.family : c->inside.addr.family;
}

uint32_t nat_pool_size(const struct nat_config *c)
{
	unsigned n = ip_bytes(c->outside.family), i;
	uint64_t size = 0;

	if (memcmp(c->last.bytes, c->outside.bytes, n) < 0)
		return 0;
	for (i = 0; i < n; i++) {
		size = size * 256 + c->last.bytes[i] - c->outside.bytes[i];
		if ((int64_t)size > (1 << 24)) // a borrow in the remaining bytes cannot bring it back into range
			return UINT32_MAX;
	}
	return (uint32_t)size + 1;
}

static int check_pool(struct nat_config *c, struct error *err)
{
	char text[IP_TEXT];
	uint32_t n;
	int ret;

	if (c->last.family == 0)
		c->last = c->outside;
	ret = check_address(&c->last, family_of(c), "rule.source.last", err);
	if (ret < 0)
		return ret;
	n = nat_pool_size(c);
	ip_format_addr(&c->last, text);
	if (n == 0)
		return error_set(err, EINVAL, "rule.source.last", text, "source.first or a higher address",
				 "comes before the first one");
	if (n > NAT_POOL_MAX)
		return error_set(err, ERANGE, "rule.source.last", text,
				 "a pool of up to " RTE_STR(NAT_POOL_MAX) " addresses",
				 "makes the pool larger than %d addresses", NAT_POOL_MAX);
	if (c->first_port == 0)
		c->first_port = LIMIT_SOURCE_NAT_FIRST_PORT_DEFAULT;
	if (c->last_port == 0)
		c->last_port = LIMIT_SOURCE_NAT_LAST_PORT_DEFAULT;
	if (c->last_port < c->first_port)
		return nat_rule_refuse(err, "rule.source.last_port", c->last_port, "a port from source.first_port on",
				       "comes before the first one");
	return 0;
}

bool nat_has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_SCTP;
}

static int check_backend(const struct nat_config *c, const struct nat_backend *b, struct error *err)
{
	int ret = check_address(&b->addr, c->outside.family, "rule.destination.backends.address", err);

	if (ret < 0)
		return ret;
	if (b->port && !nat_has_ports(c->protocol))
		return nat_rule_refuse(err, "rule.destination.backends.port", b->port, "a rule of protocol TCP or UDP",
				       "another port needs a protocol that has ports");
	if (b->port && c->protocol == IPPROTO_SCTP && b->port != c->first_port)
		return nat_rule_refuse(err, "rule.destination.backends.port", b->port, "the service's port, or none",
				       "ports of SCTP are not translated");
	return 0;
}

static int check_destination(struct nat_config *c, struct error *err)
{
	unsigned i;
	int ret;

	if (c->first_port && !nat_has_ports(c->protocol))
		return nat_rule_refuse(err, "rule.destination.port", c->first_port,
				       "a rule of protocol TCP, UDP or SCTP", "a port needs a protocol that has ports");
	for (i = 0; i < c->n_backends; i++) {
		ret = check_backend(c, &c->backends[i], err);
		if (ret < 0)
			return ret;
	}
	if (c->to.addr.family || c->n_except)
		return error_set(err, EINVAL, c->n_except ? "rule.except" : "rule.to", NULL,
				 "rules of kind floating or source", "a service has an address of its own");
	if (c->to_first_port || c->to_last_port)
		return error_set(err, EINVAL, "rule.first_port", NULL,
				 "rules of kind floating or source; here destination.port",
				 "a service has a port of its own");
	return 0;
}

static int check_prefix(const struct ip_prefix *p, uint8_t family, const char *field, struct error *err)
{
	char text[IP_TEXT];

	if (p->addr.family == family)
		return 0;
	return error_set(err, EINVAL, field, ip_format_prefix(p, text),
			 family == IPV4 ? "an IPv4 prefix" : "an IPv6 prefix",
			 "is of another family than the rule's addresses");
}

static int check_match(struct nat_config *c, struct error *err)
{
	uint8_t family = family_of(c);
	unsigned i;
	int ret = 0;

	if (c->protocol == IPPROTO_ICMPV6 || c->protocol == IPPROTO_ICMP)
		c->protocol = family == IPV4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	if (c->to.addr.family)
		ret = check_prefix(&c->to, family, "rule.to", err);
	for (i = 0; i < c->n_except && ret == 0; i++)
		ret = check_prefix(&c->except[i], family, "rule.except", err);
	if (ret < 0)
		return ret;
	if (c->to_first_port && c->to_last_port == 0)
		c->to_last_port = c->to_first_port;
	if (c->to_last_port < c->to_first_port)
		return nat_rule_refuse(err, "rule.last_port", c->to_last_port, "a port from first_port on",
				       "comes before the first one");
	if (c->to_last_port && !nat_has_ports(c->protocol))
		return nat_rule_refuse(err, "rule.first_port", c->to_first_port, "a rule of protocol TCP, UDP or SCTP",
				       "ports need a protocol that has them");
	return 0;
}

static int check_vrfs(const struct nat_config *c, struct error *err)
{
	if (c->vrf == VRF_FABRIC || c->external == VRF_FABRIC)
		return error_set(err, EINVAL, c->vrf == VRF_FABRIC ? "rule.vrf" : "rule.external_vrf", "fabric",
				 "a tenant's VRF", "belongs to the underlay");
	return 0;
}

int nat_check(struct nat_config *c, struct error *err)
{
	static const char *const fields[] = {"rule.floating.outside", "rule.source.first", "rule.destination.address"};
	int ret = check_vrfs(c, err);

	if (ret == 0)
		ret = check_address(&c->outside, family_of(c), fields[c->kind], err);
	if (ret == 0 && c->kind == NAT_SOURCE)
		ret = check_pool(c, err);
	if (ret == 0 && c->kind == NAT_DESTINATION)
		ret = check_destination(c, err);
	if (ret == 0)
		ret = check_match(c, err);
	if (ret == 0 && c->kind == NAT_FLOATING && c->vrf == c->external && ip_addr_eq(&c->inside.addr, &c->outside))
		ret = error_set(err, EINVAL, "rule.floating.outside", NULL, "another address, or another external_vrf",
				"is the same as the inside address");
	return ret;
}

// --- The form that workers read. ---

static struct nat_net net_of(const struct ip_prefix *p)
{
	return (struct nat_net){nat_words(&p->addr), nat_mask(p->addr.family, p->len)};
}

static struct nat_target nat_rule_target_of(const struct nat_backend *b)
{
	struct nat_target t = {
		.addr = nat_words(&b->addr), .port = rte_cpu_to_be_16(b->port), .weight = (uint16_t)b->weight};

	t.seed = nat_hash(b->port, &t.addr);
	return t;
}

struct nat_rule *nat_compile(const struct nat_config *c)
{
	size_t except = c->n_except * (sizeof(struct nat_net) + sizeof(struct ip_prefix));
	size_t backends = c->n_backends * (sizeof(struct nat_target) + sizeof(struct nat_backend));
	struct nat_rule *r = calloc(1, sizeof(*r) + except + backends + 2 * sizeof(uint64_t));
	struct nat_backend *b;
	struct ip_prefix *p;
	unsigned i;

	if (r == NULL)
		return NULL;
	r->except = (struct nat_net *)(r + 1);
	r->targets = (struct nat_target *)(r->except + c->n_except);
	b = (struct nat_backend *)(r->targets + c->n_backends);
	p = (struct ip_prefix *)(b + c->n_backends);
	r->cfg = *c;
	r->cfg.backends = b;
	r->cfg.except = p;
	for (i = 0; i < c->n_backends; i++) {
		b[i] = c->backends[i];
		b[i].weight = b[i].weight ? b[i].weight : 1;
		r->targets[i] = nat_rule_target_of(&b[i]);
	}
	for (i = 0; i < c->n_except; i++) {
		p[i] = c->except[i];
		r->except[i] = net_of(&p[i]);
	}
	r->id = c->id;
	r->kind = (uint8_t)c->kind;
	r->family = family_of(c);
	r->proto = c->protocol;
	r->vrf = c->vrf;
	r->external = c->external;
	r->lo = c->kind >= NAT_DESTINATION ? c->first_port : c->to_first_port;
	r->hi = c->kind >= NAT_DESTINATION ? c->first_port : c->to_last_port;
	r->inside = nat_words(&c->inside.addr);
	r->outside = nat_words(&c->outside);
	r->has_to = c->to.addr.family != 0;
	if (r->has_to)
		r->to = net_of(&c->to);
	r->n_except = (uint16_t)c->n_except;
	r->n_targets = (uint16_t)c->n_backends;
	if (c->kind == NAT_SOURCE) {
		r->n_pool = nat_pool_size(c);
		r->first_port = c->first_port;
		r->n_ports = c->last_port - c->first_port + 1u;
	}
	return r;
}
