// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "eth/source_check.h"
#include "testing/router_fixture.h"

#define GUEST "02:00:00:00:00:03"
#define OTHER "02:00:00:00:00:99"
#define ALL "ff:ff:ff:ff:ff:ff"

static const struct packet v4 = {.src = "10.0.0.2", .dst = "10.0.0.3"}, v6 = {.src = "fd00::2", .dst = "fd00::3"};

static void set_check(uint16_t port, enum source_check check, const char *mac)
{
	struct port_config cfg = router_config(port);

	source_check_config_edit(&cfg)->check = (uint8_t)check;
	cfg.guest_mac = router_mac(mac);
	router_set(port, &cfg);
}

static int unchecked(void **state)
{
	set_check(RED0, SOURCE_CHECK_NONE, GUEST);
	return 0;
}

static int checked(void **state)
{
	set_check(RED0, SOURCE_CHECK_DEFAULT, GUEST);
	return 0;
}

static struct rte_mbuf *with_type(uint16_t port, const char *dst, const char *src, uint16_t type)
{
	struct rte_mbuf *m = router_frame(port, dst, src, &v4);

	rte_pktmbuf_mtod(m, struct rte_ether_hdr *)->ether_type = rte_cpu_to_be_16(type);
	return m;
}

static const char *enter(struct rte_mbuf *m)
{
	const char *edge = node_test_one("tenant_input", m);

	while (edge && (strcmp(edge, "tenant_rare") == 0 || strcmp(edge, "tenant_input") == 0))
		edge = node_test_one(edge, m);
	return edge;
}

static void assert_edge(struct rte_mbuf *m, const char *edge)
{
	const char *got = enter(m);

	assert_non_null(got);
	assert_string_equal(got, edge);
	rte_pktmbuf_free(m);
}

static void assert_dropped(struct rte_mbuf *m, const char *reason)
{
	assert_string_equal(enter(m), "drop");
	assert_string_equal(node_test_reason(m), reason);
	rte_pktmbuf_free(m);
}

static void routed(void **state)
{
	struct rte_mbuf *m = router_frame(RED0, GATEWAY, GUEST, &v4);

	assert_string_equal(node_test_one("tenant_input", m), "ip4_forward");
	assert_int_equal(meta(m)->vrf, RED);
	assert_int_equal(meta(m)->bridge, UINT16_MAX);
	assert_int_equal(meta(m)->l3, 14);
	rte_pktmbuf_free(m);
	m = router_frame(BLUE0, GATEWAY, GUEST, &v6);
	assert_string_equal(node_test_one("tenant_input", m), "ip6_forward");
	assert_int_equal(meta(m)->vrf, BLUE);
	rte_pktmbuf_free(m);
	m = router_frame(IRB0, GATEWAY, GUEST, &v4); // it leaves the bridge
	assert_string_equal(node_test_one("tenant_input", m), "ip4_forward");
	assert_int_equal(meta(m)->vrf, RED);
	assert_int_equal(meta(m)->bridge, UINT16_MAX);
	rte_pktmbuf_free(m);
	assert_dropped(with_type(RED0, GATEWAY, GUEST, 0x88b5), "eth_unknown_type");
}

static struct rte_mbuf *icmp6(uint16_t port, const char *dst, uint8_t type)
{
	struct rte_mbuf *m = router_frame(
		port, dst, GUEST, &(struct packet){.src = "fd00::2", .dst = "fd00::1", .proto = IPPROTO_ICMPV6});

	*rte_pktmbuf_mtod_offset(m, uint8_t *, 54) = type;
	return m;
}

static void neighbor_protocols(void **state)
{
	unsigned type;

	for (type = 133; type <= 137; type++)
		assert_edge(icmp6(RED0, GATEWAY, (uint8_t)type), "nd_input");
	assert_edge(icmp6(RED0, GATEWAY, 128), "ip6_forward");
	assert_edge(icmp6(RED0, GATEWAY, 138), "ip6_forward");
	assert_edge(icmp6(RED0, "33:33:ff:00:00:01", 135), "nd_input");
	assert_edge(icmp6(IRB0, "33:33:ff:00:00:01", 135), "nd_input");     // it forwards messages for others
	assert_edge(icmp6(LAN0, "33:33:ff:00:00:01", 135), "bridge_input"); // the port has no gateway
	assert_edge(icmp6(IRB0, "33:33:00:00:00:01", 128), "bridge_input");
	assert_edge(with_type(RED0, GATEWAY, GUEST, RTE_ETHER_TYPE_ARP), "arp_input");
	assert_edge(with_type(RED0, ALL, GUEST, RTE_ETHER_TYPE_ARP), "arp_input");
	assert_edge(with_type(IRB0, ALL, GUEST, RTE_ETHER_TYPE_ARP), "arp_input");
	assert_edge(with_type(LAN0, ALL, GUEST, RTE_ETHER_TYPE_ARP), "bridge_input");
}

static void bridged(void **state)
{
	struct rte_mbuf *m = router_frame(LAN0, OTHER, GUEST, &v4);

	assert_string_equal(node_test_one("tenant_input", m), "bridge_input");
	assert_int_equal(meta(m)->bridge, LAN);
	rte_pktmbuf_free(m);
	assert_edge(router_frame(LAN0, GATEWAY, GUEST, &v4), "bridge_input"); // without a VRF it is a guest's MAC
	assert_edge(router_frame(IRB0, OTHER, GUEST, &v4), "bridge_input");
	assert_edge(with_type(IRB0, OTHER, GUEST, 0x88b5), "bridge_input");
	assert_edge(with_type(LAN0, OTHER, GUEST, RTE_ETHER_TYPE_VLAN), "bridge_input");
	assert_dropped(router_frame(RED0, OTHER, GUEST, &v4), "eth_not_for_gateway");
	assert_dropped(router_frame(RED0, ALL, GUEST, &v4), "eth_multicast_ignored");
	assert_dropped(icmp6(RED0, "33:33:00:00:00:01", 128), "eth_multicast_ignored");
	assert_dropped(with_type(RED0, GATEWAY, GUEST, RTE_ETHER_TYPE_VLAN), "eth_vlan_tagged");
}

// VRRP and CARP with group 1 have the gateway's MAC. On a bridge without a gateway it is a guest's.
static void virtual_router_of_a_guest(void **state)
{
	assert_edge(router_frame(LAN0, "01:00:5e:00:00:12", GATEWAY, &v4), "bridge_input");
	assert_edge(router_frame(LAN0, OTHER, GATEWAY, &v4), "bridge_input");
	assert_edge(with_type(LAN0, ALL, GATEWAY, RTE_ETHER_TYPE_ARP), "bridge_input");
	assert_dropped(with_type(IRB0, ALL, GATEWAY, RTE_ETHER_TYPE_ARP), "eth_spoofed_gateway");
}

static struct rte_mbuf *tag(struct rte_mbuf *m, uint16_t type, uint16_t tci)
{
	uint8_t *old = rte_pktmbuf_mtod(m, uint8_t *), *new = (uint8_t *)rte_pktmbuf_prepend(m, 4);
	const uint8_t bytes[] = {(uint8_t)(type >> 8), (uint8_t)type, (uint8_t)(tci >> 8), (uint8_t)tci};

	memmove(new, old, 12);
	memcpy(new + 12, bytes, 4);
	return m;
}

// A tag with id 0 says a priority and no VLAN.
static void priority_tags(void **state)
{
	static const uint16_t types[] = {RTE_ETHER_TYPE_VLAN, RTE_ETHER_TYPE_QINQ};
	struct packet other = {.src = "10.0.0.9", .dst = "10.0.0.3"};
	struct rte_mbuf *m;
	unsigned i;

	for (i = 0; i < RTE_DIM(types); i++) {
		m = tag(router_frame(RED0, GATEWAY, GUEST, &v4), types[i], 0xa000);
		assert_string_equal(enter(m), "ip4_forward");
		assert_int_equal(m->pkt_len, 14 + 46);
		assert_int_equal(rte_pktmbuf_mtod(m, struct rte_ether_hdr *)->ether_type,
				 RTE_BE16(RTE_ETHER_TYPE_IPV4));
		rte_pktmbuf_free(m);
		assert_edge(tag(router_frame(RED0, GATEWAY, GUEST, &v6), types[i], 0xa000), "ip6_forward");
		assert_edge(tag(with_type(IRB0, ALL, GUEST, RTE_ETHER_TYPE_ARP), types[i], 0), "arp_input");
		assert_edge(tag(router_frame(IRB0, GATEWAY, GUEST, &v4), types[i], 0xa000), "ip4_forward");
		assert_dropped(tag(router_frame(RED0, GATEWAY, GUEST, &other), types[i], 0xa000), "source_address");
		assert_dropped(tag(router_frame(BLUE0, GATEWAY, GUEST, &v4), types[i], 5), "eth_vlan_tagged");
		assert_dropped(tag(tag(router_frame(BLUE0, GATEWAY, GUEST, &v4), RTE_ETHER_TYPE_VLAN, 5), types[i], 0),
			       "eth_vlan_tagged");
		assert_edge(tag(router_frame(IRB0, OTHER, GUEST, &v4), types[i], 5), "bridge_input");
		assert_dropped(tag(router_frame(IRB0, GATEWAY, GUEST, &v4), types[i], 5), "eth_gateway_tagged");
		m = tag(router_frame(LAN0, OTHER, GUEST, &v4), types[i], 0xa000);
		assert_string_equal(enter(m), "bridge_input");
		assert_int_equal(m->pkt_len, 18 + 46); // a bridge carries it
		rte_pktmbuf_free(m);
	}
	m = tag(router_frame(BLUE0, GATEWAY, GUEST, &v4), RTE_ETHER_TYPE_VLAN, 0);
	m->data_len = m->pkt_len = 16; // ends within the tag
	assert_dropped(m, "eth_vlan_tagged");
}

static void bad_frames(void **state)
{
	struct rte_mbuf *m;
	unsigned n;

	assert_dropped(router_frame(RED0, GATEWAY, ALL, &v4), "eth_bad_source");
	assert_dropped(router_frame(RED0, GATEWAY, "00:00:00:00:00:00", &v4), "eth_bad_source");
	assert_dropped(router_frame(RED0, GATEWAY, "01:00:5e:00:00:01", &v4), "eth_bad_source");
	assert_dropped(router_frame(RED0, GATEWAY, GATEWAY, &v4), "eth_spoofed_gateway");
	assert_dropped(router_frame(IRB0, OTHER, GATEWAY, &v4), "eth_spoofed_gateway");
	for (n = 0; n < 14; n++) {
		m = router_frame(RED0, GATEWAY, GUEST, &v4);
		rte_pktmbuf_trim(m, (uint16_t)(m->data_len - n));
		assert_dropped(m, "eth_truncated");
	}
	assert_dropped(router_frame(PORTS_END, GATEWAY, GUEST, &v4), "port_unconfigured");
	m = icmp6(RED0, GATEWAY, 135); // too short to be recognised as ND
	rte_pktmbuf_trim(m, (uint16_t)(m->data_len - 54));
	assert_edge(m, "ip6_forward");
}

static struct rte_mbuf *arp(const char *dst, const char *sender)
{
	struct rte_mbuf *m = with_type(IRB0, dst, GUEST, RTE_ETHER_TYPE_ARP);
	struct ip_addr a = router_addr(sender);
	uint32_t be = ip4_be(&a);

	memcpy(rte_pktmbuf_mtod_offset(m, void *, 28), &be, 4);
	return m;
}

static struct rte_mbuf *advert(const char *source, const char *target)
{
	struct packet p = {.src = source, .dst = "fd00:1::9", .proto = IPPROTO_ICMPV6, .payload = 24};
	struct rte_mbuf *m = router_frame(IRB0, OTHER, GUEST, &p);
	struct ip_addr a = router_addr(target);

	*rte_pktmbuf_mtod_offset(m, uint8_t *, 54) = 136;
	memcpy(rte_pktmbuf_mtod_offset(m, void *, 62), a.bytes, 16);
	return m;
}

// Unicast to another guest of the bridge, without a source check.
static void claims_of_the_gateway(void **state)
{
	assert_edge(arp(OTHER, "10.0.1.9"), "bridge_input");
	assert_dropped(arp(OTHER, "10.0.1.1"), "eth_claims_gateway");
	assert_edge(advert("fd00:1::8", "fd00:1::8"), "bridge_input");
	assert_dropped(advert("fd00:1::8", "fd00:1::1"), "eth_claims_gateway");
	assert_dropped(advert("fd00:1::1", "fd00:1::8"), "eth_claims_gateway");
	assert_dropped(advert("fd00:1::8", "fe80::200:5eff:fe00:101"), "eth_claims_gateway");
}

static struct rte_mbuf *llc(uint8_t dsap, uint8_t ssap, uint16_t len)
{
	struct rte_mbuf *m = with_type(IRB0, OTHER, GUEST, 38);

	rte_pktmbuf_mtod(m, uint8_t *)[14] = dsap;
	rte_pktmbuf_mtod(m, uint8_t *)[15] = ssap;
	m->data_len = m->pkt_len = RTE_MIN(m->data_len, len);
	return m;
}

static void frames_of_802_3(void **state)
{
	set_check(IRB0, SOURCE_CHECK_STRICT, GUEST);
	assert_edge(llc(0x42, 0x42, 60), "bridge_input"); // spanning tree
	assert_dropped(llc(0x42, 0x42, 16), "source_unchecked");
	assert_dropped(llc(0xaa, 0xaa, 60), "source_unchecked"); // SNAP
	assert_dropped(llc(0x42, 0xab, 60), "source_unchecked");
	assert_dropped(llc(0x06, 0x06, 60), "source_unchecked");            // IP
	assert_edge(with_type(IRB0, OTHER, GUEST, 0x88cc), "bridge_input"); // LLDP
	set_check(IRB0, SOURCE_CHECK_DEFAULT, "00:00:00:00:00:00");
}

static void strict_where_the_guest_is_known(void **state)
{
	struct packet other4 = {.src = "10.0.0.3", .dst = "10.0.0.9"}, other6 = {.src = "fd00::3", .dst = "fd00::9"};

	assert_dropped(router_frame(RED0, GATEWAY, OTHER, &v4), "source_mac");
	assert_dropped(router_frame(RED0, GATEWAY, GUEST, &other4), "source_address");
	assert_dropped(router_frame(RED0, GATEWAY, GUEST, &other6), "source_address");
	assert_edge(router_frame(IRB0, GATEWAY, OTHER, &other4), "ip4_forward"); // it has no guest
	set_check(RED0, SOURCE_CHECK_NONE, GUEST);
	assert_edge(router_frame(RED0, GATEWAY, OTHER, &other4), "ip4_forward");
	set_check(RED0, SOURCE_CHECK_DEFAULT, "00:00:00:00:00:00");
	assert_edge(router_frame(RED0, GATEWAY, OTHER, &other4), "ip4_forward");
	set_check(RED0, SOURCE_CHECK_DEFAULT, GUEST);
	assert_dropped(router_frame(RED0, GATEWAY, GUEST, &other4), "source_address");
}

// A bridge without a gateway, where the guest's addresses are not known.
static void guards_of_a_bridge(void **state)
{
	static const uint8_t router_types[] = {134, 137, 135};
	static const char *const verdicts[] = {"source_router", "source_router", NULL};
	struct packet dhcp = {.src = "10.7.0.2", .dst = "10.7.0.3", .sport = 67, .dport = 68};
	struct packet dhcp6 = {.src = "fd07::2", .dst = "fd07::3", .sport = 547, .dport = 546};
	struct packet icmp = {.src = "10.7.0.2", .dst = "10.7.0.3", .proto = IPPROTO_ICMP};
	struct packet nd = {.src = "fe80::5", .dst = "ff02::1", .proto = IPPROTO_ICMPV6, .payload = 24};
	struct port_config cfg;
	struct rte_mbuf *m;
	unsigned i;

	set_check(LAN0, SOURCE_CHECK_STRICT, GUEST);
	assert_dropped(router_frame(LAN0, OTHER, GUEST, &dhcp), "source_dhcp_server");
	assert_dropped(router_frame(LAN0, OTHER, GUEST, &dhcp6), "source_dhcp_server");
	for (i = 0; i < RTE_DIM(router_types); i++) {
		m = router_frame(LAN0, OTHER, GUEST, &nd);
		*rte_pktmbuf_mtod_offset(m, uint8_t *, 54) = router_types[i];
		if (verdicts[i])
			assert_dropped(m, verdicts[i]);
		else
			assert_edge(m, "bridge_input");
	}
	m = router_frame(LAN0, OTHER, GUEST, &icmp);
	*rte_pktmbuf_mtod_offset(m, uint8_t *, 34) = 5;
	assert_dropped(m, "source_router");
	m = router_frame(LAN0, OTHER, GUEST, &dhcp);
	m->data_len = m->pkt_len = 36; // the rest of the header in another buffer
	assert_dropped(m, "source_unchecked");
	m = router_frame(LAN0, OTHER, GUEST, &dhcp);
	*rte_pktmbuf_mtod_offset(m, uint8_t *, 14) = 0x44;
	assert_dropped(m, "source_unchecked");

	cfg = router_config(LAN0);
	source_check_config_edit(&cfg)->allow_router = source_check_config_edit(&cfg)->allow_dhcp_server = true;
	router_set(LAN0, &cfg);
	assert_edge(router_frame(LAN0, OTHER, GUEST, &dhcp), "bridge_input");
	assert_edge(router_frame(LAN0, OTHER, GUEST, &dhcp6), "bridge_input");
	m = router_frame(LAN0, OTHER, GUEST, &nd);
	*rte_pktmbuf_mtod_offset(m, uint8_t *, 54) = 134;
	assert_edge(m, "bridge_input");
	source_check_config_edit(&cfg)->allow_router = source_check_config_edit(&cfg)->allow_dhcp_server = false;
	router_set(LAN0, &cfg);
	set_check(LAN0, SOURCE_CHECK_DEFAULT, "00:00:00:00:00:00");
}

// The short cut for most packets decides as the checks one by one.
static void the_short_cut_is_the_same(void **state)
{
	static const char *const macs[] = {GUEST, OTHER};
	static const char *const sources[] = {"10.0.0.2", "10.0.0.3", "10.0.0.1", "0.0.0.0", "fd00::2",
					      "fd00::3",  "fd00::1",  "::",       "fe80::1"};
	static const uint8_t protos[] = {IPPROTO_TCP,     IPPROTO_UDP,      IPPROTO_ICMPV6,
					 IPPROTO_DSTOPTS, IPPROTO_FRAGMENT, IPPROTO_ICMP};
	static const uint16_t ports[] = {1000, 67, 68, 546, 547};
	static const uint16_t lengths[] = {14, 20, 33, 34, 53, 54, 60};
	struct port_fwd quick = *port_fwds[RED0], slow = quick;
	unsigned i, allowed = 0, n = RTE_DIM(sources) * RTE_DIM(macs) * RTE_DIM(protos) * RTE_DIM(lengths) * 25;

	slow.guest4 = UINT32_MAX; // no packet has these
	memset(slow.guest6, 0xff, sizeof(slow.guest6));
	for (i = 0; i < n; i++) {
		const char *src = sources[i % 9];
		struct packet p = {.src = src,
				   .dst = strchr(src, ':') ? "fd00::9" : "10.0.0.9",
				   .proto = protos[i / 18 % RTE_DIM(protos)],
				   .sport = ports[i / 756 % 5],
				   .dport = ports[i / 3780]};
		struct rte_mbuf *m = router_frame(RED0, GATEWAY, macs[i / 9 % 2], &p);

		m->data_len = m->pkt_len = RTE_MIN(m->data_len, lengths[i / 108 % RTE_DIM(lengths)]);
		assert_ptr_equal(source_check(m, &quick), source_check(m, &slow));
		allowed += source_check(m, &quick) == NULL;
		rte_pktmbuf_free(m);
	}
	assert_in_range(allowed, 1, n - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(routed),
		cmocka_unit_test_setup_teardown(neighbor_protocols, unchecked, checked),
		cmocka_unit_test(bridged),
		cmocka_unit_test_setup_teardown(bad_frames, unchecked, checked),
		cmocka_unit_test(claims_of_the_gateway),
		cmocka_unit_test(virtual_router_of_a_guest),
		cmocka_unit_test(priority_tags),
		cmocka_unit_test(frames_of_802_3),
		cmocka_unit_test(strict_where_the_guest_is_known),
		cmocka_unit_test(guards_of_a_bridge),
		cmocka_unit_test(the_short_cut_is_the_same),
	};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
