// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <rte_ether.h>
#include <rte_ip.h>

#include "base/offload.h"
#include "offload/offload_fixture.h"
#include "testing/router_fixture.h"

static struct packet big = {.src = "10.0.0.2", .dst = "172.16.0.1", .proto = 253, .id = 0x1234};

// A next hop with this MTU.
static const struct nexthop *through(uint16_t mtu)
{
	static struct nexthop nh;

	nh = *nexthop_table[VIA0];
	nh.mtu = mtu;
	return &nh;
}

static struct rte_mbuf *packet(unsigned payload, uint16_t frag)
{
	struct rte_mbuf *m;

	big.payload = payload;
	big.frag = frag;
	m = router_frame(RED0, GATEWAY, "02:00:00:00:00:03", &big);
	meta(m)->l3 = 14;
	meta(m)->hash = 77;
	return m;
}

static uint16_t be16_at(struct rte_mbuf *m, unsigned at)
{
	const uint8_t *p = rte_pktmbuf_mtod_offset(m, const uint8_t *, at);

	return (uint16_t)(p[0] << 8 | p[1]);
}

// Runs one packet; checks each fragment and reassembles the payload. Returns the number of fragments.
static unsigned fragment(struct rte_mbuf *m, uint16_t mtu, uint8_t *whole, unsigned *len, unsigned hlen)
{
	unsigned i, n, first = 0, at;
	struct rte_mbuf *f;
	bool last;

	meta(m)->nexthop = through(mtu);
	n = node_test_run("ip4_fragment", &m, 1);
	*len = 0;
	for (i = 0; i < n; i++) {
		f = node_test_outs[i].m;
		assert_string_equal(node_test_outs[i].edge, "port_output");
		assert_true(f->pkt_len <= mtu);
		assert_int_equal(be16_at(f, 2), f->pkt_len);
		assert_int_equal(be16_at(f, 4), 0x1234);
		assert_int_equal(
			router_sum(rte_pktmbuf_mtod(f, void *), (rte_pktmbuf_mtod(f, uint8_t *)[0] & 15) * 4u, 0),
			0xffff);
		assert_int_equal(meta(f)->hash, 77); // all take one path
		assert_int_equal(meta(f)->l3, 0);
		assert_int_equal(f->port, RED0);
		at = (be16_at(f, 6) & 0x1fffu) * 8;
		first = i == 0 ? at : first;
		last = !(be16_at(f, 6) & 0x2000);
		assert_true(last || (f->pkt_len - hlen) % 8 == 0);
		memcpy(whole + at - first, rte_pktmbuf_read(f, hlen, f->pkt_len - hlen, whole + at - first),
		       f->pkt_len - hlen);
		*len += f->pkt_len - hlen;
		rte_pktmbuf_free(f);
	}
	return n;
}

static void assert_whole(const uint8_t *whole, unsigned len)
{
	unsigned i;

	for (i = 0; i < len; i++)
		assert_int_equal(whole[i], (uint8_t)i);
}

static void sizes(void **state)
{
	static const struct {
		unsigned payload, mtu, fragments;
	} cases[] = {{1481, 1500, 2}, {1480, 1499, 2}, {1000, 576, 2}, {1400, 576, 3},
		     {1900, 576, 4},  {561, 580, 2},   {800, 68, 17}};
	uint8_t whole[4096];
	unsigned i, len;

	for (i = 0; i < RTE_DIM(cases); i++) {
		assert_int_equal(fragment(packet(cases[i].payload, 0), (uint16_t)cases[i].mtu, whole, &len, 20),
				 cases[i].fragments);
		assert_int_equal(len, cases[i].payload);
		assert_whole(whole, len);
	}
}

// A fragment from the middle is fragmented again: offsets continue, and no piece is the last.
static void of_fragment(void **state)
{
	struct rte_mbuf *m = packet(1200, 0x2000 | 100);
	unsigned i, n;

	meta(m)->nexthop = through(576);
	n = node_test_run("ip4_fragment", &m, 1);
	assert_int_equal(n, 3);
	for (i = 0; i < n; i++) {
		assert_int_equal(be16_at(node_test_outs[i].m, 6), 0x2000 | (100 + i * 69)); // 552 bytes each
		rte_pktmbuf_free(node_test_outs[i].m);
	}
	m = packet(600, 100); // the last one
	meta(m)->nexthop = through(576);
	assert_int_equal(node_test_run("ip4_fragment", &m, 1), 2);
	assert_int_equal(be16_at(node_test_outs[0].m, 6), 0x2000 | 100);
	assert_int_equal(be16_at(node_test_outs[1].m, 6), 169);
	rte_pktmbuf_free(node_test_outs[0].m);
	rte_pktmbuf_free(node_test_outs[1].m);
}

// A jumbo frame in several buffers.
static void segments(void **state)
{
	struct rte_mbuf *m = packet(1500, 0), *tail = router_hex("");
	uint8_t whole[8192];
	unsigned i, len;

	for (i = 0; i < 1500; i++)
		*(uint8_t *)rte_pktmbuf_append(tail, 1) = (uint8_t)(1500 + i);
	rte_pktmbuf_chain(m, tail);
	rte_pktmbuf_mtod_offset(m, uint8_t *, 14)[2] = 3020 >> 8;
	rte_pktmbuf_mtod_offset(m, uint8_t *, 14)[3] = 3020 & 255;
	router_checksum4(m, 14);
	assert_int_equal(fragment(m, 1500, whole, &len, 20), 3);
	assert_int_equal(len, 3000);
	assert_whole(whole, len);
}

static void too_many(void **state)
{
	struct rte_mbuf *m = packet(1900, 0);

	meta(m)->nexthop = through(68); // 40 pieces
	assert_string_equal(node_test_one("ip4_fragment", m), "drop");
	assert_string_equal(node_test_reason(m), "fragment_too_many");
	rte_pktmbuf_free(m);
}

// Appends buffers until the frame has this many bytes.
static void lengthen(struct rte_mbuf *m, unsigned frame)
{
	struct rte_mbuf *tail;

	while (m->pkt_len < frame) {
		tail = rte_pktmbuf_alloc(node_test_pool);
		assert_non_null(tail);
		rte_pktmbuf_append(tail, (uint16_t)RTE_MIN(frame - m->pkt_len, (unsigned)rte_pktmbuf_tailroom(tail)));
		assert_int_equal(rte_pktmbuf_chain(m, tail), 0);
	}
}

// Bytes behind the packet do not belong to it: a count of 16 bits takes 105,536 bytes for 40,000.
static void chain_longer_than_ip(void **state)
{
	struct rte_mbuf *m = packet(1900, 0);
	uint8_t whole[4096];
	unsigned len;

	lengthen(m, 14 + 105556);
	assert_int_equal(fragment(m, 1500, whole, &len, 20), 2);
	assert_int_equal(len, 1900);
	assert_whole(whole, len);
	m = packet(1900, 0);
	lengthen(m, 14 + 105556);
	meta(m)->nexthop = through(68);
	assert_string_equal(node_test_one("ip4_fragment", m), "drop");
	assert_string_equal(node_test_reason(m), "fragment_too_many");
	rte_pktmbuf_free(m);
}

// The header states more bytes than the frame has.
static void shorter_than_ip(void **state)
{
	struct rte_mbuf *m = packet(1000, 0);

	rte_pktmbuf_trim(m, 1);
	meta(m)->nexthop = through(576);
	assert_string_equal(node_test_one("ip4_fragment", m), "drop");
	assert_string_equal(node_test_reason(m), "fragment_failed");
	rte_pktmbuf_free(m);
}

// The offset of a fragment's last piece has to fit its 13 bits, and its end 16.
static void past_the_end(void **state)
{
	const unsigned last = (65535 - 20 - 1000) / 8;
	struct rte_mbuf *m = packet(1000, (uint16_t)last);

	meta(m)->nexthop = through(576);
	assert_int_equal(node_test_run("ip4_fragment", &m, 1), 2);
	assert_int_equal(be16_at(node_test_outs[0].m, 6), 0x2000 | last);
	assert_int_equal(be16_at(node_test_outs[1].m, 6), last + 69);
	rte_pktmbuf_free(node_test_outs[0].m);
	rte_pktmbuf_free(node_test_outs[1].m);
	m = packet(1000, (uint16_t)(last + 1));
	meta(m)->nexthop = through(576);
	assert_string_equal(node_test_one("ip4_fragment", m), "drop");
	assert_string_equal(node_test_reason(m), "fragment_past_end");
	rte_pktmbuf_free(m);
}

static void no_buffers(void **state)
{
	static struct rte_mbuf *all[8192];
	struct rte_mbuf *m = packet(1900, 0);
	unsigned n = 0;

	while (n < RTE_DIM(all) && (all[n] = rte_pktmbuf_alloc(node_test_pool)) != NULL)
		n++;
	meta(m)->nexthop = through(576);
	assert_string_equal(node_test_one("ip4_fragment", m), "drop");
	assert_string_equal(node_test_reason(m), "fragment_failed");
	rte_pktmbuf_free(m);
	rte_pktmbuf_free_bulk(all, n);
}

static void options(void **state)
{
	struct rte_mbuf *m = packet(1000, 0);
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, 14);

	ip[0] = 0x46; // the first four bytes of the payload are no-operations
	memset(ip + 20, 1, 4);
	router_checksum4(m, 14);
	meta(m)->nexthop = through(576);
	assert_int_equal(node_test_run("ip4_fragment", &m, 1), 2);
	assert_int_equal(node_test_outs[0].m->pkt_len + node_test_outs[1].m->pkt_len,
			 24 + 996 + (rte_pktmbuf_mtod(node_test_outs[1].m, uint8_t *)[0] & 15) * 4);
	assert_int_equal(router_sum(rte_pktmbuf_mtod(node_test_outs[0].m, void *), 24, 0), 0xffff);
	rte_pktmbuf_free(node_test_outs[0].m);
	rte_pktmbuf_free(node_test_outs[1].m);
}

// A large segment becomes packets first, with checksums of their own, and each of these becomes fragments.
static void large_segment(void **state)
{
	const struct offload_packet p = {.payload = 3000, .size = 1400, .id = 7, .tcp_flags = 0x10};
	struct rte_mbuf *m = offload_make(&p), *f;
	unsigned i, n, bytes = 0;

	rte_pktmbuf_mtod_offset(m, uint8_t *, 14)[6] = 0; // without DF
	router_checksum4(m, 14);
	meta(m)->l3 = 14;
	meta(m)->nexthop = through(1000);
	n = node_test_run("ip4_fragment", &m, 1);
	assert_int_equal(n, 5); // of 1440, 1440 and 240 bytes
	for (i = 0; i < n; i++) {
		f = node_test_outs[i].m;
		assert_true(f->pkt_len <= 1000);
		assert_int_equal(be16_at(f, 2), f->pkt_len);
		assert_int_equal(be16_at(f, 4), 7 + i / 2);
		assert_int_equal(f->ol_flags, 0);
		bytes += f->pkt_len - 20;
	}
	assert_true(router_l4_ok(node_test_outs[4].m, 0)); // which is whole
	assert_int_equal(bytes, 3000 + 3 * 20);
	for (i = 0; i < n; i++)
		rte_pktmbuf_free(node_test_outs[i].m);
}

// A whole packet of a tunnel (GRE) with three packets of 1,464, 1,464 and 264 bytes, whose next hop has this MTU.
// Returns what comes out.
static unsigned whole_packet(uint16_t frag, uint16_t mtu)
{
	const struct offload_packet p = {.payload = 3000, .size = 1400, .id = 7, .tcp_flags = 0x10};
	struct rte_mbuf *m = offload_make(&p);
	struct rte_ipv4_hdr ip = {.version_ihl = 0x45,
				  .fragment_offset = rte_cpu_to_be_16(frag),
				  .time_to_live = 64,
				  .next_proto_id = IPPROTO_GRE,
				  .src_addr = RTE_BE32(RTE_IPV4(10, 0, 0, 2)),
				  .dst_addr = RTE_BE32(RTE_IPV4(172u, 16, 0, 1))};
	struct rte_ether_hdr eth = *rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	uint8_t *to;

	assert_non_null(rte_pktmbuf_adj(m, sizeof(eth)));
	ip.total_length = rte_cpu_to_be_16((uint16_t)(m->pkt_len + 24));
	to = (uint8_t *)rte_pktmbuf_prepend(m, sizeof(eth) + 24);
	assert_non_null(to);
	memcpy(to, &eth, sizeof(eth));
	memcpy(to + 14, &ip, sizeof(ip));
	memcpy(to + 34, (uint8_t[]){0, 0, 0x88, 0x47}, 4);
	router_checksum4(m, 14);
	m->ol_flags = OFFLOAD_WHOLE | OFFLOAD_CAME_WHOLE;
	m->tx_offload = 0;
	m->tso_segsz = 1400;
	m->outer_l3_len = 24;
	meta(m)->l3 = 14;
	meta(m)->nexthop = through(mtu);
	return node_test_run("ip4_fragment", &m, 1);
}

static void free_outs(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		rte_pktmbuf_free(node_test_outs[i].m);
}

static void whole_packet_of_a_tunnel(void **state)
{
	unsigned i, n;

	n = whole_packet(RTE_IPV4_HDR_DF_FLAG, 1500);
	assert_int_equal(n, 3);
	for (i = 0; i < n; i++) {
		assert_string_equal(node_test_outs[i].edge, "port_output");
		assert_int_equal(node_test_outs[i].m->pkt_len, 14 + (i < 2 ? 1464 : 264));
	}
	free_outs(n);
	// Its sender forbids fragments, and is told once.
	n = whole_packet(RTE_IPV4_HDR_DF_FLAG, 1400);
	assert_int_equal(n, 3);
	assert_string_equal(node_test_outs[0].edge, "icmp_error");
	assert_string_equal(node_test_outs[1].edge, "drop");
	assert_string_equal(node_test_outs[2].edge, "port_output");
	free_outs(n);
	n = whole_packet(0, 1400);
	assert_int_equal(n, 5);
	for (i = 0; i < n; i++)
		assert_string_equal(node_test_outs[i].edge, "port_output");
	free_outs(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(of_fragment),
		cmocka_unit_test(segments),
		cmocka_unit_test(too_many),
		cmocka_unit_test(no_buffers),
		cmocka_unit_test(options),
		cmocka_unit_test(chain_longer_than_ip),
		cmocka_unit_test(shorter_than_ip),
		cmocka_unit_test(past_the_end),
		cmocka_unit_test(large_segment),
		cmocka_unit_test(whole_packet_of_a_tunnel),
	};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
