// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/ip.h"

static bool check_within_limits(uint64_t v, const struct number_limits *l)
{
	return v >= l->min && v <= l->max && (!l->power_of_two || (v & (v - 1)) == 0) &&
	       (l->multiple_of == 0 || v % l->multiple_of == 0);
}

int check_limits(const char *field, uint64_t value, const struct number_limits *l, struct error *err)
{
	char text[24], kind[48] = "", valid[96];

	if (check_within_limits(value, l))
		return 0;
	if (l->power_of_two)
		snprintf(kind, sizeof(kind), "a power of two from ");
	else if (l->multiple_of)
		snprintf(kind, sizeof(kind), "a multiple of %" PRIu64 " from ", l->multiple_of);
	snprintf(text, sizeof(text), "%" PRIu64, value);
	snprintf(valid, sizeof(valid), "%s%" PRIu64 " to %" PRIu64, kind, l->min, l->max);
	return error_set(err, ERANGE, field, text, valid, "is out of range");
}

int check_number(const char *field, uint64_t value, uint64_t min, uint64_t max, struct error *err)
{
	const struct number_limits l = {.min = min, .max = max};

	return check_limits(field, value, &l, err);
}

static int check_host(const char *field, const char *text, struct error *err)
{
	struct ip_addr a;
	int ret = ip_parse_addr(text, field, &a, err);

	if (ret == 0 && (ip_is_unspecified(&a) || ip_is_multicast(&a)))
		return error_set(err, EINVAL, field, text, NOTATION_HOST_VALID, "is not a host's address");
	return ret;
}

// The first address of a subnet is the network's (IPv6: of all its routers, RFC 4291, 2.6.1), and the last one of an
// IPv4 subnet is its broadcast address.
static const char *interface_flaw(const struct ip_prefix *p)
{
	struct ip_prefix net = ip_prefix_of(&p->addr, p->len);
	struct ip_addr inverse = p->addr;
	unsigned i;

	if (ip_is_unspecified(&p->addr) || ip_is_multicast(&p->addr) || ip_is_loopback(&p->addr))
		return "is not a host's address on a link";
	if (p->len + 1U >= ip_bits(p->addr.family))
		return NULL; // RFC 3021, RFC 6164: both addresses are hosts
	if (ip_addr_eq(&net.addr, &p->addr))
		return "is the address of the network itself";
	for (i = 0; i < ip_bytes(p->addr.family); i++)
		inverse.bytes[i] = (uint8_t)~inverse.bytes[i];
	net = ip_prefix_of(&inverse, p->len);
	if (p->addr.family == IPV4 && ip_addr_eq(&net.addr, &inverse))
		return "is the broadcast address of the network";
	return NULL;
}

static int check_interface(const char *field, const char *text, struct error *err)
{
	struct ip_prefix p;
	int ret = ip_parse_ifaddr(text, field, &p, err);
	const char *flaw = ret == 0 ? interface_flaw(&p) : NULL;

	return flaw ? error_set(err, EINVAL, field, text, NOTATION_INTERFACE_ADDRESS_VALID, "%s", flaw) : ret;
}

static int check_ip(const char *field, const char *text, enum notation n, struct error *err)
{
	struct rte_ether_addr mac;
	struct ip_prefix p;
	struct ip_addr a;

	switch (n) {
	case NOTATION_MAC:
		return mac_parse(text, field, &mac, err);
	case NOTATION_ADDRESS:
		return ip_parse_addr(text, field, &a, err);
	case NOTATION_HOST:
		return check_host(field, text, err);
	case NOTATION_INTERFACE_ADDRESS:
		return check_interface(field, text, err);
	case NOTATION_HOST_OR_PREFIX:
		return strchr(text, '/') == NULL ? ip_parse_addr(text, field, &a, err)
						 : ip_parse_prefix(text, field, &p, err);
	case NOTATION_PREFIX_OR_ANY:
		return strcmp(text, "any") == 0 ? 0 : ip_parse_prefix(text, field, &p, err);
	case NOTATION_PREFIX:
		return ip_parse_prefix(text, field, &p, err);
	default:
		return 0; // the field's module parses it
	}
}

static bool check_matches(const struct notation_text *n, const char *text)
{
	size_t first = strlen(n->first);
	const uint8_t *s;

	if (*text == '\0' || strncmp(text, n->first, first) != 0)
		return false;
	for (s = (const uint8_t *)text + first; *s; s++)
		if ((n->characters[*s / 64] >> (*s % 64) & 1) == 0)
			return false;
	return n->longest == 0 || s - (const uint8_t *)text <= (int64_t)n->longest;
}

int check_text(const char *field, const char *text, enum notation n, struct error *err)
{
	const struct notation_text *t = &notation_texts[n];

	if (t->first == NULL)
		return check_ip(field, text, n, err);
	if (check_matches(t, text))
		return 0;
	return error_set(err, EINVAL, field, text, t->valid, n == NOTATION_NAME ? "is not a name" : "is not accepted");
}
