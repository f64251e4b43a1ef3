// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "flow.h"
#include "gen_testlib.h"

static const struct flow_plan plan = {.source = 0x0a000001,
				      .destination = 0x0a010000,
				      .source_port = 1000,
				      .destination_port = 2000,
				      .source_ports = 3,
				      .destination_ports = 2,
				      .sources = 2,
				      .destinations = 4,
				      .step = 256};

static void assert_flow(const struct flow_plan *p, uint64_t number, uint32_t source, uint32_t destination,
			uint16_t source_port, uint16_t destination_port)
{
	struct flow f = flow_make(p, number);

	assert_int_equal(rte_be_to_cpu_32(f.source), source);
	assert_int_equal(rte_be_to_cpu_32(f.destination), destination);
	assert_int_equal(rte_be_to_cpu_16(f.source_port), source_port);
	assert_int_equal(rte_be_to_cpu_16(f.destination_port), destination_port);
	assert_in_range(rte_be_to_cpu_16(f.entropy), 49152, 65535);
}

static void source_port_varies_first(void **state)
{
	assert_flow(&plan, 0, 0x0a000001, 0x0a010000, 1000, 2000);
	assert_flow(&plan, 1, 0x0a000001, 0x0a010000, 1001, 2000);
	assert_flow(&plan, 3, 0x0a000001, 0x0a010000, 1000, 2001);
	assert_flow(&plan, 6, 0x0a000002, 0x0a010000, 1000, 2000);
	assert_flow(&plan, 12, 0x0a000001, 0x0a010100, 1000, 2000);
	assert_flow(&plan, 47, 0x0a000002, 0x0a010300, 1002, 2001);
	assert_flow(&plan, 48, 0x0a000001, 0x0a010000, 1000, 2000); // begins again
}

static void destinations_from_a_list(void **state)
{
	uint32_t list[] = {7, 8, 9, 10, 11};
	struct flow_plan p = plan;

	p.list = list;
	p.n_list = 5;
	assert_int_equal(flow_plan_size(&p), 60);
	assert_flow(&p, 0, 0x0a000001, 7, 1000, 2000);
	assert_flow(&p, 4, 0x0a000001, 11, 1001, 2001);
	assert_flow(&p, 5, 0x0a000001, 7, 1002, 2001);
}

static void sizes_of_plans(void **state)
{
	uint32_t list[6];
	struct flow_plan p = plan;

	assert_int_equal(flow_plan_size(&p), 48);
	p.list = list;
	p.n_list = 6; // in step with the other 12
	assert_int_equal(flow_plan_size(&p), 12);
	p = (struct flow_plan){
		.source_ports = 65536, .destination_ports = 65536, .sources = UINT32_MAX, .destinations = UINT32_MAX};
	assert_true(flow_plan_size(&p) > 1u << 24); // and has not wrapped
}

static int by_tuple(const void *a, const void *b)
{
	return memcmp(a, b, 12);
}

// Each flow of the plan once, in an order that is shuffled but always the same.
static void shuffled_flows_are_all_there(void **state)
{
	struct flow sorted[48], first[48], flows[48];
	unsigned i, moved = 0;

	flow_fill(&plan, sorted, 48, false);
	flow_fill(&plan, first, 48, true);
	flow_fill(&plan, flows, 48, true);
	assert_memory_equal(first, flows, sizeof(flows));
	for (i = 0; i < 48; i++)
		moved += memcmp(&sorted[i], &flows[i], sizeof(flows[i])) != 0;
	assert_in_range(moved, 40, 48);
	qsort(sorted, 48, sizeof(*sorted), by_tuple);
	qsort(flows, 48, sizeof(*flows), by_tuple);
	assert_memory_equal(sorted, flows, sizeof(flows));
}

// Routers hash the outer source port, so a thousand flows must use much of the range, evenly.
static void entropy_is_spread(void **state)
{
	unsigned seen[16] = {0}, i;

	for (i = 0; i < 1000; i++)
		seen[(rte_be_to_cpu_16(flow_make(&plan, i).entropy) - 49152) / 1024]++;
	for (i = 0; i < 16; i++)
		assert_in_range(seen[i], 40, 90);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(source_port_varies_first), cmocka_unit_test(destinations_from_a_list),
		cmocka_unit_test(sizes_of_plans),           cmocka_unit_test(shuffled_flows_are_all_there),
		cmocka_unit_test(entropy_is_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
