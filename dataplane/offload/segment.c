// SPDX-License-Identifier: Apache-2.0
// The payload is copied: copying ports and encapsulations are fast with packets in one buffer, and the checksum must
// read the payload anyway.
#include "offload/segment.h"

#include <errno.h>
#include <netinet/in.h>

#include <rte_memcpy.h>

#include "graph/meta.h"
#include "offload/checksum.h"

struct segment_of { // the large segment
	const struct rte_mbuf *m;
	unsigned l3, l4, headers; // offsets; length of all headers
	unsigned size;            // payload of a packet
	bool tcp, v6;
	const struct rte_mbuf *from; // where the payload continues
	unsigned at;
};

static int segment_check(struct segment_of *s, const struct rte_mbuf *m, unsigned l3)
{
	const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *);
	unsigned n;

	s->m = m;
	s->l3 = l3;
	s->l4 = l3 + m->l3_len;
	s->headers = s->l4 + m->l4_len;
	s->size = m->tso_segsz;
	s->tcp = m->ol_flags & RTE_MBUF_F_TX_TCP_SEG;
	s->v6 = m->ol_flags & RTE_MBUF_F_TX_IPV6;
	if (s->size == 0 || m->data_len < s->headers || m->pkt_len <= s->headers ||
	    m->l3_len != (s->v6 ? sizeof(struct rte_ipv6_hdr) : (data[l3] & 15) * 4u) || m->l3_len < 20 ||
	    m->l4_len < (s->tcp ? sizeof(struct rte_tcp_hdr) : sizeof(struct rte_udp_hdr)))
		return -EINVAL;
	n = (m->pkt_len - s->headers + s->size - 1) / s->size;
	if (s->headers - l3 + RTE_MIN(s->size, m->pkt_len - s->headers) > UINT16_MAX)
		return -EINVAL;
	return n <= OFFLOAD_SEGMENTS_MAX ? (int)n : -E2BIG;
}

static struct rte_mbuf *segment_extend(struct rte_mbuf *head, struct rte_mbuf *last)
{
	struct rte_mbuf *next = rte_pktmbuf_alloc(head->pool);

	if (next == NULL)
		return NULL;
	next->data_off = 0; // nothing is put in front of it
	last->next = next;
	head->nb_segs++;
	return next;
}

// Appends n bytes of payload. Returns false if there are no buffers.
static bool segment_copy(struct segment_of *s, struct rte_mbuf *head, unsigned n)
{
	struct rte_mbuf *to = head;
	unsigned k;

	for (; n > 0; n -= k) {
		for (; s->at == s->from->data_len; s->from = s->from->next)
			s->at = 0;
		if (rte_pktmbuf_tailroom(to) == 0 && (to = segment_extend(head, to)) == NULL)
			return false;
		k = RTE_MIN(n, s->from->data_len - s->at);
		k = RTE_MIN(k, rte_pktmbuf_tailroom(to));
		rte_memcpy(rte_pktmbuf_mtod_offset(to, uint8_t *, to->data_len),
			   rte_pktmbuf_mtod_offset(s->from, const uint8_t *, s->at), k);
		to->data_len = (uint16_t)(to->data_len + k);
		head->pkt_len += k;
		s->at += k;
	}
	return true;
}

static void segment_ip(const struct segment_of *s, struct rte_mbuf *m, unsigned i)
{
	struct rte_ipv4_hdr *ip4 = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, s->l3);
	struct rte_ipv6_hdr *ip6 = rte_pktmbuf_mtod_offset(m, struct rte_ipv6_hdr *, s->l3);

	if (s->v6) {
		ip6->payload_len = rte_cpu_to_be_16((uint16_t)(m->pkt_len - s->l4));
		return;
	}
	ip4->total_length = rte_cpu_to_be_16((uint16_t)(m->pkt_len - s->l3));
	ip4->packet_id = rte_cpu_to_be_16((uint16_t)(rte_be_to_cpu_16(ip4->packet_id) + i));
	ip4_checksum_set(ip4);
}

static void segment_l4(const struct segment_of *s, struct rte_mbuf *m, unsigned i, bool last)
{
	const void *ip = rte_pktmbuf_mtod_offset(m, const void *, s->l3);
	void *l4 = rte_pktmbuf_mtod_offset(m, void *, s->l4);
	unsigned n = m->pkt_len - s->l4;
	struct rte_tcp_hdr *tcp = l4;
	struct rte_udp_hdr *udp = l4;

	if (s->tcp) {
		tcp->sent_seq = rte_cpu_to_be_32(rte_be_to_cpu_32(tcp->sent_seq) + i * s->size);
		if (i > 0)
			tcp->tcp_flags &= (uint8_t)~RTE_TCP_CWR_FLAG;
		if (!last)
			tcp->tcp_flags &= (uint8_t) ~(RTE_TCP_FIN_FLAG | RTE_TCP_PSH_FLAG);
		tcp->cksum = 0;
	} else {
		udp->dgram_len = rte_cpu_to_be_16((uint16_t)n);
		udp->dgram_cksum = 0;
	}
	checksum_write(l4, s->tcp,
		       checksum_pseudo(ip, s->v6, s->tcp ? IPPROTO_TCP : IPPROTO_UDP, n) + checksum_data(m, s->l4, n));
}

static bool segment_one(struct segment_of *s, struct rte_mbuf *m, unsigned i, unsigned n)
{
	unsigned left = s->m->pkt_len - s->headers - i * s->size;

	m->data_off = RTE_PKTMBUF_HEADROOM;
	if (rte_pktmbuf_tailroom(m) < s->headers)
		return false;
	rte_memcpy(rte_pktmbuf_mtod(m, void *), rte_pktmbuf_mtod(s->m, const void *), s->headers);
	m->data_len = (uint16_t)s->headers;
	m->pkt_len = s->headers;
	m->port = s->m->port;
	*meta(m) = *meta((struct rte_mbuf *)(uintptr_t)s->m);
	if (!segment_copy(s, m, RTE_MIN(left, s->size)))
		return false;
	segment_ip(s, m, i);
	segment_l4(s, m, i, i + 1 == n);
	return true;
}

int segment(struct rte_mbuf *m, unsigned l3, struct rte_mbuf *out[OFFLOAD_SEGMENTS_MAX])
{
	struct segment_of s;
	int n = segment_check(&s, m, l3);
	unsigned i;

	if (n < 0)
		return n;
	if (rte_pktmbuf_alloc_bulk(m->pool, out, (unsigned)n) < 0)
		return -ENOBUFS;
	s.from = m;
	s.at = s.headers;
	for (i = 0; i < (unsigned)n; i++) {
		if (segment_one(&s, out[i], i, (unsigned)n))
			continue;
		rte_pktmbuf_free_bulk(out, (unsigned)n);
		return -ENOBUFS;
	}
	rte_pktmbuf_free(m);
	return n;
}
