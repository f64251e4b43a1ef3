// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "l3/tunnel_end.h"
#include "testing/router_fixture.h"

#define ENDS 5000

static struct tunnel_config config(const char *encap, const char *remote, const char *local, enum udp6_checksum sum)
{
	struct tunnel_config t = {
		.encap = encap_find(encap), .remote = router_addr(remote), .udp6_checksum = (uint8_t)sum};

	if (local)
		t.local = router_addr(local);
	return t;
}

static unsigned ways(const char *remote)
{
	struct ip_addr a = router_addr(remote);
	struct tunnel_end *e = tunnel_end_find(&a);
	struct tunnel_way *w;
	unsigned n = 0;

	for (w = e ? e->ways : NULL; w; w = w->next)
		n++;
	return n;
}

static bool may_send_zero(const char *remote, const char *encap)
{
	struct ip_addr a = router_addr(remote);
	struct rte_ipv6_hdr ip;

	memcpy(ip.src_addr, a.bytes, 16);
	return tunnel_end_may_send_zero(&ip, encap_receive_place(encap_find(encap)));
}

static void counted(void **state)
{
	const char *end = "2001:db8:f::77";
	struct tunnel_config a = config("vxlan", end, NULL, UDP6_CHECKSUM_OFF),
			     b = config("vxlan", end, "2001:db8::1", UDP6_CHECKSUM_OFF),
			     c = config("mplsoudp", end, NULL, UDP6_CHECKSUM_DEFAULT);
	struct tunnel_way *way[4];

	assert_int_equal(ways(end), 0);
	way[0] = tunnel_way_hold(1, &a);
	way[1] = tunnel_way_hold(1, &a);
	assert_ptr_equal(way[0], way[1]);
	assert_int_equal(ways(end), 1);
	way[2] = tunnel_way_hold(1, &b);
	way[3] = tunnel_way_hold(1, &c);
	assert_int_equal(ways(end), 3);
	assert_int_equal(way[0]->end->nexthops, 4);
	assert_true(may_send_zero(end, "vxlan"));
	assert_false(may_send_zero(end, "mplsoudp"));
	assert_false(may_send_zero(end, "geneve"));
	tunnel_way_put(way[0], 1, &a);
	tunnel_way_put(way[2], 1, &b);
	assert_true(may_send_zero(end, "vxlan"));
	tunnel_way_put(way[1], 1, &a);
	assert_false(may_send_zero(end, "vxlan"));
	assert_int_equal(ways(end), 1);
	tunnel_way_put(way[3], 1, &c);
	assert_int_equal(ways(end), 0);
}

// Collectors of mirrors are no ends from which packets come, whatever encapsulation the mirror uses.
static void mirrors(void **state)
{
	static const char *const encaps[] = {"erspan", "vxlan", "geneve"};
	unsigned i;

	for (i = 0; i < RTE_DIM(encaps); i++) {
		struct tunnel_config t = config(encaps[i], "2001:db8:f::78", NULL, UDP6_CHECKSUM_OFF);
		struct tunnel_way *w = tunnel_way_hold(NEXTHOP_API_MAX + 9, &t);

		assert_int_equal(w->end->nexthops, 0);
		assert_int_equal(w->end->zero[encap_receive_place(t.encap)], 0);
		tunnel_way_put(w, NEXTHOP_API_MAX + 9, &t);
	}
}

static const char *name(unsigned i)
{
	static char text[IP_TEXT];

	if (i % 2)
		snprintf(text, sizeof(text), "2001:db8:77::%x", i);
	else
		snprintf(text, sizeof(text), "10.77.%u.%u", i / 256, i % 256);
	return text;
}

static void many(void **state)
{
	static struct tunnel_way *held[ENDS];
	struct tunnel_config t;
	struct ip_addr a;
	unsigned i;

	for (i = 0; i < ENDS; i++) {
		t = config("vxlan", name(i), NULL, UDP6_CHECKSUM_OFF);
		held[i] = tunnel_way_hold(1, &t);
	}
	for (i = 0; i < ENDS; i += 3) {
		t = config("vxlan", name(i), NULL, UDP6_CHECKSUM_OFF);
		tunnel_way_put(held[i], 1, &t);
	}
	for (i = 0; i < ENDS; i++) {
		a = router_addr(name(i));
		assert_int_equal(tunnel_end_find(&a) != NULL, i % 3 != 0);
	}
	for (i = 0; i < ENDS; i++) {
		t = config("vxlan", name(i), NULL, UDP6_CHECKSUM_OFF);
		if (i % 3)
			tunnel_way_put(held[i], 1, &t);
		assert_int_equal(ways(name(i)), 0);
	}
}

// What next hops share, as an ICMP error about their packets needs it.
static void follows_nexthops(void **state)
{
	struct ip_addr remote = router_addr("203.0.113.9"), other = router_addr("203.0.113.10"),
		       own = router_addr("192.0.2.1");
	struct tunnel_way *w;

	router_tunnel(FREE_ID, "mplsoudp", "203.0.113.9", 100);
	router_tunnel(FREE_ID + 1, "mplsoudp", "203.0.113.9", 101);
	w = tunnel_end_find(&remote)->ways;
	assert_int_equal(w->refs, 2);
	assert_true(ip_addr_eq(&w->source, &own));
	assert_int_equal(w->mtu, 1500);
	router_unroute("fabric", "203.0.113.0/24");
	assert_int_equal(w->source.family, 0);
	router_route("fabric", "203.0.113.0/24", VIA0);
	assert_true(ip_addr_eq(&w->source, &own));
	router_tunnel(FREE_ID, "mplsoudp", "203.0.113.10", 100); // replaced
	assert_int_equal(w->refs, 1);
	assert_int_equal(tunnel_end_find(&other)->nexthops, 1);
	assert_int_equal(nexthop_del(FREE_ID, NULL), 0);
	assert_int_equal(nexthop_del(FREE_ID + 1, NULL), 0);
	assert_null(tunnel_end_find(&remote));
	assert_null(tunnel_end_find(&other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(counted), cmocka_unit_test(mirrors), cmocka_unit_test(many),
					   cmocka_unit_test(follows_nexthops)};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
