// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "base/offload.h"
#include "l3/encap.h"
#include "offload/offload_fixture.h"
#include "offload/whole.h"
#include "testing/router_fixture.h"

#define REMOTE "203.0.113.9"

static const char *const encaps[] = {"vxlan", "geneve", "mplsoudp", "mplsogre"};

static uint32_t tunnel_of(unsigned encap)
{
	uint32_t id = FREE_ID + encap;

	if (nexthop_table[id] == NULL)
		router_tunnel(id, encaps[encap], REMOTE, 500);
	return id;
}

// As the route lookup (l3 of the Ethernet header), or a bridge, passes it on.
static struct rte_mbuf *unfinished(const struct offload_packet *p, unsigned encap, bool bridged)
{
	struct rte_mbuf *m = offload_make(p);

	if (p->size == 0) {
		m->ol_flags = p->udp ? RTE_MBUF_F_TX_UDP_CKSUM : RTE_MBUF_F_TX_TCP_CKSUM;
		m->ol_flags |= p->v6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4;
		m->l3_len = p->v6 ? 40 : 20;
		m->l4_len = p->udp ? 8 : 20;
		*rte_pktmbuf_mtod_offset(m, uint16_t *, 14 + m->l3_len + (p->udp ? 6 : 16)) = 0x1234;
	}
	m->port = RED0;
	meta(m)->l3 = bridged ? 0 : 14;
	meta(m)->bridge = bridged ? LAN : UINT16_MAX;
	meta(m)->hash = 77;
	meta(m)->nexthop = nexthop_table[tunnel_of(encap)];
	return m;
}

// An encapsulation passes on what is unfinished; the node makes packets of it, which the encapsulation accepts.
static void cut_before_encapsulation(void **state)
{
	unsigned i, k, n;

	for (i = 0; i < RTE_DIM(encaps) * 8; i++) {
		const struct offload_packet p = {
			.v6 = i & 1, .udp = i & 2, .payload = 5000, .size = 1300, .tcp_flags = 0x10};
		const char *node = encap_find(encaps[i / 8])->send_node[0];
		struct rte_mbuf *m = unfinished(&p, i / 8, i & 4), *out[8];

		assert_string_equal(node_test_one(node, m), "encap_segment");
		n = node_test_run("encap_segment", &m, 1);
		assert_int_equal(n, 4);
		for (k = 0; k < n; k++) {
			assert_string_equal(node_test_outs[k].edge, node);
			out[k] = node_test_outs[k].m;
			assert_int_equal(meta(out[k])->hash, 77);
			assert_int_equal(out[k]->port, RED0);
			assert_false(offload_is_unfinished(out[k]));
			assert_true(router_l4_ok(out[k], 14));
		}
		for (k = 0; k < n; k++) {
			assert_string_equal(node_test_one(node, out[k]), "port_tx");
			rte_pktmbuf_free(out[k]);
		}
	}
}

static void checksum_before_encapsulation(void **state)
{
	unsigned i;

	for (i = 0; i < 8; i++) {
		const struct offload_packet p = {.v6 = i & 1, .udp = i & 2, .payload = 100, .tcp_flags = 0x10};
		struct rte_mbuf *m = unfinished(&p, 0, i & 4);

		assert_int_equal(node_test_run("encap_segment", &m, 1), 1);
		assert_string_equal(node_test_outs[0].edge, "encap_vxlan4");
		assert_false(offload_is_unfinished(m));
		assert_true(router_l4_ok(m, 14));
		rte_pktmbuf_free(m);
	}
}

static void fabric_takes(uint16_t takes)
{
	unsigned i;

	for (i = 1; i < PORT_MAX; i++)
		if (port_table[i] && port_table[i]->cfg.role == PORT_FABRIC)
			port_table[i]->takes = takes;
}

// Runs the node and the encapsulation. Returns how many packets leave the tunnel's begin, in out[].
static unsigned encapsulated(struct rte_mbuf *m, const char *node, struct rte_mbuf **out)
{
	unsigned k, n = node_test_run("encap_segment", &m, 1);

	for (k = 0; k < n; k++)
		out[k] = node_test_outs[k].m;
	for (k = 0; k < n; k++)
		assert_string_equal(node_test_one(node, out[k]), "port_tx");
	return n;
}

// A port that takes segments whole gets one packet. If it is cut afterwards, the packets are those that the node would
// have made; if it is opened, it is the segment again.
static void whole_in_tunnel(void **state)
{
	struct rte_mbuf *cut[8], *whole[8], *parts[OFFLOAD_SEGMENTS_MAX];
	unsigned i, k, n;

	for (i = 0; i < RTE_DIM(encaps) * 8; i++) {
		const struct offload_packet p = {
			.v6 = i & 1, .udp = i & 2, .payload = 5000, .size = 1300, .tcp_flags = 0x10, .buffer = 900};
		const char *node = encap_find(encaps[i / 8])->send_node[0];
		unsigned inner;

		n = encapsulated(unfinished(&p, i / 8, i & 4), node, cut);
		assert_int_equal(n, 4);
		fabric_takes(PORT_TAKES_WHOLE);
		assert_int_equal(encapsulated(unfinished(&p, i / 8, i & 4), node, &whole[0]), 1);
		assert_int_equal(encapsulated(unfinished(&p, i / 8, i & 4), node, &whole[1]), 1);
		fabric_takes(0);
		assert_true(offload_is_whole(whole[0]) && !offload_is_unfinished(whole[0]));
		assert_int_equal(whole_cut(whole[0], 14, parts), 4);
		for (k = 0; k < n; k++) {
			assert_true(offload_equal(parts[k], cut[k]));
			assert_int_equal(parts[k]->ol_flags, 0);
		}
		inner = 14u + whole[1]->outer_l3_len;
		assert_true(whole_open(whole[1], inner));
		assert_true(offload_is_large(whole[1]) && !offload_is_whole(whole[1]));
		assert_int_equal(offload_segments(whole[1], inner), 4);
		assert_int_equal(whole[1]->tso_segsz, 1300);
		assert_int_equal(whole[1]->l4_len, i & 2 ? 8 : 20);
		rte_pktmbuf_free_bulk(cut, n);
		rte_pktmbuf_free_bulk(parts, n);
		rte_pktmbuf_free(whole[1]);
	}
}

// A whole packet of another node's tunnel cannot enter a tunnel as it is.
static void whole_of_others(void **state)
{
	const struct offload_packet p = {.payload = 5000, .size = 1300, .tcp_flags = 0x10, .buffer = 900};
	struct rte_mbuf *m;
	unsigned k, n;

	fabric_takes(PORT_TAKES_WHOLE);
	assert_int_equal(encapsulated(unfinished(&p, 0, false), "encap_vxlan4", &m), 1);
	m->ol_flags |= OFFLOAD_CAME_WHOLE;
	meta(m)->l3 = 14;
	meta(m)->nexthop = nexthop_table[tunnel_of(2)];
	assert_string_equal(node_test_one("encap_mplsoudp4", m), "encap_segment");
	n = node_test_run("encap_segment", &m, 1);
	assert_int_equal(n, 4);
	fabric_takes(0);
	for (k = 0; k < n; k++) {
		assert_string_equal(node_test_outs[k].edge, "encap_mplsoudp4");
		assert_int_equal(node_test_outs[k].m->ol_flags, 0);
		rte_pktmbuf_free(node_test_outs[k].m);
	}
}

// What the peer of a memif says about a packet is compared with its headers.
static void whole_lies(void **state)
{
	const struct offload_packet p = {.payload = 5000, .size = 1300, .tcp_flags = 0x10, .buffer = 900};
	struct rte_mbuf *m, *out[OFFLOAD_SEGMENTS_MAX];
	unsigned i, inner;

	for (i = 0; i < 9; i++) {
		fabric_takes(PORT_TAKES_WHOLE);
		assert_int_equal(encapsulated(unfinished(&p, 0, false), "encap_vxlan4", &m), 1);
		fabric_takes(0);
		inner = 14u + m->outer_l3_len;
		m->tso_segsz = i == 0 ? 0 : i == 1 ? 39 : 1300;
		if (i == 2)
			m->outer_l3_len = (uint16_t)(m->outer_l3_len - 4) & 0x1ff;
		if (i == 3)
			m->outer_l3_len = 511;
		if (i == 4)
			m->outer_l3_len = 0;
		if (i == 5)
			*rte_pktmbuf_mtod_offset(m, uint8_t *, inner) = 0x44;
		if (i == 6)
			*rte_pktmbuf_mtod_offset(m, uint8_t *, inner + 9) = 1;
		if (i == 7)
			*rte_pktmbuf_mtod_offset(m, uint8_t *, inner + 32) = 0x40;
		if (i == 8)
			*rte_pktmbuf_mtod_offset(m, uint8_t *, inner + 3) ^= 1;
		assert_int_equal(whole_cut(m, 14, out), -EINVAL);
		rte_pktmbuf_free(m);
	}
}

static void contradiction(void **state)
{
	const struct offload_packet p = {.payload = 5000, .size = 1300};
	struct rte_mbuf *m = unfinished(&p, 0, false);

	m->tso_segsz = 1;
	assert_string_equal(node_test_one("encap_segment", m), "drop");
	assert_string_equal(node_test_reason(m), "encap_segment_failed");
	rte_pktmbuf_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(cut_before_encapsulation),
					   cmocka_unit_test(checksum_before_encapsulation),
					   cmocka_unit_test(whole_in_tunnel),
					   cmocka_unit_test(whole_of_others),
					   cmocka_unit_test(whole_lies),
					   cmocka_unit_test(contradiction)};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
