// SPDX-License-Identifier: Apache-2.0
// The headers that are expected were made with scapy.
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "overlay/overlay.h"
#include "testing/router_fixture.h"

#define HASH 0x12345678 // source port 49152 + 0x1234, flow label 0x23456
#define LINK4 "020000000f01 02000000f001 0800 "
#define LINK6 "020000000f01 02000000f001 86dd "
#define REMOTE4 "203.0.113.9"
#define REMOTE6 "2001:db8:f::9"

enum payload { IP4, IP6, FRAME4, FRAME };

static struct rte_mbuf *payload(enum payload kind)
{
	static const struct packet ip4 = {.src = "10.0.0.2", .dst = "172.16.0.1", .tos = 0xb9},
				   ip6 = {.src = "fd00::2", .dst = "fd00:99::1", .tos = 0xb9};
	struct rte_mbuf *m;

	if (kind == IP4 || kind == IP6)
		m = router_packet(RED, kind == IP4 ? &ip4 : &ip6);
	else if (kind == FRAME4)
		m = router_frame(LAN0, "02:00:00:00:00:22", "02:00:00:00:00:11", &ip4);
	else
		m = router_hex("ffffffffffff 020000000011 88b5 "
			       "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
			       "202122232425262728292a2b2c2d");
	meta(m)->bridge = kind == FRAME4 || kind == FRAME ? LAN : UINT16_MAX;
	return m;
}

static const char *node_of(const char *encap, bool v6)
{
	return encap_find(encap)->send_node[v6];
}

static void add_hex(char *text, const struct rte_mbuf *m)
{
	const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *);
	unsigned i;

	for (i = 0; i < m->data_len; i++)
		sprintf(text + strlen(text), "%02x", data[i]);
}

// headers: the bytes expected in front of the payload, which must be unchanged.
static void assert_encap(uint32_t nexthop, const char *node, struct rte_mbuf *m, const char *headers)
{
	char want[8192];

	snprintf(want, sizeof(want), "%s", headers);
	add_hex(want, m);
	meta(m)->nexthop = nexthop_table[nexthop];
	meta(m)->hash = HASH;
	assert_string_equal(node_test_one(node, m), "port_tx");
	assert_int_equal(meta(m)->out_port, FABRIC0);
	assert_bytes(m, want);
	rte_pktmbuf_free(m);
}

static const struct {
	const char *encap;
	bool v6;
	enum payload payload;
	const char *headers;
} cases[] = {
	{"mplsoudp", false, IP4, LINK4 "45b9004e0000400040113bdbc0000201cb007109 d23419eb003a0000 00064140"},
	{"mplsoudp", false, IP6, LINK4 "45b900620000400040113bc7c0000201cb007109 d23419eb004e0000 00064140"},
	{"mplsoudp", false, FRAME4, LINK4 "45b9005c0000400040113bcdc0000201cb007109 d23419eb00480000 00064140"},
	{"mplsoudp", false, FRAME, LINK4 "4500005c0000400040113c86c0000201cb007109 d23419eb00480000 00064140"},
	{"mplsoudp", true, IP4,
	 LINK6
	 "6b923456003a114020010db800000000000000000000000120010db8000f00000000000000000009 d23419eb003ada1d 00064140"},
	{"mplsoudp", true, IP6,
	 LINK6
	 "6b923456004e114020010db800000000000000000000000120010db8000f00000000000000000009 d23419eb004e626d 00064140"},
	{"mplsoudp", true, FRAME4,
	 LINK6
	 "6b9234560048114020010db800000000000000000000000120010db8000f00000000000000000009 d23419eb0048cdce 00064140"},
	{"mplsoudp", true, FRAME,
	 LINK6
	 "600234560048114020010db800000000000000000000000120010db8000f00000000000000000009 d23419eb0048ef93 00064140"},
	{"mplsogre", false, IP4, LINK4 "45b9004a00004000402f3bc1c0000201cb007109 00008847 00064140"},
	{"mplsogre", false, IP6, LINK4 "45b9005e00004000402f3badc0000201cb007109 00008847 00064140"},
	{"mplsogre", false, FRAME4, LINK4 "45b9005800004000402f3bb3c0000201cb007109 00008847 00064140"},
	{"mplsogre", false, FRAME, LINK4 "4500005800004000402f3c6cc0000201cb007109 00008847 00064140"},
	{"mplsogre", true, IP4,
	 LINK6 "6b92345600362f4020010db800000000000000000000000120010db8000f00000000000000000009 00008847 00064140"},
	{"mplsogre", true, IP6,
	 LINK6 "6b923456004a2f4020010db800000000000000000000000120010db8000f00000000000000000009 00008847 00064140"},
	{"mplsogre", true, FRAME4,
	 LINK6 "6b92345600442f4020010db800000000000000000000000120010db8000f00000000000000000009 00008847 00064140"},
	{"mplsogre", true, FRAME,
	 LINK6 "6002345600442f4020010db800000000000000000000000120010db8000f00000000000000000009 00008847 00064140"},
	{"vxlan", false, IP4,
	 LINK4
	 "45b900600000400040113bc9c0000201cb007109 d23412b5004c0000 0800000000006400 00005e00010102000000aa010800"},
	{"vxlan", false, IP6,
	 LINK4
	 "45b900740000400040113bb5c0000201cb007109 d23412b500600000 0800000000006400 00005e00010102000000aa0186dd"},
	{"vxlan", false, FRAME4, LINK4 "45b900600000400040113bc9c0000201cb007109 d23412b5004c0000 0800000000006400"},
	{"vxlan", false, FRAME, LINK4 "450000600000400040113c82c0000201cb007109 d23412b5004c0000 0800000000006400"},
	{"vxlan", true, IP4,
	 LINK6 "6b923456004c114020010db800000000000000000000000120010db8000f00000000000000000009 d23412b5004ca372 "
	       "0800000000006400 "
	       "00005e00010102000000aa010800"},
	{"vxlan", true, IP6,
	 LINK6 "6b9234560060114020010db800000000000000000000000120010db8000f00000000000000000009 d23412b50060ace4 "
	       "0800000000006400 "
	       "00005e00010102000000aa0186dd"},
	{"vxlan", true, FRAME4,
	 LINK6 "6b923456004c114020010db800000000000000000000000120010db8000f00000000000000000009 d23412b5004caa42 "
	       "0800000000006400"},
	{"vxlan", true, FRAME,
	 LINK6 "60023456004c114020010db800000000000000000000000120010db8000f00000000000000000009 d23412b5004ccc07 "
	       "0800000000006400"},
};

static void all_kinds(void **state)
{
	unsigned i;

	for (i = 0; i < RTE_DIM(cases); i++) {
		router_tunnel(FREE_ID, cases[i].encap, cases[i].v6 ? REMOTE6 : REMOTE4, 100);
		assert_encap(FREE_ID, node_of(cases[i].encap, cases[i].v6), payload(cases[i].payload),
			     cases[i].headers);
	}
}

// The Ethernet header in front of a routed packet is removed.
static void behind_ethernet(void **state)
{
	struct rte_mbuf *m = router_frame(RED0, GATEWAY, "02:00:00:00:00:03",
					  &(struct packet){.src = "10.0.0.2", .dst = "172.16.0.1", .tos = 0xb9});

	router_tunnel(FREE_ID, "mplsoudp", REMOTE4, 100);
	meta(m)->l3 = 14;
	meta(m)->nexthop = nexthop_table[FREE_ID];
	meta(m)->hash = HASH;
	assert_string_equal(node_test_one("encap_mplsoudp4", m), "port_tx");
	assert_bytes(m, LINK4
		     "45b9004e0000400040113bdbc0000201cb007109 d23419eb003a0000 00064140"
		     "45b9002e000000004011c3f30a000002ac100001 03e807d0001a0000 08090a0b0c0d0e0f10111213141516171819");
	rte_pktmbuf_free(m);
}

static void tunnel_options(void **state)
{
	struct nexthop_config c = {
		.id = FREE_ID,
		.kind = NH_TUNNEL,
		.tunnel = {.encap = encap_find("mplsogre"), .remote = router_addr(REMOTE4), .label = 100}};
	struct tunnel_config *t = &c.tunnel;

	t->gre_has_key = true;
	t->gre_key = 0x11223344;
	router_nexthop(&c);
	assert_encap(FREE_ID, "encap_mplsogre4", payload(IP4),
		     LINK4 "45b9004e00004000402f3bbdc0000201cb007109 2000884711223344 00064140");
	t->gre_has_key = false;
	t->ttl = 200;
	t->fixed_dscp = true;
	t->dscp = 10; // the packet's ECN is kept (RFC 6040)
	router_nexthop(&c);
	assert_encap(FREE_ID, "encap_mplsogre4", payload(IP4),
		     LINK4 "4529004a00004000c82fb450c0000201cb007109 00008847 000641c8");
	t->local = router_addr("192.0.2.77");
	t->fixed_dscp = false;
	t->ttl = 64;
	router_nexthop(&c);
	assert_encap(FREE_ID, "encap_mplsogre4", payload(IP4),
		     LINK4 "45b9004a00004000402f3b75c000024dcb007109 00008847 00064140");
	t->encap = encap_find("vxlan");
	t->vni = 0xabcdef;
	t->local.family = 0;
	t->router_mac = router_mac("02:00:00:00:bb:02");
	router_nexthop(&c);
	assert_encap(FREE_ID, "encap_vxlan4", payload(IP4),
		     LINK4 "45b900600000400040113bc9c0000201cb007109 d23412b5004c0000 08000000abcdef00 "
			   "02000000bb0202000000aa010800");
}

// RFC 3443: in uniform mode the outer headers get the inner TTL, even if they were built with another one.
static void uniform(void **state)
{
	struct nexthop_config c = {.id = FREE_ID,
				   .kind = NH_TUNNEL,
				   .tunnel = {.encap = encap_find("mplsoudp"), .label = 100, .uniform = true}};
	struct packet p4 = {.src = "10.0.0.2", .dst = "172.16.0.1", .tos = 0xb9, .ttl = 17};
	struct packet p6 = {.src = "fd00::2", .dst = "fd00:99::1", .tos = 0xb9, .ttl = 17};

	c.tunnel.remote = router_addr(REMOTE4);
	router_nexthop(&c);
	assert_encap(FREE_ID, "encap_mplsoudp4", router_packet(RED, &p4),
		     LINK4 "45b9004e0000400011116adbc0000201cb007109 d23419eb003a0000 00064111");
	c.tunnel.remote = router_addr(REMOTE6);
	router_nexthop(&c);
	assert_encap(FREE_ID, "encap_mplsoudp6", router_packet(RED, &p6),
		     LINK6 "6b923456004e111120010db800000000000000000000000120010db8000f00000000000000000009 "
			   "d23419eb004e62cb 00064111");
}

static void assert_udp6(const char *encap, enum udp6_checksum wanted, const char *headers)
{
	struct nexthop_config c = {.id = FREE_ID, .kind = NH_TUNNEL};

	c.tunnel = (struct tunnel_config){.encap = encap_find(encap),
					  .remote = router_addr(REMOTE6),
					  .label = 100,
					  .vni = 100,
					  .udp6_checksum = (uint8_t)wanted};
	router_nexthop(&c);
	assert_encap(FREE_ID, node_of(encap, true), payload(IP4), headers);
}

#define OUTER6 "20010db8000000000000000000000001 20010db8000f00000000000000000009 "
#define MPLSOUDP6 LINK6 "6b923456003a1140" OUTER6
#define VXLAN6 LINK6 "6b923456004c1140" OUTER6
#define VXLAN_SHIM "0800000000006400 00005e00010102000000aa010800"

// Each encapsulation has its default, see all_kinds(); a checksum is everywhere the default.
static void udp6_checksum(void **state)
{
	assert_udp6("mplsoudp", UDP6_CHECKSUM_DEFAULT, MPLSOUDP6 "d23419eb003ada1d 00064140");
	assert_udp6("mplsoudp", UDP6_CHECKSUM_ON, MPLSOUDP6 "d23419eb003ada1d 00064140");
	assert_udp6("mplsoudp", UDP6_CHECKSUM_OFF, MPLSOUDP6 "d23419eb003a0000 00064140");
	assert_udp6("vxlan", UDP6_CHECKSUM_DEFAULT, VXLAN6 "d23412b5004ca372" VXLAN_SHIM);
	assert_udp6("vxlan", UDP6_CHECKSUM_ON, VXLAN6 "d23412b5004ca372" VXLAN_SHIM);
	assert_udp6("vxlan", UDP6_CHECKSUM_OFF, VXLAN6 "d23412b5004c0000" VXLAN_SHIM);
}

// Behind a fabric port with a VLAN.
static void tagged(void **state)
{
	struct rte_mbuf *m = payload(IP4);

	router_tunnel(FREE_ID, "mplsoudp", "203.0.114.9", 100);
	meta(m)->nexthop = nexthop_table[FREE_ID];
	meta(m)->hash = HASH;
	assert_string_equal(node_test_one("encap_mplsoudp4", m), "port_tx");
	assert_int_equal(meta(m)->out_port, FABRIC1);
	rte_pktmbuf_trim(m, 46);
	assert_bytes(m, "020000000f02 02000000f002 8100 0064 0800 45b9004e000040004011d2a7c6336401cb007209 "
			"d23419eb003a0000 00064140");
	rte_pktmbuf_free(m);
}

// RFC 7510: the source ports are 49152 and above, and spread.
static void entropy(void **state)
{
	unsigned i, port, distinct = 0;
	static bool seen[65536];
	struct rte_mbuf *m;

	router_tunnel(FREE_ID, "mplsoudp", REMOTE4, 100);
	for (i = 0; i < 1000; i++) {
		m = payload(IP4);
		meta(m)->nexthop = nexthop_table[FREE_ID];
		meta(m)->hash = i * 2654435761u;
		assert_string_equal(node_test_one("encap_mplsoudp4", m), "port_tx");
		port = rte_be_to_cpu_16(*rte_pktmbuf_mtod_offset(m, uint16_t *, 34));
		assert_in_range(port, 49152, 65535);
		distinct += !seen[port];
		seen[port] = true;
		rte_pktmbuf_free(m);
	}
	assert_in_range(distinct, 900, 1000);
}

// While the MAC of a remote on the link is unknown, the packet waits with its outer headers.
static void unresolved(void **state)
{
	struct rte_mbuf *m = payload(IP4);

	router_tunnel(FREE_ID, "mplsogre", "192.0.2.200", 100);
	meta(m)->nexthop = nexthop_table[FREE_ID];
	meta(m)->hash = HASH;
	assert_string_equal(node_test_one("encap_mplsogre4", m), "neighbor_hold");
	assert_int_equal(meta(m)->arg, meta(m)->nexthop->path[0]);
	rte_pktmbuf_trim(m, 46);
	assert_bytes(m, "45b9004a00004000402f .... c0000201c00002c8 00008847 00064140");
	rte_pktmbuf_free(m);
}

// The tunnel gets DSCP and ECN of an IP packet behind VLAN tags.
static void tags_inside(void **state)
{
	static const struct {
		const char *tags;
		uint8_t tos;
	} frames[] = {{"8100 0064 0800 45b9", 0xb9},
		      {"88a8 0007 8100 0064 0800 45b9", 0xb9},
		      {"8100 0064 86dd 6b90", 0xb9},
		      {"8100 0001 8100 0002 8100 0003 0800 45b9", 0},
		      {"8100 0064 0806 45b9", 0}};
	struct rte_mbuf *m;
	char text[256];
	unsigned i;

	router_tunnel(FREE_ID, "vxlan", REMOTE4, 100);
	for (i = 0; i < RTE_DIM(frames); i++) {
		snprintf(text, sizeof(text), "020000000022 020000000011 %s 0000000000000000000000000000000000000000",
			 frames[i].tags);
		m = router_hex(text);
		meta(m)->bridge = LAN;
		meta(m)->nexthop = nexthop_table[FREE_ID];
		meta(m)->hash = HASH;
		assert_string_equal(node_test_one("encap_vxlan4", m), "port_tx");
		assert_int_equal(rte_pktmbuf_mtod_offset(m, uint8_t *, 14)[1], frames[i].tos);
		rte_pktmbuf_free(m);
	}
	nexthop_del(FREE_ID, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_kinds),   cmocka_unit_test(behind_ethernet), cmocka_unit_test(tunnel_options),
		cmocka_unit_test(uniform),     cmocka_unit_test(udp6_checksum),   cmocka_unit_test(tagged),
		cmocka_unit_test(tags_inside), cmocka_unit_test(entropy),         cmocka_unit_test(unresolved),
	};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
