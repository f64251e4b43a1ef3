// SPDX-License-Identifier: Apache-2.0
// Text forms of the fields of a flow key.
#include "flow/flow_text.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow/packet.h"

static const struct {
	const char *name;
	uint8_t proto;
} protocols[] = {
	{"tcp", IPPROTO_TCP}, {"udp", IPPROTO_UDP}, {"icmp", IPPROTO_ICMP}, {"icmpv6", IPPROTO_ICMPV6}, {"sctp", PROTO_SCTP}};

int flow_proto_parse(const char *text, const char *field, uint8_t *out, struct error *err)
{
	unsigned long v;
	char *end;
	unsigned i;

	for (i = 0; i < RTE_DIM(protocols); i++) {
		if (strcmp(text, protocols[i].name) == 0) {
			*out = protocols[i].proto;
			return 0;
		}
	}
	v = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || v > 255)
		return error_set(err, EINVAL, field, text, "tcp, udp, icmp, icmpv6, sctp or 0 to 255", "is not an IP protocol");
	*out = (uint8_t)v;
	return 0;
}

const char *flow_proto_name(uint8_t proto, char text[8])
{
	unsigned i;

	for (i = 0; i < RTE_DIM(protocols); i++)
		if (proto == protocols[i].proto)
			return protocols[i].name;
	snprintf(text, 8, "%u", proto);
	return text;
}

struct ip_addr flow_source(const struct flow_key *k)
{
	return k->family == 4 ? ip4_addr(k->src4) : ip6_addr(k->src6);
}

struct ip_addr flow_destination(const struct flow_key *k)
{
	return k->family == 4 ? ip4_addr(k->dst4) : ip6_addr(k->dst6);
}
