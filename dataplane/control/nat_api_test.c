// SPDX-License-Identifier: Apache-2.0
// The service corelane.v1.Nat, through the API server's own frames.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/api_test.h"
#include "graph/node_test.h"
#include "l3/vrf.h"
#include "nat.pb-c.h"
#include "policy/nat.h"
#include "port/registry.h"

#define NAT "corelane.v1.Nat"

static struct vrf vrfs[] = {{.name = "fabric"}, {.name = "red", .id = 1}, {.name = "wan", .id = 2}};

struct vrf *vrf_get(uint16_t n)
{
	return n < RTE_DIM(vrfs) ? &vrfs[n] : NULL;
}

void vrf_refer(struct referrer *r)
{
}

struct vrf *vrf_find_err(const char *name, const char *field, struct error *err)
{
	unsigned i;

	for (i = 0; i < RTE_DIM(vrfs); i++)
		if (strcmp(vrfs[i].name, name) == 0)
			return &vrfs[i];
	error_set(err, ENOENT, field, name, "the name of a VRF that exists", "there is no such VRF");
	return NULL;
}

struct port *port_next(const struct port *p)
{
	return NULL;
}

static Corelane__V1__NatRule *done(const char *method, const ProtobufCMessage *req)
{
	return test_ask_done(NAT, method, req, &corelane__v1__nat_rule__descriptor);
}

static void refused(const char *method, const ProtobufCMessage *req, const char *message)
{
	unsigned n = nat_count();

	test_ask_refused(NAT, method, req, message);
	assert_int_equal(nat_count(), n);
}

static void lifecycle(void **state)
{
	Corelane__V1__NatRule rule = CORELANE__V1__NAT_RULE__INIT, *got;
	Corelane__V1__NatAddRequest add = CORELANE__V1__NAT_ADD_REQUEST__INIT;
	Corelane__V1__NatSetRequest set = CORELANE__V1__NAT_SET_REQUEST__INIT;
	Corelane__V1__NatDelRequest del = CORELANE__V1__NAT_DEL_REQUEST__INIT;
	Corelane__V1__SourceNat source = CORELANE__V1__SOURCE_NAT__INIT;
	Corelane__V1__FloatingNat floating = CORELANE__V1__FLOATING_NAT__INIT;
	char *except[20];
	unsigned i;

	refused("Add", &add.base, "rule: is missing");
	add.rule = &rule;
	rule.id = 7;
	rule.vrf = "red";
	refused("Add", &add.base, "rule.kind: is missing");
	rule.kind_case = CORELANE__V1__NAT_RULE__KIND_SOURCE;
	rule.source = &source;
	source.prefix = "10.0.0.1/24";
	refused("Add", &add.base, "rule.source.prefix '10.0.0.1/24'");
	source.prefix = "10.0.0.0/24";
	refused("Add", &add.base, "rule.source.first");
	source.first = "198.51.100.1";
	source.first_port = 65536;
	refused("Add", &add.base, "rule.source.first_port '65536'");
	source.first_port = 0;
	rule.protocol = 5;
	refused("Add", &add.base, "rule.protocol '5'");
	rule.protocol = CORELANE__V1__NAT_PROTOCOL__NAT_PROTOCOL_ICMP;
	for (i = 0; i < RTE_DIM(except); i++)
		except[i] = "10.0.0.0/8";
	rule.except = except;
	rule.n_except = 20;
	refused("Add", &add.base, "rule.except");
	rule.n_except = 1;
	rule.vrf = "green";
	refused("Add", &add.base, "rule.vrf 'green': there is no such VRF");
	rule.vrf = "red";
	rule.external_vrf = "lan";
	refused("Add", &add.base, "rule.external_vrf 'lan'");
	rule.external_vrf = "wan";
	got = done("Add", &add.base);
	assert_int_equal(got->id, 7);
	assert_string_equal(got->external_vrf, "wan");
	assert_string_equal(got->source->last, "198.51.100.1");
	assert_int_equal(got->source->first_port, 1024);
	assert_int_equal(got->source->last_port, 65535);
	assert_int_equal(got->protocol, CORELANE__V1__NAT_PROTOCOL__NAT_PROTOCOL_ICMP);
	assert_string_equal(got->except[0], "10.0.0.0/8");
	corelane__v1__nat_rule__free_unpacked(got, NULL);
	refused("Add", &add.base, "rule.id '7': is taken");

	rule.kind_case = CORELANE__V1__NAT_RULE__KIND_FLOATING;
	rule.floating = &floating;
	rule.external_vrf = "";
	rule.n_except = 0;
	rule.protocol = 0;
	floating.inside = "fd00::2";
	floating.outside = "2001:db8::2";
	rule.id = 8;
	set.rule = &rule;
	refused("Set", &set.base, "rule.id '8': there is no such NAT rule");
	rule.id = 7;
	got = done("Set", &set.base);
	assert_int_equal(got->kind_case, CORELANE__V1__NAT_RULE__KIND_FLOATING);
	assert_string_equal(got->external_vrf, "");
	assert_string_equal(got->floating->inside, "fd00::2");
	corelane__v1__nat_rule__free_unpacked(got, NULL);
	del.id = 8;
	refused("Del", &del.base, "there is no such NAT rule");
	del.id = 7;
	test_ask_done(NAT, "Del", &del.base, NULL);
	assert_int_equal(nat_count(), 0);
	assert_int_equal(vrfs[1].refs + vrfs[2].refs, 0);
}

static void listed(void **state)
{
	Corelane__V1__NatListRequest req = CORELANE__V1__NAT_LIST_REQUEST__INIT;
	Corelane__V1__NatRule rule = CORELANE__V1__NAT_RULE__INIT, *got;
	Corelane__V1__NatAddRequest add = CORELANE__V1__NAT_ADD_REQUEST__INIT;
	Corelane__V1__DestinationNat service = CORELANE__V1__DESTINATION_NAT__INIT;
	Corelane__V1__NatBackend backend = CORELANE__V1__NAT_BACKEND__INIT, *backends[] = {&backend};
	static const uint32_t ids[] = {5000, 1, 70000};
	struct test_conn *t;
	struct test_frame *f;
	unsigned i, n = 0;

	add.rule = &rule;
	rule.kind_case = CORELANE__V1__NAT_RULE__KIND_DESTINATION;
	rule.destination = &service;
	rule.protocol = CORELANE__V1__NAT_PROTOCOL__NAT_PROTOCOL_TCP;
	service.address = "198.51.100.1";
	service.backends = backends;
	service.n_backends = 1;
	backend.address = "10.0.0.2";
	backend.weight = 257;
	rule.id = 1;
	rule.vrf = "red";
	refused("Add", &add.base, "rule.destination.backends.weight '257'");
	backend.weight = 0;
	for (i = 0; i < RTE_DIM(ids); i++) {
		rule.id = ids[i];
		rule.vrf = i == 1 ? "wan" : "red";
		service.port = 80 + i;
		corelane__v1__nat_rule__free_unpacked(done("Add", &add.base), NULL);
	}
	req.vrf = "red";
	t = test_ask_stream(NAT, "List", &req.base);
	while ((f = test_conn_wait(t)) != NULL && f->h.type == TTRPC_DATA) {
		if (f->h.length == 0)
			continue;
		got = corelane__v1__nat_rule__unpack(NULL, f->h.length, f->data);
		assert_int_equal(got->id, n == 0 ? 5000 : 70000);
		assert_int_equal(got->destination->backends[0]->weight, 1);
		corelane__v1__nat_rule__free_unpacked(got, NULL);
		n++;
	}
	assert_int_equal(n, 2);
	for (i = 0; i < RTE_DIM(ids); i++)
		assert_int_equal(nat_del(ids[i], NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lifecycle, test_ask_setup, test_ask_teardown),
		cmocka_unit_test_setup_teardown(listed, test_ask_setup, test_ask_teardown)};

	return cmocka_run_group_tests(tests, node_test_setup, node_test_teardown);
}
