// SPDX-License-Identifier: Apache-2.0
// What those who follow learnt addresses are told.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "l2/bridge_fixture.h"
#include "l2/mac_watch.h"

#define NONE UINT16_MAX
#define GUEST "02:00:00:00:00:01"

static struct bridge *lan;
static uint64_t begin;
static unsigned calls, others;

static void count_calls(void)
{
	calls++;
}

static void count_others(void)
{
	others++;
}

static int setup(void **state)
{
	static struct mac_change_listener listener = {.noted = count_calls}, other = {.noted = count_others};

	fixture_reset(state);
	lan = fixture_bridge("lan", 2);
	fixture_join(1, lan->id, NONE);
	fixture_join(2, lan->id, NONE);
	begin = mac_change_last();
	calls = others = 0;
	mac_change_listen(&listener);
	mac_change_listen(&other);
	return 0;
}

// The changes since the beginning of the test, as text: "learnt p1, moved p2".
static const char *changes(void)
{
	static const char *const words[] = {"learnt", "moved", "gone", "seen"};
	static char text[400];
	const struct mac_change *c;
	uint64_t n;
	size_t at = 0;

	text[0] = 0;
	for (n = begin + 1; (c = mac_change_get(n)) != NULL && at < sizeof(text) - 20; n++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s %c%u", at ? ", " : "", words[c->kind],
				       c->target & MAC_TUNNEL ? 't' : 'p', MAC_ID(c->target));
	return text;
}

static void from_port_to_port_to_tunnel(void **state)
{
	fixture_learn(lan->id, 1, HERE, GUEST);
	fixture_learn(lan->id, 1, HERE, GUEST);
	fixture_learn(lan->id, 2, HERE, GUEST);
	fixture_learn(lan->id, FABRIC, "192.0.2.1", GUEST);
	assert_string_equal(changes(), "learnt p1, moved p2, moved t101");
	assert_int_equal(calls, 3);
	assert_int_equal(others, 3);
}

static void ends(void **state)
{
	struct mac_entry given = {.bridge = lan->id, .mac = fixture_mac(GUEST), .nexthop = 101};

	fixture_learn(lan->id, 1, HERE, GUEST);
	fixture_wait(mac_age_seconds + 20);
	fixture_learn(lan->id, 1, HERE, GUEST);
	assert_int_equal(mac_set(&given, NULL), 0);
	mac_unset(lan->id, &given.mac, NULL); // a given one is its owner's business
	fixture_learn(lan->id, 2, HERE, GUEST);
	fixture_leave(2);
	assert_string_equal(changes(), "learnt p1, gone p1, learnt p1, gone p1, learnt p2, gone p2");
}

// An address that is given behind a tunnel stays there, and yet its owner hears of the guest that has come.
static void given_elsewhere(void **state)
{
	struct mac_entry given = {.bridge = lan->id, .mac = fixture_mac(GUEST), .nexthop = 101}, e;

	assert_int_equal(mac_set(&given, NULL), 0);
	fixture_learn(lan->id, FABRIC, "192.0.2.2", GUEST); // another host's word is nothing against its owner's
	fixture_learn(lan->id, 2, HERE, GUEST);
	assert_true(fixture_find(lan->id, GUEST, &e));
	assert_int_equal(e.nexthop, 101);
	assert_string_equal(changes(), "seen p2");
	mac_unset(lan->id, &given.mac, NULL);
	given.nexthop = 0;
	given.port = 1;
	assert_int_equal(mac_set(&given, NULL), 0); // at a port here, it is not looked for elsewhere
	fixture_learn(lan->id, 2, HERE, GUEST);
	assert_string_equal(changes(), "seen p2");
}

static void overwritten(void **state)
{
	unsigned i;

	for (i = 0; i < MAC_CHANGES + 1; i++)
		mac_change_note(MAC_WAS_LEARNT, i + 1, 1);
	assert_null(mac_change_get(begin + 1));
	assert_int_equal(mac_change_get(begin + 2)->key, 2);
	assert_int_equal(mac_change_get(mac_change_last())->key, MAC_CHANGES + 1);
	assert_null(mac_change_get(mac_change_last() + 1));
	assert_null(mac_change_get(0));
}

#define T(fn) cmocka_unit_test_setup(fn, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(from_port_to_port_to_tunnel),
		T(ends),
		T(given_elsewhere),
		T(overwritten),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
