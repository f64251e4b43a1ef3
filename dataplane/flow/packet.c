// SPDX-License-Identifier: Apache-2.0
// Parses any packet, fragment or quoted packet into a flow key.
#include "flow/packet.h"

#include <string.h>

#include "base/ip6_ext.h"

struct cursor {
	const struct rte_mbuf *m;
	unsigned at; // offset of the transport header
	uint8_t proto;
	bool fragment, later;
	uint32_t id;
};

static inline const uint8_t *packet_bytes(const struct rte_mbuf *m, unsigned at, unsigned n)
{
	return at + n <= m->data_len ? rte_pktmbuf_mtod_offset(m, const uint8_t *, at) : NULL;
}

static bool packet_network4(struct cursor *c, struct flow_key *k)
{
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)packet_bytes(c->m, c->at, sizeof(*ip));
	unsigned hlen;

	if (ip == NULL || (ip->version_ihl >> 4) != 4)
		return false;
	hlen = (ip->version_ihl & 15) * 4u;
	if (hlen < 20)
		return false;
	k->src4 = ip->src_addr;
	k->dst4 = ip->dst_addr;
	c->fragment = (ip->fragment_offset & RTE_BE16(0x3fff)) != 0;
	c->later = (ip->fragment_offset & RTE_BE16(0x1fff)) != 0;
	c->id = ip->packet_id;
	c->proto = ip->next_proto_id;
	c->at += hlen;
	return true;
}

static bool packet_network6(struct cursor *c, struct flow_key *k)
{
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)packet_bytes(c->m, c->at, sizeof(*ip));
	struct ip6_walk e;

	if (ip == NULL || (*(const uint8_t *)ip >> 4) != 6)
		return false;
	memcpy(k->src6, ip->src_addr, 16);
	memcpy(k->dst6, ip->dst_addr, 16);
	e = (struct ip6_walk){.at = c->at + (unsigned)sizeof(*ip), .proto = ip->proto};
	if (!ip6_walk_extensions(c->m, c->m->data_len, &e))
		return false;
	c->at = e.at;
	c->proto = e.proto;
	c->fragment = e.fragment;
	c->later = e.later;
	c->id = e.id;
	return true;
}

// Reads the ports, or the ICMP fields that take their place. Only these must be present: an ICMP error quotes little
// more.
static bool packet_transport(const struct cursor *c, struct flow_key *k, const bool v6)
{
	const uint8_t *l4 = packet_bytes(c->m, c->at, 4);

	k->proto = c->proto;
	if (c->later)
		return true;
	if (has_ports(c->proto)) {
		if (l4 == NULL)
			return false;
		memcpy(&k->src_port, l4, 2);
		memcpy(&k->dst_port, l4 + 2, 2);
	} else if (c->proto == (v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP)) {
		if (l4 == NULL)
			return false;
		if (!icmp_is_echo(l4[0], v6)) {
			memcpy(&k->src_port, l4, 2);
			return true;
		}
		l4 = packet_bytes(c->m, c->at, 8);
		if (l4 == NULL)
			return false;
		memcpy(&k->src_port, l4 + 4, 2);
		k->dst_port = k->src_port;
	}
	return true;
}

static bool packet_parse(struct cursor *c, struct flow_key *k, uint16_t zone, const bool v6)
{
	*k = (struct flow_key){.zone = zone, .family = v6 ? 6 : 4};
	return (v6 ? packet_network6(c, k) : packet_network4(c, k)) && packet_transport(c, k, v6);
}

void flow_parse(const struct rte_mbuf *m, unsigned l3, uint16_t zone, struct flow_packet *p)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, l3), *l4;
	bool v6 = (*ip >> 4) == 6;
	struct cursor c = {.m = m, .at = l3};

	*p = (struct flow_packet){.kind = FLOW_TRUNCATED};
	if (!packet_parse(&c, &p->key, zone, v6))
		return;
	p->l4 = (uint16_t)c.at;
	p->fragment_id = c.id;
	p->kind = c.later ? FLOW_LATER_FRAGMENT : c.fragment ? FLOW_FIRST_FRAGMENT : FLOW_PACKET;
	l4 = packet_bytes(m, c.at, 1);
	if (c.later || l4 == NULL)
		return;
	if (c.proto == (v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP) && icmp_is_error(l4[0], v6))
		p->kind = FLOW_ICMP_ERROR;
	l4 = c.proto == IPPROTO_TCP ? packet_bytes(m, c.at, 14) : NULL;
	if (l4)
		p->tcp_flags = l4[13];
	else if (c.proto == IPPROTO_TCP)
		p->kind = FLOW_TRUNCATED;
}

bool flow_parse_inner(const struct rte_mbuf *m, unsigned at, uint16_t zone, bool v6, struct flow_key *k)
{
	struct cursor c = {.m = m, .at = at};

	return packet_parse(&c, k, zone, v6) && !c.later;
}
