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

static struct test_conn t;
static uint32_t id;

static int setup(void **state)
{
	fixture_reset(state);
	id = 1;
	test_conn_open(&t);
	return 0;
}

static int teardown(void **state)
{
	test_conn_close(&t);
	return 0;
}

static Ttrpc__Response *ask(const char *method, const ProtobufCMessage *req)
{
	struct test_frame *f;

	test_conn_request(&t, id, 0, SERVICE, method, req);
	id += 2;
	f = test_conn_wait(&t);
	assert_non_null(f);
	return ttrpc__response__unpack(NULL, f->h.length, f->data);
}

static void assert_refused(const char *method, const ProtobufCMessage *req, int code, const char *message)
{
	Ttrpc__Response *r = ask(method, req);

	assert_non_null(r->status);
	assert_int_equal(r->status->code, code);
	if (strstr(r->status->message, message) == NULL)
		fail_msg("'%s' is not in '%s'", message, r->status->message);
	ttrpc__response__free_unpacked(r, NULL);
}

static void add(const char *port, const char *address, const char *mac)
{
	Corelane__V1__Neighbor n = CORELANE__V1__NEIGHBOR__INIT, *got;
	Corelane__V1__NeighborAddRequest req = CORELANE__V1__NEIGHBOR_ADD_REQUEST__INIT;
	Ttrpc__Response *r;

	n.port = (char *)(uintptr_t)port;
	n.address = (char *)(uintptr_t)address;
	n.mac = (char *)(uintptr_t)mac;
	req.neighbor = &n;
	r = ask("Add", &req.base);
	assert_true(r->status == NULL || r->status->code == 0);
	got = corelane__v1__neighbor__unpack(NULL, r->payload.len, r->payload.data);
	assert_string_equal(got->port, port);
	assert_string_equal(got->address, address);
	assert_string_equal(got->mac, mac);
	assert_int_equal(got->status, CORELANE__V1__NEIGHBOR_STATUS__NEIGHBOR_PERMANENT);
	corelane__v1__neighbor__free_unpacked(got, NULL);
	ttrpc__response__free_unpacked(r, NULL);
}

// Returns the addresses of the stream, each followed by a space.
static void assert_list(const char *port, const char *expected)
{
	Corelane__V1__NeighborListRequest req = CORELANE__V1__NEIGHBOR_LIST_REQUEST__INIT;
	Corelane__V1__Neighbor *n;
	struct test_frame *f;
	char text[1024] = "";

	req.port = (char *)(uintptr_t)port;
	test_conn_request(&t, id, TTRPC_REMOTE_CLOSED, SERVICE, "List", &req.base);
	id += 2;
	while ((f = test_conn_wait(&t)) != NULL && f->h.flags == 0) {
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
	Ttrpc__Response *r;

	assert_list("", "");
	add("fabric0", "192.0.2.9", "02:00:00:00:09:09");
	add("fabric0", "2001:db8::9", "02:00:00:00:09:09");
	add("tenant0", "10.0.0.9", "02:00:00:00:09:0a");
	add("fabric0", "192.0.2.9", "02:00:00:00:09:0b"); // replaces
	assert_list("", "192.0.2.9 2001:db8::9 10.0.0.9 ");
	assert_list("tenant0", "10.0.0.9 ");
	del.port = "fabric0";
	del.address = "2001:db8::9";
	r = ask("Del", &del.base);
	assert_true(r->status == NULL || r->status->code == 0);
	ttrpc__response__free_unpacked(r, NULL);
	assert_list("fabric0", "192.0.2.9 ");
	assert_refused("Del", &del.base, 5, "address '2001:db8::9': there is no such neighbour");
}

static void refused(void **state)
{
	Corelane__V1__NeighborAddRequest req = CORELANE__V1__NEIGHBOR_ADD_REQUEST__INIT;
	Corelane__V1__NeighborDelRequest del = CORELANE__V1__NEIGHBOR_DEL_REQUEST__INIT;
	Corelane__V1__NeighborListRequest list = CORELANE__V1__NEIGHBOR_LIST_REQUEST__INIT;
	Corelane__V1__Neighbor n = CORELANE__V1__NEIGHBOR__INIT;

	assert_refused("Add", &req.base, 3, "neighbor");
	req.neighbor = &n;
	assert_refused("Add", &req.base, 3, "neighbor.port '': is missing");
	n.port = "fabric0";
	assert_refused("Add", &req.base, 3, "neighbor.address '': is missing; valid: an address such as");
	n.address = "192.0.2.1";
	assert_refused("Add", &req.base, 3, "neighbor.mac");
	n.mac = "02:00:00:00:09:09";
	assert_refused("Add", &req.base, 3, "neighbor.address '192.0.2.1': is the router's own address");
	n.address = "224.0.0.1";
	assert_refused("Add", &req.base, 3, "neighbor.address '224.0.0.1': cannot be");
	del.port = "nowhere";
	assert_refused("Del", &del.base, 5, "port 'nowhere': there is no such port");
	list.port = "nowhere";
	test_conn_request(&t, id, TTRPC_REMOTE_CLOSED, SERVICE, "List", &list.base);
	assert_int_equal(test_conn_wait(&t)->h.type, TTRPC_RESPONSE);
	assert_int_equal(neighbor_count(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(add_list_del, setup, teardown),
		cmocka_unit_test_setup_teardown(refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
