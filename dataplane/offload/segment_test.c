// SPDX-License-Identifier: Apache-2.0
// Cutting large segments, and finishing checksums. What comes out is compared with packets that were built one by one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include <rte_tcp.h>

#include "base/eth.h"
#include "graph/node_test.h"
#include "offload/checksum.h"
#include "offload/offload_fixture.h"
#include "offload/segment.h"

#define ROUNDS 3000

static const struct offload_packet large = {.payload = 4000,
					    .size = 1448,
					    .options = 12,
					    .sport = 1000,
					    .id = 0xfffe,
					    .seq = 0xfffffff0,
					    .tcp_flags = RTE_TCP_ACK_FLAG | RTE_TCP_PSH_FLAG | RTE_TCP_CWR_FLAG};

static void check_cut(const struct offload_packet *p)
{
	struct rte_mbuf *m = offload_make(p), *out[OFFLOAD_SEGMENTS_MAX], *want;
	struct offload_packet part;
	unsigned i, n = offload_parts(p);

	meta(m)->hash = 77;
	m->port = 5;
	assert_int_equal(segment(m, frame_ip(m), out), n);
	for (i = 0; i < n; i++) {
		part = offload_part(p, i);
		want = offload_make(&part);
		assert_true(offload_equal(out[i], want));
		rte_pktmbuf_free(want);
		assert_int_equal(rte_mbuf_check(out[i], 1, &(const char *){NULL}), 0);
		assert_true(out[i]->data_len >= offload_headers(p));
		assert_int_equal(out[i]->ol_flags, 0);
		assert_int_equal(out[i]->port, 5);
		assert_int_equal(meta(out[i])->hash, 77);
		assert_true(rte_pktmbuf_headroom(out[i]) >= RTE_PKTMBUF_HEADROOM);
	}
	rte_pktmbuf_free_bulk(out, n);
	assert_int_equal(node_test_in_use(), 0);
}

static void kinds(void **state)
{
	struct offload_packet p = large;
	unsigned i;

	for (i = 0; i < 8; i++) {
		p.v6 = i & 1;
		p.udp = i & 2;
		p.tags = i & 4 ? 1 : 0;
		check_cut(&p);
	}
}

// The first and the last byte of a range of sequence numbers, ids that wrap, and flags, by their own figures.
static void tcp_fields(void **state)
{
	struct rte_mbuf *m = offload_make(&large), *out[OFFLOAD_SEGMENTS_MAX];
	static const struct {
		uint32_t seq;
		uint16_t id, length;
		uint8_t flags;
	} want[] = {{0xfffffff0, 0xfffe, 1500, RTE_TCP_ACK_FLAG | RTE_TCP_CWR_FLAG},
		    {0x598, 0xffff, 1500, RTE_TCP_ACK_FLAG},
		    {0xb40, 0, 1156, RTE_TCP_ACK_FLAG | RTE_TCP_PSH_FLAG}};
	const struct rte_ipv4_hdr *ip;
	const struct rte_tcp_hdr *tcp;
	unsigned i;

	assert_int_equal(segment(m, 14, out), 3);
	for (i = 0; i < 3; i++) {
		ip = rte_pktmbuf_mtod_offset(out[i], const struct rte_ipv4_hdr *, 14);
		tcp = (const struct rte_tcp_hdr *)(ip + 1);
		assert_int_equal(rte_be_to_cpu_32(tcp->sent_seq), want[i].seq);
		assert_int_equal(rte_be_to_cpu_16(ip->packet_id), want[i].id);
		assert_int_equal(rte_be_to_cpu_16(ip->total_length), want[i].length);
		assert_int_equal(tcp->tcp_flags, want[i].flags);
		assert_int_equal(rte_ipv4_cksum(ip), 0);
		assert_int_equal(rte_ipv4_udptcp_cksum_verify(ip, tcp), 0);
	}
	rte_pktmbuf_free_bulk(out, 3);
}

static void exact_multiple(void **state)
{
	struct offload_packet p = large;

	p.payload = 2 * p.size;
	check_cut(&p);
	p.payload = 1; // less than one segment
	check_cut(&p);
}

static void jumbo(void **state)
{
	struct offload_packet p = large;

	p.payload = 40000;
	p.size = 8948;
	check_cut(&p);
	p.buffer = 700;
	check_cut(&p);
}

static void random_segments(void **state)
{
	struct offload_packet p;
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		p = offload_random(i % 4 ? 5000 : OFFLOAD_LONGEST);
		check_cut(&p);
	}
}

static void refused(struct rte_mbuf *m, int want)
{
	struct rte_mbuf *out[OFFLOAD_SEGMENTS_MAX];
	uint32_t len = m->pkt_len;

	assert_int_equal(segment(m, 14, out), want);
	assert_int_equal(m->pkt_len, len);
	rte_pktmbuf_free(m);
	assert_int_equal(node_test_in_use(), 0);
}

static void contradictions(void **state)
{
	struct offload_packet p = large;
	struct rte_mbuf *m = offload_make(&p);

	m->tso_segsz = 0;
	refused(m, -EINVAL);
	m = offload_make(&p);
	m->l4_len = 16;
	refused(m, -EINVAL);
	m = offload_make(&p);
	m->l3_len = 24;
	refused(m, -EINVAL);
	p.buffer = 100;
	m = offload_make(&p);
	m->l4_len = 255; // beyond the first buffer
	refused(m, -EINVAL);
	p.payload = 0;
	refused(offload_make(&p), -EINVAL);
	p.payload = 4000;
	p.size = 1;
	refused(offload_make(&p), -E2BIG);
	p.size = 31;
	refused(offload_make(&p), -E2BIG);
	p.size = 32;
	p.buffer = 0;
	check_cut(&p);
}

static void no_buffers(void **state)
{
	static struct rte_mbuf *taken[8192];
	struct rte_mbuf *m, *out[OFFLOAD_SEGMENTS_MAX];
	struct offload_packet p = large;
	unsigned n, keep;

	p.size = 2100; // two packets, the first in two buffers
	for (keep = 0; keep < 3; keep++) {
		m = offload_make(&p);
		for (n = 0; n < 8192 && (taken[n] = rte_pktmbuf_alloc(node_test_pool)); n++)
			;
		assert_true(n > keep && n < 8192);
		rte_pktmbuf_free_bulk(taken, keep);
		assert_int_equal(segment(m, 14, out), -ENOBUFS);
		assert_int_equal(m->pkt_len, 4066);
		rte_pktmbuf_free_bulk(taken + keep, n - keep);
		rte_pktmbuf_free(m);
		assert_int_equal(node_test_in_use(), 0);
	}
}

// A packet that is unfinished, but not large.
static struct rte_mbuf *unfinished(const struct offload_packet *p)
{
	struct offload_packet as_large = *p;
	struct rte_mbuf *m;

	as_large.size = p->payload + 1;
	m = offload_make(&as_large);
	m->ol_flags &= ~OFFLOAD_LARGE;
	return m;
}

static void finish(void **state)
{
	struct offload_packet p;
	struct rte_mbuf *m, *want;
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		p = offload_random(9000);
		p.size = 0;
		m = unfinished(&p);
		want = offload_make(&p);
		checksum_finish(m, frame_ip(m));
		assert_true(offload_equal(m, want));
		assert_int_equal(m->ol_flags, 0);
		rte_pktmbuf_free(m);
		rte_pktmbuf_free(want);
	}
}

static void leave(void **state)
{
	struct offload_packet p = large;
	struct rte_mbuf *m;

	p.size = 0;
	p.payload = 100;
	m = unfinished(&p);
	checksum_leave(m, 14);
	assert_int_equal(rte_pktmbuf_mtod_offset(m, struct rte_tcp_hdr *, 34)->cksum,
			 rte_ipv4_phdr_cksum(rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, 14), 0));
	assert_true(offload_is_unfinished(m));
	rte_pktmbuf_free(m);
	p.v6 = p.udp = true;
	m = unfinished(&p);
	checksum_leave(m, 14);
	assert_int_equal(rte_pktmbuf_mtod_offset(m, struct rte_udp_hdr *, 54)->dgram_cksum,
			 rte_ipv6_phdr_cksum(rte_pktmbuf_mtod_offset(m, struct rte_ipv6_hdr *, 14), 0));
	rte_pktmbuf_free(m);
}

// RFC 768: a UDP checksum that is computed as 0 is sent as 0xffff.
static void zero_checksum(void **state)
{
	struct offload_packet p = {.udp = true, .payload = 2, .sport = 1};
	struct rte_mbuf *m = unfinished(&p);
	struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(m, struct rte_udp_hdr *, 34);
	unaligned_uint16_t *payload = (unaligned_uint16_t *)(udp + 1);

	*payload = 0;
	checksum_finish(m, 14);
	assert_int_not_equal(udp->dgram_cksum, 0);
	*payload = udp->dgram_cksum; // now the sum is 0xffff
	m->ol_flags = RTE_MBUF_F_TX_UDP_CKSUM | RTE_MBUF_F_TX_IPV4;
	checksum_finish(m, 14);
	assert_int_equal(udp->dgram_cksum, 0xffff);
	rte_pktmbuf_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds),         cmocka_unit_test(tcp_fields),      cmocka_unit_test(exact_multiple),
		cmocka_unit_test(jumbo),         cmocka_unit_test(random_segments), cmocka_unit_test(contradictions),
		cmocka_unit_test(no_buffers),    cmocka_unit_test(finish),          cmocka_unit_test(leave),
		cmocka_unit_test(zero_checksum),
	};

	return cmocka_run_group_tests(tests, node_test_setup, node_test_teardown);
}
