// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "testing/router_fixture.h"

static struct error err;

static struct ip_prefix prefix(const char *text)
{
	struct ip_prefix p;

	assert_int_equal(ip_parse_prefix(text, NULL, &p, NULL), 0);
	return p;
}

static uint32_t lookup(uint16_t vrf, const char *addr)
{
	struct ip_addr a = router_addr(addr);

	return fib_lookup(a.family == IPV4 ? vrf_fibs[vrf].fib4 : vrf_fibs[vrf].fib6, &a);
}

static void names_and_ids(void **state)
{
	unsigned before = vrf_count();
	struct vrf *v = vrf_add("green", 0, &err);

	assert_non_null(v);
	assert_int_equal(v->id, BLUE + 1); // the next free one
	assert_ptr_equal(vrf_find("green"), v);
	assert_ptr_equal(vrf_get(v->id), v);
	assert_ptr_equal(vrf_next(vrf_get(BLUE)), v);
	assert_null(vrf_add("green", 0, &err));
	assert_int_equal(err.code, EEXIST);
	assert_null(vrf_add("other", BLUE, &err));
	assert_int_equal(err.code, EEXIST);
	assert_string_equal(err.field, "vrf.id");
	assert_non_null(vrf_add("last", VRF_MAX - 1, &err));
	assert_int_equal(vrf_count(), before + 2);
	assert_int_equal(vrf_del("green", &err), 0);
	assert_int_equal(vrf_del("last", &err), 0);
	assert_int_equal(vrf_del("last", &err), -ENOENT);
	assert_int_equal(vrf_count(), before);
}

static void stay(void **state)
{
	assert_int_equal(vrf_del("fabric", &err), -EPERM);
	assert_int_equal(vrf_del("red", &err), -EBUSY);
	assert_non_null(strstr(err.message, "vrf.name 'red': is in use by port '"));
	assert_non_null(vrf_find("red"));
}

static void routes(void **state)
{
	static struct vrf_listener silent;
	struct ip_prefix p = prefix("172.16.0.0/12"), longer = prefix("172.16.0.0/16"),
			 six = prefix("2001:db8:77::/48");
	struct vrf *v = vrf_get(RED);
	uint32_t refs0 = nexthop_get(VIA0)->refs, refs1 = nexthop_get(VIA1)->refs;
	uint64_t n4 = route_count(IPV4), n6 = route_count(IPV6);

	vrf_listen(&silent); // has no callback: skipped
	assert_int_equal(route_set(v, &p, &(struct rib_route){VIA0, ROUTE_API}, &err), 0);
	assert_int_equal(route_set(v, &p, &(struct rib_route){VIA0, ROUTE_API}, &err), 0); // once more changes nothing
	assert_int_equal(nexthop_get(VIA0)->refs, refs0 + 1);
	assert_int_equal(route_set(v, &longer, &(struct rib_route){VIA1, ROUTE_API}, &err), 0);
	assert_int_equal(route_set(v, &six, &(struct rib_route){VIA1, ROUTE_API}, &err), 0);
	assert_int_equal(route_count(IPV4), n4 + 2);
	assert_int_equal(route_count(IPV6), n6 + 1);
	assert_int_equal(lookup(RED, "172.16.1.1"), VIA1);
	assert_int_equal(lookup(RED, "172.17.1.1"), VIA0);
	assert_int_equal(lookup(RED, "2001:db8:77::1"), VIA1);
	assert_int_equal(lookup(BLUE, "172.16.1.1"), FIB_NONE);
	assert_int_equal(route_set(v, &longer, &(struct rib_route){VIA0, ROUTE_API}, &err), 0); // replaced
	assert_int_equal(nexthop_get(VIA0)->refs, refs0 + 2);
	assert_int_equal(lookup(RED, "172.16.1.1"), VIA0);
	assert_int_equal(route_unset(v, &longer, ROUTE_API, &err), 0);
	assert_int_equal(lookup(RED, "172.16.1.1"), VIA0); // the shorter one
	assert_int_equal(route_unset(v, &p, ROUTE_API, &err), 0);
	assert_int_equal(lookup(RED, "172.16.1.1"), FIB_NONE);
	assert_int_equal(route_unset(v, &six, ROUTE_API, &err), 0);
	assert_int_equal(route_unset(v, &p, ROUTE_API, &err), -ENOENT);
	assert_string_equal(err.field, "route.prefix");
	assert_int_equal(nexthop_get(VIA0)->refs, refs0);
	assert_int_equal(nexthop_get(VIA1)->refs, refs1);
	assert_int_equal(route_count(IPV4), n4);
	assert_int_equal(route_count(IPV6), n6);
}

// Only a port can remove the routes that came with it.
static void origins(void **state)
{
	struct ip_prefix guest = prefix("10.0.0.2/32"), gateway = prefix("fd00::1/128"), link = prefix("192.0.2.0/24");
	uint32_t before = lookup(RED, "10.0.0.2");

	assert_int_equal(route_set(vrf_get(RED), &guest, &(struct rib_route){VIA0, ROUTE_API}, &err), -EEXIST);
	assert_int_equal(route_set(vrf_get(RED), &gateway, &(struct rib_route){VIA0, ROUTE_API}, &err), -EEXIST);
	assert_int_equal(route_set(vrf_get(VRF_FABRIC), &link, &(struct rib_route){VIA0, ROUTE_API}, &err), -EEXIST);
	assert_int_equal(route_check(vrf_get(RED), &guest, ROUTE_API, &err), -EEXIST);
	assert_int_equal(route_unset(vrf_get(RED), &guest, ROUTE_API, &err), -EPERM);
	assert_int_equal(lookup(RED, "10.0.0.2"), before);
	assert_int_equal(lookup(RED, "fd00::1"), NH_ID_LOCAL);
	assert_string_equal(route_origin_name(ROUTE_GUEST), "guest");
}

// A VRF's routes are deleted after it, in shares, and release their next hops.
static void deleted_with_routes(void **state)
{
	uint32_t refs = nexthop_get(VIA0)->refs;
	uint64_t n4 = route_count(IPV4), n6 = route_count(IPV6);
	struct vrf *v = vrf_add("green", 9, &err);
	struct ip_prefix p;
	char text[64];
	unsigned i, shares = 0;
	uint64_t memory;

	for (i = 0; i < 20000; i++) {
		snprintf(text, sizeof(text), i & 1 ? "fd00:%x::/32" : "10.%u.0.0/16", i & 1 ? i : i / 2 % 256);
		p = prefix(text);
		assert_int_equal(route_set(v, &p, &(struct rib_route){VIA0, ROUTE_API}, &err), 0);
	}
	assert_int_equal(lookup(9, "10.7.0.1"), VIA0);
	memory = rib_memory();
	assert_int_equal(vrf_del("green", &err), 0);
	assert_int_equal(nexthop_get(VIA0)->refs, refs + 256 + 10000);
	assert_non_null(vrf_add("green", 9, &err)); // name and id are free
	while (vrf_has_routes(vrf_deletions))       // without waiting for workers
		shares++;
	assert_in_range(shares, 2, 100);
	assert_int_equal(nexthop_get(VIA0)->refs, refs);
	while (vrf_del_share())
		;
	assert_in_range(rib_memory(), 0, memory - 10000 * 48);
	assert_int_equal(lookup(9, "10.7.0.1"), FIB_NONE);
	assert_int_equal(lookup(9, "fd00:1::1"), FIB_NONE);
	assert_int_equal(nexthop_get(VIA0)->refs, refs);
	assert_int_equal(route_count(IPV4), n4);
	assert_int_equal(route_count(IPV6), n6);
	assert_int_equal(vrf_del("green", &err), 0);
	router_poll();
}

static void many(void **state)
{
	char name[VRF_NAME];
	unsigned i;

	for (i = 10; i < 4200; i++) {
		snprintf(name, sizeof(name), "tenant-%u", i);
		assert_non_null(vrf_add(name, i, &err));
	}
	for (i = 10; i < 4200; i++) {
		snprintf(name, sizeof(name), "tenant-%u", i);
		assert_int_equal(vrf_del(name, &err), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_ids),
		cmocka_unit_test(stay),
		cmocka_unit_test(routes),
		cmocka_unit_test(origins),
		cmocka_unit_test(deleted_with_routes),
		cmocka_unit_test(many),
	};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
