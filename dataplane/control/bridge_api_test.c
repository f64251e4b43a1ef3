// SPDX-License-Identifier: Apache-2.0
// The services corelane.v1.Bridges and corelane.v1.Macs, through the API server's own frames.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/api_test.h"
#include "bridge.pb-c.h"
#include "l2/bridge_fixture.h"

#define NONE UINT16_MAX

static int setup(void **state)
{
	fixture_reset(state);
	return test_ask_setup(state);
}

#define BRIDGES "corelane.v1.Bridges"
#define MACS "corelane.v1.Macs"

static Corelane__V1__Bridge *ask_bridge(const char *method, const ProtobufCMessage *req)
{
	return test_ask_done(BRIDGES, method, req, &corelane__v1__bridge__descriptor);
}

static void bridge_lifecycle(void **state)
{
	Corelane__V1__Bridge b = CORELANE__V1__BRIDGE__INIT, *got;
	Corelane__V1__BridgeAddRequest add = CORELANE__V1__BRIDGE_ADD_REQUEST__INIT;
	Corelane__V1__BridgeSetRequest set = CORELANE__V1__BRIDGE_SET_REQUEST__INIT;
	Corelane__V1__BridgeDelRequest del = CORELANE__V1__BRIDGE_DEL_REQUEST__INIT;
	uint32_t flood[] = {101, 102};
	char *fields[] = {"flood", "unknown_unicast"};

	test_ask_refused(BRIDGES, "Add", &add.base, "bridge");
	b.name = "lan";
	b.n_flood = 2;
	b.flood = flood;
	add.bridge = &b;
	got = ask_bridge("Add", &add.base);
	assert_string_equal(got->name, "lan");
	assert_int_equal(got->id, 1);
	assert_int_equal(got->mac_limit, LIMIT_BRIDGE_MAC_LIMIT_DEFAULT);
	assert_int_equal(got->n_flood, 2);
	assert_int_equal(got->flood[1], 102);
	corelane__v1__bridge__free_unpacked(got, NULL);
	test_ask_refused(BRIDGES, "Add", &add.base, "is taken");
	b.name = "a-name-that-is-longer-than-31-characters";
	test_ask_refused(BRIDGES, "Add", &add.base, "bridge.name");
	b.name = "odd";
	b.unknown_unicast = 7;
	test_ask_refused(BRIDGES, "Add", &add.base, "bridge.unknown_unicast");

	b.name = "lan";
	b.unknown_unicast = CORELANE__V1__UNKNOWN_UNICAST__UNKNOWN_UNICAST_DROP;
	b.no_learning = true; // not among the fields: stays
	b.n_flood = 1;
	set.bridge = &b;
	test_ask_refused(BRIDGES, "Set", &set.base, "fields");
	set.fields = fields;
	set.n_fields = 2;
	got = ask_bridge("Set", &set.base);
	assert_int_equal(got->unknown_unicast, CORELANE__V1__UNKNOWN_UNICAST__UNKNOWN_UNICAST_DROP);
	assert_int_equal(got->n_flood, 1);
	assert_false(got->no_learning);
	corelane__v1__bridge__free_unpacked(got, NULL);
	fields[1] = "name";
	test_ask_refused(BRIDGES, "Set", &set.base, "name");

	del.name = "wan";
	test_ask_refused(BRIDGES, "Del", &del.base, "there is no such bridge");
	del.name = "lan";
	test_ask_done(BRIDGES, "Del", &del.base, NULL);
	assert_int_equal(bridge_count(), 0);
}

// Items of a list: payloads of data frames until the one that closes the stream.
static unsigned list(const char *service, const ProtobufCMessage *req, void *items, size_t max,
		     const ProtobufCMessageDescriptor *d)
{
	struct test_conn *t = test_ask_stream(service, "List", req);
	struct test_frame *f;
	unsigned n = 0;

	while ((f = test_conn_wait(t)) != NULL && f->h.type == TTRPC_DATA) {
		if (f->h.length == 0)
			continue;
		assert_true(n < max);
		((void **)items)[n++] = protobuf_c_message_unpack(d, NULL, f->h.length, f->data);
	}
	return n;
}

static void bridge_list(void **state)
{
	Corelane__V1__BridgeListRequest req = CORELANE__V1__BRIDGE_LIST_REQUEST__INIT;
	Corelane__V1__Bridge *got[8];
	struct bridge *b;
	unsigned i, n;

	fixture_bridge("one", 0);
	b = fixture_bridge("two", 1);
	fixture_join(1, b->id, NONE);
	fixture_join(2, b->id, NONE);
	fixture_learn(b->id, 1, HERE, "02:00:00:00:00:0a");
	n = list(BRIDGES, &req.base, got, 8, &corelane__v1__bridge__descriptor);
	assert_int_equal(n, 2);
	assert_string_equal(got[0]->name, "one");
	assert_string_equal(got[1]->name, "two");
	assert_int_equal(got[1]->n_ports, 2);
	assert_string_equal(got[1]->ports[1], "p2");
	assert_int_equal(got[1]->macs, 1);
	for (i = 0; i < n; i++)
		corelane__v1__bridge__free_unpacked(got[i], NULL);
	req.name = "two";
	assert_int_equal(list(BRIDGES, &req.base, got, 8, &corelane__v1__bridge__descriptor), 1);
	corelane__v1__bridge__free_unpacked(got[0], NULL);
}

static void mac_lifecycle(void **state)
{
	Corelane__V1__Mac m = CORELANE__V1__MAC__INIT;
	Corelane__V1__MacAddRequest add = CORELANE__V1__MAC_ADD_REQUEST__INIT;
	Corelane__V1__MacDelRequest del = CORELANE__V1__MAC_DEL_REQUEST__INIT;
	struct bridge *b = fixture_bridge("lan", 1);
	struct mac_entry e;

	fixture_join(1, b->id, NONE);
	test_ask_refused(MACS, "Add", &add.base, "mac");
	add.mac = &m;
	m.bridge = "wan";
	m.mac = "02:00:00:00:00:0a";
	test_ask_refused(MACS, "Add", &add.base, "mac.target");
	m.target_case = CORELANE__V1__MAC__TARGET_PORT;
	m.port = "p9";
	test_ask_refused(MACS, "Add", &add.base, "mac.bridge 'wan'");
	m.bridge = "lan";
	test_ask_refused(MACS, "Add", &add.base, "mac.port");
	m.port = "p2";
	test_ask_refused(MACS, "Add", &add.base, "is not in bridge 'lan'");
	m.port = "p1";
	m.mac = "02:00:00:00:00";
	test_ask_refused(MACS, "Add", &add.base, "mac.mac");
	m.mac = "02:00:00:00:00:0a";
	test_ask_done(MACS, "Add", &add.base, NULL);
	assert_true(fixture_find(b->id, "02:00:00:00:00:0a", &e) && e.port == 1 && !e.learnt);
	test_ask_refused(MACS, "Add", &add.base, "is already set");
	m.mac = "02:00:00:00:00:0b";
	m.target_case = CORELANE__V1__MAC__TARGET_NEXTHOP;
	m.nexthop = 0;
	test_ask_refused(MACS, "Add", &add.base, "mac.nexthop");
	m.nexthop = 101;
	test_ask_done(MACS, "Add", &add.base, NULL);
	del.bridge = "lan";
	del.mac = "02:00:00:00:00:0b";
	test_ask_done(MACS, "Del", &del.base, NULL);
	test_ask_refused(MACS, "Del", &del.base, "no such address");
	assert_int_equal(mac_count(), 1);
}

static void mac_add_all(void **state)
{
	Corelane__V1__Mac m[3] = {CORELANE__V1__MAC__INIT, CORELANE__V1__MAC__INIT, CORELANE__V1__MAC__INIT};
	Corelane__V1__Mac *macs[] = {&m[0], &m[1], &m[2]};
	Corelane__V1__MacAddAllRequest add = CORELANE__V1__MAC_ADD_ALL_REQUEST__INIT;
	struct bridge *b = fixture_bridge("lan", 1);
	struct mac_entry e;
	Ttrpc__Response *r;
	unsigned i;

	fixture_join(1, b->id, NONE);
	for (i = 0; i < 3; i++) {
		m[i].bridge = "lan";
		m[i].target_case = CORELANE__V1__MAC__TARGET_PORT;
		m[i].port = "p1";
	}
	m[0].mac = "02:00:00:00:00:0a";
	m[1].mac = "02:00:00:00:00:0b";
	m[2].mac = "02:00:00:00:00:0a"; // twice
	add.macs = macs;
	add.n_macs = 3;
	r = test_ask(MACS, "AddAll", &add.base);
	assert_non_null(strstr(r->status->message, "02:00:00:00:00:0a"));
	ttrpc__response__free_unpacked(r, NULL);
	assert_int_equal(mac_count(), 0);
	m[2].mac = "02:00:00:00:00:0c";
	test_ask_done(MACS, "AddAll", &add.base, NULL);
	assert_int_equal(mac_count(), 3);
	assert_true(fixture_find(b->id, "02:00:00:00:00:0c", &e) && e.port == 1 && !e.learnt);
}

static void mac_list(void **state)
{
	Corelane__V1__MacListRequest req = CORELANE__V1__MAC_LIST_REQUEST__INIT;
	struct bridge *one = fixture_bridge("one", 1), *two = fixture_bridge("two", 0);
	Corelane__V1__Mac *got[8];
	unsigned i, n;

	fixture_join(1, one->id, NONE);
	fixture_join(2, two->id, NONE);
	fixture_learn(one->id, FABRIC, "192.0.2.1", "02:00:00:00:00:0b");
	fixture_learn(one->id, 1, HERE, "02:00:00:00:00:0a");
	fixture_learn(two->id, 2, HERE, "02:00:00:00:00:01");
	fixture_wait(5);
	n = list(MACS, &req.base, got, 8, &corelane__v1__mac__descriptor);
	assert_int_equal(n, 3);
	assert_string_equal(got[0]->mac, "02:00:00:00:00:0a");
	assert_string_equal(got[0]->bridge, "one");
	assert_string_equal(got[0]->port, "p1");
	assert_true(got[0]->learnt);
	// timed: the fixture steps the clock
	assert_true(got[0]->age_seconds >= 4 && got[0]->age_seconds <= 5);
	assert_string_equal(got[1]->mac, "02:00:00:00:00:0b");
	assert_int_equal(got[1]->nexthop, 101);
	assert_string_equal(got[1]->remote, "192.0.2.1");
	assert_string_equal(got[2]->bridge, "two");
	for (i = 0; i < n; i++)
		corelane__v1__mac__free_unpacked(got[i], NULL);
	req.bridge = "one";
	n = list(MACS, &req.base, got, 8, &corelane__v1__mac__descriptor);
	assert_int_equal(n, 2);
	for (i = 0; i < n; i++)
		corelane__v1__mac__free_unpacked(got[i], NULL);
	req.bridge = "three";
	assert_int_equal(list(MACS, &req.base, got, 8, &corelane__v1__mac__descriptor), 0);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, test_ask_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {T(bridge_lifecycle), T(bridge_list), T(mac_lifecycle), T(mac_add_all),
					   T(mac_list)};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
