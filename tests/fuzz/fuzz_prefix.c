// SPDX-License-Identifier: Apache-2.0
// Addresses, prefixes, MACs and protocols as text. An accepted text is formatted again, and the result parses as the
// same value.
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/ip.h"
#include "fuzz_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void prefix(const char *text)
{
	struct ip_prefix p, q;
	struct error err = {0};
	char again[IP_TEXT];

	if (ip_parse_prefix(text, "prefix", &p, &err) < 0) {
		FUZZ_ASSERT(err.code == EINVAL && err.message[0]);
		return;
	}
	FUZZ_ASSERT(p.len <= ip_bits(p.addr.family) && ip_prefix_covers(&p, &p.addr));
	FUZZ_ASSERT(ip_parse_prefix(ip_format_prefix(&p, again), NULL, &q, NULL) == 0 && q.len == p.len &&
		    ip_addr_eq(&q.addr, &p.addr));
	FUZZ_ASSERT(ip_parse_ifaddr(text, NULL, &q, NULL) == 0);
}

static void address(const char *text)
{
	struct ip_addr a, b;
	struct error err = {0};
	char again[IP_TEXT];

	if (ip_parse_addr(text, "address", &a, &err) < 0) {
		FUZZ_ASSERT(err.code == EINVAL && err.message[0]);
		return;
	}
	FUZZ_ASSERT(ip_parse_addr(ip_format_addr(&a, again), NULL, &b, NULL) == 0 && ip_addr_eq(&a, &b));
	FUZZ_ASSERT(ip_is_multicast(&a) + ip_is_unspecified(&a) + ip_is_loopback(&a) <= 1);
}

static void mac(const char *text)
{
	struct rte_ether_addr a, b;
	char again[18];

	if (mac_parse(text, "mac", &a, NULL) == 0)
		FUZZ_ASSERT(mac_parse(mac_format(&a, again), NULL, &b, NULL) == 0 && rte_is_same_ether_addr(&a, &b));
}

static void protocol(const char *text)
{
	struct error err = {0};
	uint8_t a, b;
	char again[4];

	if (ip_parse_protocol(text, "protocol", &a, &err) == 0)
		FUZZ_ASSERT(ip_parse_protocol(ip_format_protocol(a, again), NULL, &b, NULL) == 0 && a == b);
	else
		FUZZ_ASSERT(err.code == EINVAL && err.message[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	memcpy(text, data, size);
	text[size] = '\0';
	prefix(text);
	address(text);
	mac(text);
	protocol(text);
	free(text);
	return 0;
}
