// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "main/options.h"

static struct options o;
static struct error err;

// The arguments, separated by one blank.
static int parse(const char *line)
{
	static char copy[4096];
	char *argv[128] = {"corelaned"}, *word, *rest;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	optind = 0; // begins anew
	return options_parse(argc, argv, &o, &err);
}

static void defaults(void **state)
{
	assert_int_equal(parse(""), 0);
	assert_string_equal(o.run_dir, "/run/corelane");
	assert_string_equal(o.socket, "/run/corelane/corelaned.sock");
	assert_int_equal(o.n_workers, 1);
	assert_int_equal(o.worker_cpus[0], sysconf(_SC_NPROCESSORS_ONLN) - 1);
	assert_int_equal(o.memory_mb, 512);
	assert_true(o.fib_bytes == 4ull << 30);
	assert_string_equal(o.log_level, "info");
	assert_false(o.idle_given || o.no_huge || o.check);
}

static void all_given(void **state)
{
	assert_int_equal(parse("--run-dir /tmp/x --worker-cpus 0 --idle sleep --control-cpus 0 --no-huge --memory 1024 --mbufs "
			       "4096 --mbuf-size "
			       "9216 --fib-memory 64 --router-mac 02:00:00:00:00:01 --log-level debug --check"),
			 0);
	assert_string_equal(o.run_dir, "/tmp/x");
	assert_string_equal(o.socket, "/tmp/x/corelaned.sock");
	assert_int_equal(o.n_workers, 1);
	assert_int_equal(o.idle, IDLE_SLEEP);
	assert_true(o.idle_given && o.no_huge && o.check);
	assert_string_equal(o.control_cpus, "0");
	assert_int_equal(o.memory_mb, 1024);
	assert_int_equal(o.mbufs, 4096);
	assert_int_equal(o.mbuf_size, 9216);
	assert_true(o.fib_bytes == 64 << 20);
	assert_string_equal(o.router_mac, "02:00:00:00:00:01");
	assert_string_equal(o.log_level, "debug");
	assert_int_equal(parse("--socket /tmp/other.sock"), 0);
	assert_string_equal(o.socket, "/tmp/other.sock");
}

static void eal_arguments(void **state)
{
	char many[512] = "--";
	unsigned i;

	assert_int_equal(parse("--no-huge -- --vdev net_null0 -l 0"), 0);
	assert_int_equal(o.n_eal, 4);
	assert_string_equal(o.eal[0], "--vdev");
	assert_string_equal(o.eal[3], "0");
	assert_int_equal(parse("--"), 0);
	assert_int_equal(o.n_eal, 0);
	for (i = 0; i < 33; i++)
		strcat(many, " x");
	assert_int_equal(parse(many), -EINVAL);
}

static void refused(void **state)
{
	static const struct {
		const char *line, *field, *value;
	} bad[] = {
		{"--nonsense", "option", "--nonsense"},
		{"-x", "option", "-x"},
		{"--memory", "option", "--memory"},
		{"word", "argument", "word"},
		{"--check word", "argument", "word"},
		{"--memory 63", "--memory", "63"},
		{"--memory 1048577", "--memory", "1048577"},
		{"--memory -1", "--memory", "-1"},
		{"--memory 64x", "--memory", "64x"},
		{"--memory 99999999999999999999", "--memory", "99999999999999999999"},
		{"--mbufs 1023", "--mbufs", "1023"},
		{"--mbuf-size 2047", "--mbuf-size", "2047"}, // as the pool has it
		{"--mbuf-size 16385", "--mbuf-size", "16385"},
		{"--fib-memory 15", "--fib-memory", "15"},
		{"--idle lazy", "--idle", "lazy"},
		{"--log-level loud", "--log-level", "loud"},
		{"--router-mac 01:00:00:00:00:01", "--router-mac", "01:00:00:00:00:01"},
		{"--router-mac 02:00:00:00:00", "--router-mac", "02:00:00:00:00"},
		{"--worker-cpus x", "--worker-cpus", "x"},
		{"--worker-cpus 0,0", "--worker-cpus", "0,0"},
		{"--worker-cpus 0,", "--worker-cpus", "0,"},
		{"--worker-cpus ,0", "--worker-cpus", ",0"},
		{"--worker-cpus 0-", "--worker-cpus", "0-"},
		{"--worker-cpus 1-0", "--worker-cpus", "1-0"},
		{"--worker-cpus 0-100000", "--worker-cpus", "0-100000"},
		{"--worker-cpus 18446744073709551615", "--worker-cpus", "18446744073709551615"},
		{"--control-cpus 100000", "--control-cpus", "100000"},
	};
	unsigned i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(parse(bad[i].line), -EINVAL);
		assert_string_equal(err.field, bad[i].field);
		assert_string_equal(err.value, bad[i].value);
		assert_true(err.valid[0] != '\0');
	}
}

static void long_paths(void **state)
{
	char line[256], path[128];

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[79] = '\0';
	snprintf(line, sizeof(line), "--run-dir %s", path);
	assert_int_equal(parse(line), 0);
	path[79] = 'x';
	path[80] = '\0';
	snprintf(line, sizeof(line), "--run-dir %s", path);
	assert_int_equal(parse(line), -EINVAL);
	assert_string_equal(err.field, "--run-dir");
	path[80] = 'x';
	path[108] = '\0';
	snprintf(line, sizeof(line), "--socket %s", path);
	assert_int_equal(parse(line), -EINVAL);
	assert_string_equal(err.field, "--socket");
}

static void cpu_lists(void **state)
{
	unsigned cpus[4], n;

	assert_int_equal(cpu_list_parse("cpus", "0", cpus, 4, &n, &err), 0);
	assert_int_equal(n, 1);
	assert_int_equal(cpus[0], 0);
	assert_int_equal(cpu_list_parse("cpus", "0-0", cpus, 4, &n, &err), 0);
	assert_int_equal(n, 1);
	if (sysconf(_SC_NPROCESSORS_CONF) < 2)
		skip();
	assert_int_equal(cpu_list_parse("cpus", "1,0", cpus, 4, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_int_equal(cpus[0], 1);
	assert_int_equal(cpu_list_parse("cpus", "0-1", cpus, 4, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_int_equal(cpu_list_parse("cpus", "0-1", cpus, 1, &n, &err), -EINVAL); // more than there is room for
	assert_string_equal(err.field, "cpus");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(defaults),      cmocka_unit_test(all_given),
					   cmocka_unit_test(eal_arguments), cmocka_unit_test(refused),
					   cmocka_unit_test(long_paths),    cmocka_unit_test(cpu_lists)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
