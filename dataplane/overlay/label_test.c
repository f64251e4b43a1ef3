// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "overlay/overlay.h"
#include "policy/address_set.h"
#include "testing/router_fixture.h"

#define TO_RED TARGET(TARGET_VRF, RED)

static void labels(void **state)
{
	static const uint32_t used[] = {16, 17, 4096, LABEL_MAX - 1};
	struct error err;
	uint32_t label = 0;
	unsigned i;

	for (i = 0; i < RTE_DIM(used); i++)
		assert_int_equal(label_set(used[i], TO_RED, &err), 0);
	assert_int_equal(label_count(), 4);
	for (i = 0; i < RTE_DIM(used); i++) {
		label = label_next(label);
		assert_int_equal(label, used[i]);
		assert_int_equal(label_table[label], TO_RED);
	}
	assert_int_equal(label_next(label), LABEL_MAX);
	assert_int_equal(label_set(16, TARGET(TARGET_VRF, BLUE), &err), -EEXIST);
	assert_string_equal(err.field, "label.label");
	assert_int_equal(label_table[16], TO_RED);
	for (i = 0; i < RTE_DIM(used); i++)
		assert_int_equal(label_unset(used[i], &err), 0);
	assert_int_equal(label_unset(16, &err), -ENOENT);
	assert_int_equal(label_unset(LABEL_MAX, &err), -ENOENT);
	assert_int_equal(label_count(), 0);
}

static void vnis(void **state)
{
	static const uint32_t used[] = {1, 4095, 4096, 1 << 20, VNI_MAX - 1};
	struct error err;
	uint32_t vni = 0;
	unsigned i;

	for (i = 0; i < RTE_DIM(used); i++)
		assert_int_equal(vni_set(used[i], TO_RED, &err), 0);
	assert_int_equal(vni_count(), 5);
	for (i = 0; i < RTE_DIM(used); i++) {
		vni = vni_next(vni);
		assert_int_equal(vni, used[i]);
		assert_int_equal(vni_target(vni), TO_RED);
	}
	assert_int_equal(vni_next(vni), VNI_MAX);
	assert_int_equal(vni_target(2), TARGET(TARGET_NONE, 0));
	assert_int_equal(vni_target(1 << 21), TARGET(TARGET_NONE, 0)); // a page that does not exist
	assert_int_equal(vni_set(1, TO_RED, &err), -EEXIST);
	assert_string_equal(err.field, "vni.vni");
	for (i = 0; i < RTE_DIM(used); i++)
		assert_int_equal(vni_unset(used[i], &err), 0);
	assert_int_equal(vni_unset(1, &err), -ENOENT);
	assert_int_equal(vni_unset(VNI_MAX, &err), -ENOENT);
	assert_int_equal(vni_count(), 0);
}

// The target of a label or VNI cannot be deleted.
static void references(void **state)
{
	uint32_t before = vrf_get(RED)->refs;
	struct error err;

	assert_int_equal(label_set(100, TO_RED | TARGET_UNIFORM, &err), 0);
	assert_int_equal(vni_set(100, TO_RED, &err), 0);
	assert_int_equal(vrf_get(RED)->refs, before + 2);
	assert_non_null(vrf_add("green", 7, &err));
	assert_int_equal(label_set(101, TARGET(TARGET_VRF, 7), &err), 0);
	assert_int_equal(vrf_del("green", &err), -EBUSY);
	assert_string_equal(err.message, "vrf.name 'green': is in use by label 101");
	assert_int_equal(label_set(102, TARGET(TARGET_BRIDGE, LAN), &err), 0);
	assert_int_equal(bridge_del("lan", &err), -EBUSY);
	assert_non_null(strstr(err.message, "bridge.name 'lan': is in use by "));
	label_unset(101, NULL);
	assert_int_equal(vni_set(101, TARGET(TARGET_VRF, 7), &err), 0);
	assert_int_equal(vrf_del("green", &err), -EBUSY);
	assert_string_equal(err.message, "vrf.name 'green': is in use by VNI 101");
	router_nexthop(&(struct nexthop_config){.id = FREE_ID, .kind = NH_DISCARD});
	assert_int_equal(vni_set(103, TARGET(TARGET_NEXTHOP, FREE_ID), &err), 0);
	assert_int_equal(nexthop_del(FREE_ID, &err), -EBUSY);
	assert_non_null(strstr(err.message, "': is in use by VNI 103"));
	label_unset(100, NULL);
	vni_unset(100, NULL);
	vni_unset(101, NULL);
	label_unset(102, NULL);
	vni_unset(103, NULL);
	assert_int_equal(vrf_get(RED)->refs, before);
	assert_int_equal(vrf_del("green", &err), 0);
	assert_int_equal(nexthop_del(FREE_ID, &err), 0);
}

// A label holds its address group; replacing it moves the references.
static void sources(void **state)
{
	const struct ip_prefix p = {router_addr("192.0.2.0"), 24};
	struct address_group *a = address_group_add("a", &p, 1, NULL), *b = address_group_add("b", &p, 1, NULL);
	struct tunnel_target t = {.target = TO_RED, .sources = a};
	uint32_t before = vrf_get(RED)->refs;
	struct error err;

	assert_int_equal(label_add(100, &t, &err), 0);
	assert_int_equal(vni_add(100, &t, &err), 0);
	assert_int_equal(label_add(100, &t, &err), -EEXIST);
	assert_int_equal(label_table[100], TO_RED | TARGET_SOURCES);
	assert_ptr_equal(tunnel_sources(TUNNEL_ID_LABEL(100)), a);
	assert_ptr_equal(tunnel_sources(TUNNEL_ID_VNI(100)), a);
	assert_null(tunnel_sources(TUNNEL_ID_LABEL(101)));
	assert_int_equal(a->holders, 2);
	assert_non_null(address_sets[a->id]);
	assert_int_equal(address_group_del("a", &err), -EBUSY);
	assert_string_equal(err.message, "group.name 'a': is in use by label 100 (2 references in all)");
	t = (struct tunnel_target){.target = TARGET(TARGET_VRF, BLUE) | TARGET_ENDS, .sources = b, .replace = true};
	assert_int_equal(label_add(100, &t, &err), 0);
	assert_int_equal(TARGET_ID(label_table[100]), BLUE);
	assert_int_equal(vni_unset(100, &err), 0);
	assert_int_equal(label_count() + vni_count(), 1);
	assert_int_equal(vrf_get(RED)->refs, before);
	assert_int_equal(address_group_del("a", &err), 0);
	assert_int_equal(label_unset(100, &err), 0);
	assert_null(address_sets[b->id]);
	assert_int_equal(address_group_del("b", &err), 0);
	assert_int_equal(label_count(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(labels), cmocka_unit_test(vnis),
					   cmocka_unit_test(references), cmocka_unit_test(sources)};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
