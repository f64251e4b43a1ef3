// SPDX-License-Identifier: Apache-2.0
// Addresses and prefixes of both families.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_ether.h>

#include "base/error.h"

enum family { IPV4 = 4, IPV6 = 6 };

struct ip_addr {
	uint8_t family;    // IPV4, IPV6 or 0 = none
	uint8_t bytes[16]; // network byte order; IPv4 uses the first four
};

struct ip_prefix {
	struct ip_addr addr;
	uint8_t len; // 0..32 or 0..128
};

static inline unsigned ip_bits(uint8_t family)
{
	return family == IPV4 ? 32 : 128;
}

static inline unsigned ip_bytes(uint8_t family)
{
	return family == IPV4 ? 4 : 16;
}

static inline uint32_t ip4_be(const struct ip_addr *a) // network byte order
{
	uint32_t v;
	memcpy(&v, a->bytes, sizeof(v));
	return v;
}

static inline bool ip_addr_eq(const struct ip_addr *a, const struct ip_addr *b)
{
	return a->family == b->family && memcmp(a->bytes, b->bytes, ip_bytes(a->family)) == 0;
}

struct ip_addr ip4_addr(uint32_t be);
struct ip_addr ip6_addr(const uint8_t bytes[16]);

#define IP_TEXT 64 // enough for any address or prefix with its terminator

// field names the request's field in a refusal. A prefix with host bits is refused, an interface address
// ("192.0.2.1/24") may have them.
int ip_parse_addr(const char *text, const char *field, struct ip_addr *out, struct error *err);
int ip_parse_prefix(const char *text, const char *field, struct ip_prefix *out, struct error *err);
int ip_parse_ifaddr(const char *text, const char *field, struct ip_prefix *out, struct error *err);
int mac_parse(const char *text, const char *field, struct rte_ether_addr *out, struct error *err); // unicast, not zero
const char *ip_format_addr(const struct ip_addr *a, char buf[IP_TEXT]);
const char *ip_format_prefix(const struct ip_prefix *p, char buf[IP_TEXT]);
const char *mac_format(const struct rte_ether_addr *mac, char buf[18]);

// The number of a protocol: tcp, udp, sctp, icmp, icmpv6 or 0 to 255. ip_format_protocol() gives the name, or else
// the number.
int ip_parse_protocol(const char *text, const char *field, uint8_t *out, struct error *err);
const char *ip_format_protocol(uint8_t protocol, char buf[4]);

struct ip_prefix ip_prefix_of(const struct ip_addr *a, uint8_t len); // host bits cleared
bool ip_prefix_covers(const struct ip_prefix *p, const struct ip_addr *a);
bool ip_is_multicast(const struct ip_addr *a);
bool ip_is_unspecified(const struct ip_addr *a);
bool ip_is_loopback(const struct ip_addr *a);
