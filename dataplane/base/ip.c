// SPDX-License-Identifier: Apache-2.0
#include "base/ip.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_common.h>

#include "base/field_limits.h"

#define VALID_PROTOCOL "tcp, udp, sctp, icmp, icmpv6 or a number from 0 to 255"

struct ip_addr ip4_addr(uint32_t be)
{
	struct ip_addr a = {.family = IPV4};

	memcpy(a.bytes, &be, sizeof(be));
	return a;
}

struct ip_addr ip6_addr(const uint8_t bytes[16])
{
	struct ip_addr a = {.family = IPV6};

	memcpy(a.bytes, bytes, sizeof(a.bytes));
	return a;
}

static bool ip_parse(const char *text, struct ip_addr *out)
{
	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, text, out->bytes) == 1)
		out->family = IPV4;
	else if (inet_pton(AF_INET6, text, out->bytes) == 1)
		out->family = IPV6;
	return out->family != 0;
}

int ip_parse_addr(const char *text, const char *field, struct ip_addr *out, struct error *err)
{
	if (text != NULL && ip_parse(text, out))
		return 0;
	return error_set(err, EINVAL, field, text ? text : "", NOTATION_ADDRESS_VALID, "is not an IP address");
}

// The digits after the slash: 0..max without sign, spaces or leading zeros.
static int parse_len(const char *s, unsigned max)
{
	unsigned v = 0;

	if (*s == '\0' || (*s == '0' && s[1] != '\0'))
		return -1;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return -1;
		v = v * 10 + (unsigned)(*s - '0');
		if (v > max)
			return -1;
	}
	return (int)v;
}

static int parse_with_len(const char *text, const char *field, const char *valid, const char *why,
			  struct ip_prefix *out, struct error *err)
{
	char addr[IP_TEXT];
	const char *slash = text ? strchr(text, '/') : NULL;
	int len;

	if (slash == NULL || (size_t)(slash - text) >= sizeof(addr))
		return error_set(err, EINVAL, field, text ? text : "", valid, "%s", why);
	memcpy(addr, text, (size_t)(slash - text));
	addr[slash - text] = '\0';
	if (!ip_parse(addr, &out->addr))
		return error_set(err, EINVAL, field, text, valid, "%s", why);
	len = parse_len(slash + 1, ip_bits(out->addr.family));
	if (len < 0)
		return error_set(err, EINVAL, field, text, out->addr.family == IPV4 ? "/0 to /32" : "/0 to /128",
				 "has a wrong prefix length");
	out->len = (uint8_t)len;
	return 0;
}

int ip_parse_ifaddr(const char *text, const char *field, struct ip_prefix *out, struct error *err)
{
	return parse_with_len(text, field, NOTATION_INTERFACE_ADDRESS_VALID, "is not an address with a prefix length",
			      out, err);
}

int ip_parse_prefix(const char *text, const char *field, struct ip_prefix *out, struct error *err)
{
	struct ip_prefix masked;
	char valid[IP_TEXT];
	int ret = parse_with_len(text, field, NOTATION_PREFIX_VALID, "is not a prefix", out, err);

	if (ret < 0)
		return ret;
	masked = ip_prefix_of(&out->addr, out->len);
	if (memcmp(&masked.addr, &out->addr, sizeof(masked.addr)) != 0)
		return error_set(err, EINVAL, field, text, ip_format_prefix(&masked, valid), "has host bits set");
	return 0;
}

int mac_parse(const char *text, const char *field, struct rte_ether_addr *out, struct error *err)
{
	if (text == NULL || rte_ether_unformat_addr(text, out) != 0)
		return error_set(err, EINVAL, field, text ? text : "", NOTATION_MAC_VALID, "is not a MAC address");
	if (!rte_is_valid_assigned_ether_addr(out))
		return error_set(err, EINVAL, field, text, NOTATION_MAC_VALID, "is not the MAC address of a host");
	return 0;
}

const char *ip_format_addr(const struct ip_addr *a, char buf[IP_TEXT])
{
	if (a->family == 0 || inet_ntop(a->family == IPV4 ? AF_INET : AF_INET6, a->bytes, buf, IP_TEXT) == NULL)
		snprintf(buf, IP_TEXT, "-");
	return buf;
}

const char *ip_format_prefix(const struct ip_prefix *p, char buf[IP_TEXT])
{
	size_t n;

	ip_format_addr(&p->addr, buf);
	n = strlen(buf);
	snprintf(buf + n, IP_TEXT - n, "/%u", p->len);
	return buf;
}

const char *mac_format(const struct rte_ether_addr *mac, char buf[18])
{
	const uint8_t *b = mac->addr_bytes;

	snprintf(buf, 18, "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4], b[5]);
	return buf;
}

static const struct {
	const char *name;
	uint8_t number;
} protocols[] = {{"tcp", IPPROTO_TCP},
		 {"udp", IPPROTO_UDP},
		 {"sctp", IPPROTO_SCTP},
		 {"icmp", IPPROTO_ICMP},
		 {"icmpv6", IPPROTO_ICMPV6}};

int ip_parse_protocol(const char *text, const char *field, uint8_t *out, struct error *err)
{
	unsigned i, value = 0;
	const char *s;

	for (i = 0; i < RTE_DIM(protocols); i++) {
		if (strcmp(text, protocols[i].name) == 0) {
			*out = protocols[i].number;
			return 0;
		}
	}
	for (s = text; *s >= '0' && *s <= '9' && value <= UINT8_MAX; s++)
		value = value * 10 + (unsigned)(*s - '0');
	if (s == text || *s != '\0' || value > UINT8_MAX)
		return error_set(err, EINVAL, field, text, VALID_PROTOCOL, "is not an IP protocol");
	*out = (uint8_t)value;
	return 0;
}

const char *ip_format_protocol(uint8_t protocol, char buf[4])
{
	unsigned i;

	for (i = 0; i < RTE_DIM(protocols); i++)
		if (protocols[i].number == protocol)
			return protocols[i].name;
	snprintf(buf, 4, "%u", protocol);
	return buf;
}

struct ip_prefix ip_prefix_of(const struct ip_addr *a, uint8_t len)
{
	struct ip_prefix p = {.addr = *a, .len = len};
	unsigned i;

	for (i = 0; i < sizeof(p.addr.bytes); i++) {
		int keep = (int)len - (int)(i * 8);

		if (keep <= 0)
			p.addr.bytes[i] = 0;
		else if (keep < 8)
			p.addr.bytes[i] &= (uint8_t)(0xff << (8 - keep));
	}
	return p;
}

bool ip_prefix_covers(const struct ip_prefix *p, const struct ip_addr *a)
{
	struct ip_prefix masked;

	if (p->addr.family != a->family)
		return false;
	masked = ip_prefix_of(a, p->len);
	return ip_addr_eq(&masked.addr, &p->addr);
}

bool ip_is_multicast(const struct ip_addr *a)
{
	return a->family == IPV4 ? (a->bytes[0] & 0xf0) == 0xe0 : a->bytes[0] == 0xff;
}

bool ip_is_unspecified(const struct ip_addr *a)
{
	static const uint8_t zero[16];

	return memcmp(a->bytes, zero, ip_bytes(a->family)) == 0;
}

bool ip_is_loopback(const struct ip_addr *a)
{
	static const uint8_t six[16] = {[15] = 1};

	return a->family == IPV4 ? a->bytes[0] == 127 : memcmp(a->bytes, six, sizeof(six)) == 0;
}
