// SPDX-License-Identifier: Apache-2.0
// The settings that all modules have registered are compared with the message of the API, and are read and set through
// the API server's own frames.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rte_common.h>

#include "api/api_test.h"
#include "api/check.h"
#include "base/setting.h"
#include "flow/tcp.h"
#include "l2/bridge.h"
#include "l3/encap.h"
#include "overlay/overlay.h"
#include "system.pb-c.h"

#define SYSTEM "corelane.v1.System"
#define PbSettings Corelane__V1__Settings

static PbSettings *answer(Ttrpc__Response *r)
{
	PbSettings *s;

	if (r->status && r->status->code)
		fail_msg("%s", r->status->message);
	s = corelane__v1__settings__unpack(NULL, r->payload.len, r->payload.data);
	ttrpc__response__free_unpacked(r, NULL);
	assert_non_null(s);
	return s;
}

static PbSettings *get(void)
{
	Corelane__V1__Empty req = CORELANE__V1__EMPTY__INIT;

	return answer(test_ask(SYSTEM, "GetSettings", &req.base));
}

static Ttrpc__Response *set(PbSettings *s, char **fields, size_t n)
{
	Corelane__V1__SettingsSetRequest req = CORELANE__V1__SETTINGS_SET_REQUEST__INIT;

	req.settings = s;
	req.fields = fields;
	req.n_fields = n;
	return test_ask(SYSTEM, "SetSettings", &req.base);
}

static void assert_same(const PbSettings *a, const PbSettings *b)
{
	uint8_t one[512], other[512];
	size_t n = corelane__v1__settings__pack(a, one);

	assert_int_equal(corelane__v1__settings__pack(b, other), n);
	assert_memory_equal(one, other, n);
}

// The request is refused with this message, and nothing has changed.
static void assert_refused(PbSettings *s, char **fields, size_t n, const char *message)
{
	PbSettings *before = get(), *after;
	Ttrpc__Response *r = set(s, fields, n);

	assert_non_null(r->status);
	if (strstr(r->status->message, message) == NULL)
		fail_msg("'%s' is not in '%s'", message, r->status->message);
	ttrpc__response__free_unpacked(r, NULL);
	after = get();
	assert_same(before, after);
	corelane__v1__settings__free_unpacked(before, NULL);
	corelane__v1__settings__free_unpacked(after, NULL);
}

static void set_one(PbSettings *s, const char *field)
{
	char *name = (char *)(uintptr_t)field;

	corelane__v1__settings__free_unpacked(answer(set(s, &name, 1)), NULL);
}

static const struct field_limits *limits_of(unsigned field)
{
	const struct message_limits *settings = NULL;
	unsigned i;

	for (i = 0; i < n_api_requests; i++)
		if (api_requests[i]->type == &corelane__v1__settings_set_request__descriptor)
			settings = api_requests[i]->fields[0].of;
	assert_non_null(settings);
	for (i = 0; i < settings->n_fields; i++)
		if (settings->fields[i].field == field)
			return &settings->fields[i];
	return NULL;
}

static void fits(const struct setting *s, const ProtobufCFieldDescriptor *f, const struct field_limits *l)
{
	static const uint64_t most[] = {[SETTING_BOOL] = 1,
					[SETTING_UINT8] = UINT8_MAX,
					[SETTING_UINT16] = UINT16_MAX,
					[SETTING_UINT32] = UINT32_MAX};

	assert_int_equal(f->label == PROTOBUF_C_LABEL_REPEATED, s->type == SETTING_LIST);
	assert_int_equal(f->type, s->type == SETTING_BOOL ? PROTOBUF_C_TYPE_BOOL : PROTOBUF_C_TYPE_UINT32);
	if (s->type == SETTING_BOOL)
		return;
	assert_non_null(l);
	if (s->type == SETTING_LIST) {
		assert_in_range(l->items, 1, SETTING_LIST_MAX);
		return;
	}
	assert_in_range(l->max, 1, most[s->type]);
	assert_in_range(setting_get(s), l->min, l->max);
}

// Each field of the API belongs to a setting, each setting has a field, and each limit fits the setting's variable.
static void fields_are_settings(void **state)
{
	const ProtobufCMessageDescriptor *d = &corelane__v1__settings__descriptor;
	const struct setting *s;
	unsigned i, n = 0;

	for (i = 0; i < d->n_fields; i++) {
		s = setting_find(d->fields[i].name);
		if (s == NULL)
			fail_msg("no module has registered %s", d->fields[i].name);
		fits(s, &d->fields[i], limits_of(i));
	}
	for (s = setting_next(NULL); s; s = setting_next(s))
		n++;
	assert_int_equal(n, d->n_fields);
	assert_null(setting_find("nonsense"));
}

static void defaults(void **state)
{
	PbSettings *s = get();

	assert_int_equal(s->n_mplsoudp_ports, 1);
	assert_int_equal(s->mplsoudp_ports[0], 6635);
	assert_int_equal(s->vxlan_ports[0], 4789);
	assert_int_equal(s->geneve_ports[0], 6081);
	assert_int_equal(s->mac_age_seconds, 300);
	assert_int_equal(s->neighbor_age_seconds, 30);
	assert_int_equal(s->icmp_errors_per_second, 1000);
	assert_int_equal(s->label_stack_depth, 3);
	assert_int_equal(s->flow_tcp_half_open_seconds, 30);
	assert_int_equal(s->flow_tcp_established_seconds, 7440);
	assert_int_equal(s->flow_tcp_closing_seconds, 240);
	assert_int_equal(s->flow_udp_seconds, 30);
	assert_int_equal(s->flow_udp_answered_seconds, 180);
	assert_int_equal(s->flow_icmp_seconds, 30);
	assert_int_equal(s->flow_other_seconds, 600);
	assert_int_equal(s->flow_denied_seconds, 5);
	assert_int_equal(s->rebalance_seconds, 0);
	assert_false(s->flow_tcp_strict);
	corelane__v1__settings__free_unpacked(s, NULL);
}

static void only_named_fields_change(void **state)
{
	PbSettings in = CORELANE__V1__SETTINGS__INIT, *was = get(), *is;
	char *fields[] = {"mac_age_seconds", "label_stack_depth", "flow_tcp_strict", "flow_denied_seconds"};

	was->mac_age_seconds = in.mac_age_seconds = 1000000;
	was->label_stack_depth = in.label_stack_depth = 16;
	was->flow_tcp_strict = in.flow_tcp_strict = true;
	was->flow_denied_seconds = in.flow_denied_seconds = 43200;
	in.neighbor_age_seconds = 77; // not named
	is = answer(set(&in, fields, RTE_DIM(fields)));
	assert_same(was, is);
	assert_int_equal(mac_age_seconds, 1000000);
	assert_int_equal(label_stack_depth, 16);
	assert_true(flow_tcp_strict);
	assert_int_equal(flow_timeouts.denied, 43200);
	corelane__v1__settings__free_unpacked(is, NULL);
	corelane__v1__settings__free_unpacked(was, NULL);
	in = (PbSettings)CORELANE__V1__SETTINGS__INIT;
	in.mac_age_seconds = 300;
	in.label_stack_depth = 3;
	in.flow_denied_seconds = 5;
	corelane__v1__settings__free_unpacked(answer(set(&in, fields, RTE_DIM(fields))), NULL);
	assert_false(flow_tcp_strict);
}

// Three states of TCP count as half open.
static void half_open(void **state)
{
	PbSettings in = CORELANE__V1__SETTINGS__INIT;

	in.flow_tcp_half_open_seconds = 12;
	set_one(&in, "flow_tcp_half_open_seconds");
	assert_int_equal(flow_timeouts.tcp[TCP_NONE], 12);
	assert_int_equal(flow_timeouts.tcp[TCP_SYN_SENT], 12);
	assert_int_equal(flow_timeouts.tcp[TCP_SYN_RECV], 12);
	assert_int_equal(flow_timeouts.tcp[TCP_ESTABLISHED], 7440);
	in.flow_tcp_half_open_seconds = 30;
	set_one(&in, "flow_tcp_half_open_seconds");
}

static void all_or_nothing(void **state)
{
	PbSettings in = CORELANE__V1__SETTINGS__INIT;
	uint32_t taken[] = {9999, 6635};
	char *fields[] = {"mac_age_seconds", "vxlan_ports", "neighbor_age_seconds"};
	char *unknown[] = {"mac_age_seconds", "mac_age"};

	in.mac_age_seconds = 60;
	in.neighbor_age_seconds = 60;
	in.vxlan_ports = taken;
	in.n_vxlan_ports = 2;
	assert_refused(&in, fields, 3,
		       "settings.vxlan_ports '6635': is also in mplsoudp_ports; valid: a port that no other list has");
	assert_int_equal(encap_by_udp[9999], 0);
	in.n_vxlan_ports = 0;
	assert_refused(&in, fields, 3, "settings.vxlan_ports: is missing; valid: 1 to 8");
	in.n_vxlan_ports = 1;
	in.neighbor_age_seconds = 1000001;
	assert_refused(&in, fields, 3, "settings.neighbor_age_seconds '1000001': is out of range; valid: 1 to 1000000");
	assert_refused(&in, unknown, 2, "fields 'mac_age': cannot be set; valid: mplsoudp_ports, ");
	assert_refused(NULL, fields, 3, "settings: is missing");
	assert_int_equal(mac_age_seconds, 300);
}

// Lists are compared as they will be, not as they are.
static void ports_change_places(void **state)
{
	PbSettings in = CORELANE__V1__SETTINGS__INIT, *is;
	uint8_t vxlan = encap_by_udp[4789], geneve = encap_by_udp[6081];
	uint32_t geneves[] = {4789, 7000}, vxlans[] = {6081}, back[] = {6081};
	char *fields[] = {"vxlan_ports", "geneve_ports"};

	assert_true(vxlan && geneve && vxlan != geneve);
	in.vxlan_ports = vxlans;
	in.geneve_ports = geneves;
	in.n_vxlan_ports = 1;
	in.n_geneve_ports = 2;
	is = answer(set(&in, fields, 2));
	assert_int_equal(is->n_geneve_ports, 2);
	assert_int_equal(is->geneve_ports[1], 7000);
	corelane__v1__settings__free_unpacked(is, NULL);
	assert_int_equal(encap_by_udp[6081], vxlan);
	assert_int_equal(encap_by_udp[4789], geneve);
	assert_int_equal(encap_by_udp[7000], geneve);
	assert_int_equal(encap_udp_port(encap_find("geneve")), 4789);
	vxlans[0] = 4789;
	in.geneve_ports = back;
	in.n_geneve_ports = 1;
	corelane__v1__settings__free_unpacked(answer(set(&in, fields, 2)), NULL);
	assert_int_equal(encap_by_udp[4789], vxlan);
	assert_int_equal(encap_by_udp[6081], geneve);
	assert_int_equal(encap_by_udp[7000], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_settings),      cmocka_unit_test(defaults),
		cmocka_unit_test(only_named_fields_change), cmocka_unit_test(half_open),
		cmocka_unit_test(all_or_nothing),           cmocka_unit_test(ports_change_places),
	};

	return cmocka_run_group_tests(tests, test_ask_setup, test_ask_teardown);
}
