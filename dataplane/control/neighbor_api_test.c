// SPDX-License-Identifier: Apache-2.0
// The service corelane.v1.Neighbors, through the API server's own frames.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/api_test.h"
#include "neighbor.pb-c.h"
#include "neighbor/arp_fixture.h"
#include "neighbor/neighbor_private.h"

#define SERVICE "corelane.v1.Neighbors"

static int setup(void **state)
{
	fixture_reset(state);
	return test_ask_setup(state);
}

static void add(const char *port, const char *address, const char *mac)
{
	Corelane__V1__Neighbor n = CORELANE__V1__NEIGHBOR__INIT, *got;
	Corelane__V1__NeighborAddRequest req = CORELANE__V1__NEIGHBOR_ADD_REQUEST__INIT;

	n.port = (char *)(uintptr_t)port;
	n.address = (char *)(uintptr_t)address;
	n.mac = (char *)(uintptr_t)mac;
	req.neighbor = &n;
	got = test_ask_done(SERVICE, "Add", &req.base, &corelane__v1__neighbor__descriptor);
	assert_string_equal(got->port, port);
	assert_string_equal(got->address, address);
	assert_string_equal(got->mac, mac);
	assert_int_equal(got->status, CORELANE__V1__NEIGHBOR_STATUS__NEIGHBOR_PERMANENT);
	corelane__v1__neighbor__free_unpacked(got, NULL);
}

// Returns the addresses of the stream, each followed by a space.
static void assert_list(const char *port, const char *expected)
{
	Corelane__V1__NeighborListRequest req = CORELANE__V1__NEIGHBOR_LIST_REQUEST__INIT;
	Corelane__V1__Neighbor *n;
	struct test_conn *t;
	struct test_frame *f;
	char text[1024] = "";

	req.port = (char *)(uintptr_t)port;
	t = test_ask_stream(SERVICE, "List", &req.base);
	while ((f = test_conn_wait(t)) != NULL && f->h.flags == 0) {
		n = corelane__v1__neighbor__unpack(NULL, f->h.length, f->data);
		strcat(strcat(text, n->address), " ");
		corelane__v1__neighbor__free_unpacked(n, NULL);
	}
	assert_non_null(f);
	assert_string_equal(text, expected);
}

static void add_list_del(void **state)
{
	Corelane__V1__NeighborDelRequest del = CORELANE__V1__NEIGHBOR_DEL_REQUEST__INIT;

	assert_list("", "");
	add("fabric0", "192.0.2.9", "02:00:00:00:09:09");
	add("fabric0", "2001:db8::9", "02:00:00:00:09:09");
	add("tenant0", "10.0.0.9", "02:00:00:00:09:0a");
	add("fabric0", "192.0.2.9", "02:00:00:00:09:0b"); // replaces
	assert_list("", "192.0.2.9 2001:db8::9 10.0.0.9 ");
	assert_list("tenant0", "10.0.0.9 ");
	del.port = "fabric0";
	del.address = "2001:db8::9";
	test_ask_done(SERVICE, "Del", &del.base, NULL);
	assert_list("fabric0", "192.0.2.9 ");
	test_ask_refused(SERVICE, "Del", &del.base, "address '2001:db8::9': there is no such neighbour");
}

static void refused(void **state)
{
	Corelane__V1__NeighborAddRequest req = CORELANE__V1__NEIGHBOR_ADD_REQUEST__INIT;
	Corelane__V1__NeighborDelRequest del = CORELANE__V1__NEIGHBOR_DEL_REQUEST__INIT;
	Corelane__V1__NeighborListRequest list = CORELANE__V1__NEIGHBOR_LIST_REQUEST__INIT;
	Corelane__V1__Neighbor n = CORELANE__V1__NEIGHBOR__INIT;

	test_ask_refused(SERVICE, "Add", &req.base, "neighbor");
	req.neighbor = &n;
	test_ask_refused(SERVICE, "Add", &req.base, "neighbor.port '': is missing");
	n.port = "fabric0";
	test_ask_refused(SERVICE, "Add", &req.base, "neighbor.address '': is missing; valid: an address such as");
	n.address = "192.0.2.1";
	test_ask_refused(SERVICE, "Add", &req.base, "neighbor.mac");
	n.mac = "02:00:00:00:09:09";
	test_ask_refused(SERVICE, "Add", &req.base, "neighbor.address '192.0.2.1': is the router's own address");
	n.address = "224.0.0.1";
	test_ask_refused(SERVICE, "Add", &req.base, "neighbor.address '224.0.0.1': cannot be");
	del.port = "nowhere";
	test_ask_refused(SERVICE, "Del", &del.base, "port 'nowhere': there is no such port");
	list.port = "nowhere";
	assert_int_equal(test_conn_wait(test_ask_stream(SERVICE, "List", &list.base))->h.type, TTRPC_RESPONSE);
	assert_int_equal(neighbor_count(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(add_list_del, setup, test_ask_teardown),
		cmocka_unit_test_setup_teardown(refused, setup, test_ask_teardown),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
