// SPDX-License-Identifier: Apache-2.0
// bridge_suppress: who is answered, and the table of addresses behind it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rcu.h"
#include "graph/node_test.h"
#include "l2/bridge_fixture.h"
#include "neighbor/arp_packet.h"
#include "neighbor/nd_packet.h"

#define A "02:00:00:00:00:0a" // asks, at port 1
#define B "02:00:00:00:00:0b" // given at a tunnel, with two addresses
#define GROUP "33:33:ff:00:00:0b"
#define NONE UINT16_MAX

static struct bridge *lan, *other;

static void give(uint16_t bridge, const char *mac, const char *first, const char *second)
{
	struct mac_entry e = {.bridge = bridge, .mac = fixture_mac(mac), .nexthop = 101};

	e.addrs[e.n_addrs++] = fixture_addr(first);
	if (second)
		e.addrs[e.n_addrs++] = fixture_addr(second);
	assert_int_equal(mac_set(&e, &fixture_error), 0);
}

static int setup(void **state)
{
	struct bridge_config c;

	fixture_reset(state);
	lan = fixture_bridge("lan", 1);
	other = fixture_bridge("other", 1);
	c = lan->cfg;
	c.suppress = true;
	assert_int_equal(bridge_set(lan, &c, &fixture_error), 0);
	fixture_join(1, lan->id, NONE);
	fixture_join(2, other->id, NONE);
	give(lan->id, B, "10.0.0.11", "fd00::b");
	return 0;
}

static struct rte_mbuf *arp(uint16_t op, const char *sender, const char *target)
{
	struct rte_mbuf *m = fixture_frame(lan->id, 1, HERE, ALL, A, ARP);
	struct rte_arp_hdr *h = rte_pktmbuf_mtod_offset(m, struct rte_arp_hdr *, sizeof(struct rte_ether_hdr));
	struct ip_addr from = fixture_addr(sender), to = fixture_addr(target);

	h->arp_hardware = RTE_BE16(RTE_ARP_HRD_ETHER);
	h->arp_protocol = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	h->arp_hlen = 6;
	h->arp_plen = 4;
	h->arp_opcode = rte_cpu_to_be_16(op);
	h->arp_data.arp_sha = fixture_mac(A);
	h->arp_data.arp_sip = ip4_be(&from);
	h->arp_data.arp_tip = ip4_be(&to);
	return m;
}

static struct rte_mbuf *solicit(const char *src, const char *target)
{
	struct rte_mbuf *m = fixture_frame_len(fixture_frame(lan->id, 1, HERE, GROUP, A, IP6), 14 + 40 + ND_LEN);
	struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv6_hdr *, sizeof(struct rte_ether_hdr));
	struct ip_addr from = fixture_addr(src), to = fixture_addr(target), group = fixture_addr("ff02::1:ff00:b");
	struct nd_header *nd = (struct nd_header *)(ip + 1);
	struct nd_mac_option *o = (struct nd_mac_option *)(nd + 1);

	nd_fill_ip(ip, from.bytes, group.bytes);
	*nd = (struct nd_header){.type = ND_SOLICIT};
	memcpy(nd->target, to.bytes, 16);
	*o = (struct nd_mac_option){ND_OPT_SOURCE_MAC, 1, fixture_mac(A)};
	if (nd_is_unspecified(from.bytes))
		o->type = 14; // a nonce: there is no source address option then
	nd_fill_checksum(ip, nd);
	return m;
}

static void assert_flooded(struct rte_mbuf *m)
{
	uint8_t before[100];
	unsigned len = m->data_len;

	memcpy(before, rte_pktmbuf_mtod(m, void *), len);
	assert_string_equal(node_test_one("bridge_suppress", m), "bridge_flood");
	assert_int_equal(meta(m)->l3, 0);
	assert_int_equal(m->data_len, len);
	assert_memory_equal(rte_pktmbuf_mtod(m, void *), before, len);
	rte_pktmbuf_free(m);
}

static void assert_answered(struct rte_mbuf *m)
{
	struct rte_ether_addr a = fixture_mac(A), b = fixture_mac(B);
	const struct rte_ether_hdr *eth;

	assert_string_equal(node_test_one("bridge_suppress", m), "port_tx");
	eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	assert_int_equal(meta(m)->out_port, 1);
	assert_true(meta(m)->flags & META_ANSWER);
	assert_memory_equal(&eth->dst_addr, &a, sizeof(a));
	assert_memory_equal(&eth->src_addr, &b, sizeof(b));
	meta(m)->l3 = sizeof(*eth);
}

static void of_arp(void **state)
{
	struct rte_ether_addr b = fixture_mac(B);
	struct rte_mbuf *m = arp(RTE_ARP_OP_REQUEST, "10.0.0.10", "10.0.0.11");
	struct ip_addr asked = fixture_addr("10.0.0.11"), asks = fixture_addr("10.0.0.10");
	struct rte_arp_hdr *h;

	assert_answered(m);
	h = arp_parse(m);
	assert_non_null(h);
	assert_int_equal(h->arp_opcode, RTE_BE16(RTE_ARP_OP_REPLY));
	assert_memory_equal(&h->arp_data.arp_sha, &b, sizeof(b));
	assert_int_equal(h->arp_data.arp_sip, ip4_be(&asked));
	assert_int_equal(h->arp_data.arp_tip, ip4_be(&asks));
	rte_pktmbuf_free(m);
	assert_flooded(arp(RTE_ARP_OP_REQUEST, "10.0.0.10", "10.0.0.12")); // unknown
	assert_flooded(arp(RTE_ARP_OP_REQUEST, "10.0.0.11", "10.0.0.11")); // gratuitous
	assert_flooded(arp(RTE_ARP_OP_REQUEST, "0.0.0.0", "10.0.0.11"));   // a probe
	assert_flooded(arp(RTE_ARP_OP_REPLY, "10.0.0.10", "10.0.0.11"));
	assert_flooded(fixture_frame(lan->id, 1, HERE, ALL, A, ARP)); // malformed
	assert_flooded(fixture_frame(lan->id, 1, HERE, ALL, A, IP));
}

static void of_neighbor_discovery(void **state)
{
	struct ip_addr target = fixture_addr("fd00::b"), source = fixture_addr("fd00::a");
	struct rte_ether_addr b = fixture_mac(B);
	struct rte_mbuf *m = solicit("fd00::a", "fd00::b");
	struct nd_packet p;

	assert_answered(m);
	assert_true(nd_parse(m, &p)); // the checksum, too
	assert_int_equal(p.nd->type, ND_ADVERT);
	assert_int_equal(p.nd->flags, ND_ROUTER | ND_SOLICITED | ND_OVERRIDE);
	assert_memory_equal(p.nd->target, target.bytes, 16);
	assert_memory_equal(p.ip->src_addr, target.bytes, 16);
	assert_memory_equal(p.ip->dst_addr, source.bytes, 16);
	assert_non_null(p.mac);
	assert_memory_equal(p.mac, &b, sizeof(b));
	rte_pktmbuf_free(m);
	assert_flooded(solicit("fd00::a", "fd00::c")); // unknown
	assert_flooded(solicit("::", "fd00::b"));      // duplicate address detection
	m = solicit("fd00::a", "fd00::b");
	rte_pktmbuf_mtod(m, uint8_t *)[14 + 7] = 64; // hop limit: it has passed a router
	assert_flooded(m);
}

static void own_address_is_not_taken(void **state)
{
	give(lan->id, A, "10.0.0.10", "fd00::a");
	assert_flooded(arp(RTE_ARP_OP_REQUEST, "10.0.0.9", "10.0.0.10"));
	assert_flooded(solicit("fd00::9", "fd00::a"));
}

static const char *edge_of(uint16_t bridge, uint16_t port, const char *remote, const char *dst)
{
	struct rte_mbuf *m = fixture_frame(bridge, port, remote, dst, A, ARP);
	const char *edge = node_test_one("bridge_input", m);

	rte_pktmbuf_free(m);
	return edge;
}

static void only_local_ports_of_bridges_with_it(void **state)
{
	assert_string_equal(edge_of(lan->id, 1, HERE, ALL), "bridge_suppress");
	assert_string_equal(edge_of(lan->id, 1, HERE, GROUP), "bridge_suppress");
	assert_string_equal(edge_of(lan->id, 1, HERE, "02:00:00:00:00:77"), "bridge_flood");
	assert_string_equal(edge_of(lan->id, FABRIC, "192.0.2.1", ALL), "bridge_flood");
	assert_string_equal(edge_of(other->id, 2, HERE, ALL), "bridge_flood");
}

static void addresses_go_with_their_mac(void **state)
{
	struct rte_ether_addr mac = fixture_mac(B), found;
	struct ip_addr a = fixture_addr("10.0.0.11");
	uint32_t gone = other->id;
	struct mac_entry e;

	assert_true(mac_get(lan->id, &mac, &e));
	assert_int_equal(e.n_addrs, 2);
	assert_int_equal(e.addrs[0].family, IPV4);
	assert_false(mac_ip_find(other->id, &a, &found));
	give(other->id, A, "10.0.0.11", NULL); // another tenant has the same address
	assert_true(mac_ip_find(lan->id, &a, &found));
	assert_memory_equal(&found, &mac, sizeof(mac));
	assert_int_equal(mac_unset(lan->id, &mac, &fixture_error), 0);
	assert_false(mac_ip_find(lan->id, &a, &found));
	assert_true(mac_ip_find(other->id, &a, &found));
	assert_int_equal(bridge_del("other", &fixture_error), -EBUSY); // its port
	fixture_leave(2);
	assert_int_equal(bridge_del("other", &fixture_error), 0);
	assert_false(mac_ip_find(gone, &a, &found));
	other = fixture_bridge("other", 0); // what the teardown expects
}

static void there_is_a_bound(void **state)
{
	struct ip_addr all[MAC_IP_MAX];
	uint32_t i, n = 0;
	int ret = 0;

	for (i = 0; i < MAC_IP_MAX; i++) {
		all[i] = fixture_addr("10.1.0.0");
		all[i].bytes[3] = (uint8_t)i;
	}
	for (n = 0; ret == 0 && n <= MAC_IP_TOTAL / MAC_IP_MAX; n++)
		ret = mac_ip_add((uint64_t)lan->id << 48 | (n + 1), all, MAC_IP_MAX, &fixture_error);
	assert_int_equal(ret, -ENOSPC);
	assert_int_equal(n, MAC_IP_TOTAL / MAC_IP_MAX); // two of them are taken
	for (i = 0; i < n; i++)
		mac_ip_remove((uint64_t)lan->id << 48 | (i + 1));
	assert_int_equal(mac_ip_add((uint64_t)lan->id << 48 | 1, all, MAC_IP_MAX, &fixture_error), 0);
	mac_ip_remove((uint64_t)lan->id << 48 | 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(of_arp, setup),
		cmocka_unit_test_setup(of_neighbor_discovery, setup),
		cmocka_unit_test_setup(own_address_is_not_taken, setup),
		cmocka_unit_test_setup(only_local_ports_of_bridges_with_it, setup),
		cmocka_unit_test_setup(addresses_go_with_their_mac, setup),
		cmocka_unit_test_setup(there_is_a_bound, setup),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
