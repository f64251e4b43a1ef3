// SPDX-License-Identifier: Apache-2.0
#include "offload/join.h"

#include <netinet/in.h>

#include <rte_hash_crc.h>

#include "base/eth.h"
#include "graph/meta.h"
#include "offload/checksum.h"

#define FLOWS 32 // connections whose packets are joined at the same time. A power of two

#define LAST_FLAGS (RTE_TCP_PSH_FLAG | RTE_TCP_FIN_FLAG)
#define JOINED_FLAGS (RTE_TCP_ACK_FLAG | RTE_TCP_ECE_FLAG | RTE_TCP_CWR_FLAG | LAST_FLAGS)
#define FRAGMENT RTE_BE16(0x3fff)

enum join_class {
	JOIN_NEVER, // belongs to no connection that is joined
	JOIN_ANY,   // may belong to any of them: what comes behind it must not pass it
	JOIN_ALONE, // belongs to one, but cannot be joined
	JOIN_FITS
};

struct join_packet {
	struct rte_mbuf *m;
	uint8_t *ip, *l4;
	uint16_t l3, headers, payload; // offset of the IP header; bytes
	bool v6, tcp;
};

struct join_flow {
	struct join_packet head; // m NULL: none
	struct rte_mbuf *tail;
	uint32_t seq; // of the next packet
	uint16_t id;
	uint16_t count;
	uint32_t payload;
	bool verified, full; // the first packet's checksum; nothing can follow
};

static enum join_class join_tcp(struct join_packet *p, unsigned kinds)
{
	const struct rte_tcp_hdr *tcp = (const struct rte_tcp_hdr *)p->l4;
	unsigned l4_len = (tcp->data_off >> 4) * 4u;

	p->headers = (uint16_t)(p->l4 - p->ip + p->l3 + l4_len);
	if (l4_len < sizeof(*tcp) || p->m->data_len <= p->headers || (tcp->tcp_flags & ~JOINED_FLAGS) ||
	    !(tcp->tcp_flags & RTE_TCP_ACK_FLAG) || tcp->cksum == 0xffff ||
	    (!(kinds & JOIN_CWR) && (tcp->tcp_flags & RTE_TCP_CWR_FLAG)))
		return JOIN_ALONE;
	return JOIN_FITS;
}

static enum join_class join_udp(struct join_packet *p)
{
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)p->l4;

	p->headers = (uint16_t)(p->l4 - p->ip + p->l3 + sizeof(*udp));
	if (p->m->data_len <= p->headers || udp->dgram_cksum == 0 ||
	    rte_be_to_cpu_16(udp->dgram_len) != p->m->pkt_len - p->l3 - (uint32_t)(p->l4 - p->ip))
		return JOIN_ALONE;
	return JOIN_FITS;
}

// Finds the headers. `len` is the length that the IP header states.
static enum join_class join_parse(struct join_packet *p, struct rte_mbuf *m, unsigned kinds)
{
	const struct rte_ipv4_hdr *ip4;
	const struct rte_ipv6_hdr *ip6;
	enum join_class class;
	unsigned len, hlen;
	uint8_t proto;

	p->m = m;
	p->l3 = (uint16_t)frame_ip(m);
	if (p->l3 == 0)
		return JOIN_NEVER;
	p->ip = rte_pktmbuf_mtod_offset(m, uint8_t *, p->l3);
	p->v6 = *rte_pktmbuf_mtod_offset(m, unaligned_uint16_t *, p->l3 - 2) == RTE_BE16(RTE_ETHER_TYPE_IPV6);
	ip4 = (const struct rte_ipv4_hdr *)p->ip;
	ip6 = (const struct rte_ipv6_hdr *)p->ip;
	proto = p->v6 ? ip6->proto : ip4->next_proto_id;
	p->tcp = proto == IPPROTO_TCP;
	if (!p->tcp && proto != IPPROTO_UDP)
		return p->v6 && proto != IPPROTO_ICMPV6 ? JOIN_ANY : JOIN_NEVER; // it may be an extension header
	if (!(kinds & (p->tcp ? p->v6 ? JOIN_TCP6 : JOIN_TCP4 : p->v6 ? JOIN_UDP6 : JOIN_UDP4)))
		return JOIN_NEVER;
	hlen = p->v6 ? sizeof(*ip6) : sizeof(*ip4);
	len = p->v6 ? rte_be_to_cpu_16(ip6->payload_len) + hlen : rte_be_to_cpu_16(ip4->total_length);
	if (p->v6 ? (*p->ip >> 4) != 6 : ip4->version_ihl != 0x45 || (ip4->fragment_offset & FRAGMENT))
		return JOIN_ANY;
	p->l4 = p->ip + hlen;
	if (len > m->pkt_len - p->l3 ||
	    m->data_len < p->l3 + hlen + (p->tcp ? sizeof(struct rte_tcp_hdr) : sizeof(struct rte_udp_hdr)))
		return JOIN_ANY;
	class = p->tcp ? join_tcp(p, kinds) : join_udp(p);
	if (len != m->pkt_len - p->l3 || offload_is_unfinished(m) || rte_mbuf_refcnt_read(m) != 1)
		return JOIN_ALONE;
	p->payload = (uint16_t)(m->pkt_len - p->headers);
	return class;
}

static const uint8_t *join_addresses(const struct join_packet *p)
{
	return p->ip + (p->v6 ? 8 : 12);
}

static unsigned join_address_bytes(const struct join_packet *p)
{
	return p->v6 ? 32 : 8;
}

static unsigned join_slot(const struct join_packet *p)
{
	uint32_t hash = *(const unaligned_uint32_t *)p->l4;
	unsigned i;

	for (i = 0; i < join_address_bytes(p); i += 8)
		hash = rte_hash_crc_8byte(*(const unaligned_uint64_t *)(join_addresses(p) + i), hash);
	return (hash ^ hash >> 16) % FLOWS;
}

static bool join_same_connection(const struct join_packet *a, const struct join_packet *b)
{
	return a->v6 == b->v6 && a->tcp == b->tcp && memcmp(a->l4, b->l4, 4) == 0 &&
	       memcmp(join_addresses(a), join_addresses(b), join_address_bytes(a)) == 0;
}

static bool join_same_ip(const struct join_flow *f, const struct join_packet *p)
{
	const struct rte_ipv4_hdr *a = (const struct rte_ipv4_hdr *)f->head.ip, *b = (const struct rte_ipv4_hdr *)p->ip;

	if (p->v6) // version, traffic class and flow label; hop limit
		return memcmp(a, b, 4) == 0 && f->head.ip[7] == p->ip[7];
	return a->type_of_service == b->type_of_service && a->fragment_offset == b->fragment_offset &&
	       a->time_to_live == b->time_to_live && rte_be_to_cpu_16(b->packet_id) == f->id &&
	       ip_fold(ip_sum(b, sizeof(*b))) == 0xffff;
}

static bool join_same_tcp(const struct join_flow *f, const struct join_packet *p)
{
	const struct rte_tcp_hdr *a = (const struct rte_tcp_hdr *)f->head.l4, *b = (const struct rte_tcp_hdr *)p->l4;
	unsigned options = p->headers - p->l3 - (unsigned)(p->l4 - p->ip) - (unsigned)sizeof(*a);

	return rte_be_to_cpu_32(b->sent_seq) == f->seq && a->recv_ack == b->recv_ack && a->data_off == b->data_off &&
	       !((a->tcp_flags ^ b->tcp_flags) & ~(RTE_TCP_CWR_FLAG | LAST_FLAGS)) &&
	       !(b->tcp_flags & RTE_TCP_CWR_FLAG) && a->rx_win == b->rx_win && a->tcp_urp == b->tcp_urp &&
	       memcmp(a + 1, b + 1, options) == 0;
}

static bool join_verified(const struct join_packet *p)
{
	const struct rte_mbuf *m = p->m;
	unsigned at = p->l3 + (unsigned)(p->l4 - p->ip), n = m->pkt_len - at;
	bool inner = !(meta(p->m)->flags & META_FROM_TUNNEL) || (m->packet_type & RTE_PTYPE_TUNNEL_MASK);

	if (inner && (m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_GOOD)
		return true;
	return ip_fold(checksum_pseudo(p->ip, p->v6, p->tcp ? IPPROTO_TCP : IPPROTO_UDP, n) +
		       checksum_data(m, at, n)) == 0xffff;
}

static bool join_follows(struct join_flow *f, const struct join_packet *p)
{
	unsigned most = p->tcp ? OFFLOAD_SEGMENTS_MAX : JOIN_UDP_SEGMENTS;

	if (f->full || f->count == most || p->payload > f->head.payload || p->headers != f->head.headers ||
	    p->l3 != f->head.l3 || f->head.m->nb_segs + p->m->nb_segs > JOIN_BUFFERS ||
	    f->head.headers - p->l3 + f->payload + p->payload > UINT16_MAX ||
	    memcmp(p->ip - p->l3, f->head.ip - p->l3, p->l3) != 0 || !join_same_ip(f, p) ||
	    (p->tcp && !join_same_tcp(f, p)))
		return false;
	if (!f->verified) {
		if (!join_verified(&f->head) ||
		    (!f->head.v6 && ip_fold(ip_sum(f->head.ip, sizeof(struct rte_ipv4_hdr))) != 0xffff)) {
			f->full = true;
			return false;
		}
		f->verified = true;
	}
	return join_verified(p);
}

static bool join_is_last(const struct join_flow *f, const struct join_packet *p)
{
	return p->payload < f->head.payload ||
	       (p->tcp && (((const struct rte_tcp_hdr *)p->l4)->tcp_flags & LAST_FLAGS));
}

static void join_append(struct join_flow *f, const struct join_packet *p)
{
	struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)f->head.l4;

	f->full = join_is_last(f, p);
	if (p->tcp)
		tcp->tcp_flags |= ((const struct rte_tcp_hdr *)p->l4)->tcp_flags & LAST_FLAGS;
	rte_pktmbuf_adj(p->m, p->headers);
	f->tail->next = p->m;
	f->head.m->nb_segs = (uint16_t)(f->head.m->nb_segs + p->m->nb_segs);
	f->head.m->pkt_len += p->payload;
	f->tail = rte_pktmbuf_lastseg(p->m);
	f->payload += p->payload;
	f->seq += p->payload;
	f->id++;
	f->count++;
}

// The first packet becomes a large segment, if others follow it.
static void join_end(struct join_flow *f)
{
	const struct join_packet *p = &f->head;
	struct rte_ipv4_hdr *ip4 = (struct rte_ipv4_hdr *)p->ip;
	uint16_t behind;

	if (p->m == NULL || f->count == 1)
		return;
	behind = (uint16_t)(p->m->pkt_len - p->l3 - (uint32_t)(p->l4 - p->ip));
	p->m->ol_flags &= ~RTE_MBUF_F_RX_L4_CKSUM_MASK;
	offload_mark(p->m, (p->tcp ? RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_TCP_CKSUM
				   : RTE_MBUF_F_TX_UDP_SEG | RTE_MBUF_F_TX_UDP_CKSUM) |
				   (p->v6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4));
	p->m->l3_len = (uint16_t)(p->l4 - p->ip) & 0x1ff;
	p->m->l4_len = (uint8_t)(p->headers - p->l3 - p->m->l3_len);
	p->m->tso_segsz = p->payload;
	if (p->v6) {
		((struct rte_ipv6_hdr *)p->ip)->payload_len = rte_cpu_to_be_16(behind);
	} else {
		ip4->total_length = rte_cpu_to_be_16((uint16_t)(behind + sizeof(*ip4)));
		ip4_checksum_set(ip4);
	}
	if (!p->tcp)
		((struct rte_udp_hdr *)p->l4)->dgram_len = rte_cpu_to_be_16(behind);
}

static void join_begin(struct join_flow *f, const struct join_packet *p)
{
	*f = (struct join_flow){.head = *p, .tail = rte_pktmbuf_lastseg(p->m), .count = 1, .payload = p->payload};
	f->full = join_is_last(f, p);
	if (p->tcp)
		f->seq = rte_be_to_cpu_32(((const struct rte_tcp_hdr *)p->l4)->sent_seq) + p->payload;
	if (!p->v6)
		f->id = (uint16_t)(rte_be_to_cpu_16(((const struct rte_ipv4_hdr *)p->ip)->packet_id) + 1);
}

static void join_end_all(struct join_flow *flows)
{
	unsigned i;

	for (i = 0; i < FLOWS; i++) {
		join_end(&flows[i]);
		flows[i].head.m = NULL;
	}
}

// Returns whether the packet has become part of another one.
static bool join_one(struct join_flow *flows, const struct join_packet *p, enum join_class class)
{
	struct join_flow *f = &flows[join_slot(p)];
	bool same = f->head.m && join_same_connection(&f->head, p);

	if (class == JOIN_FITS && same && join_follows(f, p)) {
		join_append(f, p);
		return true;
	}
	if (same || class == JOIN_FITS) {
		join_end(f);
		f->head.m = NULL;
	}
	if (class == JOIN_FITS)
		join_begin(f, p);
	return false;
}

unsigned join(struct rte_mbuf **pkts, unsigned n, unsigned kinds)
{
	struct join_flow flows[FLOWS];
	enum join_class class;
	struct join_packet p;
	unsigned i, left = 0;

	for (i = 0; i < FLOWS; i++)
		flows[i].head.m = NULL;
	for (i = 0; i < n; i++) {
		class = join_parse(&p, pkts[i], kinds);
		if (class == JOIN_ANY)
			join_end_all(flows);
		if (class <= JOIN_ANY || !join_one(flows, &p, class))
			pkts[left++] = pkts[i];
	}
	join_end_all(flows);
	return left;
}
