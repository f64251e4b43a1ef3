// SPDX-License-Identifier: Apache-2.0
// Frames from the fabric pass fabric_input first, so that decap nodes get its metadata.
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "host/host.h"
#include "overlay/overlay.h"
#include "policy/address_set.h"
#include "testing/router_fixture.h"

// Labels and VNIs.
#define TO_RED 100
#define TO_BLUE 200
#define TO_LAN 300
#define TO_PORT 400 // a next hop
#define UNIFORM 500
#define UNKNOWN 999

// 10.99.0.1 to 10.0.0.2, protocol 253
#define IP4_INNER "4500001c 0001 0000 40fd 657f 0a630001 0a000002 0102030405060708"
#define IP6_INNER \
	"60000000 0008 fd 40 fd990000000000000000000000000001 fd000000000000000000000000000002 0102030405060708"
#define FRAME_INNER "020000000022 020000000011 88b5 0102030405060708"

enum { MPLSOUDP, MPLSOGRE, VXLAN };
static const char *const nodes[] = {"decap_mplsoudp", "decap_mplsogre", "decap_vxlan"};

struct outer { // zeroes: the usual values
	bool v6;
	uint8_t tos, ttl;
	bool udp_checksum;
	uint16_t checksum_error;
};

static int setup(void **state)
{
	if (router_setup(state) < 0)
		return -1;
	router_nexthop(&(struct nexthop_config){
		.id = FREE_ID, .kind = NH_PORT, .port = {.id = RED0, .mac = router_mac("02:00:00:00:00:03")}});
	label_set(TO_RED, TARGET(TARGET_VRF, RED), NULL);
	label_set(TO_BLUE, TARGET(TARGET_VRF, BLUE), NULL);
	label_set(TO_LAN, TARGET(TARGET_BRIDGE, LAN), NULL);
	label_set(TO_PORT, TARGET(TARGET_NEXTHOP, FREE_ID), NULL);
	label_set(UNIFORM, TARGET(TARGET_VRF, RED) | TARGET_UNIFORM, NULL);
	vni_set(TO_RED, TARGET(TARGET_VRF, RED), NULL);
	vni_set(TO_BLUE, TARGET(TARGET_VRF, BLUE), NULL);
	vni_set(TO_LAN, TARGET(TARGET_BRIDGE, LAN), NULL);
	return vni_set(TO_PORT, TARGET(TARGET_NEXTHOP, FREE_ID), NULL);
}

static void set_udp_checksum(struct rte_mbuf *m, bool v6, uint16_t error)
{
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, 14), *udp = ip + (v6 ? 40 : 20);
	unsigned len = m->data_len - 14u - (v6 ? 40 : 20);
	uint16_t sum = (uint16_t)~router_sum(udp, len, router_sum(ip + (v6 ? 8 : 12), v6 ? 32 : 8, 17 + len));

	sum = (uint16_t)(sum + error);
	udp[6] = (uint8_t)(sum >> 8);
	udp[7] = (uint8_t)sum;
}

// The frame as it comes from the wire. shim: what follows UDP or stands for GRE, in hex.
static struct rte_mbuf *frame(unsigned kind, const struct outer *o, const char *shim, const char *inner)
{
	struct rte_mbuf *m, *body;
	char text[1024];
	unsigned len;

	snprintf(text, sizeof(text), "%s%s%s",
		 kind == MPLSOGRE   ? ""
		 : kind == MPLSOUDP ? "c0de 19eb 0000 0000"
				    : "c0de 12b5 0000 0000",
		 shim, inner);
	body = router_hex(text);
	len = body->data_len;
	if (kind != MPLSOGRE)
		*rte_pktmbuf_mtod_offset(body, rte_be16_t *, 4) = rte_cpu_to_be_16((uint16_t)len);
	m = router_frame(FABRIC0, "02:00:00:00:f0:01", "02:00:00:00:0f:01",
			 &(struct packet){.src = o->v6 ? "2001:db8:f::9" : "203.0.113.9",
					  .dst = o->v6 ? "2001:db8::1" : "192.0.2.1",
					  .tos = o->tos,
					  .ttl = o->ttl,
					  .proto = kind == MPLSOGRE ? IPPROTO_GRE : IPPROTO_UDP,
					  .payload = len});
	memcpy(rte_pktmbuf_mtod_offset(m, void *, m->data_len - len), rte_pktmbuf_mtod(body, void *), len);
	rte_pktmbuf_free(body);
	if (o->udp_checksum || (o->v6 && kind != MPLSOGRE))
		set_udp_checksum(m, o->v6, o->checksum_error);
	return m;
}

static const char *decap(unsigned kind, struct rte_mbuf *m)
{
	const char *edge = node_test_one("fabric_input", m);

	assert_non_null(edge);
	assert_string_equal(edge, nodes[kind]);
	edge = node_test_one(nodes[kind], m);
	assert_non_null(edge);
	if (strcmp(edge, "decap_kernel") == 0 || strcmp(edge, "decap_unknown") == 0)
		edge = node_test_one(edge, m);
	assert_non_null(edge);
	return edge;
}

static void assert_inner(unsigned kind, struct rte_mbuf *m, const char *edge, const char *inner)
{
	const uint8_t *outer = rte_pktmbuf_mtod_offset(m, const uint8_t *, 14);

	assert_string_equal(decap(kind, m), edge);
	assert_int_equal(meta(m)->l3, 0);
	assert_true(meta(m)->flags & META_FROM_TUNNEL);
	assert_bytes(m, inner);
	assert_ptr_equal((uint8_t *)m->buf_addr + meta(m)->outer, outer); // it stays where it was
}

static void assert_dropped(unsigned kind, struct rte_mbuf *m, const char *reason)
{
	assert_string_equal(decap(kind, m), "drop");
	assert_string_equal(node_test_reason(m), reason);
	rte_pktmbuf_free(m);
}

static void into_vrf(unsigned kind, const struct outer *o, const char *shim, uint16_t vrf)
{
	struct rte_mbuf *m = frame(kind, o, shim, IP4_INNER);

	assert_inner(kind, m, "ip4_forward", IP4_INNER);
	assert_int_equal(meta(m)->vrf, vrf);
	assert_int_equal(meta(m)->bridge, UINT16_MAX);
	rte_pktmbuf_free(m);
	if (kind == VXLAN)
		return;
	m = frame(kind, o, shim, IP6_INNER);
	assert_inner(kind, m, "ip6_forward", IP6_INNER);
	assert_int_equal(meta(m)->vrf, vrf);
	rte_pktmbuf_free(m);
}

static const struct outer plain4, plain6 = {.v6 = true};

static void to_vrf(void **state)
{
	const struct outer *const outers[] = {&plain4, &plain6};
	struct rte_mbuf *m;
	unsigned i;

	for (i = 0; i < 2; i++) {
		into_vrf(MPLSOUDP, outers[i], "00064140", RED);
		into_vrf(MPLSOUDP, outers[i], "000c8140", BLUE);
		into_vrf(MPLSOGRE, outers[i], "00008847 00064140", RED);
		into_vrf(VXLAN, outers[i], "0800000000006400 02000000aa01 02000000bb01 0800", RED);
		into_vrf(VXLAN, outers[i], "080000000000c800 00005e000101 02000000bb01 0800",
			 BLUE); // the anycast gateway's MAC is accepted
		m = frame(VXLAN, outers[i], "0800000000006400 02000000aa01 02000000bb01 86dd", IP6_INNER);
		assert_inner(VXLAN, m, "ip6_forward", IP6_INNER);
		rte_pktmbuf_free(m);
	}
}

static void to_bridge(void **state)
{
	static const char *const shims[] = {"0012c140", "00008847 0012c140", "0800000000012c00"};
	struct rte_mbuf *m;
	unsigned kind;

	for (kind = MPLSOUDP; kind <= VXLAN; kind++) {
		m = frame(kind, &plain4, shims[kind], FRAME_INNER);
		assert_inner(kind, m, "bridge_input", FRAME_INNER);
		assert_int_equal(meta(m)->bridge, LAN);
		rte_pktmbuf_free(m);
	}
}

static void to_nexthop(void **state)
{
	static const char *const shims[] = {"00190140", "00008847 00190140",
					    "0800000000019000 02000000aa01 02000000bb01 0800"};
	struct rte_mbuf *m;
	unsigned kind;

	for (kind = MPLSOUDP; kind <= VXLAN; kind++) {
		m = frame(kind, &plain4, shims[kind], IP4_INNER);
		assert_inner(kind, m, "ip4_forward", IP4_INNER);
		assert_true(meta(m)->flags & META_NEXTHOP);
		assert_ptr_equal(meta(m)->nexthop, nexthop_table[FREE_ID]);
		rte_pktmbuf_free(m);
	}
}

static void expect_source(unsigned kind, const struct outer *o, const char *shim, bool accepted)
{
	struct rte_mbuf *m = frame(kind, o, shim, IP4_INNER);

	if (!accepted) {
		assert_dropped(kind, m, "tunnel_source");
		return;
	}
	assert_inner(kind, m, "ip4_forward", IP4_INNER);
	rte_pktmbuf_free(m);
}

// The frames' sources are 203.0.113.9 and 2001:db8:f::9.
static void sources(void **state)
{
	static const char *const shims[] = {"00190140", "00008847 00190140",
					    "0800000000019000 02000000aa01 02000000bb01 0800"};
	struct tunnel_target filtered = {.target = TARGET(TARGET_VRF, RED), .replace = true}, any = filtered;
	const struct ip_prefix four = {router_addr("203.0.113.8"), 31}, six = {router_addr("2001:db8:f::"), 64},
			       others[] = {{router_addr("203.0.113.8"), 32}, {router_addr("2001:db8:f::8"), 128}},
			       both[] = {four, six};
	struct address_group *g = address_group_add("hosts", others, 2, NULL);
	unsigned kind;

	filtered.sources = g;
	assert_int_equal(label_add(TO_PORT, &filtered, NULL), 0);
	assert_int_equal(vni_add(TO_PORT, &filtered, NULL), 0);
	for (kind = MPLSOUDP; kind <= VXLAN; kind++) {
		address_group_set(g, others, 2, NULL);
		expect_source(kind, &plain4, shims[kind], false);
		expect_source(kind, &plain6, shims[kind], false);
		address_group_set(g, &four, 1, NULL);
		expect_source(kind, &plain4, shims[kind], true);
		expect_source(kind, &plain6, shims[kind], false);
		address_group_set(g, both, 2, NULL);
		expect_source(kind, &plain4, shims[kind], true);
		expect_source(kind, &plain6, shims[kind], true);
		address_group_set(g, NULL, 0, NULL);
		expect_source(kind, &plain4, shims[kind], false);
	}
	filtered.target |= TARGET_ENDS; // besides the group, which is empty
	assert_int_equal(label_add(TO_PORT, &filtered, NULL), 0);
	filtered.sources = NULL;
	assert_int_equal(vni_add(TO_PORT, &filtered, NULL), 0);
	for (kind = MPLSOUDP; kind <= VXLAN; kind++) {
		expect_source(kind, &plain4, shims[kind], false);
		router_tunnel(FREE_ID + 1, "vxlan", "203.0.113.9", 100);
		expect_source(kind, &plain4, shims[kind], true);
		expect_source(kind, &plain6, shims[kind], false);
		router_tunnel(FREE_ID + 1, "vxlan", "2001:db8:f::9", 100);
		expect_source(kind, &plain4, shims[kind], false);
		expect_source(kind, &plain6, shims[kind], true);
		assert_int_equal(nexthop_del(FREE_ID + 1, NULL), 0);
		expect_source(kind, &plain6, shims[kind], false);
	}
	any.target = TARGET(TARGET_NEXTHOP, FREE_ID);
	assert_int_equal(label_add(TO_PORT, &any, NULL), 0);
	assert_int_equal(vni_add(TO_PORT, &any, NULL), 0);
	assert_int_equal(address_group_del("hosts", NULL), 0);
	for (kind = MPLSOUDP; kind <= VXLAN; kind++)
		expect_source(kind, &plain6, shims[kind], true);
}

static void label_stacks(void **state)
{
	static const struct {
		const char *stack, *reason;
	} bad[] = {
		{"003e7140", "mpls_unknown_label"},        // 999
		{"fffff140", "mpls_unknown_label"},        // the last one
		{"00064040 00064140", "mpls_stack_depth"}, // not at the bottom
		{"00000140", "mpls_unknown_label"},        // explicit null alone: no service
		{"00001040 00064140", "mpls_reserved"},    // router alert
		{"00003140", "mpls_reserved"},             // implicit null is never on the wire
		{"0000e040 00064140", "mpls_reserved"},    // 14
		{"00000040 00000040 00000040 00064140", "mpls_stack_depth"},
		{"00064100", "mpls_ttl_zero"},
	};
	char gre[64];
	unsigned i;

	for (i = 0; i < RTE_DIM(bad); i++) {
		assert_dropped(MPLSOUDP, frame(MPLSOUDP, &plain4, bad[i].stack, IP4_INNER), bad[i].reason);
		snprintf(gre, sizeof(gre), "00008847 %s", bad[i].stack);
		assert_dropped(MPLSOGRE, frame(MPLSOGRE, &plain4, gre, IP4_INNER), bad[i].reason);
	}
	into_vrf(MPLSOUDP, &plain4, "00000040 00064140", RED); // below explicit nulls, at the greatest depth
	into_vrf(MPLSOUDP, &plain4, "00002040 00000040 00064140", RED);
	into_vrf(MPLSOUDP, &plain4, "00064f01", RED); // TC bits and a TTL of 1 do not matter
	label_stack_depth = 1;
	assert_dropped(MPLSOUDP, frame(MPLSOUDP, &plain4, "00000040 00064140", IP4_INNER), "mpls_stack_depth");
	label_stack_depth = 3;
}

static void truncated(void **state)
{
	static const char *const whole[] = {"00000040 00064140", "20008847 11223344 00064140",
					    "0800000000006400 02000000aa01 02000000bb01 0800"};
	unsigned kind, n, len;
	struct rte_mbuf *m;

	for (kind = MPLSOUDP; kind <= VXLAN; kind++) {
		m = frame(kind, &plain4, whole[kind], "");
		len = m->data_len - (kind == MPLSOGRE ? 34u : 42u);
		rte_pktmbuf_free(m);
		for (n = 0; n < len; n++) {
			m = frame(kind, &plain4, whole[kind], "");
			node_test_one("fabric_input", m);
			rte_pktmbuf_trim(m, (uint16_t)(len - n)); // its own headers still say that it is longer
			assert_string_equal(node_test_one(nodes[kind], m), "drop");
			assert_string_equal(node_test_reason(m), "tunnel_truncated");
			rte_pktmbuf_free(m);
		}
	}
	assert_dropped(MPLSOUDP, frame(MPLSOUDP, &plain4, "00064140", ""), "tunnel_not_ip");
	assert_dropped(MPLSOUDP, frame(MPLSOUDP, &plain4, "00064140", "45000013 0001 0000 40fd 0000 0a630001 0a0000"),
		       "tunnel_not_ip");
	assert_dropped(MPLSOUDP, frame(MPLSOUDP, &plain4, "00064140", "55" IP4_INNER), "tunnel_not_ip");
	assert_dropped(MPLSOUDP, frame(MPLSOUDP, &plain4, "00190140", "55" IP4_INNER), "tunnel_not_ip");
}

static void gre_header(void **state)
{
	struct rte_mbuf *m;
	uint16_t sum;

	into_vrf(MPLSOGRE, &plain4, "20008847 deadbeef 00064140", RED);
	into_vrf(MPLSOGRE, &plain4, "10008847 00000007 00064140", RED);
	into_vrf(MPLSOGRE, &plain4, "30008847 deadbeef 00000007 00064140", RED);
	// GRE version 1 (PPTP), a routing field
	assert_dropped(MPLSOGRE, frame(MPLSOGRE, &plain4, "00018847 00064140", IP4_INNER), "gre_bad_header");
	assert_dropped(MPLSOGRE, frame(MPLSOGRE, &plain4, "40008847 00000000 00064140", IP4_INNER), "gre_bad_header");
	assert_dropped(MPLSOGRE, frame(MPLSOGRE, &plain4, "08008847 00064140", IP4_INNER), "gre_bad_header");
	assert_dropped(MPLSOGRE, frame(MPLSOGRE, &plain4, "04008847 00064140", IP4_INNER), "gre_bad_header");
	assert_dropped(MPLSOGRE, frame(MPLSOGRE, &plain4, "00000800", IP4_INNER), "gre_not_mpls");
	assert_dropped(MPLSOGRE, frame(MPLSOGRE, &plain4, "00008848 00064140", IP4_INNER),
		       "gre_not_mpls"); // upstream-assigned labels
	m = frame(MPLSOGRE, &plain4, "b0008847 00000000 deadbeef 00000007 00064140", IP4_INNER);
	sum = (uint16_t)~router_sum(rte_pktmbuf_mtod_offset(m, uint8_t *, 34), m->data_len - 34u, 0);
	*rte_pktmbuf_mtod_offset(m, rte_be16_t *, 38) = rte_cpu_to_be_16(sum);
	assert_inner(MPLSOGRE, m, "ip4_forward", IP4_INNER);
	rte_pktmbuf_free(m);
	m = frame(MPLSOGRE, &plain4, "b0008847 00000000 deadbeef 00000007 00064140", IP4_INNER);
	*rte_pktmbuf_mtod_offset(m, rte_be16_t *, 38) = rte_cpu_to_be_16((uint16_t)(sum + 1));
	assert_dropped(MPLSOGRE, m, "gre_checksum");
}

static void vxlan_header(void **state)
{
	assert_dropped(VXLAN, frame(VXLAN, &plain4, "0000000000006400 02000000aa01 02000000bb01 0800", IP4_INNER),
		       "vxlan_bad_flags");
	assert_dropped(VXLAN, frame(VXLAN, &plain4, "080000000003e700 02000000aa01 02000000bb01 0800", IP4_INNER),
		       "vxlan_unknown_vni");
	assert_dropped(VXLAN, frame(VXLAN, &plain4, "0800000000000000 02000000aa01 02000000bb01 0800", IP4_INNER),
		       "vxlan_unknown_vni");
	assert_dropped(VXLAN, frame(VXLAN, &plain4, "08000000ffffff00 02000000aa01 02000000bb01 0800", IP4_INNER),
		       "vxlan_unknown_vni");
	assert_dropped(VXLAN, frame(VXLAN, &plain4, "0800000000006400 02000000aa02 02000000bb01 0800", IP4_INNER),
		       "vxlan_wrong_router_mac");
	assert_dropped(VXLAN, frame(VXLAN, &plain4, "0800000000006400 ffffffffffff 02000000bb01 0806", IP4_INNER),
		       "vxlan_wrong_router_mac");
	assert_dropped(VXLAN, frame(VXLAN, &plain4, "0800000000006400 02000000aa01 02000000bb01 0806", IP4_INNER),
		       "tunnel_not_ip");
	// RFC 7348: other flags are ignored
	into_vrf(VXLAN, &plain4, "ff00000000006400 02000000aa01 02000000bb01 0800", RED);
	into_vrf(VXLAN, &plain4, "08abcdef000064ff 02000000aa01 02000000bb01 0800", RED); // reserved fields too
}

static void udp_checksums(void **state)
{
	unsigned v6;

	for (v6 = 0; v6 < 2; v6++) {
		into_vrf(MPLSOUDP, &(struct outer){.v6 = v6, .udp_checksum = true}, "00064140", RED);
		into_vrf(VXLAN, &(struct outer){.v6 = v6, .udp_checksum = true},
			 "0800000000006400 02000000aa01 02000000bb01 0800", RED);
		assert_dropped(MPLSOUDP,
			       frame(MPLSOUDP, &(struct outer){.v6 = v6, .udp_checksum = true, .checksum_error = 1},
				     "00064140", IP4_INNER),
			       "tunnel_udp_checksum");
		assert_dropped(VXLAN,
			       frame(VXLAN, &(struct outer){.v6 = v6, .udp_checksum = true, .checksum_error = 1},
				     "0800000000006400 02000000aa01 02000000bb01 0800", IP4_INNER),
			       "tunnel_udp_checksum");
	}
}

// What a NIC has verified is not verified again, unless that was the inner packet.
static void udp_checksums_by_nic(void **state)
{
	static const struct {
		uint64_t flags;
		uint32_t type;
		bool accepted;
	} cases[] = {{0, 0, false},
		     {RTE_MBUF_F_RX_L4_CKSUM_GOOD, 0, true},
		     {RTE_MBUF_F_RX_L4_CKSUM_GOOD, RTE_PTYPE_L4_UDP, true},
		     {RTE_MBUF_F_RX_L4_CKSUM_GOOD, RTE_PTYPE_TUNNEL_VXLAN, false},
		     {RTE_MBUF_F_RX_OUTER_L4_CKSUM_GOOD, RTE_PTYPE_TUNNEL_VXLAN, true}};
	struct rte_mbuf *m;
	unsigned i;

	for (i = 0; i < RTE_DIM(cases); i++) {
		m = frame(MPLSOUDP, &(struct outer){.udp_checksum = true, .checksum_error = 1}, "00064140", IP4_INNER);
		m->ol_flags = cases[i].flags;
		m->packet_type = cases[i].type;
		assert_string_equal(decap(MPLSOUDP, m), cases[i].accepted ? "ip4_forward" : "drop");
		rte_pktmbuf_free(m);
	}
}

// RFC 6040, figure 4: rows are the inner ECN field, columns the outer one; 9 = drop.
// 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
static const uint8_t ecn_table[4][4] = {{0, 0, 0, 9}, {1, 1, 1, 3}, {2, 1, 2, 3}, {3, 3, 3, 3}};

static struct rte_mbuf *with_ecn(bool v6, uint8_t outer, uint8_t inner)
{
	struct rte_mbuf *m = frame(MPLSOUDP, &(struct outer){.tos = (uint8_t)(0xb8 | outer)}, "00064140",
				   v6 ? IP6_INNER : IP4_INNER);
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, 46);

	if (v6) {
		ip[1] = (uint8_t)(ip[1] | inner << 4);
	} else {
		ip[1] = inner;
		router_checksum4(m, 46);
	}
	return m;
}

static void ecn(void **state)
{
	unsigned v6, outer, inner;
	struct rte_mbuf *m;
	uint8_t *ip;

	for (v6 = 0; v6 < 2; v6++) {
		for (outer = 0; outer < 4; outer++) {
			for (inner = 0; inner < 4; inner++) {
				m = with_ecn(v6, (uint8_t)outer, (uint8_t)inner);
				if (ecn_table[inner][outer] == 9) {
					assert_dropped(MPLSOUDP, m, "tunnel_congested");
					continue;
				}
				decap(MPLSOUDP, m);
				ip = rte_pktmbuf_mtod(m, uint8_t *);
				assert_int_equal(v6 ? ip[1] >> 4 & 3 : ip[1] & 3, ecn_table[inner][outer]);
				// the packet's DSCP is unchanged
				assert_int_equal(v6 ? (ip[0] & 15) << 2 | ip[1] >> 6 : ip[1] >> 2, 0);
				if (!v6)
					assert_int_equal(router_sum(ip, 20, 0), 0xffff);
				rte_pktmbuf_free(m);
			}
		}
	}
}

// A checksum that was wrong stays wrong.
static void ecn_keeps_damage(void **state)
{
	struct rte_mbuf *m = with_ecn(false, 3, 2);

	rte_pktmbuf_mtod_offset(m, uint8_t *, 46)[10] ^= 0x55;
	decap(MPLSOUDP, m);
	assert_int_not_equal(router_sum(rte_pktmbuf_mtod(m, uint8_t *), 20, 0), 0xffff);
	rte_pktmbuf_free(m);
}

// Bridged IP packets get the congestion mark, too; other frames have no field for it.
static void ecn_of_frames(void **state)
{
	static const char mac[] = "020000000022 020000000011 0800 ";
	struct outer o = {.tos = 3};
	char inner[256];
	struct rte_mbuf *m;
	uint8_t *ip;

	snprintf(inner, sizeof(inner), "%s%s", mac, IP4_INNER);
	m = frame(VXLAN, &o, "0800000000012c00", inner);
	ip = rte_pktmbuf_mtod_offset(m, uint8_t *, 14 + 20 + 16 + 14);
	ip[1] = 2;
	router_checksum4(m, 14 + 20 + 16 + 14);
	assert_string_equal(decap(VXLAN, m), "bridge_input");
	assert_int_equal(ip[1], 3);
	assert_int_equal(ip[8], 64);
	assert_int_equal(router_sum(ip, 20, 0), 0xffff);
	rte_pktmbuf_free(m);
	assert_dropped(VXLAN, frame(VXLAN, &o, "0800000000012c00", inner), "tunnel_congested");
	m = frame(VXLAN, &o, "0800000000012c00", FRAME_INNER);
	assert_inner(VXLAN, m, "bridge_input", FRAME_INNER);
	rte_pktmbuf_free(m);
}

static void ecn_of_tagged_frames(void **state)
{
	static const struct {
		const char *tags;
		unsigned length;
	} cases[] = {{"8100 0064 ", 4}, {"88a8 0007 8100 0064 ", 8}};
	struct outer o = {.tos = 3};
	char inner[256];
	struct rte_mbuf *m;
	unsigned i, at;
	uint8_t *ip;

	for (i = 0; i < RTE_DIM(cases); i++) {
		snprintf(inner, sizeof(inner), "020000000022 020000000011 %s0800 %s", cases[i].tags, IP4_INNER);
		at = 14 + 20 + 16 + 14 + cases[i].length;
		m = frame(VXLAN, &o, "0800000000012c00", inner);
		ip = rte_pktmbuf_mtod_offset(m, uint8_t *, at);
		ip[1] = 2;
		router_checksum4(m, at);
		assert_string_equal(decap(VXLAN, m), "bridge_input");
		assert_int_equal(ip[1], 3);
		assert_int_equal(router_sum(ip, 20, 0), 0xffff);
		rte_pktmbuf_free(m);
		assert_dropped(VXLAN, frame(VXLAN, &o, "0800000000012c00", inner), "tunnel_congested");
	}
	// Three tags, or a tag with nothing behind it, are not IP.
	snprintf(inner, sizeof(inner), "020000000022 020000000011 8100 0001 8100 0002 8100 0003 0800 %s", IP4_INNER);
	m = frame(VXLAN, &o, "0800000000012c00", inner);
	assert_inner(VXLAN, m, "bridge_input", inner);
	rte_pktmbuf_free(m);
	m = frame(VXLAN, &o, "0800000000012c00", "020000000022 020000000011 8100");
	assert_inner(VXLAN, m, "bridge_input", "020000000022 020000000011 8100");
	rte_pktmbuf_free(m);
}

static void uniform(void **state)
{
	const struct outer o = {.tos = 0xb8, .ttl = 9};
	struct rte_mbuf *m = frame(MPLSOUDP, &o, "001f4107",
				   IP4_INNER); // the label's TTL counts, not that of the IP header below it
	uint8_t *ip;

	decap(MPLSOUDP, m);
	ip = rte_pktmbuf_mtod(m, uint8_t *);
	assert_int_equal(ip[8], 7);
	assert_int_equal(ip[1], 0xb8);
	assert_int_equal(router_sum(ip, 20, 0), 0xffff);
	rte_pktmbuf_free(m);
	m = frame(MPLSOUDP, &o, "001f41ff", IP6_INNER); // never more than the packet had: a loop must end
	decap(MPLSOUDP, m);
	ip = rte_pktmbuf_mtod(m, uint8_t *);
	assert_int_equal(ip[7], 64);
	assert_int_equal((ip[0] & 15) << 4 | ip[1] >> 4, 0xb8);
	rte_pktmbuf_free(m);
}

static void assert_kernel(unsigned kind, const char *shim, const char *inner)
{
	struct rte_mbuf *m = frame(kind, &plain4, shim, inner);
	unsigned n = m->data_len;

	assert_string_equal(decap(kind, m), "host_output");
	assert_int_equal(m->data_len, n); // as it came
	rte_pktmbuf_free(m);
}

// Beside a host port, tunnels that are not the router's are the kernel's. A packet from the end of a tunnel is not: its
// label or VNI is wrong.
static void tunnels_of_the_kernel(void **state)
{
	static const char vni[] = "080000000003e700 02000000aa01 02000000bb01 0800";
	struct port_config c = {.role = PORT_HOST,
				.kind = "tap",
				.name = "host0",
				.fabric = FABRIC0,
				.vrf = UINT16_MAX,
				.bridge = UINT16_MAX};
	struct error err;

	host_init();
	assert_non_null(port_add(&c, &err));
	assert_kernel(VXLAN, vni, IP4_INNER);
	assert_kernel(MPLSOUDP, "003e7140", IP4_INNER);
	assert_kernel(MPLSOGRE, "00000800", IP4_INNER);
	assert_kernel(MPLSOGRE, "3001880b 00000001 00000001", IP4_INNER); // PPTP: GRE of version 1
	into_vrf(VXLAN, &plain4, "0800000000006400 02000000aa01 02000000bb01 0800", RED);
	into_vrf(MPLSOGRE, &plain4, "00008847 00064140", RED);
	router_tunnel(FREE_ID + 1, "mplsoudp", "203.0.113.9", 100);
	assert_dropped(VXLAN, frame(VXLAN, &plain4, vni, IP4_INNER), "vxlan_unknown_vni");
	assert_dropped(MPLSOUDP, frame(MPLSOUDP, &plain4, "003e7140", IP4_INNER), "mpls_unknown_label");
	assert_kernel(MPLSOGRE, "00000800", IP4_INNER);
	assert_int_equal(nexthop_del(FREE_ID + 1, &err), 0);
	assert_int_equal(port_del("host0", &err), 0);
	assert_dropped(VXLAN, frame(VXLAN, &plain4, vni, IP4_INNER), "vxlan_unknown_vni");
}

static void nexthop_goes(void **state)
{
	struct rte_mbuf *m = frame(MPLSOUDP, &plain4, "00258140", IP4_INNER); // 600
	struct error err;

	router_nexthop(&(struct nexthop_config){.id = FREE_ID + 1, .kind = NH_DISCARD});
	assert_int_equal(label_set(600, TARGET(TARGET_NEXTHOP, FREE_ID + 1), NULL), 0);
	assert_int_equal(nexthop_del(FREE_ID + 1, &err), -EBUSY);
	assert_int_equal(label_unset(600, NULL), 0);
	assert_int_equal(nexthop_del(FREE_ID + 1, &err), 0);
	label_table[600] = TARGET(TARGET_NEXTHOP, FREE_ID + 1); // a worker may still have read the old word
	assert_dropped(MPLSOUDP, m, "tunnel_nexthop_gone");
	label_table[600] = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(to_vrf),        cmocka_unit_test(to_bridge),
		cmocka_unit_test(to_nexthop),    cmocka_unit_test(sources),
		cmocka_unit_test(label_stacks),  cmocka_unit_test(truncated),
		cmocka_unit_test(gre_header),    cmocka_unit_test(vxlan_header),
		cmocka_unit_test(udp_checksums), cmocka_unit_test(udp_checksums_by_nic),
		cmocka_unit_test(ecn),           cmocka_unit_test(ecn_keeps_damage),
		cmocka_unit_test(ecn_of_frames), cmocka_unit_test(ecn_of_tagged_frames),
		cmocka_unit_test(uniform),       cmocka_unit_test(tunnels_of_the_kernel),
		cmocka_unit_test(nexthop_goes),
	};

	return cmocka_run_group_tests(tests, setup, router_teardown);
}
