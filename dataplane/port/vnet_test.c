// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <rte_tcp.h>

#include "base/ip_sum.h"
#include "base/offload.h"
#include "graph/node_test.h"
#include "offload/offload_fixture.h"
#include "port/vnet.h"

#define TCP_SUM 16
#define UDP_SUM 6

static struct rte_mbuf *frame(const struct offload_packet *p)
{
	struct rte_mbuf *m = offload_make(p);

	m->ol_flags = 0; // as a port has received it
	m->tx_offload = 0;
	return m;
}

static struct virtio_net_hdr header(const struct offload_packet *p)
{
	unsigned l4 = 14 + p->tags * 4 + (p->v6 ? 40 : 20);

	return (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
				       .gso_type = p->size == 0 ? VIRTIO_NET_HDR_GSO_NONE
						   : p->udp     ? VNET_GSO_UDP_L4
						   : p->v6      ? VIRTIO_NET_HDR_GSO_TCPV6
								: VIRTIO_NET_HDR_GSO_TCPV4,
				       .hdr_len = (uint16_t)offload_headers(p),
				       .gso_size = (uint16_t)p->size,
				       .csum_start = (uint16_t)l4,
				       .csum_offset = p->udp ? UDP_SUM : TCP_SUM};
}

static void expect(struct rte_mbuf *m, const struct virtio_net_hdr *h, const char *reason)
{
	const struct drop_reason *why = vnet_read(m, h);

	if (reason == NULL)
		assert_null(why);
	else
		assert_string_equal(why ? why->name : "none", reason);
}

// What the kernel hands over is marked, and the header that is written for it is the same again.
static void round_trip(void **state)
{
	unsigned i;

	for (i = 0; i < 2000; i++) {
		struct offload_packet p = offload_random(OFFLOAD_LONGEST);
		struct rte_mbuf *m = frame(&p);
		struct virtio_net_hdr h = header(&p), out;
		bool large = p.size != 0 && p.payload > p.size;

		expect(m, &h, NULL);
		assert_int_equal(offload_is_large(m), large);
		assert_int_equal(offload_segments(m, frame_ip(m)), large ? offload_parts(&p) : 1);
		assert_true(offload_is_unfinished(m));
		assert_int_equal(m->l3_len + m->l4_len + frame_ip(m), offload_headers(&p));
		vnet_write(m, &out);
		if ((p.tcp_flags & RTE_TCP_CWR_FLAG) && !p.udp)
			h.gso_type |= VIRTIO_NET_HDR_GSO_ECN;
		if (!large)
			h.gso_type = VIRTIO_NET_HDR_GSO_NONE, h.gso_size = h.hdr_len = 0;
		assert_memory_equal(&h, &out, sizeof(h));
		rte_pktmbuf_free(m);
	}
}

// Each lie alone: everything else is as it should be.
static void lies(void **state)
{
	static const struct offload_packet tcp4 = {.payload = 6000, .size = 1400},
					   udp6 = {.v6 = true, .udp = true, .payload = 6000, .size = 1400};
	static const struct {
		const struct offload_packet *p;
		const char *reason;
		uint8_t flags, type;
		int hdr_len, size, start, offset; // added to the right value
	} cases[] = {
		{&tcp4, "offload_type", .type = VIRTIO_NET_HDR_GSO_UDP},
		{&tcp4, "offload_type", .type = 0x7f},
		{&tcp4, "offload_type", .flags = VIRTIO_NET_HDR_F_DATA_VALID},
		{&tcp4, "offload_size", .size = -1400},
		{&tcp4, "offload_size", .size = 20000},
		{&tcp4, "offload_pieces", .size = -1360},
		{&tcp4, "offload_header", .hdr_len = 10000},
		{&tcp4, "offload_header", .start = 1},
		{&tcp4, "offload_header", .start = 60000},
		{&tcp4, "offload_header", .offset = -10},
		{&tcp4, "offload_header", .type = VIRTIO_NET_HDR_GSO_TCPV6},
		{&tcp4, "offload_header", .type = VNET_GSO_UDP_L4},
		{&udp6, "offload_header", .type = VIRTIO_NET_HDR_GSO_TCPV6},
		{&udp6, "offload_size", .size = -1400},
		{.p = &tcp4},
		{.p = &udp6},
	};
	unsigned i;

	for (i = 0; i < RTE_DIM(cases); i++) {
		struct virtio_net_hdr h = header(cases[i].p);
		struct rte_mbuf *m = frame(cases[i].p);

		h.flags = cases[i].flags ? cases[i].flags : h.flags;
		h.gso_type = cases[i].type ? cases[i].type : h.gso_type;
		h.hdr_len = (uint16_t)(h.hdr_len + cases[i].hdr_len);
		h.gso_size = (uint16_t)(h.gso_size + cases[i].size);
		h.csum_start = (uint16_t)(h.csum_start + cases[i].start);
		h.csum_offset = (uint16_t)(h.csum_offset + cases[i].offset);
		expect(m, &h, cases[i].reason);
		rte_pktmbuf_free(m);
	}
}

// The headers themselves lie.
static void bad_headers(void **state)
{
	const struct offload_packet p = {.payload = 6000, .size = 1400};
	struct virtio_net_hdr h = header(&p);
	static const struct {
		unsigned at; // a byte of the frame
		uint8_t value;
	} cases[] = {
		{12, 0x88},      // no IP
		{14, 0x65},      // another version
		{14, 0x44},      // a header of 16 bytes
		{14, 0x4f},      // options where there are none: TCP is elsewhere
		{16, 0},         // another total length
		{20, 0x20},      // a first fragment
		{21, 1},         // a later one
		{23, 17},        // UDP
		{14 + 32, 0x40}, // a TCP header of 16 bytes
	};
	unsigned i;

	for (i = 0; i < RTE_DIM(cases); i++) {
		struct rte_mbuf *m = frame(&p);

		rte_pktmbuf_mtod(m, uint8_t *)[cases[i].at] = cases[i].value;
		expect(m, &h, "offload_header");
		rte_pktmbuf_free(m);
	}
}

// A checksum that the marks cannot describe is computed, where the place exists.
static void elsewhere(void **state)
{
	const struct offload_packet p = {.payload = 100};
	static const struct {
		unsigned start, offset;
		const char *reason;
	} cases[] = {{60, 8, NULL},
		     {0, 20, "offload_checksum"},
		     {60000, 0, "offload_checksum"},
		     {34, 60000, "offload_checksum"},
		     {154, 0, "offload_checksum"},
		     {152, 0, NULL}};
	struct virtio_net_hdr h = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM};
	struct rte_mbuf *m;
	uint16_t sum = 0, before = 0;
	unsigned i;

	for (i = 0; i < RTE_DIM(cases); i++) {
		m = frame(&p);
		assert_int_equal(m->pkt_len, 154);
		h.csum_start = (uint16_t)cases[i].start;
		h.csum_offset = (uint16_t)cases[i].offset;
		if (cases[i].reason == NULL) // the sum of a pseudo header, which the receiver adds, too
			before = *rte_pktmbuf_mtod_offset(m, unaligned_uint16_t *, cases[i].start + cases[i].offset);
		expect(m, &h, cases[i].reason);
		assert_false(offload_is_unfinished(m));
		if (cases[i].reason == NULL) {
			assert_int_equal(rte_raw_cksum_mbuf(m, cases[i].start, m->pkt_len - cases[i].start, &sum), 0);
			assert_int_equal(ip_fold((uint64_t)sum + before), 0xffff);
		}
		rte_pktmbuf_free(m);
	}
}

// The marks of librte_vhost.
static void marks(void **state)
{
	const struct offload_packet p = {.v6 = true, .payload = 6000, .size = 1400};
	struct rte_mbuf *m = frame(&p);

	m->ol_flags = RTE_MBUF_F_RX_LRO | RTE_MBUF_F_RX_L4_CKSUM_NONE;
	m->tso_segsz = 1400;
	assert_null(vnet_read_marks(m));
	assert_int_equal(offload_segments(m, frame_ip(m)), 5);
	vnet_write_marks(m);
	assert_int_equal(m->l2_len, 14);
	m->ol_flags = RTE_MBUF_F_RX_LRO | RTE_MBUF_F_RX_L4_CKSUM_NONE;
	m->tso_segsz = 20;
	assert_string_equal(vnet_read_marks(m)->name, "offload_pieces");
	rte_pktmbuf_free(m);
	m = frame(&(struct offload_packet){.udp = true, .payload = 10});
	m->ol_flags = RTE_MBUF_F_RX_L4_CKSUM_NONE;
	assert_null(vnet_read_marks(m));
	assert_int_equal(m->ol_flags, RTE_MBUF_F_TX_UDP_CKSUM | RTE_MBUF_F_TX_IPV4);
	m->ol_flags = 0;
	assert_null(vnet_read_marks(m));
	assert_int_equal(m->ol_flags, 0);
	rte_pktmbuf_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(round_trip), cmocka_unit_test(lies),
					   cmocka_unit_test(bad_headers), cmocka_unit_test(elsewhere),
					   cmocka_unit_test(marks)};

	return cmocka_run_group_tests(tests, node_test_setup, node_test_teardown);
}
