// SPDX-License-Identifier: Apache-2.0
// What many changes are folded into when a start reads them.
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "api/api.h"
#include "bridge.pb-c.h"
#include "keep/keep_testlib.h"
#include "mirror.pb-c.h"
#include "nat.pb-c.h"
#include "neighbor.pb-c.h"
#include "nexthop.pb-c.h"
#include "port.pb-c.h"
#include "route.pb-c.h"
#include "rule.pb-c.h"
#include "system.pb-c.h"
#include "worker.pb-c.h"

static int print_fields(char *text, const ProtobufCMessage *m)
{
	char *begin = text;
	unsigned i;
	size_t j;

	for (i = 0; i < m->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
		const char *at = (const char *)m + f->offset;
		bool list = f->label == PROTOBUF_C_LABEL_REPEATED;
		size_t n = list ? *(const size_t *)((const char *)m + f->quantifier_offset) : 1;

		if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF &&
		    *(const uint32_t *)((const char *)m + f->quantifier_offset) != f->id)
			continue;
		if (list)
			at = *(const char *const *)at;
		for (j = 0; j < n; j++) {
			if (f->type == PROTOBUF_C_TYPE_STRING && *((char *const *)at)[j])
				text += sprintf(text, " %s=%s", f->name, ((char *const *)at)[j]);
			if (f->type == PROTOBUF_C_TYPE_UINT32 && ((const uint32_t *)at)[j])
				text += sprintf(text, " %s=%u", f->name, ((const uint32_t *)at)[j]);
			if (f->type == PROTOBUF_C_TYPE_MESSAGE && ((const ProtobufCMessage *const *)at)[j])
				text += print_fields(text, ((const ProtobufCMessage *const *)at)[j]);
		}
	}
	return (int)(text - begin);
}

// What the changes of a file are folded into: "Routes.Add vrf=red prefix=10.1.0.0/16 nexthop=7;".
static const char *folded(const struct bytes *file, bool with_last)
{
	static char text[2048];
	struct keep_image image, out;
	char why[KEEP_WHY], *p = text;
	size_t at = 0, n = 0;
	Keep__Change *c;
	int fd = open(keep_test_path("state"), O_RDWR | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, file->data, file->n), file->n);
	close(fd);
	assert_int_equal(keep_file_read(keep_test_path("state"), SIZE_MAX, &image, why), 0);
	assert_int_equal(keep_fold(&image, with_last, &out), 0);
	keep_file_free(&image); // the result does not refer to it
	for (*text = '\0'; (c = keep_file_next(&out, &at)) != NULL; keep__change__free_unpacked(c, NULL)) {
		ProtobufCMessage *m = protobuf_c_message_unpack(api_request_type(c->service, c->method), NULL,
								c->request.len, c->request.data);

		p += sprintf(p, "%s.%s", strrchr(c->service, '.') + 1, c->method);
		p += print_fields(p, m);
		p = stpcpy(p, ";");
		protobuf_c_message_free_unpacked(m, NULL);
		n++;
	}
	assert_int_equal(n, out.count);
	keep_file_free(&out);
	return text;
}

// Of each route the last change counts, however its prefix is written. The last change of the file may stay as it is.
static void test_fold_routes(void **state)
{
	struct bytes f = keep_test_file();

	keep_test_append_routes(&f, "Routes.Add", LIST("10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16"), 1);
	keep_test_append_routes(&f, "Routes.Add", LIST("2001:DB8::/32", "10.4.0.0/16"), 1);
	keep_test_append_routes(&f, "Routes.Add", LIST("10.2.0.0/16"), 2);
	keep_test_append_routes(&f, "Routes.Del", LIST("2001:db8::/32", "10.3.0.0/16"), 0);
	keep_test_append_routes(&f, "Routes.Add", LIST("10.4.0.0/16"), 3);
	keep_test_append_routes(&f, "Routes.Del", LIST("10.1.0.0/16"), 0);
	assert_string_equal(folded(&f, true), "Routes.Add vrf=red prefix=10.2.0.0/16 nexthop=2 "
					      "vrf=red prefix=10.4.0.0/16 nexthop=3;");
	assert_string_equal(folded(&f, false), "Routes.Add vrf=red prefix=10.1.0.0/16 nexthop=1 "
					       "vrf=red prefix=10.2.0.0/16 nexthop=2 "
					       "vrf=red prefix=10.4.0.0/16 nexthop=3;"
					       "Routes.Del vrf=red prefix=10.1.0.0/16;");
	free(f.data);
}

static void append_port(struct bytes *f, const char *method, Corelane__V1__Port *port, char **fields)
{
	Corelane__V1__PortAddRequest add_req = CORELANE__V1__PORT_ADD_REQUEST__INIT;
	Corelane__V1__PortSetRequest set_req = CORELANE__V1__PORT_SET_REQUEST__INIT;
	Corelane__V1__PortDelRequest del_req = CORELANE__V1__PORT_DEL_REQUEST__INIT;

	add_req.port = set_req.port = port;
	set_req.fields = fields;
	for (; fields && fields[set_req.n_fields]; set_req.n_fields++)
		;
	del_req.name = port->name;
	keep_test_append(f, method,
			 strcmp(method, "Ports.Add") == 0   ? &add_req.base
			 : strcmp(method, "Ports.Set") == 0 ? &set_req.base
							    : &del_req.base);
}

// A port that was changed and names a VRF that came later; another one that was deleted, with its neighbor; a VRF that
// was deleted, with its routes, and one of the same name that came later.
static void test_fold_objects(void **state)
{
	Corelane__V1__Port port = CORELANE__V1__PORT__INIT, change = CORELANE__V1__PORT__INIT;
	Corelane__V1__Neighbor neighbor = CORELANE__V1__NEIGHBOR__INIT;
	Corelane__V1__NeighborAddRequest neighbor_req = CORELANE__V1__NEIGHBOR_ADD_REQUEST__INIT;
	struct bytes f = keep_test_file();

	keep_test_append_vrf(&f, "Vrfs.Add", "red");
	port.name = change.name = TEXT("p");
	port.vrf = TEXT("red");
	port.egress_rules = TEXT("out");
	append_port(&f, "Ports.Add", &port, NULL);
	port.name = TEXT("q");
	append_port(&f, "Ports.Add", &port, NULL);
	neighbor.port = TEXT("q");
	neighbor.address = TEXT("10.0.0.1");
	neighbor_req.neighbor = &neighbor;
	keep_test_append(&f, "Neighbors.Add", &neighbor_req.base);
	keep_test_append_routes(&f, "Routes.Add", LIST("10.1.0.0/16"), 1);
	keep_test_append_vrf(&f, "Vrfs.Add", "blue");
	change.vrf = TEXT("blue");
	change.mtu = 1400;
	change.guest_mac = TEXT("not named");
	append_port(&f, "Ports.Set", &change, (char *[]){TEXT("vrf"), TEXT("mtu"), TEXT("egress_rules"), NULL});
	append_port(&f, "Ports.Del", &port, NULL);
	append_port(&f, "Ports.Add", &port, NULL); // without its neighbor
	keep_test_append_vrf(&f, "Vrfs.Del", "red");
	keep_test_append_vrf(&f, "Vrfs.Add", "red");
	keep_test_append_routes(&f, "Routes.Add", LIST("10.2.0.0/16"), 1);
	assert_string_equal(folded(&f, true), "Vrfs.Add name=blue;Vrfs.Add name=red;Ports.Add name=p mtu=1400 vrf=blue;"
					      "Ports.Add name=q vrf=red egress_rules=out;"
					      "Routes.Add vrf=red prefix=10.2.0.0/16 nexthop=1;");
	free(f.data);
}

// MACs of a port end with the port, and when it leaves its bridge.
static void test_fold_macs(void **state)
{
	Corelane__V1__Port port = CORELANE__V1__PORT__INIT;
	Corelane__V1__Mac mac = CORELANE__V1__MAC__INIT;
	Corelane__V1__MacAddRequest req = CORELANE__V1__MAC_ADD_REQUEST__INIT;
	Corelane__V1__MacDelRequest del_req = CORELANE__V1__MAC_DEL_REQUEST__INIT;
	struct bytes f = keep_test_file();

	req.mac = &mac;
	mac.bridge = port.bridge = del_req.bridge = TEXT("lan");
	mac.target_case = CORELANE__V1__MAC__TARGET_PORT;
	port.name = mac.port = TEXT("p");
	append_port(&f, "Ports.Add", &port, NULL);
	mac.mac = TEXT("02:00:00:00:00:0a");
	keep_test_append(&f, "Macs.Add", &req.base);
	append_port(&f, "Ports.Set", &port, (char *[]){TEXT("bridge"), NULL});
	mac.mac = TEXT("02:00:00:00:00:0B");
	keep_test_append(&f, "Macs.Add", &req.base);
	mac.mac = TEXT("02:00:00:00:00:0c");
	keep_test_append(&f, "Macs.Add", &req.base);
	del_req.mac = TEXT("02:00:00:00:00:0C");
	keep_test_append(&f, "Macs.Del", &del_req.base);
	assert_string_equal(folded(&f, true), "Ports.Add name=p bridge=lan;"
					      "Macs.Add bridge=lan mac=02:00:00:00:00:0B port=p;");
	append_port(&f, "Ports.Del", &port, NULL);
	append_port(&f, "Ports.Add", &port, NULL);
	assert_string_equal(folded(&f, true), "Ports.Add name=p bridge=lan;");
	free(f.data);
}

// Objects that one request has added are objects of their own: one of them may be deleted.
static void test_fold_add_all(void **state)
{
	Corelane__V1__Mac macs[] = {CORELANE__V1__MAC__INIT, CORELANE__V1__MAC__INIT, CORELANE__V1__MAC__INIT};
	Corelane__V1__MacAddAllRequest req = CORELANE__V1__MAC_ADD_ALL_REQUEST__INIT;
	Corelane__V1__MacDelRequest del_req = CORELANE__V1__MAC_DEL_REQUEST__INIT;
	struct bytes f = keep_test_file();
	unsigned i;

	for (i = 0; i < 3; i++) {
		macs[i].bridge = TEXT("lan");
		macs[i].target_case = CORELANE__V1__MAC__TARGET_NEXTHOP;
		macs[i].nexthop = i + 1;
	}
	macs[0].mac = TEXT("02:00:00:00:00:0a");
	macs[1].mac = del_req.mac = TEXT("02:00:00:00:00:0b");
	macs[2].mac = TEXT("02:00:00:00:00:0c");
	req.macs = (Corelane__V1__Mac *[]){&macs[0], &macs[1], &macs[2]};
	req.n_macs = 3;
	del_req.bridge = TEXT("lan");
	keep_test_append(&f, "Macs.AddAll", &req.base);
	keep_test_append(&f, "Macs.Del", &del_req.base);
	assert_string_equal(folded(&f, true), "Macs.AddAll bridge=lan mac=02:00:00:00:00:0a nexthop=1 "
					      "bridge=lan mac=02:00:00:00:00:0c nexthop=3;");
	del_req.mac = macs[2].mac;
	keep_test_append(&f, "Macs.Del", &del_req.base);
	assert_string_equal(folded(&f, true), "Macs.Add bridge=lan mac=02:00:00:00:00:0a nexthop=1;");
	free(f.data);
}

// One request deletes many objects, of which one is added again.
static void test_fold_del_all(void **state)
{
	Corelane__V1__Nexthop nexthop = CORELANE__V1__NEXTHOP__INIT;
	Corelane__V1__NexthopAddRequest add_req = CORELANE__V1__NEXTHOP_ADD_REQUEST__INIT;
	Corelane__V1__NexthopDelAllRequest req = CORELANE__V1__NEXTHOP_DEL_ALL_REQUEST__INIT;
	struct bytes f = keep_test_file();

	add_req.nexthop = &nexthop;
	for (nexthop.id = 299; nexthop.id < 302; nexthop.id++)
		keep_test_append(&f, "Nexthops.Add", &add_req.base);
	req.ids = (uint32_t[]){300, 299, 301};
	req.n_ids = 3;
	keep_test_append(&f, "Nexthops.DelAll", &req.base);
	nexthop.id = 299;
	keep_test_append(&f, "Nexthops.Add", &add_req.base);
	assert_string_equal(folded(&f, true), "Nexthops.Add id=299;");
	free(f.data);
}

// Of workers that the options of the daemon have keep_test_made, and of settings, the changes are kept.
static void test_fold_presets(void **state)
{
	Corelane__V1__Worker worker = CORELANE__V1__WORKER__INIT;
	Corelane__V1__WorkerSetRequest set_req = CORELANE__V1__WORKER_SET_REQUEST__INIT;
	Corelane__V1__WorkerDelRequest del_req = CORELANE__V1__WORKER_DEL_REQUEST__INIT;
	Corelane__V1__Settings settings = CORELANE__V1__SETTINGS__INIT;
	Corelane__V1__SettingsSetRequest settings_req = CORELANE__V1__SETTINGS_SET_REQUEST__INIT;
	char *mac_age[] = {TEXT("mac_age_seconds")}, *neighbor_age[] = {TEXT("neighbor_age_seconds")},
	     *cpu[] = {TEXT("cpu")};
	struct bytes f = keep_test_file();

	worker.id = 1;
	set_req.worker = &worker;
	set_req.fields = cpu;
	set_req.n_fields = 1;
	for (worker.cpu = 2; worker.cpu < 4; worker.cpu++)
		keep_test_append(&f, "Workers.Set", &set_req.base);
	keep_test_append(&f, "Workers.Del", &del_req.base); // 0
	settings.mac_age_seconds = 7;
	settings_req.settings = &settings;
	settings_req.fields = mac_age;
	settings_req.n_fields = 1;
	keep_test_append(&f, "System.SetSettings", &settings_req.base);
	settings.mac_age_seconds = 0;
	settings.neighbor_age_seconds = 8;
	settings_req.fields = neighbor_age;
	keep_test_append(&f, "System.SetSettings", &settings_req.base);
	assert_string_equal(folded(&f, true), "Workers.Del;"
					      "System.SetSettings mac_age_seconds=7 neighbor_age_seconds=8 "
					      "fields=mac_age_seconds fields=neighbor_age_seconds;"
					      "Workers.Set id=1 cpu=3 fields=cpu;");
	free(f.data);
}

// A change of a oneof takes the place of what it had; a rule of NAT is replaced as a whole.
static void test_fold_choices(void **state)
{
	Corelane__V1__Mirror mirror = CORELANE__V1__MIRROR__INIT;
	Corelane__V1__MirrorAddRequest add_req = CORELANE__V1__MIRROR_ADD_REQUEST__INIT;
	Corelane__V1__MirrorSetRequest set_req = CORELANE__V1__MIRROR_SET_REQUEST__INIT;
	Corelane__V1__MirrorVni vni = CORELANE__V1__MIRROR_VNI__INIT;
	Corelane__V1__NatRule rule = CORELANE__V1__NAT_RULE__INIT;
	Corelane__V1__NatAddRequest nat_add = CORELANE__V1__NAT_ADD_REQUEST__INIT;
	Corelane__V1__NatSetRequest nat_set = CORELANE__V1__NAT_SET_REQUEST__INIT;
	char *target[] = {TEXT("target")};
	struct bytes f = keep_test_file();

	mirror.name = TEXT("m");
	mirror.target_case = CORELANE__V1__MIRROR__TARGET_PORT;
	mirror.port = TEXT("p");
	mirror.snap_length = 64;
	add_req.mirror = set_req.mirror = &mirror;
	keep_test_append(&f, "Mirrors.Add", &add_req.base);
	mirror.target_case = CORELANE__V1__MIRROR__TARGET_VXLAN;
	mirror.vxlan = &vni;
	vni.vni = 9;
	set_req.fields = target;
	set_req.n_fields = 1;
	keep_test_append(&f, "Mirrors.Set", &set_req.base);
	rule.id = 5;
	rule.vrf = TEXT("red");
	rule.external_vrf = TEXT("out");
	nat_add.rule = nat_set.rule = &rule;
	keep_test_append(&f, "Nat.Add", &nat_add.base);
	rule.external_vrf = TEXT("");
	keep_test_append(&f, "Nat.Set", &nat_set.base);
	assert_string_equal(folded(&f, true), "Mirrors.Add name=m vni=9 snap_length=64;Nat.Add id=5 vrf=red;");
	free(f.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_fold_routes, keep_test_setup, keep_test_teardown),
		cmocka_unit_test_setup_teardown(test_fold_objects, keep_test_setup, keep_test_teardown),
		cmocka_unit_test_setup_teardown(test_fold_macs, keep_test_setup, keep_test_teardown),
		cmocka_unit_test_setup_teardown(test_fold_add_all, keep_test_setup, keep_test_teardown),
		cmocka_unit_test_setup_teardown(test_fold_del_all, keep_test_setup, keep_test_teardown),
		cmocka_unit_test_setup_teardown(test_fold_presets, keep_test_setup, keep_test_teardown),
		cmocka_unit_test_setup_teardown(test_fold_choices, keep_test_setup, keep_test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
