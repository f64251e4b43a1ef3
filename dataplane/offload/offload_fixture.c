// SPDX-License-Identifier: Apache-2.0
#include "offload/offload_fixture.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "base/offload.h"
#include "graph/node_test.h"

#define FIRST_BUFFER 128 // holds all headers

static uint8_t frame[OFFLOAD_LONGEST + 128];

uint32_t offload_rand(uint32_t below)
{
	static uint64_t state = 0x9e3779b97f4a7c15;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

static unsigned l2_of(const struct offload_packet *p)
{
	return RTE_ETHER_HDR_LEN + p->tags * RTE_VLAN_HLEN;
}

static unsigned l4_of(const struct offload_packet *p)
{
	return p->udp ? sizeof(struct rte_udp_hdr) : (unsigned)sizeof(struct rte_tcp_hdr) + p->options;
}

unsigned offload_headers(const struct offload_packet *p)
{
	return l2_of(p) + (p->v6 ? 40 : 20) + l4_of(p);
}

static void make_eth(const struct offload_packet *p)
{
	static const uint8_t macs[] = {2, 0, 0, 0, 0, 3, 0, 0, 0x5e, 0, 1, 1};
	unsigned i;

	memcpy(frame, macs, sizeof(macs));
	for (i = 0; i < p->tags; i++)
		memcpy(frame + 12 + i * 4, "\x81\x00\x00\x07", 4);
	memcpy(frame + l2_of(p) - 2, p->v6 ? "\x86\xdd" : "\x08\x00", 2);
}

static void make_ip4(const struct offload_packet *p, struct rte_ipv4_hdr *ip, unsigned behind)
{
	*ip = (struct rte_ipv4_hdr){.version_ihl = 0x45,
				    .type_of_service = p->tos,
				    .total_length = rte_cpu_to_be_16((uint16_t)(20 + behind)),
				    .packet_id = rte_cpu_to_be_16(p->id),
				    .fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG),
				    .time_to_live = 64,
				    .next_proto_id = p->udp ? IPPROTO_UDP : IPPROTO_TCP,
				    .src_addr = RTE_BE32(0x0a000002),
				    .dst_addr = RTE_BE32(0x0a000003)};
	ip->hdr_checksum = rte_ipv4_cksum(ip);
}

static void make_ip6(const struct offload_packet *p, struct rte_ipv6_hdr *ip, unsigned behind)
{
	*ip = (struct rte_ipv6_hdr){.vtc_flow = rte_cpu_to_be_32(6u << 28 | (uint32_t)p->tos << 20 | 0x12345),
				    .payload_len = rte_cpu_to_be_16((uint16_t)behind),
				    .proto = p->udp ? IPPROTO_UDP : IPPROTO_TCP,
				    .hop_limits = 64,
				    .src_addr = {0xfd, [15] = 2},
				    .dst_addr = {0xfd, [15] = 3}};
}

static void make_l4(const struct offload_packet *p, uint8_t *l4, unsigned behind)
{
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)l4;
	struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)l4;

	if (p->udp) {
		*udp = (struct rte_udp_hdr){rte_cpu_to_be_16(p->sport), RTE_BE16(2000),
					    rte_cpu_to_be_16((uint16_t)behind), 0};
		return;
	}
	*tcp = (struct rte_tcp_hdr){.src_port = rte_cpu_to_be_16(p->sport),
				    .dst_port = RTE_BE16(2000),
				    .sent_seq = rte_cpu_to_be_32(p->seq),
				    .recv_ack = rte_cpu_to_be_32(p->ack),
				    .data_off = (uint8_t)(l4_of(p) / 4 << 4),
				    .tcp_flags = p->tcp_flags,
				    .rx_win = rte_cpu_to_be_16(p->window)};
	memset(tcp + 1, 1, p->options); // no operation
}

static void make_checksum(const struct offload_packet *p, const void *ip, uint8_t *l4)
{
	uint16_t sum = p->v6 ? rte_ipv6_udptcp_cksum(ip, l4) : rte_ipv4_udptcp_cksum(ip, l4);

	if (p->size)
		sum = 0xbad;
	if (p->udp)
		((struct rte_udp_hdr *)l4)->dgram_cksum = sum;
	else
		((struct rte_tcp_hdr *)l4)->cksum = sum;
}

static struct rte_mbuf *in_buffers(const struct offload_packet *p, unsigned len)
{
	struct rte_mbuf *m = NULL, *next;
	unsigned at, k;

	for (at = 0; at < len; at += k) {
		k = RTE_MIN(len - at, p->buffer == 0 ? 2048 : m == NULL ? FIRST_BUFFER : p->buffer);
		next = node_test_packet(frame + at, k);
		if (m == NULL)
			m = next;
		else
			rte_pktmbuf_chain(m, next);
	}
	return m;
}

struct rte_mbuf *offload_make(const struct offload_packet *p)
{
	unsigned l2 = l2_of(p), l3 = p->v6 ? 40 : 20, behind = l4_of(p) + p->payload, i;
	uint8_t *ip = frame + l2, *l4 = ip + l3;
	struct rte_mbuf *m;

	make_eth(p);
	if (p->v6)
		make_ip6(p, (struct rte_ipv6_hdr *)ip, behind);
	else
		make_ip4(p, (struct rte_ipv4_hdr *)ip, behind);
	make_l4(p, l4, behind);
	for (i = 0; i < p->payload; i++)
		l4[l4_of(p) + i] = (uint8_t)((p->seq + i) * 2654435761u >> 13);
	make_checksum(p, ip, l4);
	m = in_buffers(p, l2 + l3 + behind);
	if (p->size) {
		m->ol_flags = p->udp ? RTE_MBUF_F_TX_UDP_SEG | RTE_MBUF_F_TX_UDP_CKSUM
				     : RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_TCP_CKSUM;
		m->ol_flags |= p->v6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4;
		m->tso_segsz = (uint16_t)p->size;
		m->l3_len = l3;
		m->l4_len = (uint8_t)l4_of(p);
	}
	return m;
}

struct offload_packet offload_random(unsigned longest)
{
	struct offload_packet p = {.v6 = offload_rand(2),
				   .udp = offload_rand(2),
				   .tags = offload_rand(3),
				   .options = offload_rand(4) * 4,
				   .payload = 2 + offload_rand(longest - 1),
				   .tcp_flags = RTE_TCP_ACK_FLAG,
				   .tos = (uint8_t)offload_rand(256),
				   .id = (uint16_t)offload_rand(65536),
				   .sport = (uint16_t)(1 + offload_rand(65535)),
				   .window = (uint16_t)offload_rand(65536),
				   .seq = offload_rand(UINT32_MAX) * 2 + offload_rand(2),
				   .ack = offload_rand(UINT32_MAX),
				   .buffer = offload_rand(2) ? 1 + offload_rand(1900) : 0};

	p.payload = RTE_MIN(p.payload, OFFLOAD_LONGEST - offload_headers(&p) + l2_of(&p));
	p.size = (p.payload + OFFLOAD_SEGMENTS_MAX - 1) / OFFLOAD_SEGMENTS_MAX;
	p.size += offload_rand(RTE_MIN(p.payload - p.size, 9000u));
	p.tcp_flags |= (uint8_t)(offload_rand(2) * RTE_TCP_CWR_FLAG | offload_rand(2) * RTE_TCP_PSH_FLAG |
				 offload_rand(2) * RTE_TCP_FIN_FLAG | offload_rand(2) * RTE_TCP_ECE_FLAG);
	return p;
}

unsigned offload_parts(const struct offload_packet *p)
{
	return (p->payload + p->size - 1) / p->size;
}

struct offload_packet offload_part(const struct offload_packet *p, unsigned i)
{
	bool last = i + 1 == offload_parts(p);
	struct offload_packet part = *p;

	part.size = 0;
	part.payload = last ? p->payload - i * p->size : p->size;
	part.seq = p->seq + i * p->size;
	part.id = (uint16_t)(p->id + i);
	if (i > 0)
		part.tcp_flags &= (uint8_t)~RTE_TCP_CWR_FLAG;
	if (!last)
		part.tcp_flags &= (uint8_t) ~(RTE_TCP_FIN_FLAG | RTE_TCP_PSH_FLAG);
	return part;
}

bool offload_equal(const struct rte_mbuf *a, const struct rte_mbuf *b)
{
	static uint8_t one[OFFLOAD_LONGEST + 128], other[OFFLOAD_LONGEST + 128];
	const uint8_t *x = rte_pktmbuf_read(a, 0, a->pkt_len, one), *y = rte_pktmbuf_read(b, 0, b->pkt_len, other);
	unsigned i;

	for (i = 0; i < RTE_MIN(a->pkt_len, b->pkt_len); i++) {
		if (x[i] != y[i]) {
			printf("# byte %u is %02x instead of %02x\n", i, x[i], y[i]);
			return false;
		}
	}
	if (a->pkt_len != b->pkt_len)
		printf("# %u bytes instead of %u\n", a->pkt_len, b->pkt_len);
	return a->pkt_len == b->pkt_len;
}
