// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/graph.h"
#include "neighbor/adjacency.h"
#include "neighbor/neighbor.h"
#include "overlay/overlay.h"
#include "testing/router_fixture.h"

#define REMOTE4 "203.0.113.9"
#define REMOTE6 "2001:db8:f::9"

static const struct nexthop *tunnel(void)
{
	return nexthop_table[FREE_ID];
}

static const struct nexthop_entry *entry(void)
{
	return nexthop_get(FREE_ID);
}

static void overhead(void **state)
{
	static const struct {
		const char *encap;
		const char *remote;
		unsigned bytes;
		const char *node;
	} kinds[] = {{"mplsoudp", REMOTE4, 20 + 8 + 4, "encap_mplsoudp4"},
		     {"mplsoudp", REMOTE6, 40 + 8 + 4, "encap_mplsoudp6"},
		     {"mplsogre", REMOTE4, 20 + 4 + 4, "encap_mplsogre4"},
		     {"mplsogre", REMOTE6, 40 + 4 + 4, "encap_mplsogre6"},
		     {"vxlan", REMOTE4, 20 + 8 + 8 + 14, "encap_vxlan4"},
		     {"vxlan", REMOTE6, 40 + 8 + 8 + 14, "encap_vxlan6"}};
	struct port_config port = router_config(FABRIC0);
	unsigned i;

	for (i = 0; i < RTE_DIM(kinds); i++) {
		router_tunnel(FREE_ID, kinds[i].encap, kinds[i].remote, 100);
		assert_string_equal(graph_edge_of("ip4_forward", tunnel()->edge), kinds[i].node);
		assert_int_equal(tunnel()->hdr_len, kinds[i].bytes);
		assert_int_equal(tunnel()->mtu, 1500 - kinds[i].bytes);
		assert_int_equal(entry()->overhead, kinds[i].bytes);
		assert_true(entry()->resolved);
	}
	port.mtu = 9000;
	router_set(FABRIC0, &port);
	assert_int_equal(tunnel()->mtu, 9000 - 70);
	port.mtu = 1500;
	router_set(FABRIC0, &port);
	assert_int_equal(tunnel()->mtu, 1500 - 70);
}

static void udp_port_follows(void **state)
{
	router_tunnel(FREE_ID, "mplsoudp", REMOTE4, 100);
	encap_set_ports(encap_find("mplsoudp"), (uint32_t[]){51234, 6635}, 2);
	router_poll();
	assert_memory_equal(tunnel()->hdr + TUNNEL_HDR_MAX - 4 - 6, "\xc8\x22", 2);
	encap_set_ports(encap_find("mplsoudp"), (uint32_t[]){6635}, 1);
	router_poll();
	assert_memory_equal(tunnel()->hdr + TUNNEL_HDR_MAX - 4 - 6, "\x19\xeb", 2);
}

static void assert_unresolved(void)
{
	assert_false(entry()->resolved);
	assert_int_equal(tunnel()->edge, NH_EDGE_DROP);
	assert_int_equal(tunnel()->n_paths, 0);
}

static void follows_routes(void **state)
{
	router_tunnel(FREE_ID, "mplsoudp", "203.0.115.9", 100);
	assert_unresolved();
	router_route("fabric", "203.0.115.0/24", VIA1);
	assert_true(entry()->resolved);
	assert_int_equal(adjacency_table[tunnel()->path[0]]->port, FABRIC1);
	assert_true(ip_addr_eq(&entry()->source, &(struct ip_addr){.family = IPV4, .bytes = {198, 51, 100, 1}}));
	router_route("fabric", "203.0.115.0/25", VIA0); // longer
	assert_int_equal(adjacency_table[tunnel()->path[0]]->port, FABRIC0);
	assert_true(ip_addr_eq(&entry()->source, &(struct ip_addr){.family = IPV4, .bytes = {192, 0, 2, 1}}));
	router_unroute("fabric", "203.0.115.0/25");
	assert_int_equal(adjacency_table[tunnel()->path[0]]->port, FABRIC1);
	router_unroute("fabric", "203.0.115.0/24");
	assert_unresolved();
}

static void set_link(uint16_t port, bool up)
{
	struct port_config c = router_config(port);

	c.disabled = !up;
	router_set(port, &c);
}

static void add_group(uint32_t weight0, uint32_t weight1)
{
	struct nexthop_config g = {.id = FREE_ID + 1, .kind = NH_GROUP, .group = {.n = 2}};

	g.group.member[0] = (struct group_member){VIA0, weight0};
	g.group.member[1] = (struct group_member){VIA1, weight1};
	router_nexthop(&g);
}

static unsigned paths_by(uint16_t port)
{
	unsigned i, n = 0;

	for (i = 0; i < tunnel()->n_paths; i++)
		n += adjacency_table[tunnel()->path[i]]->port == port;
	return n;
}

static void underlay_ecmp(void **state)
{
	add_group(1, 1);
	router_route("fabric", "203.0.116.0/24", FREE_ID + 1);
	router_tunnel(FREE_ID, "mplsoudp", "203.0.116.9", 100);
	assert_int_equal(paths_by(FABRIC0), paths_by(FABRIC1));
	assert_int_equal(tunnel()->n_paths & (tunnel()->n_paths - 1), 0); // a power of two
	add_group(3, 1);
	assert_int_equal(paths_by(FABRIC0), 3 * paths_by(FABRIC1));
	set_link(FABRIC1, false);
	assert_int_equal(paths_by(FABRIC1), 0);
	assert_true(entry()->resolved);
	set_link(FABRIC0, false);
	assert_unresolved();
	set_link(FABRIC0, true);
	set_link(FABRIC1, true);
	assert_int_equal(paths_by(FABRIC0), 3 * paths_by(FABRIC1));
	router_unroute("fabric", "203.0.116.0/24");
}

static uint32_t refs(uint16_t port, const char *addr)
{
	struct ip_addr a = router_addr(addr);
	struct neighbor *n = neighbor_find(port, &a);

	return n ? n->refs : 0;
}

// The remote is a neighbour itself; its subnet moves from one link to the other and back.
static void neighbor_moves(void **state)
{
	struct port_config here = router_config(FABRIC0), there = router_config(FABRIC1), c = here;
	struct ip_prefix moving = here.addrs[0];

	router_tunnel(FREE_ID, "mplsoudp", "192.0.2.200", 100);
	assert_int_equal(refs(FABRIC0, "192.0.2.200"), 1);
	c.addrs[0] = c.addrs[1];
	c.n_addrs = 1;
	router_set(FABRIC0, &c);
	assert_unresolved();
	assert_int_equal(refs(FABRIC0, "192.0.2.200"), 0);
	router_set(FABRIC0, &here);
	assert_int_equal(refs(FABRIC0, "192.0.2.200"), 1);
	port_set(port_get(FABRIC0), &c, NULL); // now without a poll in between
	c = there;
	c.addrs[c.n_addrs++] = moving;
	router_set(FABRIC1, &c);
	assert_int_equal(refs(FABRIC0, "192.0.2.200"), 0);
	assert_int_equal(refs(FABRIC1, "192.0.2.200"), 1);
	assert_int_equal(adjacency_table[tunnel()->path[0]]->port, FABRIC1);
	router_tunnel(FREE_ID, "mplsoudp", REMOTE4, 100);
	assert_int_equal(refs(FABRIC1, "192.0.2.200"), 0);
	router_set(FABRIC1, &there);
	router_set(FABRIC0, &here);
}

static void no_source(void **state)
{
	struct port_config old = router_config(FABRIC0), c = old;

	c.n_addrs = 1; // without the IPv6 address
	router_tunnel(FREE_ID, "vxlan", REMOTE6, 100);
	router_set(FABRIC0, &c);
	assert_unresolved();
	router_set(FABRIC0, &old);
	assert_true(entry()->resolved);
}

static void checked(void **state)
{
	const struct {
		struct tunnel_config t;
		const char *remote, *local, *field;
		int code;
		const char *message;
	} bad[] = {
		{{.encap = encap_find("gre"), .label = 100}, REMOTE4, NULL, "nexthop.tunnel.encap", EINVAL, NULL},
		{{.encap = encap_find("mplsoudp"), .label = 100},
		 REMOTE4,
		 "2001:db8::1",
		 "nexthop.tunnel.local",
		 EINVAL,
		 NULL},
		{{.encap = encap_find("mplsoudp"), .label = 0},
		 REMOTE4,
		 NULL,
		 "nexthop.tunnel.label",
		 EINVAL,
		 "nexthop.tunnel.label: is missing; valid: 16 to 1048575"},
		{{.encap = encap_find("mplsoudp"), .label = 15},
		 REMOTE4,
		 NULL,
		 "nexthop.tunnel.label",
		 ERANGE,
		 "nexthop.tunnel.label '15': is out of range; valid: 16 to 1048575"},
		{{.encap = encap_find("vxlan"), .vni = 0},
		 REMOTE4,
		 NULL,
		 "nexthop.tunnel.vni",
		 EINVAL,
		 "nexthop.tunnel.vni: is missing; valid: 1 to 16777215"},
		{{.encap = encap_find("vxlan"), .vni = 100, .udp6_checksum = UDP6_CHECKSUM_ON},
		 REMOTE4,
		 NULL,
		 "nexthop.tunnel.udp6_checksum",
		 EINVAL,
		 "nexthop.tunnel.udp6_checksum 'on': is for IPv6, and the remote is an IPv4 address; valid: default, "
		 "or an "
		 "IPv6 remote"},
		{{.encap = encap_find("mplsogre"), .label = 100, .udp6_checksum = UDP6_CHECKSUM_OFF},
		 REMOTE6,
		 NULL,
		 "nexthop.tunnel.udp6_checksum",
		 EINVAL,
		 "nexthop.tunnel.udp6_checksum 'off': mplsogre has no UDP checksum; valid: default"},
	};
	struct tunnel_config t;
	struct error err;
	unsigned i;

	for (i = 0; i < RTE_DIM(bad); i++) {
		t = bad[i].t;
		t.remote = router_addr(bad[i].remote);
		if (bad[i].local)
			t.local = router_addr(bad[i].local);
		assert_int_equal(tunnel_check(&t, &err), -bad[i].code);
		assert_string_equal(err.field, bad[i].field);
		if (bad[i].message)
			assert_string_equal(err.message, bad[i].message);
	}
	t = (struct tunnel_config){.encap = encap_find("vxlan"), .vni = (1 << 24) - 1, .remote = router_addr(REMOTE6)};
	assert_int_equal(tunnel_check(&t, &err), 0);
	assert_int_equal(t.ttl, 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overhead),      cmocka_unit_test(udp_port_follows), cmocka_unit_test(follows_routes),
		cmocka_unit_test(underlay_ecmp), cmocka_unit_test(neighbor_moves),   cmocka_unit_test(no_source),
		cmocka_unit_test(checked),
	};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
