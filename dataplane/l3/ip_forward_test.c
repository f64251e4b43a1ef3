// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/offload.h"
#include "l3/icmp.h"
#include "offload/offload_fixture.h"
#include "testing/router_fixture.h"

static const struct packet v4 = {.src = "10.0.0.2", .dst = "10.0.0.3"}, v6 = {.src = "fd00::2", .dst = "fd00::3"};

static const char *node_of(const struct packet *p)
{
	return strchr(p->src, ':') ? "ip6_forward" : "ip4_forward";
}

static uint8_t *ip_of(struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod_offset(m, uint8_t *, meta(m)->l3);
}

static void assert_dropped(const char *node, struct rte_mbuf *m, const char *reason)
{
	assert_string_equal(node_test_one(node, m), "drop");
	assert_string_equal(node_test_reason(m), reason);
	rte_pktmbuf_free(m);
}

static void assert_told(const char *node, struct rte_mbuf *m, enum icmp_what what, uint16_t mtu, const char *reason)
{
	assert_string_equal(node_test_one(node, m), "icmp_error");
	assert_string_equal(node_test_reason(m), reason);
	assert_int_equal(meta(m)->arg, (uint32_t)what << 16 | mtu);
	rte_pktmbuf_free(m);
}

static void assert_passed(const struct packet *p, struct rte_mbuf *m, const char *edge)
{
	const char *out = node_test_one(node_of(p), m);

	assert_non_null(out);
	assert_string_equal(out, edge);
	rte_pktmbuf_free(m);
}

static void forwarded(void **state)
{
	struct rte_mbuf *m = router_packet(RED, &v4);

	assert_string_equal(node_test_one("ip4_forward", m), "port_output");
	assert_int_equal(meta(m)->nexthop->port, RED1);
	assert_bytes(m, "4500002e 0000 0000 3f11 67bb 0a000002 0a000003 03e807d0 001a0000 "
			"08090a0b0c0d0e0f101112131415161718 19");
	rte_pktmbuf_free(m);
	m = router_packet(RED, &v6);
	assert_string_equal(node_test_one("ip6_forward", m), "port_output");
	assert_int_equal(ip_of(m)[7], 63);
	assert_int_equal(meta(m)->nexthop->port, RED1);
	rte_pktmbuf_free(m);
}

static void tenants_apart(void **state)
{
	struct rte_mbuf *m = router_packet(BLUE, &(struct packet){.src = "10.0.0.9", .dst = "10.0.0.2"});

	assert_string_equal(node_test_one("ip4_forward", m), "port_output");
	assert_int_equal(meta(m)->nexthop->port, BLUE0);
	rte_pktmbuf_free(m);
	assert_told("ip4_forward", router_packet(BLUE, &v4), ICMP_WHAT_NO_ROUTE, 0, "ip_no_route"); // 10.0.0.3 is red's
	assert_told("ip6_forward", router_packet(BLUE, &v6), ICMP_WHAT_NO_ROUTE, 0, "ip_no_route");
	// there is no such VRF
	assert_told("ip4_forward", router_packet(77, &v4), ICMP_WHAT_NO_ROUTE, 0, "ip_no_route");
	assert_told("ip6_forward", router_packet(VRF_MAX - 1, &v6), ICMP_WHAT_NO_ROUTE, 0, "ip_no_route");
}

static void to_router(void **state)
{
	assert_passed(&v4, router_packet(RED, &(struct packet){.src = "10.0.0.2", .dst = "10.0.0.1", .ttl = 1}),
		      "ip_local");
	assert_passed(&v6, router_packet(RED, &(struct packet){.src = "fd00::2", .dst = "fd00::1", .ttl = 1}),
		      "ip_local");
	assert_passed(&v4, router_packet(VRF_FABRIC, &(struct packet){.src = "192.0.2.7", .dst = "192.0.2.9"}),
		      "neighbor_hold");
}

struct bad {
	unsigned at;
	uint8_t value;
	bool checksum; // corrected after the change
	const char *reason;
};

static void each_bad(const struct packet *p, const struct bad *bad, unsigned n)
{
	struct rte_mbuf *m;
	unsigned i;

	for (i = 0; i < n; i++) {
		m = router_packet(RED, p);
		ip_of(m)[bad[i].at] = bad[i].value;
		if (bad[i].checksum)
			router_checksum4(m, 0);
		assert_dropped(node_of(p), m, bad[i].reason);
	}
}

static void bad_headers(void **state)
{
	static const struct bad bad4[] = {{0, 0x55, false, "ip_bad_version"},
					  {0, 0x44, false, "ip4_bad_header_length"},
					  {0, 0x40, false, "ip4_bad_header_length"},
					  {0, 0x4f, false, "ip4_bad_header_length"},
					  {2, 1, false, "ip_truncated"},
					  {3, 19, false, "ip_truncated"},
					  {3, 47, false, "ip_truncated"},
					  {10, 0xff, false, "ip4_bad_checksum"},
					  {8, 63, false, "ip4_bad_checksum"},
					  {12, 0, true, "ip_martian_source"},
					  {12, 127, true, "ip_martian_source"},
					  {12, 224, true, "ip_martian_source"},
					  {12, 255, true, "ip_martian_source"},
					  {16, 224, true, "ip_multicast"},
					  {16, 239, true, "ip_multicast"},
					  {16, 255, true, "ip_multicast"}};
	static const struct bad bad6[] = {{0, 0x45, false, "ip_bad_version"},
					  {4, 1, false, "ip_truncated"},
					  {5, 27, false, "ip_truncated"},
					  {8, 0xff, false, "ip_martian_source"},
					  {24, 0xff, false, "ip_multicast"}};
	struct rte_mbuf *m;
	unsigned n;

	each_bad(&v4, bad4, RTE_DIM(bad4));
	each_bad(&v6, bad6, RTE_DIM(bad6));
	assert_dropped("ip6_forward", router_packet(RED, &(struct packet){.src = "::", .dst = "fd00::3"}),
		       "ip_martian_source");
	assert_dropped("ip6_forward", router_packet(RED, &(struct packet){.src = "::1", .dst = "fd00::3"}),
		       "ip_martian_source");
	assert_dropped("ip6_forward", router_packet(RED, &(struct packet){.src = "fe80::1", .dst = "fd00::3"}),
		       "ip_link_local");
	for (n = 0; n < 46; n++) {
		m = router_packet(RED, &v4);
		rte_pktmbuf_trim(m, (uint16_t)(46 - n));
		assert_dropped("ip4_forward", m, "ip_truncated");
	}
	for (n = 0; n < 66; n++) {
		m = router_packet(RED, &v6);
		rte_pktmbuf_trim(m, (uint16_t)(66 - n));
		assert_dropped("ip6_forward", m, "ip_truncated");
	}
	m = router_packet(RED, &v4);
	meta(m)->l3 = 60; // beyond its end
	assert_dropped("ip4_forward", m, "ip_truncated");
}

static void options_and_padding(void **state)
{
	struct rte_mbuf *m = router_packet(RED, &v4);
	uint8_t *ip = ip_of(m);

	ip[0] = 0x46; // the UDP ports are options now, which are not read
	router_checksum4(m, 0);
	assert_passed(&v4, m, "port_output");
	m = router_packet(RED, &v4);
	memset(rte_pktmbuf_append(m, 14), 0, 14);
	assert_string_equal(node_test_one("ip4_forward", m), "port_output");
	assert_int_equal(m->pkt_len, 46);
	assert_int_equal(m->data_len, 46);
	rte_pktmbuf_free(m);
	m = router_packet(RED, &v6);
	memset(rte_pktmbuf_append(m, 14), 0, 14);
	assert_string_equal(node_test_one("ip6_forward", m), "port_output");
	assert_int_equal(m->pkt_len, 66);
	rte_pktmbuf_free(m);
}

// A chain is cut where its packet ends: in the first buffer, in the middle of another, or at the end of one.
static void padded_chain(void **state)
{
	static const struct {
		unsigned more, total; // bytes in each of two more buffers, and what the IP header says
		uint16_t segs;
	} cases[] = {{100, 40, 1}, {100, 46, 1}, {100, 47, 2}, {100, 146, 2}, {100, 200, 3}};
	struct rte_mbuf *m, *tail;
	unsigned i, j;

	for (i = 0; i < RTE_DIM(cases); i++) {
		m = router_packet(RED, &v4);
		for (j = 0; j < 2; j++) {
			tail = router_hex("");
			rte_pktmbuf_append(tail, (uint16_t)cases[i].more);
			assert_int_equal(rte_pktmbuf_chain(m, tail), 0);
		}
		ip_of(m)[2] = 0;
		ip_of(m)[3] = (uint8_t)cases[i].total;
		router_checksum4(m, 0);
		assert_string_equal(node_test_one("ip4_forward", m), "port_output");
		assert_int_equal(m->pkt_len, cases[i].total);
		assert_int_equal(m->nb_segs, cases[i].segs);
		rte_mbuf_sanity_check(m, 1);
		rte_pktmbuf_free(m);
	}
}

static void ttl(void **state)
{
	struct packet p4 = v4, p6 = v6;
	struct rte_mbuf *m;

	p4.ttl = p6.ttl = 1;
	assert_told("ip4_forward", router_packet(RED, &p4), ICMP_WHAT_TTL, 0, "ip_ttl_exceeded");
	assert_told("ip6_forward", router_packet(RED, &p6), ICMP_WHAT_TTL, 0, "ip_ttl_exceeded");
	m = router_packet(RED, &p4);
	ip_of(m)[8] = 0;
	router_checksum4(m, 0);
	assert_told("ip4_forward", m, ICMP_WHAT_TTL, 0, "ip_ttl_exceeded");
	m = router_packet(RED, &p4); // the router's own answers have their final TTL
	meta(m)->flags = META_ANSWER;
	assert_string_equal(node_test_one("ip4_forward", m), "port_output");
	assert_int_equal(ip_of(m)[8], 1);
	rte_pktmbuf_free(m);
	p4.ttl = 2;
	m = router_packet(RED, &p4);
	assert_string_equal(node_test_one("ip4_forward", m), "port_output");
	assert_int_equal(ip_of(m)[8], 1);
	assert_int_equal(router_sum(ip_of(m), 20, 0), 0xffff);
	rte_pktmbuf_free(m);
}

// The checksum follows the decrement of the TTL, for every value that it can have.
static void checksum_follows(void **state)
{
	struct packet p = v4;
	struct rte_mbuf *m;
	unsigned id;

	for (id = 0; id < 65536; id += 13) {
		p.id = (uint16_t)id;
		p.ttl = (uint8_t)(2 + id % 250);
		m = router_packet(RED, &p);
		node_test_one("ip4_forward", m);
		assert_int_equal(router_sum(ip_of(m), 20, 0), 0xffff);
		rte_pktmbuf_free(m);
	}
}

static void mtu(void **state)
{
	struct packet p4 = v4, p6 = v6;

	p4.payload = 1480;
	p6.payload = 1460;
	assert_passed(&v4, router_packet(RED, &p4), "port_output");
	assert_passed(&v6, router_packet(RED, &p6), "port_output");
	p4.payload++;
	p6.payload++;
	assert_passed(&v4, router_packet(RED, &p4), "ip4_fragment");
	assert_told("ip6_forward", router_packet(RED, &p6), ICMP_WHAT_TOO_BIG, 1500, "ip_too_big");
	p4.frag = 0x4000;
	assert_told("ip4_forward", router_packet(RED, &p4), ICMP_WHAT_TOO_BIG, 1500, "ip_too_big");
	router_tunnel(FREE_ID, "mplsoudp", "203.0.113.9", 100); // IP 20, UDP 8, label 4
	router_route("red", "172.16.0.0/12", FREE_ID);
	p4.dst = "172.16.0.1";
	p4.payload = 1500 - 32 - 20;
	assert_passed(&v4, router_packet(RED, &p4), "encap_mplsoudp4");
	p4.payload++;
	assert_told("ip4_forward", router_packet(RED, &p4), ICMP_WHAT_TOO_BIG, 1468, "ip_too_big");
	p4.frag = 0;
	assert_passed(&v4, router_packet(RED, &p4), "ip4_fragment");
	router_unroute("red", "172.16.0.0/12");
}

static void kinds_of_nexthop(void **state)
{
	static const struct {
		const char *encap;
		const char *remote, *edge;
	} tunnels[] = {{"mplsoudp", "203.0.113.9", "encap_mplsoudp4"}, {"mplsoudp", "2001:db8:f::9", "encap_mplsoudp6"},
		       {"mplsogre", "203.0.113.9", "encap_mplsogre4"}, {"mplsogre", "2001:db8:f::9", "encap_mplsogre6"},
		       {"vxlan", "203.0.113.9", "encap_vxlan4"},       {"vxlan", "2001:db8:f::9", "encap_vxlan6"}};
	struct packet p = {.src = "10.0.0.2", .dst = "172.16.0.1"};
	struct rte_mbuf *m;
	unsigned i;

	router_tunnel(FREE_ID, "mplsoudp", "203.0.113.9", 100);
	router_route("red", "172.16.0.0/12", FREE_ID);
	for (i = 0; i < RTE_DIM(tunnels); i++) {
		router_tunnel(FREE_ID, tunnels[i].encap, tunnels[i].remote, 100);
		m = router_packet(RED, &p);
		assert_string_equal(node_test_one("ip4_forward", m), tunnels[i].edge);
		assert_int_not_equal(meta(m)->hash, 0); // encapsulation needs it
		rte_pktmbuf_free(m);
	}
	router_tunnel(FREE_ID, "vxlan", "192.88.99.9", 100); // no route in the fabric
	assert_told("ip4_forward", router_packet(RED, &p), ICMP_WHAT_HOST, 0, "nexthop_unresolved");
	router_nexthop(&(struct nexthop_config){.id = FREE_ID, .kind = NH_DISCARD});
	assert_dropped("ip4_forward", router_packet(RED, &p), "route_discard");
	router_nexthop(&(struct nexthop_config){.id = FREE_ID, .kind = NH_REJECT});
	assert_told("ip4_forward", router_packet(RED, &p), ICMP_WHAT_PROHIBITED, 0, "route_reject");
	router_unroute("red", "172.16.0.0/12");
	assert_told("ip4_forward", router_packet(RED, &p), ICMP_WHAT_NO_ROUTE, 0, "ip_no_route");
}

// If a label has selected the next hop, a route to another one is not used.
static void decided_by_label(void **state)
{
	struct rte_mbuf *m = router_packet(BLUE, &v4);

	router_nexthop(&(struct nexthop_config){
		.id = FREE_ID + 1, .kind = NH_PORT, .port = {.id = RED0, .mac = router_mac("02:00:00:00:00:03")}});
	meta(m)->flags = META_FROM_TUNNEL | META_NEXTHOP;
	meta(m)->nexthop = nexthop_table[FREE_ID + 1];
	assert_string_equal(node_test_one("ip4_forward", m), "port_output");
	assert_int_equal(meta(m)->nexthop->port, RED0);
	rte_pktmbuf_free(m);
}

// Returns the group's member that the flow takes.
static uint32_t member_of(const struct packet *p, unsigned flow)
{
	struct rte_mbuf *m = router_packet(RED, p);
	uint8_t *udp = ip_of(m) + 20;
	uint32_t id;

	udp[0] = (uint8_t)(flow >> 8);
	udp[1] = (uint8_t)flow;
	assert_string_equal(node_test_one("ip4_forward", m), "port_output");
	id = meta(m)->nexthop->id;
	rte_pktmbuf_free(m);
	return id;
}

static void groups(void **state)
{
	struct nexthop_config g = {.id = FREE_ID + 4, .kind = NH_GROUP, .group = {.n = 2}};
	struct packet p = {.src = "10.0.0.2", .dst = "172.16.0.1"};
	unsigned flow, first = 0;
	uint32_t id;

	for (id = FREE_ID + 2; id < FREE_ID + 4; id++) {
		router_nexthop(&(struct nexthop_config){
			.id = id,
			.kind = NH_PORT,
			.port = {.id = (uint16_t)(RED0 + id - FREE_ID - 2), .mac = router_mac("02:00:00:00:00:09")}});
		g.group.member[id - FREE_ID - 2] = (struct group_member){id, id == FREE_ID + 2 ? 1 : 3};
	}
	router_nexthop(&g);
	router_route("red", "172.16.0.0/12", FREE_ID + 4);
	for (flow = 1; flow <= 4000; flow++) {
		id = member_of(&p, flow);
		assert_int_equal(member_of(&p, flow), id); // a flow stays
		first += id == FREE_ID + 2;
	}
	assert_in_range(first, 900, 1100); // a quarter
	p.frag = 0x2000; // fragments of a packet take one path, whatever their bytes in place of ports
	id = member_of(&p, 1);
	for (flow = 2; flow < 100; flow++)
		assert_int_equal(member_of(&p, flow), id);
	router_unroute("red", "172.16.0.0/12");
}

static void batches(void **state)
{
	static const char *const dst[] = {"10.0.0.2", "10.0.0.1", "10.0.0.3", "172.31.0.1", "224.0.0.1"};
	static const char *const edges[] = {"port_output", "ip_local", "port_output", "icmp_error", "drop"};
	struct rte_mbuf *pkts[256], *m;
	unsigned i, k, seen[5] = {0};

	for (i = 0; i < RTE_DIM(pkts); i++)
		pkts[i] = router_packet(RED, &(struct packet){.src = "10.0.0.9", .dst = dst[i % 5], .id = (uint16_t)i});
	assert_int_equal(node_test_run("ip4_forward", pkts, RTE_DIM(pkts)), RTE_DIM(pkts));
	for (i = 0; i < RTE_DIM(pkts); i++) {
		m = node_test_outs[i].m;
		k = (unsigned)(ip_of(m)[4] << 8 | ip_of(m)[5]) % 5;
		assert_string_equal(node_test_outs[i].edge, edges[k]);
		seen[k]++;
		rte_pktmbuf_free(m);
	}
	for (k = 0; k < 5; k++)
		assert_in_range(seen[k], 51, 52);
}

// A large segment is as long as its packets: 40 or 60 bytes of headers and `size` of payload, with an MTU of 1500.
static void large_segments(void **state)
{
	static const struct {
		bool v6;
		unsigned size;
		const char *edge;
	} cases[] = {{false, 1460, "port_output"},
		     {false, 1461, "icmp_error"},
		     {true, 1440, "port_output"},
		     {true, 1441, "icmp_error"}};
	struct rte_mbuf *m;
	unsigned i;

	for (i = 0; i < RTE_DIM(cases); i++) {
		m = offload_make(&(struct offload_packet){.v6 = cases[i].v6, .payload = 9000, .size = cases[i].size});
		meta(m)->l3 = 14;
		meta(m)->vrf = RED;
		meta(m)->bridge = UINT16_MAX;
		assert_string_equal(node_test_one(cases[i].v6 ? "ip6_forward" : "ip4_forward", m), cases[i].edge);
		if (cases[i].size > 1460 || (cases[i].v6 && cases[i].size > 1440))
			assert_int_equal(meta(m)->arg, (uint32_t)ICMP_WHAT_TOO_BIG << 16 | 1500);
		else
			assert_true(offload_is_large(m));
		rte_pktmbuf_free(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forwarded),
		cmocka_unit_test(tenants_apart),
		cmocka_unit_test(to_router),
		cmocka_unit_test(bad_headers),
		cmocka_unit_test(options_and_padding),
		cmocka_unit_test(padded_chain),
		cmocka_unit_test(ttl),
		cmocka_unit_test(checksum_follows),
		cmocka_unit_test(mtu),
		cmocka_unit_test(large_segments),
		cmocka_unit_test(kinds_of_nexthop),
		cmocka_unit_test(decided_by_label),
		cmocka_unit_test(groups),
		cmocka_unit_test(batches),
	};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
