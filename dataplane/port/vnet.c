// SPDX-License-Identifier: Apache-2.0
#include "port/vnet.h"

#include <netinet/in.h>
#include <stddef.h>

#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "base/eth.h"
#include "base/ip6_ext.h"
#include "base/ip_sum.h"
#include "base/offload.h"
#include "offload/checksum.h"

#define CWR 0x80

DROP_REASON(offload_checksum,
	    "The guest left a checksum to be computed whose place lies outside of the frame, or of its first buffer.");
DROP_REASON(offload_header, "The guest handed over a large segment whose headers are not those of an unfragmented TCP "
			    "or UDP packet with the lengths that it states.");
DROP_REASON(offload_type, "The guest handed over a large segment of a kind that was not offered to it, or without "
			  "leaving its checksum to be computed.");
DROP_REASON(offload_size, "The guest handed over a large segment to be cut into pieces of no bytes, or of more bytes "
			  "than it has.");
DROP_REASON(offload_pieces, "The guest handed over a large segment that would become more than 128 packets.");

struct vnet_layout {
	unsigned l3, l4; // offsets
	unsigned l4_len; // 0: the header is not whole, or lies
	unsigned ip_len; // of the IP packet, by its header
	uint8_t proto;   // of the header at l4
	bool v6, plain;  // plain: the marks of base/offload.h can describe it
	bool tcp;
};

// Finds TCP or UDP behind the IP header. Returns false if the frame has no transport header that can be found.
static bool vnet_locate(const struct rte_mbuf *m, struct vnet_layout *l)
{
	const struct rte_ipv4_hdr *ip4;
	const struct rte_ipv6_hdr *ip6;
	struct ip6_walk e;

	*l = (struct vnet_layout){.l3 = frame_ip(m)};
	if (l->l3 == 0)
		return false;
	ip4 = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, l->l3);
	ip6 = (const struct rte_ipv6_hdr *)ip4;
	if ((ip4->version_ihl >> 4) == 4) {
		l->l4 = l->l3 + (ip4->version_ihl & 15) * 4u;
		l->proto = ip4->next_proto_id;
		l->ip_len = rte_be_to_cpu_16(ip4->total_length);
		l->plain = (ip4->version_ihl & 15) >= 5 && !(ip4->fragment_offset & RTE_BE16(0x3fff));
	} else if ((ip4->version_ihl >> 4) == 6 && m->data_len >= l->l3 + sizeof(*ip6)) {
		e = (struct ip6_walk){.at = l->l3 + (unsigned)sizeof(*ip6), .proto = ip6->proto};
		l->v6 = true;
		l->ip_len = rte_be_to_cpu_16(ip6->payload_len) + (unsigned)sizeof(*ip6);
		l->plain = ip6->proto == IPPROTO_TCP || ip6->proto == IPPROTO_UDP;
		if (!ip6_walk_extensions(m, m->data_len, &e))
			return false;
		l->l4 = e.at;
		l->proto = e.proto;
	} else {
		return false;
	}
	l->tcp = l->proto == IPPROTO_TCP;
	l->plain = l->plain && (l->tcp || l->proto == IPPROTO_UDP) && l->ip_len == m->pkt_len - l->l3;
	return true;
}

// Length of the transport header; 0: it is not whole.
static unsigned vnet_l4_len(const struct rte_mbuf *m, const struct vnet_layout *l)
{
	const struct rte_tcp_hdr *tcp = rte_pktmbuf_mtod_offset(m, const struct rte_tcp_hdr *, l->l4);
	unsigned least = l->tcp ? sizeof(*tcp) : sizeof(struct rte_udp_hdr), len;

	if (m->data_len < l->l4 + least)
		return 0;
	len = l->tcp ? (tcp->data_off >> 4) * 4u : least;
	return len >= least && m->data_len >= l->l4 + len ? len : 0;
}

static void vnet_mark(struct rte_mbuf *m, const struct vnet_layout *l)
{
	m->tx_offload = 0;
	m->l3_len = (uint16_t)(l->l4 - l->l3) & 0x1ff;
	m->l4_len = (uint8_t)l->l4_len;
	m->ol_flags &= ~RTE_MBUF_F_RX_L4_CKSUM_MASK;
	offload_mark(m, (l->tcp ? RTE_MBUF_F_TX_TCP_CKSUM : RTE_MBUF_F_TX_UDP_CKSUM) |
				(l->v6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4));
}

// Computes a checksum from `start` to the frame's end.
static const struct drop_reason *vnet_complete(struct rte_mbuf *m, unsigned start, unsigned offset)
{
	unaligned_uint16_t *field;
	uint16_t raw;

	if (start < sizeof(struct rte_ether_hdr) || start + offset + 2 > m->data_len ||
	    rte_raw_cksum_mbuf(m, start, m->pkt_len - start, &raw) < 0)
		return &drop_offload_checksum;
	field = rte_pktmbuf_mtod_offset(m, unaligned_uint16_t *, start + offset);
	*field = raw == 0xffff ? 0xffff : (uint16_t)~raw; // 0 would mean that UDP has none
	return NULL;
}

static unsigned vnet_sum_offset(bool tcp)
{
	return tcp ? offsetof(struct rte_tcp_hdr, cksum) : offsetof(struct rte_udp_hdr, dgram_cksum);
}

static const struct drop_reason *vnet_read_checksum(struct rte_mbuf *m, unsigned start, unsigned offset)
{
	struct vnet_layout l;

	if (likely(vnet_locate(m, &l) && l.plain && start == l.l4 && offset == vnet_sum_offset(l.tcp))) {
		l.l4_len = vnet_l4_len(m, &l);
		if (likely(l.l4_len > 0)) {
			vnet_mark(m, &l);
			return NULL;
		}
	}
	return vnet_complete(m, start, offset);
}

// The headers are those of a large segment; marks it. `size` is that of a piece of its payload.
static const struct drop_reason *vnet_mark_large(struct rte_mbuf *m, struct vnet_layout *l, uint16_t size)
{
	unsigned payload;

	l->l4_len = l->plain ? vnet_l4_len(m, l) : 0;
	if (l->l4_len == 0 || l->l4 + l->l4_len > m->pkt_len)
		return &drop_offload_header;
	payload = m->pkt_len - l->l4 - l->l4_len;
	if (size == 0 || size > m->pkt_len)
		return &drop_offload_size;
	if (payload > (uint32_t)size * OFFLOAD_SEGMENTS_MAX)
		return &drop_offload_pieces;
	vnet_mark(m, l);
	if (payload > size) {
		m->tso_segsz = size;
		m->ol_flags |= l->tcp ? RTE_MBUF_F_TX_TCP_SEG : RTE_MBUF_F_TX_UDP_SEG;
	}
	return NULL;
}

static const struct drop_reason *vnet_read_large(struct rte_mbuf *m, const struct virtio_net_hdr *h)
{
	uint8_t type = h->gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
	struct vnet_layout l;

	if (!(h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) ||
	    (type != VIRTIO_NET_HDR_GSO_TCPV4 && type != VIRTIO_NET_HDR_GSO_TCPV6 && type != VNET_GSO_UDP_L4))
		return &drop_offload_type;
	if (!vnet_locate(m, &l) || l.tcp != (type != VNET_GSO_UDP_L4) || (type == VIRTIO_NET_HDR_GSO_TCPV4 && l.v6) ||
	    (type == VIRTIO_NET_HDR_GSO_TCPV6 && !l.v6) || h->hdr_len > m->pkt_len || h->csum_start != l.l4 ||
	    h->csum_offset != vnet_sum_offset(l.tcp))
		return &drop_offload_header;
	return vnet_mark_large(m, &l, h->gso_size);
}

const struct drop_reason *vnet_read(struct rte_mbuf *m, const struct virtio_net_hdr *h)
{
	if (unlikely(h->gso_type != VIRTIO_NET_HDR_GSO_NONE))
		return vnet_read_large(m, h);
	if (h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		return vnet_read_checksum(m, h->csum_start, h->csum_offset);
	if (h->flags & VIRTIO_NET_HDR_F_DATA_VALID)
		m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	return NULL;
}

// The library has no mark for where the checksum is: it has compared that with the headers.
const struct drop_reason *vnet_read_marks(struct rte_mbuf *m)
{
	bool large = (m->ol_flags & RTE_MBUF_F_RX_LRO) != 0;
	uint16_t size = m->tso_segsz;
	struct vnet_layout l;

	m->ol_flags &= ~RTE_MBUF_F_RX_LRO;
	if (!large && (m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) != RTE_MBUF_F_RX_L4_CKSUM_NONE)
		return NULL;
	if (!vnet_locate(m, &l) || (!l.tcp && l.proto != IPPROTO_UDP))
		return large ? &drop_offload_header : &drop_offload_checksum;
	m->ol_flags &= ~RTE_MBUF_F_RX_L4_CKSUM_MASK;
	if (large)
		return vnet_mark_large(m, &l, size);
	return vnet_read_checksum(m, l.l4, vnet_sum_offset(l.tcp));
}

void vnet_write_marks(struct rte_mbuf *m)
{
	unsigned l3 = frame_ip(m);

	m->l2_len = l3 & 0x7f;
	checksum_leave(m, l3);
}

void vnet_write(struct rte_mbuf *m, struct virtio_net_hdr *h)
{
	bool tcp = (m->ol_flags & RTE_MBUF_F_TX_L4_MASK) == RTE_MBUF_F_TX_TCP_CKSUM;

	vnet_write_marks(m);
	*h = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
				     .csum_start = (uint16_t)(m->l2_len + m->l3_len),
				     .csum_offset = (uint16_t)vnet_sum_offset(tcp)};
	if (!offload_is_large(m))
		return;
	h->hdr_len = (uint16_t)(h->csum_start + m->l4_len);
	h->gso_size = m->tso_segsz;
	h->gso_type = !tcp                               ? VNET_GSO_UDP_L4
		      : m->ol_flags & RTE_MBUF_F_TX_IPV6 ? VIRTIO_NET_HDR_GSO_TCPV6
							 : VIRTIO_NET_HDR_GSO_TCPV4;
	if (tcp && rte_pktmbuf_mtod_offset(m, const struct rte_tcp_hdr *, h->csum_start)->tcp_flags & CWR)
		h->gso_type |= VIRTIO_NET_HDR_GSO_ECN;
}
