// SPDX-License-Identifier: Apache-2.0
// A machine of two NUMA nodes with CPUs 0-3 and 4-7, and hugepages of 2 MB.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "main/eal_memory.h"
#include "testing/file_tree.h"

static char root[] = "/tmp/eal-memory-XXXXXX";

static void write_file(const char *path, const char *text)
{
	file_tree_write(root, path, text);
}

static void free_pages(unsigned node, const char *pages)
{
	char path[128];

	snprintf(path, sizeof(path), "sys/devices/system/node/node%u/hugepages/hugepages-2048kB/free_hugepages", node);
	write_file(path, pages);
}

static int make_machine(void **state)
{
	char path[64];
	unsigned cpu;

	assert_non_null(mkdtemp(root));
	write_file("proc/meminfo", "HugePages_Free:      600\nHugepagesize:       2048 kB\n");
	for (cpu = 0; cpu < 8; cpu++) {
		snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/node%u/x", cpu, cpu / 4);
		write_file(path, "");
	}
	return 0;
}

static int remove_machine(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static int divide(unsigned n, const unsigned *cpus, unsigned mb, struct eal_memory *m)
{
	struct placement p = {.n_workers = n};

	memcpy(p.worker_cpus, cpus, n * sizeof(cpus[0]));
	return eal_memory(root, &p, mb, m);
}

// The control CPU is on node 0, which does not matter.
static void worker_on_second_node(void **state)
{
	static const unsigned cpus[] = {6};
	struct eal_memory m;

	free_pages(0, "300\n");
	free_pages(1, "256\n");
	assert_int_equal(divide(1, cpus, 512, &m), 0);
	assert_string_equal(m.list, "0,512");
	assert_int_equal(m.node, 1);
}

static void workers_on_both_nodes(void **state)
{
	static const unsigned cpus[] = {1, 5, 6};
	struct eal_memory m;

	free_pages(0, "300\n");
	free_pages(1, "256\n");
	assert_int_equal(divide(3, cpus, 512, &m), 0);
	assert_string_equal(m.list, "170,342");
	assert_int_equal(m.node, 1);
}

static void too_few_pages(void **state)
{
	static const unsigned cpus[] = {6};
	struct eal_memory m;

	free_pages(0, "300\n");
	free_pages(1, "255\n");
	assert_int_equal(divide(1, cpus, 512, &m), -ENOMEM);
	assert_int_equal(m.node, 1);
}

static void unknown_node(void **state)
{
	static const unsigned cpus[] = {9};
	struct eal_memory m;

	assert_int_equal(divide(1, cpus, 512, &m), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worker_on_second_node),
		cmocka_unit_test(workers_on_both_nodes),
		cmocka_unit_test(too_few_pages),
		cmocka_unit_test(unknown_node),
	};

	return cmocka_run_group_tests(tests, make_machine, remove_machine);
}
