// SPDX-License-Identifier: Apache-2.0
// Joining packets. The property: cutting what was joined gives the same packets again, and packets of a connection keep
// their order, whatever came in.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include <rte_tcp.h>
#include <rte_udp.h>

#include "base/eth.h"
#include "graph/node_test.h"
#include "offload/join.h"
#include "offload/offload_fixture.h"
#include "offload/segment.h"

#define ROUNDS 1500
#define MOST 256

static const struct offload_packet large = {.payload = 4000,
					    .size = 1448,
					    .options = 12,
					    .sport = 1000,
					    .id = 0xfffe,
					    .seq = 0xfffffff0,
					    .tcp_flags = RTE_TCP_ACK_FLAG | RTE_TCP_PSH_FLAG | RTE_TCP_CWR_FLAG};

static unsigned parts_of(const struct offload_packet *p, struct rte_mbuf **out)
{
	unsigned i, n = offload_parts(p);
	struct offload_packet part;

	for (i = 0; i < n; i++) {
		part = offload_part(p, i);
		out[i] = offload_make(&part);
	}
	return n;
}

// Cuts the large ones among n packets. Returns how many there are then.
static unsigned cut(struct rte_mbuf **pkts, unsigned n, struct rte_mbuf **out)
{
	unsigned i, total = 0;
	int k;

	for (i = 0; i < n; i++) {
		assert_int_equal(rte_mbuf_check(pkts[i], 1, &(const char *){NULL}), 0);
		if (!offload_is_large(pkts[i])) {
			out[total++] = pkts[i];
			continue;
		}
		assert_true(pkts[i]->pkt_len - frame_ip(pkts[i]) <= UINT16_MAX);
		assert_true(pkts[i]->nb_segs <= JOIN_BUFFERS);
		assert_int_equal(offload_segments(pkts[i], frame_ip(pkts[i])) > 1, 1);
		k = segment(pkts[i], frame_ip(pkts[i]), out + total);
		assert_true(k > 1);
		total += (unsigned)k;
	}
	return total;
}

static void kinds(void **state)
{
	struct rte_mbuf *pkts[MOST], *want;
	struct offload_packet p = large;
	unsigned i;

	for (i = 0; i < 8; i++) {
		p.v6 = i & 1;
		p.udp = i & 2;
		p.tags = i & 4 ? 1 : 0;
		offload_seen = false;
		assert_int_equal(join(pkts, parts_of(&p, pkts), JOIN_ALL), 1);
		assert_true(offload_seen); // so that ports look for it
		want = offload_make(&p);
		assert_int_equal(pkts[0]->ol_flags, want->ol_flags);
		assert_int_equal(pkts[0]->tso_segsz, 1448);
		assert_int_equal(pkts[0]->l3_len, want->l3_len);
		assert_int_equal(pkts[0]->l4_len, want->l4_len);
		*rte_pktmbuf_mtod_offset(pkts[0], uint16_t *, offload_headers(&p) - (p.udp ? 2 : 16)) =
			*rte_pktmbuf_mtod_offset(want, uint16_t *, offload_headers(&p) - (p.udp ? 2 : 16));
		assert_true(offload_equal(pkts[0], want));
		rte_pktmbuf_free(want);
		rte_pktmbuf_free(pkts[0]);
	}
}

static void only_wanted_kinds(void **state)
{
	static const unsigned bits[] = {JOIN_TCP4, JOIN_TCP6, JOIN_UDP4, JOIN_UDP6};
	struct offload_packet p = large;
	struct rte_mbuf *pkts[MOST];
	unsigned i;

	for (i = 0; i < 4; i++) {
		p.v6 = i & 1;
		p.udp = i & 2;
		assert_int_equal(join(pkts, parts_of(&p, pkts), JOIN_ALL & ~bits[i]), 3);
		assert_int_equal(join(pkts, 3, JOIN_CWR | bits[i]), 1);
		rte_pktmbuf_free(pkts[0]);
	}
	p.udp = false; // the first packet has CWR
	assert_int_equal(join(pkts, parts_of(&p, pkts), JOIN_ALL & ~JOIN_CWR), 2);
	assert_false(offload_is_large(pkts[0]));
	assert_true(offload_is_large(pkts[1]));
	rte_pktmbuf_free_bulk(pkts, 2);
}

// Two packets, of which one is changed and has right checksums again.
static void fix(struct rte_mbuf *m)
{
	unsigned l3 = frame_ip(m);
	struct rte_ipv4_hdr *ip4 = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, l3);
	struct rte_ipv6_hdr *ip6 = (struct rte_ipv6_hdr *)ip4;
	bool v6 = (ip4->version_ihl >> 4) == 6, tcp = (v6 ? ip6->proto : ip4->next_proto_id) == IPPROTO_TCP;
	void *l4 = (uint8_t *)ip4 + (v6 ? 40 : 20);
	rte_be16_t *sum = tcp ? &((struct rte_tcp_hdr *)l4)->cksum : &((struct rte_udp_hdr *)l4)->dgram_cksum;

	*sum = 0;
	*sum = v6 ? rte_ipv6_udptcp_cksum(ip6, l4) : rte_ipv4_udptcp_cksum(ip4, l4);
	if (!v6) {
		ip4->hdr_checksum = 0;
		ip4->hdr_checksum = rte_ipv4_cksum(ip4);
	}
}

static void differ(bool v6, bool udp, unsigned at, uint8_t bits, bool repair)
{
	struct offload_packet p = {.v6 = v6, .udp = udp, .options = 12, .payload = 1000, .size = 500, .sport = 7};
	struct rte_mbuf *pkts[2];
	unsigned which;

	p.tcp_flags = RTE_TCP_ACK_FLAG;
	for (which = 0; which < 2; which++) {
		assert_int_equal(parts_of(&p, pkts), 2);
		rte_pktmbuf_mtod(pkts[which], uint8_t *)[at] ^= bits;
		if (repair)
			fix(pkts[which]);
		assert_int_equal(join(pkts, 2, JOIN_ALL), 2);
		assert_false(offload_is_large(pkts[0]) || offload_is_large(pkts[1]));
		rte_pktmbuf_free_bulk(pkts, 2);
	}
}

static void differences(void **state)
{
	static const struct {
		bool v6, udp;
		uint16_t at;
		uint8_t bits;
	} fixed[] = {
		{0, 0, 3, 1},
		{0, 0, 9, 1},
		{0, 0, 15, 4},
		{0, 0, 19, 1}, // MACs, DSCP, id
		{0, 0, 20, 0x40},
		{0, 0, 22, 1},
		{0, 0, 26, 1},
		{0, 0, 30, 1}, // DF, TTL, addresses
		{0, 0, 34, 1},
		{0, 0, 36, 1},
		{0, 0, 39, 1},
		{0, 0, 45, 1}, // ports, sequence numbers
		{0, 0, 46, 1},
		{0, 0, 49, 1},
		{0, 0, 53, 1},
		{0, 0, 55, 1}, // reserved bits, window, urgent, options
		{0, 0, 47, RTE_TCP_ECE_FLAG},
		{0, 0, 47, RTE_TCP_ACK_FLAG},
		{1, 0, 15, 0x10},
		{1, 0, 17, 1},
		{1, 0, 21, 1},
		{1, 0, 37, 1}, // class, label, hop limit, address
		{1, 1, 54, 1},
		{0, 1, 36, 1},
		{0, 1, 21, 1}, // ports; offset of a fragment
	};
	static const struct {
		bool v6, udp;
		uint16_t at;
	} broken[] = {{0, 0, 24}, {0, 0, 50}, {0, 0, 565}, {1, 0, 70}, {0, 1, 40}, {1, 1, 60}, {0, 0, 100}};
	unsigned i;

	for (i = 0; i < RTE_DIM(fixed); i++)
		differ(fixed[i].v6, fixed[i].udp, fixed[i].at, fixed[i].bits, true);
	for (i = 0; i < RTE_DIM(broken); i++) // a wrong checksum
		differ(broken[i].v6, broken[i].udp, broken[i].at, 0x10, false);
}

static void flags_joined(uint8_t first, uint8_t second, unsigned want)
{
	struct offload_packet p = {.payload = 500, .sport = 7, .tcp_flags = first | RTE_TCP_ACK_FLAG};
	struct rte_mbuf *pkts[2];

	pkts[0] = offload_make(&p);
	p.tcp_flags = second | RTE_TCP_ACK_FLAG;
	p.seq += 500;
	p.id++;
	pkts[1] = offload_make(&p);
	assert_int_equal(join(pkts, 2, JOIN_ALL), want);
	if (want == 1)
		assert_int_equal(rte_pktmbuf_mtod_offset(pkts[0], struct rte_tcp_hdr *, 34)->tcp_flags,
				 first | second | RTE_TCP_ACK_FLAG);
	rte_pktmbuf_free_bulk(pkts, want);
}

static void tcp_flags(void **state)
{
	flags_joined(0, RTE_TCP_PSH_FLAG, 1);
	flags_joined(0, RTE_TCP_PSH_FLAG | RTE_TCP_FIN_FLAG, 1);
	flags_joined(RTE_TCP_CWR_FLAG, 0, 1);
	flags_joined(RTE_TCP_ECE_FLAG, RTE_TCP_ECE_FLAG, 1);
	flags_joined(RTE_TCP_PSH_FLAG, 0, 2);
	flags_joined(RTE_TCP_FIN_FLAG, 0, 2);
	flags_joined(0, RTE_TCP_CWR_FLAG, 2);
	flags_joined(RTE_TCP_SYN_FLAG, RTE_TCP_SYN_FLAG, 2);
	flags_joined(RTE_TCP_RST_FLAG, RTE_TCP_RST_FLAG, 2);
	flags_joined(RTE_TCP_URG_FLAG, RTE_TCP_URG_FLAG, 2);
}

// What has no checksum or one that segment() would not write, and what is not in these buffers alone.
static void not_joined(void **state)
{
	struct offload_packet p = {.udp = true, .payload = 1000, .size = 500, .sport = 7};
	struct rte_mbuf *pkts[2];

	parts_of(&p, pkts);
	rte_pktmbuf_mtod_offset(pkts[0], struct rte_udp_hdr *, 34)->dgram_cksum = 0;
	rte_pktmbuf_mtod_offset(pkts[1], struct rte_udp_hdr *, 34)->dgram_cksum = 0;
	assert_int_equal(join(pkts, 2, JOIN_ALL), 2);
	rte_pktmbuf_free_bulk(pkts, 2);

	parts_of(&p, pkts);
	rte_mbuf_refcnt_set(pkts[1], 2);
	assert_int_equal(join(pkts, 2, JOIN_ALL), 2);
	rte_mbuf_refcnt_set(pkts[1], 1);
	rte_pktmbuf_free_bulk(pkts, 2);

	parts_of(&p, pkts); // padding
	assert_non_null(rte_pktmbuf_append(pkts[0], 4));
	assert_int_equal(join(pkts, 2, JOIN_ALL), 2);
	rte_pktmbuf_free_bulk(pkts, 2);
}

// A packet that a device has verified is not read. What a device says about the outer header does not count.
static void verified_by_device(void **state)
{
	struct offload_packet p = {.payload = 1000, .size = 500, .sport = 7, .tcp_flags = RTE_TCP_ACK_FLAG};
	struct rte_mbuf *pkts[2];
	unsigned i;

	for (i = 0; i < 3; i++) {
		parts_of(&p, pkts);
		rte_pktmbuf_mtod(pkts[1], uint8_t *)[200] ^= 1;
		pkts[0]->ol_flags = pkts[1]->ol_flags = RTE_MBUF_F_RX_L4_CKSUM_GOOD;
		meta(pkts[0])->flags = meta(pkts[1])->flags = i ? META_FROM_TUNNEL : 0;
		pkts[0]->packet_type = pkts[1]->packet_type = i == 2 ? RTE_PTYPE_TUNNEL_VXLAN : 0;
		assert_int_equal(join(pkts, 2, JOIN_ALL), i == 1 ? 2 : 1);
		rte_pktmbuf_free_bulk(pkts, i == 1 ? 2 : 1);
	}
}

static void limits(void **state)
{
	struct offload_packet p = {.payload = 65000, .size = 1000, .sport = 7, .tcp_flags = RTE_TCP_ACK_FLAG};
	struct rte_mbuf *pkts[MOST], *out[MOST];
	unsigned n;

	n = join(pkts, parts_of(&p, pkts), JOIN_ALL);
	assert_int_equal(n, 2);
	assert_int_equal(pkts[0]->nb_segs, JOIN_BUFFERS);
	rte_pktmbuf_free_bulk(pkts, n);
	p.size = 500; // 130 packets
	n = join(pkts, parts_of(&p, pkts), JOIN_ALL);
	assert_int_equal(n, 3);
	n = cut(pkts, n, out);
	assert_int_equal(n, 130);
	rte_pktmbuf_free_bulk(out, n);
}

static void random_segments(void **state)
{
	struct rte_mbuf *pkts[MOST], *want[MOST], *out[MOST];
	struct offload_packet p;
	unsigned i, k, n, left;

	for (i = 0; i < ROUNDS; i++) {
		p = offload_random(i % 4 ? 5000 : OFFLOAD_LONGEST);
		n = parts_of(&p, pkts);
		parts_of(&p, want);
		left = join(pkts, n, JOIN_ALL);
		assert_true(left < n || n == 1 || p.buffer);
		assert_int_equal(cut(pkts, left, out), n);
		for (k = 0; k < n; k++)
			assert_true(offload_equal(out[k], want[k]));
		rte_pktmbuf_free_bulk(out, n);
		rte_pktmbuf_free_bulk(want, n);
	}
	assert_int_equal(node_test_in_use(), 0);
}

struct mixed {
	struct rte_mbuf *m; // a copy
	unsigned flow;
	bool seen;
};

// Returns whether the packet is of another connection then.
static bool damage(struct rte_mbuf *m)
{
	unsigned at = offload_rand(m->data_len), l3 = frame_ip(m);
	bool v6 = *rte_pktmbuf_mtod_offset(m, uint8_t *, l3) >> 4 == 6;

	rte_pktmbuf_mtod(m, uint8_t *)[at] ^= (uint8_t)(1 << offload_rand(8));
	return (at >= 12 && at < l3) || at == l3 + (v6 ? 6 : 9) ||
	       (at >= l3 + (v6 ? 8 : 12) && at < l3 + (v6 ? 44 : 24)); // addresses and ports
}

// Packets of several connections in any order; some are damaged, missing or twice there.
static unsigned mix(struct rte_mbuf **pkts, struct mixed *in)
{
	struct rte_mbuf *parts[8][OFFLOAD_SEGMENTS_MAX];
	unsigned n[8], at[8] = {0}, flows = 1 + offload_rand(8), f, left = flows, total = 0;
	struct offload_packet p;
	struct rte_mbuf *m;

	for (f = 0; f < flows; f++) {
		do
			p = offload_random(20000);
		while (offload_parts(&p) > MOST / 8);
		n[f] = parts_of(&p, parts[f]);
	}
	while (left > 0) {
		f = offload_rand(flows);
		if (at[f] == n[f])
			continue;
		m = parts[f][at[f]++];
		left -= at[f] == n[f];
		in[total].flow = f;
		if (offload_rand(16) == 0 && damage(m))
			in[total].flow = 8 + total;
		if (offload_rand(32) == 0) {
			rte_pktmbuf_free(m);
			continue;
		}
		in[total].m = rte_pktmbuf_copy(m, m->pool, 0, UINT32_MAX);
		in[total].seen = false;
		assert_non_null(in[total].m);
		pkts[total++] = m;
	}
	return total;
}

static unsigned find(struct mixed *in, unsigned n, const struct rte_mbuf *m)
{
	uint8_t a[20100], b[20100];
	unsigned i;

	for (i = 0; i < n; i++) {
		if (in[i].seen || in[i].m->pkt_len != m->pkt_len)
			continue;
		if (memcmp(rte_pktmbuf_read(in[i].m, 0, m->pkt_len, a), rte_pktmbuf_read(m, 0, m->pkt_len, b),
			   m->pkt_len) == 0)
			return i;
	}
	return n;
}

static void random_mix(void **state)
{
	struct rte_mbuf *pkts[MOST], *out[MOST];
	struct mixed in[MOST];
	unsigned round, n, i, k, last[8 + MOST], joined = 0, left;

	for (round = 0; round < ROUNDS; round++) {
		n = mix(pkts, in);
		left = join(pkts, n, JOIN_ALL);
		joined += n - left;
		assert_int_equal(cut(pkts, left, out), n);
		memset(last, 0, sizeof(last));
		for (i = 0; i < n; i++) {
			k = find(in, n, out[i]);
			assert_true(k < n); // no byte has changed
			in[k].seen = true;
			assert_true(k + 1 > last[in[k].flow]);
			last[in[k].flow] = k + 1;
			rte_pktmbuf_free(in[k].m);
		}
		rte_pktmbuf_free_bulk(out, n);
	}
	assert_true(joined > ROUNDS * 10);
	assert_int_equal(node_test_in_use(), 0);
}

// A packet between others that may be of their connection holds them back: its header has options or it is a fragment.
static void barriers(void **state)
{
	struct offload_packet p = {.payload = 1000, .size = 500, .sport = 7, .tcp_flags = RTE_TCP_ACK_FLAG}, q = p;
	struct rte_mbuf *pkts[3], *between;
	unsigned i, left;

	for (i = 0; i < 4; i++) {
		parts_of(&p, pkts);
		pkts[2] = pkts[1];
		q.payload = i == 2 ? 1 : 10;
		q.size = 0;
		q.sport = i < 2 ? 99 : 7; // another connection, as far as can be seen; else a part of this one
		q.tcp_flags = i == 3 ? RTE_TCP_RST_FLAG : RTE_TCP_ACK_FLAG;
		between = pkts[1] = offload_make(&q);
		if (i == 0)
			rte_pktmbuf_mtod(between, uint8_t *)[21] = 9; // a fragment
		if (i == 1)
			rte_pktmbuf_mtod(between, uint8_t *)[23] = IPPROTO_ICMP; // of no connection
		left = join(pkts, 3, JOIN_ALL);
		assert_int_equal(left, i == 1 ? 2 : 3);
		assert_ptr_equal(pkts[1], between);
		rte_pktmbuf_free_bulk(pkts, left);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds),     cmocka_unit_test(only_wanted_kinds), cmocka_unit_test(differences),
		cmocka_unit_test(tcp_flags), cmocka_unit_test(not_joined),        cmocka_unit_test(verified_by_device),
		cmocka_unit_test(limits),    cmocka_unit_test(random_segments),   cmocka_unit_test(random_mix),
		cmocka_unit_test(barriers),
	};

	return cmocka_run_group_tests(tests, node_test_setup, node_test_teardown);
}
