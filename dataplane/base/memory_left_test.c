// SPDX-License-Identifier: Apache-2.0
// Machines with 8 GB available, and processes in control groups.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/memory_left.h"
#include "testing/file_tree.h"

#define MB (1ull << 20)

static char root[64];

static void write_file(const char *path, const char *text)
{
	file_tree_write(root, path, text);
}

static int make_machine(void **state)
{
	snprintf(root, sizeof(root), "/tmp/memory-left-XXXXXX");
	assert_non_null(mkdtemp(root));
	write_file("proc/meminfo",
		   "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    8388608 kB\n");
	return 0;
}

static int remove_machine(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static void whole_machine(void **state)
{
	assert_int_equal(memory_left(root), 8192 * MB);
	write_file("proc/self/cgroup", "0::/\n");
	assert_int_equal(memory_left(root), 8192 * MB);
	assert_int_equal(memory_left("/nowhere"), UINT64_MAX);
}

static void version2(void **state)
{
	write_file("proc/self/cgroup", "0::/system.slice/corelaned.service\n");
	write_file("sys/fs/cgroup/system.slice/corelaned.service/memory.max", "max\n");
	write_file("sys/fs/cgroup/system.slice/corelaned.service/memory.current", "1048576\n");
	assert_int_equal(memory_left(root), 8192 * MB);
	write_file("sys/fs/cgroup/system.slice/corelaned.service/memory.max", "1073741824\n");
	assert_int_equal(memory_left(root), 1023 * MB);
	write_file("sys/fs/cgroup/system.slice/corelaned.service/memory.current", "536870912\n");
	write_file("sys/fs/cgroup/system.slice/corelaned.service/memory.stat", "anon 1\ninactive_file 104857600\n");
	assert_int_equal(memory_left(root), 612 * MB);                    // the kernel gives up files first
	write_file("sys/fs/cgroup/system.slice/memory.max", "2097152\n"); // the group above has less
	write_file("sys/fs/cgroup/system.slice/memory.current", "1048576\n");
	assert_int_equal(memory_left(root), 1 * MB);
	write_file("sys/fs/cgroup/system.slice/memory.current", "4194304\n");
	assert_int_equal(memory_left(root), 0);
}

static void version1(void **state)
{
	write_file("proc/self/cgroup",
		   "5:cpu,cpuacct:/other\n4:hugetlb,memory:/docker/0123\n1:name=systemd:/docker/0123\n");
	write_file("sys/fs/cgroup/memory/docker/0123/memory.limit_in_bytes", "9223372036854771712\n"); // none
	write_file("sys/fs/cgroup/memory/docker/0123/memory.usage_in_bytes", "1048576\n");
	assert_int_equal(memory_left(root), 8192 * MB);
	write_file("sys/fs/cgroup/memory/docker/0123/memory.limit_in_bytes", "104857600\n");
	write_file("sys/fs/cgroup/memory/docker/0123/memory.stat", "inactive_file 0\ntotal_inactive_file 524288\n");
	assert_int_equal(memory_left(root), 100 * MB - MB / 2);
}

// A container has its own group as the root of what it sees, and may read the host's name of it.
static void container(void **state)
{
	write_file("proc/self/cgroup", "0::/kubepods/pod1/c1\n");
	write_file("sys/fs/cgroup/memory.max", "209715200\n");
	write_file("sys/fs/cgroup/memory.current", "104857600\n");
	assert_int_equal(memory_left(root), 100 * MB);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, make_machine, remove_machine)
	const struct CMUnitTest tests[] = {T(whole_machine), T(version2), T(version1), T(container)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
