// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_udp.h>

#include "host/host.h"
#include "l3/encap.h"
#include "l3/tunnel_end.h"
#include "testing/router_fixture.h"

#define HOST "02:00:00:00:0f:01"
#define PORT "02:00:00:00:f0:01"

static const struct packet v4 = {.src = "203.0.113.9", .dst = "192.0.2.1", .tos = 0xb9, .ttl = 33},
			   v6 = {.src = "2001:db8:f::9", .dst = "2001:db8::1", .tos = 0xb9, .ttl = 33};

static void assert_edge(struct rte_mbuf *m, const char *edge)
{
	const char *got = node_test_one("fabric_input", m);

	assert_non_null(got);
	assert_string_equal(got, edge);
	rte_pktmbuf_free(m);
}

static void assert_dropped(struct rte_mbuf *m, const char *reason)
{
	assert_string_equal(node_test_one("fabric_input", m), "drop");
	assert_string_equal(node_test_reason(m), reason);
	rte_pktmbuf_free(m);
}

// The checksum is not verified here.
static struct rte_mbuf *udp_with(const struct packet *p, uint16_t port, rte_be16_t checksum)
{
	struct rte_mbuf *m = router_frame(FABRIC0, PORT, HOST, p);
	struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(m, struct rte_udp_hdr *, m->data_len - 26);

	udp->dst_port = rte_cpu_to_be_16(port);
	udp->dgram_cksum = checksum;
	return m;
}

static struct rte_mbuf *udp(const struct packet *p, uint16_t port)
{
	return udp_with(p, port, 1);
}

static struct rte_mbuf *proto(const struct packet *p, uint8_t number)
{
	struct packet q = *p;

	q.proto = number;
	return router_frame(FABRIC0, PORT, HOST, &q);
}

static void assert_tunnel(struct rte_mbuf *m, const char *edge, unsigned l3)
{
	assert_string_equal(node_test_one("fabric_input", m), edge);
	assert_int_equal(meta(m)->l3, l3);
	assert_int_equal(meta(m)->outer, m->data_off + 14);
	assert_int_equal(meta(m)->tos, 0xb9);
	assert_int_equal(meta(m)->ttl, 33);
	assert_int_equal(meta(m)->vrf, VRF_FABRIC);
	assert_int_equal(meta(m)->bridge, UINT16_MAX);
	rte_pktmbuf_free(m);
}

static void tunnels(void **state)
{
	assert_tunnel(udp(&v4, 6635), "decap_mplsoudp", 14 + 20 + 8);
	assert_tunnel(udp(&v6, 6635), "decap_mplsoudp", 14 + 40 + 8);
	assert_tunnel(udp(&v4, 4789), "decap_vxlan", 14 + 20 + 8);
	assert_tunnel(udp(&v6, 4789), "decap_vxlan", 14 + 40 + 8);
	assert_tunnel(proto(&v4, IPPROTO_GRE), "decap_mplsogre", 14 + 20);
	assert_tunnel(proto(&v6, IPPROTO_GRE), "decap_mplsogre", 14 + 40);
	assert_dropped(udp(&v4, 51234), "fabric_udp_port");
	encap_set_ports(encap_find("mplsoudp"), (uint32_t[]){6635, 51234}, 2);
	assert_tunnel(udp(&v4, 51234), "decap_mplsoudp", 14 + 20 + 8);
	encap_set_ports(encap_find("mplsoudp"), (uint32_t[]){6635}, 1);
	assert_dropped(udp(&v4, 51234), "fabric_udp_port");
}

// Tunnels send a checksum over IPv6 by default.
static void udp6_zero(void **state)
{
	struct nexthop_config c = {.id = FREE_ID,
				   .kind = NH_TUNNEL,
				   .tunnel = {.encap = encap_find("mplsoudp"), .label = 100, .vni = 100}};

	c.tunnel.remote = router_addr(v6.src);
	assert_edge(udp_with(&v4, 6635, 0), "decap_mplsoudp");
	assert_dropped(udp_with(&v6, 6635, 0), "fabric_udp6_zero");
	assert_dropped(udp_with(&v6, 4789, 0), "fabric_udp6_zero");
	router_nexthop(&c);
	assert_dropped(udp_with(&v6, 6635, 0), "fabric_udp6_zero");
	c.tunnel.udp6_checksum = UDP6_CHECKSUM_OFF;
	router_nexthop(&c);
	assert_edge(udp_with(&v6, 6635, 0), "decap_mplsoudp");
	assert_dropped(udp_with(&v6, 4789, 0), "fabric_udp6_zero"); // not for other encapsulations
	c.tunnel.udp6_checksum = UDP6_CHECKSUM_ON;
	router_nexthop(&c);
	assert_dropped(udp_with(&v6, 6635, 0), "fabric_udp6_zero");
	c.tunnel.udp6_checksum = UDP6_CHECKSUM_DEFAULT;
	c.tunnel.encap = encap_find("vxlan");
	router_nexthop(&c);
	assert_dropped(udp_with(&v6, 4789, 0), "fabric_udp6_zero");
	c.tunnel.udp6_checksum = UDP6_CHECKSUM_OFF;
	router_nexthop(&c);
	assert_edge(udp_with(&v6, 4789, 0), "decap_vxlan");
	assert_int_equal(nexthop_del(FREE_ID, NULL), 0);
	assert_dropped(udp_with(&v6, 4789, 0), "fabric_udp6_zero");
	accept_udp6_zero = true;
	assert_edge(udp_with(&v6, 4789, 0), "decap_vxlan");
	accept_udp6_zero = false;
	assert_edge(udp_with(&v6, 4789, 1), "decap_vxlan");
}

static void local(void **state)
{
	assert_edge(proto(&v4, IPPROTO_ICMP), "ip_local");
	assert_dropped(proto(&v4, IPPROTO_TCP), "fabric_protocol");
	assert_dropped(proto(&v6, IPPROTO_TCP), "fabric_protocol");
}

static struct rte_mbuf *icmp6(const char *dst, const char *mac, uint8_t type)
{
	struct rte_mbuf *m =
		router_frame(FABRIC0, mac, HOST,
			     &(struct packet){.src = "2001:db8::2", .dst = dst, .proto = IPPROTO_ICMPV6, .ttl = 255});

	*rte_pktmbuf_mtod_offset(m, uint8_t *, 54) = type;
	return m;
}

static void neighbor_protocols(void **state)
{
	struct rte_mbuf *m = router_frame(FABRIC0, "ff:ff:ff:ff:ff:ff", HOST, &v4);

	rte_pktmbuf_mtod(m, struct rte_ether_hdr *)->ether_type = RTE_BE16(RTE_ETHER_TYPE_ARP);
	assert_edge(m, "arp_input");
	assert_edge(icmp6("ff02::1:ff00:1", "33:33:ff:00:00:01", 135), "nd_input");
	assert_edge(icmp6("2001:db8::1", PORT, 136), "nd_input");
	assert_edge(icmp6("2001:db8::1", PORT, 128), "ip_local");
	assert_dropped(icmp6("ff02::1", "33:33:00:00:00:01", 128), "fabric_not_local");
}

static void not_ours(void **state)
{
	struct packet p = v4;
	struct rte_mbuf *m = router_frame(FABRIC0, "02:00:00:00:00:77", HOST, &v4);

	assert_dropped(m, "fabric_not_local_mac");
	p.dst = "192.0.2.9";
	assert_dropped(router_frame(FABRIC0, PORT, HOST, &p), "fabric_not_local");
	p.dst = "10.0.0.1"; // a tenant's gateway is not an address of the underlay
	assert_dropped(router_frame(FABRIC0, PORT, HOST, &p), "fabric_not_local");
	p.dst = "198.51.100.1"; // the other fabric port's address is one
	assert_tunnel(udp(&p, 6635), "decap_mplsoudp", 42);
	p = v6;
	p.dst = "2001:db8::9";
	assert_dropped(router_frame(FABRIC0, PORT, HOST, &p), "fabric_not_local");
	m = router_frame(FABRIC0, PORT, HOST, &v4);
	rte_pktmbuf_mtod(m, struct rte_ether_hdr *)->ether_type = RTE_BE16(0x88b5);
	assert_dropped(m, "fabric_unknown_type");
}

static void martians(void **state)
{
	static const char *const bad4[] = {"0.0.0.0",         "127.0.0.1", "224.0.0.1",
					   "255.255.255.255", "192.0.2.1", "198.51.100.1"};
	static const char *const bad6[] = {"::", "::1", "ff02::1", "2001:db8::1", "2001:db8:1::1"};
	struct packet p = v4;
	unsigned i;

	for (i = 0; i < RTE_DIM(bad4); i++) {
		p.src = bad4[i];
		assert_dropped(udp(&p, 6635), "fabric_martian_source");
	}
	p = v6;
	for (i = 0; i < RTE_DIM(bad6); i++) {
		p.src = bad6[i];
		assert_dropped(udp(&p, 6635), "fabric_martian_source");
	}
}

static void bad_ip(void **state)
{
	static const struct {
		unsigned at;
		uint8_t value;
		bool checksum;
	} bad4[] = {{0, 0x65, true}, {0, 0x44, true}, {0, 0x4f, true}, {2, 1, true}, {3, 19, true}, {10, 0xee, false}};
	static const struct {
		unsigned at;
		uint8_t value;
	} bad6[] = {{0, 0x40}, {4, 1}, {5, 27}};
	struct packet p = v4;
	struct rte_mbuf *m;
	unsigned i;

	for (i = 0; i < RTE_DIM(bad4); i++) {
		m = udp(&v4, 6635);
		*rte_pktmbuf_mtod_offset(m, uint8_t *, 14 + bad4[i].at) = bad4[i].value;
		if (bad4[i].checksum)
			router_checksum4(m, 14);
		assert_dropped(m, "fabric_bad_header");
	}
	for (i = 0; i < RTE_DIM(bad6); i++) {
		m = udp(&v6, 6635);
		*rte_pktmbuf_mtod_offset(m, uint8_t *, 14 + bad6[i].at) = bad6[i].value;
		assert_dropped(m, "fabric_bad_header");
	}
	p.frag = 0x2000;
	assert_dropped(udp(&p, 6635), "fabric_fragment");
	p.frag = 5;
	assert_dropped(udp(&p, 6635), "fabric_fragment");
	p.frag = 0x4000; // do not fragment
	assert_edge(udp(&p, 6635), "decap_mplsoudp");
	assert_dropped(proto(&v6, IPPROTO_FRAGMENT), "fabric_fragment");
}

static void bad_udp(void **state)
{
	static const uint16_t lengths[] = {0, 7, 27, 65535};
	struct rte_mbuf *m;
	unsigned i;

	for (i = 0; i < RTE_DIM(lengths); i++) {
		m = udp(&v4, 6635);
		*rte_pktmbuf_mtod_offset(m, rte_be16_t *, 38) = rte_cpu_to_be_16(lengths[i]);
		assert_dropped(m, "fabric_bad_udp");
	}
}

static void truncated(void **state)
{
	struct rte_mbuf *m;
	unsigned n, len;

	for (n = 0; n < 34; n++) {
		m = udp(&v4, 6635);
		rte_pktmbuf_trim(m, (uint16_t)(m->data_len - n));
		assert_dropped(m, "fabric_truncated");
	}
	for (; n < 60; n++) {
		m = udp(&v4, 6635);
		rte_pktmbuf_trim(m, (uint16_t)(m->data_len - n));
		assert_dropped(m, "fabric_bad_header"); // the IP header states more bytes
	}
	for (len = 0; len < 8; len++) { // whole packets that end within UDP
		m = udp(&v4, 6635);
		rte_pktmbuf_trim(m, (uint16_t)(26 - len));
		rte_pktmbuf_mtod_offset(m, uint8_t *, 16)[1] = (uint8_t)(20 + len);
		router_checksum4(m, 14);
		assert_dropped(m, "fabric_truncated");
	}
}

static void padding(void **state)
{
	struct rte_mbuf *m = udp(&v4, 6635);

	memset(rte_pktmbuf_append(m, 18), 0, 18);
	assert_string_equal(node_test_one("fabric_input", m), "decap_mplsoudp");
	assert_int_equal(m->pkt_len, 14 + 46);
	rte_pktmbuf_free(m);
	m = udp(&v6, 6635);
	memset(rte_pktmbuf_append(m, 18), 0, 18);
	assert_string_equal(node_test_one("fabric_input", m), "decap_mplsoudp");
	assert_int_equal(m->pkt_len, 14 + 66);
	rte_pktmbuf_free(m);
}

static struct rte_mbuf *tagged(uint16_t port, uint16_t tci)
{
	struct rte_mbuf *m = router_frame(port, port == FABRIC0 ? PORT : "02:00:00:00:f0:02", HOST, &v4);
	uint8_t *old = rte_pktmbuf_mtod(m, uint8_t *), *new = (uint8_t *)rte_pktmbuf_prepend(m, 4);

	memmove(new, old, 12);
	new[12] = 0x81;
	new[13] = 0;
	new[14] = (uint8_t)(tci >> 8);
	new[15] = (uint8_t)tci;
	*rte_pktmbuf_mtod_offset(m, rte_be16_t *, 18 + 20 + 2) = RTE_BE16(6635);
	return m;
}

static void vlans(void **state)
{
	struct rte_mbuf *m = tagged(FABRIC1, 100);

	assert_string_equal(node_test_one("fabric_input", m), "decap_mplsoudp");
	assert_int_equal(meta(m)->l3, 18 + 28);
	rte_pktmbuf_free(m);
	assert_edge(tagged(FABRIC1, 0xe000 | 100), "decap_mplsoudp"); // priority bits
	assert_dropped(tagged(FABRIC1, 101), "fabric_vlan");
	assert_dropped(tagged(FABRIC0, 100), "fabric_vlan");
	assert_edge(tagged(FABRIC0, 0xe000), "decap_mplsoudp"); // VLAN 0: priority only
	m = router_frame(FABRIC1, "02:00:00:00:f0:02", HOST, &v4);
	assert_dropped(m, "fabric_vlan");
}

// With a host port the kernel gets everything but tunnels.
static void for_the_kernel(void **state)
{
	struct port_config c = {.role = PORT_HOST,
				.kind = "tap",
				.name = "host0",
				.fabric = FABRIC0,
				.vrf = UINT16_MAX,
				.bridge = UINT16_MAX};
	struct packet p = v4;
	struct rte_mbuf *m;
	struct error err;

	host_init();
	assert_non_null(port_add(&c, &err));
	assert_edge(proto(&v4, IPPROTO_ICMP), "host_output");
	assert_edge(proto(&v6, IPPROTO_ICMPV6), "host_output");
	assert_edge(proto(&v4, IPPROTO_TCP), "host_output");
	assert_edge(proto(&v6, IPPROTO_TCP), "host_output");
	assert_edge(udp(&v4, 53), "host_output");
	assert_edge(udp(&v6, 53), "host_output");
	assert_edge(udp(&v4, 6635), "decap_mplsoudp");
	assert_edge(udp(&v6, 4789), "decap_vxlan");
	assert_edge(proto(&v4, IPPROTO_GRE), "decap_mplsogre");
	p.dst = "192.0.2.9"; // an address that only the kernel has
	assert_edge(router_frame(FABRIC0, PORT, HOST, &p), "host_output");
	p.dst = "255.255.255.255";
	p.src = "0.0.0.0"; // DHCP
	assert_edge(router_frame(FABRIC0, "ff:ff:ff:ff:ff:ff", HOST, &p), "host_output");
	assert_edge(icmp6("ff02::1", "33:33:00:00:00:01", 130), "host_output");
	m = router_frame(FABRIC0, PORT, HOST, &v4);
	rte_pktmbuf_mtod(m, struct rte_ether_hdr *)->ether_type = RTE_BE16(0x88cc);
	assert_edge(m, "host_output");
	// Packets for another MAC, malformed packets, and packets of another port.
	assert_dropped(router_frame(FABRIC0, "02:00:00:00:00:77", HOST, &v4), "fabric_not_local_mac");
	m = proto(&v4, IPPROTO_TCP);
	*rte_pktmbuf_mtod_offset(m, uint8_t *, 24) ^= 1;
	assert_dropped(m, "fabric_bad_header");
	m = tagged(FABRIC1, 100);
	*rte_pktmbuf_mtod_offset(m, rte_be16_t *, 18 + 20 + 2) = RTE_BE16(53);
	assert_dropped(m, "fabric_udp_port");
}

static void fragments_for_the_kernel(void **state)
{
	struct packet p = v4;
	struct rte_mbuf *m;

	p.frag = 0x2000; // a first fragment
	assert_edge(udp(&p, 53), "host_output");
	assert_dropped(udp(&p, 6635), "fabric_fragment");
	p.frag = 5;
	assert_edge(udp(&p, 6635), "host_output"); // a later fragment has no ports
	p.proto = IPPROTO_GRE;
	assert_dropped(router_frame(FABRIC0, PORT, HOST, &p), "fabric_fragment");
	m = proto(&v6, IPPROTO_FRAGMENT);
	memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, 54), "\x11\0\0\x01\0\0\0\x07\0\0\x19\xeb", 12);
	assert_dropped(m, "fabric_fragment");
	m = proto(&v6, IPPROTO_FRAGMENT);
	memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, 54), "\x11\0\0\x01\0\0\0\x07\0\0\0\x35", 12);
	assert_edge(m, "host_output");
	m = proto(&v6, IPPROTO_FRAGMENT);
	memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, 54), "\x11\0\0\x08\0\0\0\x07\0\0\x19\xeb", 12);
	assert_edge(m, "host_output");
}

// --- ICMP errors beside a host port belong to who sent the packet that they quote. ---

static uint64_t seed;

static uint32_t any(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

struct quoted {
	bool v6;
	struct ip_addr src, dst;
	uint8_t proto, type;
	uint16_t port;
	bool mine;
};

static struct quoted any_quote(void)
{
	static const uint8_t errors4[] = {3, 11, 12}, errors6[] = {1, 2, 3, 4};
	static const uint16_t tunnels[] = {6635, 4789, 6081}, others[] = {53, 179, 4790};
	struct quoted q = {.v6 = any(2), .mine = true, .proto = any(3) ? IPPROTO_UDP : IPPROTO_GRE};

	q.type = q.v6 ? errors6[any(RTE_DIM(errors6))] : errors4[any(RTE_DIM(errors4))];
	q.src = router_addr(q.v6 ? v6.dst : v4.dst);
	q.dst = router_addr(q.v6 ? v6.src : v4.src);
	q.port = tunnels[any(RTE_DIM(tunnels))];
	q.mine = any(2);
	if (q.mine)
		return q;
	switch (any(4)) {
	case 0: // a tunnel of the kernel's own
		q.dst = router_addr(q.v6 ? "2001:db8:f::77" : "203.0.113.77");
		break;
	case 1: // another address of the kernel
		q.src = router_addr(q.v6 ? "2001:db8::77" : "192.0.2.77");
		break;
	case 2:
		q.proto = any(2) ? IPPROTO_TCP : IPPROTO_SCTP;
		break;
	default:
		q.proto = IPPROTO_UDP;
		q.port = others[any(RTE_DIM(others))];
	}
	return q;
}

static struct rte_mbuf *icmp_about(const struct quoted *q)
{
	unsigned hlen = q->v6 ? 40 : 20, n = q->v6 ? 16 : 4, at = q->v6 ? 8 : 12;
	struct packet p = q->v6 ? v6 : v4;
	struct rte_mbuf *m;
	uint8_t *icmp, *ip;

	p.proto = q->v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
	p.src = q->v6 ? "2001:db8:f::fe" : "203.0.113.254"; // the hop
	p.payload = 8 + hlen + 8;
	m = router_frame(FABRIC0, PORT, HOST, &p);
	icmp = rte_pktmbuf_mtod_offset(m, uint8_t *, 14 + hlen);
	ip = icmp + 8;
	memset(icmp, 0, p.payload);
	icmp[0] = q->type;
	ip[0] = q->v6 ? 0x60 : 0x45;
	ip[q->v6 ? 6 : 9] = q->proto;
	memcpy(ip + at, q->src.bytes, n);
	memcpy(ip + at + n, q->dst.bytes, n);
	ip[hlen + 2] = (uint8_t)(q->port >> 8);
	ip[hlen + 3] = (uint8_t)q->port;
	return m;
}

// CORELANE_ICMP_SEED=N runs number N alone.
static void errors_belong_to_the_sender(void **state)
{
	const char *only = getenv("CORELANE_ICMP_SEED");
	unsigned i, first = only ? (unsigned)atoi(only) : 1, end = only ? first : 2000;

	router_tunnel(FREE_ID, "mplsoudp", v4.src, 100);
	router_tunnel(FREE_ID + 1, "mplsoudp", v6.src, 100);
	for (i = first; i <= end; i++) {
		const char *edge;
		struct rte_mbuf *m;
		struct quoted q;

		seed = i;
		q = any_quote();
		m = icmp_about(&q);
		edge = node_test_one("fabric_input", m);
		if (strcmp(edge, q.mine ? "ip_local" : "host_output") != 0)
			fail_msg("seed %u: IPv%u, ICMP type %u about protocol %u to port %u goes to %s", i,
				 q.v6 ? 6 : 4, q.type, q.proto, q.port, edge);
		rte_pktmbuf_free(m);
	}
	assert_int_equal(nexthop_del(FREE_ID, NULL), 0);
	assert_int_equal(nexthop_del(FREE_ID + 1, NULL), 0);
}

static void the_host_port_goes(void **state)
{
	assert_int_equal(port_del("host0", &(struct error){0}), 0);
	assert_dropped(proto(&v4, IPPROTO_TCP), "fabric_protocol");
	assert_edge(proto(&v4, IPPROTO_ICMP), "ip_local");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tunnels),
		cmocka_unit_test(udp6_zero),
		cmocka_unit_test(local),
		cmocka_unit_test(neighbor_protocols),
		cmocka_unit_test(not_ours),
		cmocka_unit_test(martians),
		cmocka_unit_test(bad_ip),
		cmocka_unit_test(bad_udp),
		cmocka_unit_test(truncated),
		cmocka_unit_test(padding),
		cmocka_unit_test(vlans),
		cmocka_unit_test(for_the_kernel),
		cmocka_unit_test(fragments_for_the_kernel),
		cmocka_unit_test(errors_belong_to_the_sender),
		cmocka_unit_test(the_host_port_goes),
	};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
