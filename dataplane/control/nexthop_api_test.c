// SPDX-License-Identifier: Apache-2.0
// Nexthops.AddAll and DelAll, through the API server's own frames.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/api_test.h"
#include "nexthop.pb-c.h"
#include "testing/router_fixture.h"

#define TUNNEL FREE_ID
#define GROUP (FREE_ID + 1)
#define OTHER (FREE_ID + 2)

// Returns the code of the answer, which must contain `message`, and the place of the object that was refused.
static int32_t add_all(Corelane__V1__Nexthop **list, size_t n, const char *message)
{
	Corelane__V1__NexthopAddAllRequest req = CORELANE__V1__NEXTHOP_ADD_ALL_REQUEST__INIT;
	Ttrpc__Response *r;
	int32_t code;

	req.nexthops = list;
	req.n_nexthops = n;
	r = test_ask("corelane.v1.Nexthops", "AddAll", &req.base);
	code = r->status ? r->status->code : 0;
	if (code && (message == NULL || strstr(r->status->message, message) == NULL))
		fail_msg("'%s' is not in '%s'", message ? message : "no error", r->status->message);
	ttrpc__response__free_unpacked(r, NULL);
	return code;
}

static int32_t del_all(uint32_t *ids, size_t n, const char *message)
{
	Corelane__V1__NexthopDelAllRequest req = CORELANE__V1__NEXTHOP_DEL_ALL_REQUEST__INIT;
	Ttrpc__Response *r;
	int32_t code;

	req.ids = ids;
	req.n_ids = n;
	r = test_ask("corelane.v1.Nexthops", "DelAll", &req.base);
	code = r->status ? r->status->code : 0;
	if (code && (message == NULL || strstr(r->status->message, message) == NULL))
		fail_msg("'%s' is not in '%s'", message ? message : "no error", r->status->message);
	ttrpc__response__free_unpacked(r, NULL);
	return code;
}

// Deletes the tunnel, the group of it and another one: all of them or none.
static void del_all_or_none(void)
{
	uint32_t member_first[] = {OTHER, TUNNEL, GROUP}, twice[] = {OTHER, OTHER}, system[] = {OTHER, NH_ID_LOCAL},
		 absent[] = {GROUP, TUNNEL, FREE_ID + 9}, all[] = {GROUP, OTHER, TUNNEL};

	assert_int_not_equal(del_all(member_first, 3, "is in use by next hop"), 0);
	assert_int_not_equal(del_all(twice, 2, "there is no such next hop"), 0);
	assert_int_not_equal(del_all(system, 2, "belongs to the router itself"), 0);
	assert_int_not_equal(del_all(absent, 3, "there is no such next hop"), 0);
	assert_non_null(nexthop_get(GROUP));
	assert_non_null(nexthop_get(OTHER));
	assert_int_equal(nexthop_get(TUNNEL)->refs, 1); // as before
	assert_int_equal(del_all(all, 3, NULL), 0);
	assert_null(nexthop_get(GROUP));
	assert_null(nexthop_get(OTHER));
	assert_null(nexthop_get(TUNNEL));
}

// A request adds all of its next hops or none.
static void all_or_none(void **state)
{
	Corelane__V1__GroupMember member = CORELANE__V1__GROUP_MEMBER__INIT, *members[] = {&member};
	Corelane__V1__TunnelNexthop tunnel = CORELANE__V1__TUNNEL_NEXTHOP__INIT;
	Corelane__V1__GroupNexthop group = CORELANE__V1__GROUP_NEXTHOP__INIT;
	Corelane__V1__Empty none = CORELANE__V1__EMPTY__INIT;
	Corelane__V1__Nexthop nh[3] = {CORELANE__V1__NEXTHOP__INIT, CORELANE__V1__NEXTHOP__INIT,
				       CORELANE__V1__NEXTHOP__INIT};
	Corelane__V1__Nexthop *list[] = {&nh[0], &nh[1], &nh[2]};

	tunnel.encap = CORELANE__V1__ENCAP__ENCAP_VXLAN;
	tunnel.remote = "192.0.2.9";
	tunnel.vni = 9;
	nh[0].id = TUNNEL;
	nh[0].kind_case = CORELANE__V1__NEXTHOP__KIND_TUNNEL;
	nh[0].tunnel = &tunnel;
	member.nexthop = TUNNEL;
	member.weight = 1;
	group.members = members;
	group.n_members = 1;
	nh[1].id = GROUP;
	nh[1].kind_case = CORELANE__V1__NEXTHOP__KIND_GROUP;
	nh[1].group = &group;
	nh[2].id = VIA0; // the router has it
	nh[2].kind_case = CORELANE__V1__NEXTHOP__KIND_DISCARD;
	nh[2].discard = &none;
	assert_int_not_equal(add_all(list, 3, "nexthop.id"), 0);
	assert_null(nexthop_get(TUNNEL));
	assert_null(nexthop_get(GROUP));
	nh[2].id = OTHER;
	assert_int_equal(add_all(list, 3, NULL), 0);
	assert_non_null(nexthop_get(OTHER));
	assert_int_equal(nexthop_get(TUNNEL)->refs, 1);
	assert_int_not_equal(add_all(list, 1, "is taken"), 0); // it never replaces
	del_all_or_none();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_or_none, test_ask_setup, test_ask_teardown)};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
