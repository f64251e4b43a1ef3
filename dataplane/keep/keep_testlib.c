// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "api/api.h"
#include "base/owner.h"
#include "bridge.pb-c.h"
#include "common.pb-c.h"
#include "keep/keep_testlib.h"
#include "mirror.pb-c.h"
#include "nat.pb-c.h"
#include "neighbor.pb-c.h"
#include "nexthop.pb-c.h"
#include "port.pb-c.h"
#include "route.pb-c.h"
#include "rule.pb-c.h"
#include "system.pb-c.h"
#include "vrf.pb-c.h"
#include "worker.pb-c.h"

char keep_test_made[256]; // the VRFs of this process, "owner/name/id "
static unsigned next_id = 1;
char keep_test_dir[64];

static int vrf_add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__VrfAddRequest *in = req;
	Corelane__V1__Vrf *out = resp;
	char text[64];

	if (strcmp(in->vrf->name, "refused") == 0 ||
	    (strcmp(in->vrf->name, "later") == 0 && !strstr(keep_test_made, "blue")))
		return error_set(err, EEXIST, "vrf.name", in->vrf->name, NULL, "exists already");
	out->name = in->vrf->name;
	out->id = in->vrf->id ? in->vrf->id : next_id++;
	snprintf(text, sizeof(text), "%s/%s/%u ", owner_name(api_client(call)->owner), out->name, out->id);
	strncat(keep_test_made, text, sizeof(keep_test_made) - strlen(keep_test_made) - 1);
	return 0;
}

// Works in shares, and is accepted with its last one.
static int vrf_del(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	unsigned *shares = cursor;

	if (++*shares < 3)
		return api_again(call);
	strncat(keep_test_made, "deleted ", sizeof(keep_test_made) - strlen(keep_test_made) - 1);
	return 1;
}

static int vrf_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	return 0;
}

static int never(struct api_call *call, const void *req, void *resp, struct error *err)
{
	return error_set(err, ENOTSUP, NULL, NULL, NULL, "is only for its type");
}

static const struct api_method methods[] = {
	{"corelane.v1.Ports", "Add", &corelane__v1__port_add_request__descriptor, &corelane__v1__port__descriptor,
	 .unary = never},
	{"corelane.v1.Ports", "Set", &corelane__v1__port_set_request__descriptor, &corelane__v1__port__descriptor,
	 .unary = never},
	{"corelane.v1.Macs", "Add", &corelane__v1__mac_add_request__descriptor, &corelane__v1__mac__descriptor,
	 .unary = never},
	{"corelane.v1.Macs", "AddAll", &corelane__v1__mac_add_all_request__descriptor,
	 &corelane__v1__mac_add_all_reply__descriptor, .unary = never},
	{"corelane.v1.Nexthops", "Add", &corelane__v1__nexthop_add_request__descriptor,
	 &corelane__v1__nexthop__descriptor, .unary = never},
	{"corelane.v1.Nexthops", "DelAll", &corelane__v1__nexthop_del_all_request__descriptor,
	 &corelane__v1__nexthop_del_all_reply__descriptor, .unary = never},
	{"corelane.v1.Rules", "Add", &corelane__v1__rule_add_request__descriptor, &corelane__v1__rule_reply__descriptor,
	 .unary = never},
	{"corelane.v1.Workers", "Set", &corelane__v1__worker_set_request__descriptor, &corelane__v1__worker__descriptor,
	 .unary = never},
	{"corelane.v1.Workers", "Del", &corelane__v1__worker_del_request__descriptor, &corelane__v1__empty__descriptor,
	 .unary = never},
	{"corelane.v1.Mirrors", "Add", &corelane__v1__mirror_add_request__descriptor, &corelane__v1__mirror__descriptor,
	 .unary = never},
	{"corelane.v1.Mirrors", "Set", &corelane__v1__mirror_set_request__descriptor, &corelane__v1__mirror__descriptor,
	 .unary = never},
	{"corelane.v1.Nat", "Add", &corelane__v1__nat_add_request__descriptor, &corelane__v1__nat_rule__descriptor,
	 .unary = never},
	{"corelane.v1.Nat", "Set", &corelane__v1__nat_set_request__descriptor, &corelane__v1__nat_rule__descriptor,
	 .unary = never},
	{"corelane.v1.Neighbors", "Add", &corelane__v1__neighbor_add_request__descriptor,
	 &corelane__v1__neighbor__descriptor, .unary = never},
	{"corelane.v1.RuleLists", "Add", &corelane__v1__rule_list_add_request__descriptor,
	 &corelane__v1__rule_list__descriptor, .unary = never},
	{"corelane.v1.Routes", "Add", &corelane__v1__route_add_request__descriptor,
	 &corelane__v1__route_reply__descriptor, .unary = never},
	{"corelane.v1.Routes", "Del", &corelane__v1__route_del_request__descriptor,
	 &corelane__v1__route_reply__descriptor, .unary = never},
	{"corelane.v1.System", "SetSettings", &corelane__v1__settings_set_request__descriptor,
	 &corelane__v1__settings__descriptor, .unary = never},
	{"corelane.v1.Vrfs", "Add", &corelane__v1__vrf_add_request__descriptor, &corelane__v1__vrf__descriptor,
	 .unary = vrf_add},
	{"corelane.v1.Vrfs", "Del", &corelane__v1__vrf_del_request__descriptor, &corelane__v1__empty__descriptor,
	 .next = vrf_del, .single = true, .cursor_size = sizeof(unsigned)},
	{"corelane.v1.Vrfs", "List", &corelane__v1__vrf_list_request__descriptor, &corelane__v1__vrf__descriptor,
	 .next = vrf_list, .cursor_size = 1},
};
API_METHODS(methods)

char *keep_test_path(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", keep_test_dir, name);
	return path;
}

int keep_test_setup(void **state)
{
	snprintf(keep_test_dir, sizeof(keep_test_dir), "/tmp/keep_test_XXXXXX");
	return mkdtemp(keep_test_dir) ? 0 : -1;
}

int keep_test_teardown(void **state)
{
	static const char *const files[] = {"state", "state.bad", "starts", "lock"};
	unsigned i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlink(keep_test_path(files[i]));
	return rmdir(keep_test_dir);
}

void keep_test_append(struct bytes *file, const char *method, const ProtobufCMessage *req)
{
	Keep__Change c = KEEP__CHANGE__INIT;
	uint8_t packed[512];
	char service[32];

	snprintf(service, sizeof(service), "corelane.v1.%.*s", (int)(strchr(method, '.') - method), method);
	c.owner = (char *)(uintptr_t) "api";
	c.service = service;
	c.method = strchr(method, '.') + 1;
	c.request = (ProtobufCBinaryData){protobuf_c_message_pack(req, packed), packed};
	assert_int_equal(keep_file_pack(file, &c), 0);
}

void keep_test_append_routes(struct bytes *file, const char *method, const char *const *prefixes, uint32_t nexthop)
{
	Corelane__V1__RouteAddRequest req = CORELANE__V1__ROUTE_ADD_REQUEST__INIT;
	Corelane__V1__Route routes[4], *list[4];

	for (; prefixes[req.n_routes]; req.n_routes++) {
		corelane__v1__route__init(&routes[req.n_routes]);
		routes[req.n_routes].vrf = (char *)(uintptr_t) "red";
		routes[req.n_routes].prefix = (char *)(uintptr_t)prefixes[req.n_routes];
		routes[req.n_routes].nexthop = nexthop;
		list[req.n_routes] = &routes[req.n_routes];
	}
	req.routes = list;
	keep_test_append(file, method, &req.base);
}

struct bytes keep_test_file(void)
{
	struct bytes b = {};

	assert_int_equal(keep_file_begin(&b), 0);
	return b;
}

void keep_test_append_vrf(struct bytes *f, const char *method, const char *name)
{
	Corelane__V1__Vrf vrf = CORELANE__V1__VRF__INIT;
	Corelane__V1__VrfAddRequest add_req = CORELANE__V1__VRF_ADD_REQUEST__INIT;
	Corelane__V1__VrfDelRequest del_req = CORELANE__V1__VRF_DEL_REQUEST__INIT;

	vrf.name = del_req.name = TEXT(name);
	add_req.vrf = &vrf;
	keep_test_append(f, method, strcmp(method, "Vrfs.Add") == 0 ? &add_req.base : &del_req.base);
}
