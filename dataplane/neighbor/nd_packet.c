// SPDX-License-Identifier: Apache-2.0
#include "neighbor/nd_packet.h"

#include <netinet/in.h>
#include <string.h>

#include "graph/meta.h"
#include "neighbor/answer.h"

#define HOP_LIMIT 255 // a packet with less has been forwarded: its sender is not on the link

static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 1};

bool nd_is_unspecified(const uint8_t a[16])
{
	static const uint8_t zero[16];

	return memcmp(a, zero, 16) == 0;
}

static unsigned nd_packet_min_len(uint8_t type)
{
	switch (type) {
	case ND_ROUTER_SOLICIT:
		return 8;
	case ND_ROUTER_ADVERT:
		return 16;
	case ND_REDIRECT:
		return 40;
	default:
		return sizeof(struct nd_header);
	}
}

// Every option must lie within the packet (RFC 4861, 4.6). The first valid one of the wanted type is used.
static bool nd_packet_parse_options(const uint8_t *at, const uint8_t *end, uint8_t wanted, struct nd_packet *p)
{
	const struct nd_mac_option *o;

	for (; at < end; at += o->len * 8) {
		o = (const struct nd_mac_option *)at;
		if (end - at < 8 || o->len == 0 || o->len * 8 > end - at)
			return false;
		if (o->type == wanted && o->len == 1 && p->mac == NULL && rte_is_valid_assigned_ether_addr(&o->mac))
			p->mac = &o->mac;
	}
	return true;
}

// RFC 4861, 7.1.
static bool nd_packet_addresses_ok(const struct nd_packet *p)
{
	const uint8_t *dst = p->ip->dst_addr;

	if (p->ip->src_addr[0] == 0xff)
		return false;
	if (p->nd->type == ND_ROUTER_SOLICIT)
		return p->mac == NULL || !nd_is_unspecified(p->ip->src_addr);
	if (p->nd->type != ND_SOLICIT && p->nd->type != ND_ADVERT)
		return true;
	if (p->nd->target[0] == 0xff || nd_is_unspecified(p->nd->target))
		return false;
	if (p->nd->type == ND_ADVERT)
		return dst[0] != 0xff || !(p->nd->flags & ND_SOLICITED);
	return !nd_is_unspecified(p->ip->src_addr) || (dst[0] == 0xff && p->mac == NULL);
}

bool nd_parse(struct rte_mbuf *m, struct nd_packet *p)
{
	unsigned l3 = meta(m)->l3, len;
	const uint8_t *at;

	if (l3 < sizeof(struct rte_ether_hdr) || m->data_len < l3 + sizeof(*p->ip) + 8)
		return false;
	p->eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	p->ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv6_hdr *, l3);
	p->nd = (struct nd_header *)(p->ip + 1);
	p->mac = NULL;
	len = rte_be_to_cpu_16(p->ip->payload_len);
	if (*(const uint8_t *)p->ip >> 4 != 6 || p->ip->proto != IPPROTO_ICMPV6 || p->ip->hop_limits != HOP_LIMIT ||
	    p->nd->code != 0)
		return false;
	if (p->nd->type < ND_ROUTER_SOLICIT || p->nd->type > ND_REDIRECT)
		return false;
	if (len > m->data_len - l3 - sizeof(*p->ip) || len < nd_packet_min_len(p->nd->type) ||
	    rte_ipv6_udptcp_cksum_verify(p->ip, p->nd) != 0)
		return false;
	at = (const uint8_t *)p->nd;
	return nd_packet_parse_options(at + nd_packet_min_len(p->nd->type), at + len,
				       p->nd->type == ND_ADVERT ? ND_OPT_TARGET_MAC : ND_OPT_SOURCE_MAC, p) &&
	       nd_packet_addresses_ok(p);
}

void nd_fill_ip(struct rte_ipv6_hdr *ip, const uint8_t src[16], const uint8_t dst[16])
{
	ip->vtc_flow = RTE_BE32(6u << 28);
	ip->payload_len = rte_cpu_to_be_16(ND_LEN);
	ip->proto = IPPROTO_ICMPV6;
	ip->hop_limits = HOP_LIMIT;
	memcpy(ip->dst_addr, dst, 16); // before src_addr, which dst may point to
	memcpy(ip->src_addr, src, 16);
}

void nd_fill_checksum(const struct rte_ipv6_hdr *ip, struct nd_header *nd)
{
	nd->checksum = 0;
	nd->checksum = rte_ipv6_udptcp_cksum(ip, nd);
}

static bool nd_packet_resize(struct rte_mbuf *m, unsigned len)
{
	if (m->nb_segs != 1 || (m->data_len < len && rte_pktmbuf_tailroom(m) < len - m->data_len))
		return false;
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	return true;
}

bool nd_answer(struct rte_mbuf *m, struct nd_packet *p, const struct rte_ether_addr *mac, bool override)
{
	static const struct rte_ether_addr all_nodes_mac = {{0x33, 0x33, 0, 0, 0, 1}};
	bool to_all = nd_is_unspecified(p->ip->src_addr); // duplicate address detection
	struct nd_mac_option *o = (struct nd_mac_option *)(p->nd + 1);
	uint8_t src[16];

	if (!nd_packet_resize(m, (unsigned)((uint8_t *)(o + 1) - (uint8_t *)p->eth)))
		return false;
	if (override)
		memcpy(src, p->nd->target, 16);
	else
		answer_link_local(mac, src);
	nd_fill_ip(p->ip, src, to_all ? all_nodes : p->ip->src_addr);
	p->eth->dst_addr = to_all ? all_nodes_mac : p->eth->src_addr;
	p->eth->src_addr = *mac;
	p->nd->type = ND_ADVERT;
	p->nd->flags = ND_ROUTER | (to_all ? 0 : ND_SOLICITED) | (override ? ND_OVERRIDE : 0);
	o->type = ND_OPT_TARGET_MAC;
	o->len = 1;
	o->mac = *mac;
	nd_fill_checksum(p->ip, p->nd);
	m->ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL; // clears the receive flags of the solicitation
	return true;
}
