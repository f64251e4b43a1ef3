// SPDX-License-Identifier: Apache-2.0
// Reads captured files of /proc and /sys, and the files of this machine.
#include <errno.h>
#include <sched.h>
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

#include "testing/file_tree.h"
#include "worker/health.h"

static char root[] = "/tmp/health-XXXXXX";

static void write_file(const char *path, const char *text)
{
	file_tree_write(root, path, text);
}

#define STAT_TAIL                                                                                                    \
	" S 1 4 4 0 -1 4194368 12 0 0 0 1 2 0 0 20 0 3 0 99 1000 50 184467 1 1 0 0 0 0 0 0 0 0 0 0 -1 1047 0 0 0 0 " \
	"0\n"

static void captured(void **state)
{
	struct worker_health h = {};

	write_file("proc/self/task/42/status",
		   "Name:\tpmd-fwd-0\nState:\tR (running)\nCpus_allowed:\tff\nCpus_allowed_list:\t0-3,1047\n"
		   "voluntary_ctxt_switches:\t17\nnonvoluntary_ctxt_switches:\t4242424242\n");
	write_file("proc/self/task/42/stat", "42 (pmd) fwd (0) x)" STAT_TAIL);
	write_file("proc/self/task/42/schedstat", "123 987654321 55\n");
	write_file("sys/devices/system/cpu/cpu1047/node3/x", "");
	assert_int_equal(health_read(&h, root, 42), 0);
	assert_string_equal(h.affinity, "0-3,1047");
	assert_int_equal(h.voluntary, 17);
	assert_int_equal(h.involuntary, 4242424242);
	assert_int_equal(h.waited_ns, 987654321);
	assert_int_equal(h.last_cpu, 1047);
	assert_int_equal(h.numa, 3);
}

// A kernel without schedstat, a machine without NUMA, a thread that has gone.
static void missing(void **state)
{
	struct worker_health h = {.waited_ns = 5, .last_cpu = 9};

	assert_int_equal(health_read(&h, root, 43), -ENOENT);
	assert_int_equal(h.last_cpu, 9);
	write_file("proc/self/task/43/status", "Name:\tx\n");
	write_file("proc/self/task/43/stat", "43 (x) R 1\n");
	assert_int_equal(health_read(&h, root, 43), 0);
	assert_string_equal(h.affinity, "");
	assert_int_equal(h.last_cpu, 0);
	assert_int_equal(h.numa, -1);
	assert_int_equal(h.involuntary, 0);
}

static void this_machine(void **state)
{
	struct worker_health h = {};
	cpu_set_t set;

	assert_int_equal(health_read(&h, "", getpid()), 0);
	sched_getaffinity(0, sizeof(set), &set);
	assert_true(CPU_ISSET(h.last_cpu, &set));
	assert_true(h.affinity[0] >= '0' && h.affinity[0] <= '9');
}

static int setup(void **state)
{
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(captured), cmocka_unit_test(missing),
					   cmocka_unit_test(this_machine)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
