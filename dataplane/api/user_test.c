// SPDX-License-Identifier: Apache-2.0
// Users of the API: admission, and the events about their calls.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/user.h"
#include "base/event.h"
#include "common.pb-c.h"
#include "port.pb-c.h"
#include "route.pb-c.h"
#include "system.pb-c.h"
#include "worker.pb-c.h"

static const struct api_client client = {.uid = 1001, .pid = 42, .role = ROLE_ADMINISTER};
static const struct turn_work method = {.noun = "Ports", .name = "Del"};

static void admission(void **state)
{
	assert_int_equal(user_admit(1001, 0, 0), LIMITS);
	assert_int_equal(user_admit(1001, 959, 127), LIMITS);
	assert_int_equal(user_admit(1001, 959, 128), LIMIT_USER_CONNECTIONS);
	assert_int_equal(user_admit(1001, 960, 0), LIMIT_CONNECTIONS); // the rest is root's
	assert_int_equal(user_admit(0, 1023, 0), LIMITS);
	assert_int_equal(user_admit(0, 1024, 0), LIMIT_CONNECTIONS);
	assert_int_equal(user_admit(0, 128, 128), LIMIT_USER_CONNECTIONS);
}

static void objects(void **state)
{
	Corelane__V1__PortDelRequest del = CORELANE__V1__PORT_DEL_REQUEST__INIT;
	Corelane__V1__PortAddRequest add = CORELANE__V1__PORT_ADD_REQUEST__INIT;
	Corelane__V1__Port port = CORELANE__V1__PORT__INIT;
	Corelane__V1__RouteAddRequest routes = CORELANE__V1__ROUTE_ADD_REQUEST__INIT;
	Corelane__V1__WorkerDelRequest worker = CORELANE__V1__WORKER_DEL_REQUEST__INIT;
	Corelane__V1__Empty empty = CORELANE__V1__EMPTY__INIT;
	char text[32];

	del.name = "vm1\nforged line\x7f";
	user_object(&del.base, text, sizeof(text));
	assert_string_equal(text, "vm1?forged line?");
	add.port = &port;
	port.name = "vm2";
	user_object(&add.base, text, sizeof(text));
	assert_string_equal(text, "vm2");
	add.port = NULL;
	user_object(&add.base, text, sizeof(text));
	assert_string_equal(text, "");
	routes.n_routes = 3;
	user_object(&routes.base, text, sizeof(text));
	assert_string_equal(text, "3 routes");
	worker.id = 7;
	user_object(&worker.base, text, sizeof(text));
	assert_string_equal(text, "7");
	user_object(&empty.base, text, sizeof(text));
	assert_string_equal(text, "");
}

static void changed_fields(void **state)
{
	char *names[] = {"mac_age_seconds", "rebalance_seconds\n", "flow_tcp_strict", "accept_udp6_zero"};
	Corelane__V1__SettingsSetRequest set = CORELANE__V1__SETTINGS_SET_REQUEST__INIT;
	Corelane__V1__PortSetRequest port_set = CORELANE__V1__PORT_SET_REQUEST__INIT;
	Corelane__V1__Settings settings = CORELANE__V1__SETTINGS__INIT;
	Corelane__V1__Port port = CORELANE__V1__PORT__INIT;
	char text[48];

	set.settings = &settings;
	set.fields = names;
	set.n_fields = 1;
	user_object(&set.base, text, sizeof(text));
	assert_string_equal(text, "mac_age_seconds");
	set.n_fields = 2;
	user_object(&set.base, text, sizeof(text));
	assert_string_equal(text, "mac_age_seconds, rebalance_seconds?");
	set.n_fields = 4;
	user_object(&set.base, text, sizeof(text));
	assert_string_equal(text, "mac_age_seconds, rebalance_seconds?, ...");
	port.name = "vm1";
	port_set.port = &port;
	port_set.fields = names;
	port_set.n_fields = 1;
	user_object(&port_set.base, text, sizeof(text));
	assert_string_equal(text, "vm1 mac_age_seconds");
}

// The last event, which must be of this kind.
static const char *reported(const char *kind)
{
	const struct event_record *e = event_after(event_last() - 1);

	assert_non_null(e);
	assert_string_equal(e->kind->name, kind);
	assert_string_equal(e->subject, "uid 1001");
	return e->text;
}

static void bounded_events(void **state)
{
	Corelane__V1__PortDelRequest del = CORELANE__V1__PORT_DEL_REQUEST__INIT;
	struct api_user *u = user_get(1001);
	uint64_t before = event_last();
	unsigned i;

	del.name = "vm1";
	user_called(u, &client, &method, &del.base);
	assert_string_equal(reported("api_call"), "process 42 called Ports.Del vm1");
	user_refused(u, &client, &method);
	assert_string_equal(reported("api_refused"), "process 42 was refused Ports.Del");
	for (i = 0; i < 1000; i++)
		user_called(u, &client, &method, &del.base);
	assert_in_range(event_last() - before, USER_EVENTS_BURST, USER_EVENTS_BURST + 2);
	assert_in_range(u->omitted, 1000 - USER_EVENTS_BURST, 1002 - USER_EVENTS_BURST);
	user_put(u);
	assert_ptr_equal(user_get(1001), u); // a new connection does not begin with a new budget
	u->events = (struct bucket){0};
	user_called(u, &client, &method, &del.base);
	assert_non_null(strstr(reported("api_call"), "process 42 called Ports.Del vm1; 9"));
	assert_non_null(strstr(reported("api_call"), " earlier calls were not reported"));
	u->omitted = 5;
	u->events = (struct bucket){0};
	user_put(u);
	users_tidy();
	assert_string_equal(reported("api_call"), "5 more calls were not reported");
	assert_null(user_find(1001));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(admission), cmocka_unit_test(objects),
					   cmocka_unit_test(changed_fields), cmocka_unit_test(bounded_events)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
