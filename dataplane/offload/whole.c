// SPDX-License-Identifier: Apache-2.0
#include "offload/whole.h"

#include <errno.h>
#include <netinet/in.h>

#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "base/ip_sum.h"
#include "offload/segment.h"

// Finds the lengths of the segment's headers, which lie in the first buffer. Returns its protocol, 0: it has none that
// can be cut.
static uint8_t whole_measure(struct rte_mbuf *m, unsigned l3)
{
	const struct rte_ipv4_hdr *ip4 = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, l3);
	const struct rte_ipv6_hdr *ip6 = (const struct rte_ipv6_hdr *)ip4;
	const struct rte_tcp_hdr *tcp;
	unsigned ip_len, l4_len, stated;
	uint8_t proto;
	bool v6;

	if (m->data_len < l3 + sizeof(*ip6))
		return 0;
	v6 = (ip4->version_ihl >> 4) == 6;
	ip_len = v6 ? sizeof(*ip6) : (ip4->version_ihl & 15) * 4u;
	stated = v6 ? rte_be_to_cpu_16(ip6->payload_len) + ip_len : rte_be_to_cpu_16(ip4->total_length);
	proto = v6 ? ip6->proto : ip4->next_proto_id;
	if ((!v6 &&
	     ((ip4->version_ihl >> 4) != 4 || ip_len < sizeof(*ip4) || (ip4->fragment_offset & RTE_BE16(0x3fff)))) ||
	    stated != m->pkt_len - l3 || (proto != IPPROTO_TCP && proto != IPPROTO_UDP) ||
	    m->data_len < l3 + ip_len + (proto == IPPROTO_TCP ? sizeof(*tcp) : sizeof(struct rte_udp_hdr)))
		return 0;
	tcp = rte_pktmbuf_mtod_offset(m, const struct rte_tcp_hdr *, l3 + ip_len);
	l4_len = proto == IPPROTO_TCP ? (tcp->data_off >> 4) * 4u : sizeof(struct rte_udp_hdr);
	if (l4_len < (proto == IPPROTO_TCP ? sizeof(*tcp) : sizeof(struct rte_udp_hdr)) ||
	    m->data_len < l3 + ip_len + l4_len)
		return 0;
	m->l3_len = (uint16_t)ip_len & 0x1ff;
	m->l4_len = (uint8_t)l4_len;
	return proto;
}

bool whole_open(struct rte_mbuf *m, unsigned l3)
{
	uint16_t size = m->tso_segsz;
	unsigned payload;
	uint8_t proto;

	m->ol_flags &= ~(OFFLOAD_FLAGS | OFFLOAD_WHOLE | OFFLOAD_CAME_WHOLE | RTE_MBUF_F_RX_L4_CKSUM_MASK);
	m->tx_offload = 0;
	proto = whole_measure(m, l3);
	if (proto == 0 || size == 0)
		return false;
	payload = m->pkt_len - l3 - m->l3_len - m->l4_len;
	if (payload > (uint32_t)size * OFFLOAD_SEGMENTS_MAX)
		return false;
	offload_mark(m, (proto == IPPROTO_TCP ? RTE_MBUF_F_TX_TCP_CKSUM : RTE_MBUF_F_TX_UDP_CKSUM) |
				(m->l3_len == sizeof(struct rte_ipv6_hdr) &&
						 (*rte_pktmbuf_mtod_offset(m, uint8_t *, l3) >> 4) == 6
					 ? RTE_MBUF_F_TX_IPV6
					 : RTE_MBUF_F_TX_IPV4));
	if (payload > size) {
		m->tso_segsz = size;
		m->ol_flags |= proto == IPPROTO_TCP ? RTE_MBUF_F_TX_TCP_SEG : RTE_MBUF_F_TX_UDP_SEG;
	}
	return true;
}

// The tunnel's own headers, which state the length of the whole packet.
static void whole_outer(struct rte_mbuf *m, unsigned l3)
{
	struct rte_ipv4_hdr *ip4 = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, l3);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip4 + 1);
	unsigned len = m->pkt_len - l3;

	ip4->total_length = rte_cpu_to_be_16((uint16_t)len);
	ip4_checksum_set(ip4);
	if (ip4->next_proto_id == IPPROTO_UDP)
		udp->dgram_len = rte_cpu_to_be_16((uint16_t)(len - sizeof(*ip4)));
}

int whole_cut(struct rte_mbuf *m, unsigned l3, struct rte_mbuf *out[OFFLOAD_SEGMENTS_MAX])
{
	const struct rte_ipv4_hdr *ip4 = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, l3);
	unsigned inner = m->outer_l3_len;
	int n, i;

	// Routers write no options, and no UDP checksum over IPv4.
	if (m->data_len < l3 + sizeof(*ip4) || ip4->version_ihl != RTE_IPV4_VHL_DEF ||
	    (ip4->fragment_offset & RTE_BE16(0x3fff)) || rte_be_to_cpu_16(ip4->total_length) != m->pkt_len - l3 ||
	    inner < sizeof(*ip4) + (ip4->next_proto_id == IPPROTO_UDP ? sizeof(struct rte_udp_hdr) : 0) ||
	    (ip4->next_proto_id == IPPROTO_UDP && m->data_len >= l3 + inner &&
	     ((const struct rte_udp_hdr *)(ip4 + 1))->dgram_cksum != 0) ||
	    !whole_open(m, l3 + inner))
		return -EINVAL;
	if (!offload_is_large(m)) // one packet, whose checksum was left
		return -EINVAL;
	n = segment(m, l3 + inner, out);
	for (i = 0; i < n; i++)
		whole_outer(out[i], l3);
	return n;
}
