// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/event.h"
#include "graph/held.h"
#include "testing/router_fixture.h"

// A lack is reported once, with the port whose packets hold the most buffers, and its end once it has lasted.
static void lack_is_reported_once(void **state)
{
	uint64_t before = event_last(), counted = router_drops(RED1, "port_no_buffer");
	const struct event_record *e;
	unsigned second;
	char subject[64];

	held_begin_as(RED0, 700);
	port_buffers_poll();
	assert_null(event_after(before));
	port_no_buffer(port_get(RED1));
	assert_int_equal(router_drops(RED1, "port_no_buffer"), counted + 1);
	port_buffers_poll();
	e = event_after(before);
	assert_non_null(e);
	assert_string_equal(e->kind->name, "buffers_exhausted");
	snprintf(subject, sizeof(subject), "port %s", port_get(RED0)->cfg.name);
	assert_string_equal(e->subject, subject);
	assert_non_null(strstr(e->text, "packets that wait hold 700, 700 of them from one port"));

	before = event_last();
	port_no_buffer(port_get(RED1));
	port_buffers_poll();
	for (second = 0; second < 9; second++)
		port_buffers_poll();
	assert_null(event_after(before));
	port_buffers_poll();
	e = event_after(before);
	assert_non_null(e);
	assert_string_equal(e->kind->name, "buffers_free");
	port_buffers_poll();
	assert_null(event_after(event_last()));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(lack_is_reported_once)};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
