// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "testing/router_fixture.h"

#define GROUP FREE_ID
#define MEMBER(i) (FREE_ID + 1 + (i))

// Tunnels to remotes with and without a route.
static void set_member(unsigned i, bool works)
{
	router_tunnel(MEMBER(i), "mplsoudp", works ? "203.0.113.9" : "192.88.99.9", 100 + i);
}

static void set_group(const uint32_t *weights, unsigned n)
{
	struct nexthop_config c = {.id = GROUP, .kind = NH_GROUP, .group = {.n = n}};
	unsigned i;

	for (i = 0; i < n; i++)
		c.group.member[i] = (struct group_member){MEMBER(i), weights[i]};
	router_nexthop(&c);
}

static unsigned buckets_of(unsigned member)
{
	unsigned i, n = 0;

	for (i = 0; i < GROUP_BUCKETS; i++)
		n += nexthop_table[GROUP]->bucket[i] == MEMBER(member);
	return n;
}

static int setup(void **state)
{
	unsigned i;
	int ret = router_setup(state);

	for (i = 0; i < 4; i++)
		set_member(i, true);
	return ret;
}

static void weights(void **state)
{
	static const struct {
		uint32_t weight[3];
		unsigned n, buckets[3];
	} cases[] = {
		{{1, 1}, 2, {128, 128}},       {{1, 3}, 2, {64, 192}},
		{{1, 1, 1}, 3, {86, 85, 85}},  {{256, 256, 256}, 3, {86, 85, 85}},
		{{1, 255}, 2, {1, 255}},       {{7}, 1, {256}},
		{{1, 2, 5}, 3, {32, 64, 160}},
	};
	unsigned i, k;

	for (i = 0; i < RTE_DIM(cases); i++) {
		set_group(cases[i].weight, cases[i].n);
		for (k = 0; k < cases[i].n; k++)
			assert_int_equal(buckets_of(k), cases[i].buckets[k]);
	}
}

// Flows move only to an added member and away from a removed one.
static void resilient(void **state)
{
	static const uint32_t equal[] = {1, 1, 1, 1};
	uint32_t before[GROUP_BUCKETS], gone = MEMBER(2), now;
	unsigned i, moved = 0;

	set_group(equal, 4);
	memcpy(before, nexthop_table[GROUP]->bucket, sizeof(before));
	set_member(2, false);
	for (i = 0; i < GROUP_BUCKETS; i++) {
		now = nexthop_table[GROUP]->bucket[i];
		assert_int_not_equal(now, gone);
		if (before[i] != gone)
			assert_int_equal(now, before[i]);
	}
	assert_int_equal(buckets_of(0) + buckets_of(1) + buckets_of(3), GROUP_BUCKETS);
	assert_in_range(buckets_of(0), 85, 86);
	assert_in_range(buckets_of(3), 85, 86);
	memcpy(before, nexthop_table[GROUP]->bucket, sizeof(before));
	set_member(2, true);
	for (i = 0; i < GROUP_BUCKETS; i++) {
		now = nexthop_table[GROUP]->bucket[i];
		moved += now != before[i];
		assert_true(now == before[i] || now == gone);
	}
	assert_int_equal(moved, 64);
	assert_int_equal(buckets_of(2), 64);
}

static void nobody_works(void **state)
{
	static const uint32_t equal[] = {1, 1};

	set_group(equal, 2);
	set_member(0, false);
	assert_true(nexthop_get(GROUP)->resolved);
	assert_int_equal(buckets_of(1), GROUP_BUCKETS);
	set_member(1, false);
	assert_false(nexthop_get(GROUP)->resolved);
	assert_int_equal(buckets_of(0) + buckets_of(1), 0);
	set_member(0, true);
	set_member(1, true);
	assert_int_equal(buckets_of(0), 128);
}

static void refused(void **state)
{
	struct nexthop_config c = {.id = GROUP, .kind = NH_GROUP, .group = {.n = 1, .member = {{MEMBER(0), 1}}}},
			      self = c;
	struct error err;

	c.group.member[0] = (struct group_member){999, 1};
	assert_int_equal(nexthop_add(&c, true, &err), -ENOENT);
	c.group.member[0] = (struct group_member){NH_ID_DISCARD, 1}; // the system's
	assert_int_equal(nexthop_add(&c, true, &err), -ENOENT);
	c.id = FREE_ID + 50;
	c.group.member[0] = (struct group_member){GROUP, 1}; // a group of a group
	assert_int_equal(nexthop_add(&c, true, &err), -EINVAL);
	self.id = self.group.member[0].nexthop = FREE_ID + 51; // a tunnel becomes a group of itself
	router_tunnel(self.id, "mplsoudp", "203.0.113.9", 100);
	assert_int_equal(nexthop_add(&self, true, &err), -EINVAL);
	assert_int_equal(nexthop_del(self.id, &err), 0);
}

static void members_stay(void **state)
{
	static const uint32_t equal[] = {1, 1};
	struct error err;
	char text[64];

	set_group(equal, 2);
	assert_int_equal(nexthop_del(MEMBER(0), &err), -EBUSY);
	snprintf(text, sizeof(text), "nexthop.id '%d': is in use by next hop %d, a group", MEMBER(0), GROUP);
	assert_string_equal(err.message, text);
	set_group(equal, 1);
	assert_int_equal(nexthop_del(MEMBER(1), &err), 0); // no longer referred to
	set_member(1, true);
	assert_int_equal(nexthop_del(GROUP, &err), 0);
	assert_int_equal(nexthop_del(MEMBER(0), &err), 0);
	set_member(0, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights), cmocka_unit_test(resilient),    cmocka_unit_test(nobody_works),
		cmocka_unit_test(refused), cmocka_unit_test(members_stay),
	};

	return cmocka_run_group_tests(tests, setup, router_teardown);
}
