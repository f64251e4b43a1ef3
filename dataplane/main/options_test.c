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

#include "base/fault_injection.h"
#include "main/options.h"
#include "port/registry.h"

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
	optind = 0; // restarts getopt
	return options_parse(argc, argv, &o, &err);
}

static void defaults(void **state)
{
	assert_int_equal(parse(""), 0);
	assert_string_equal(o.run_dir, "/run/corelane");
	assert_string_equal(o.socket, "/run/corelane/corelaned.sock");
	assert_int_equal(o.placement.n_workers, 1);
	assert_int_equal(o.placement.worker_cpus[0], cpu_list_last(&o.machine.started));
	assert_false(cpu_list_empty(&o.placement.service) || cpu_list_empty(&o.placement.control));
	assert_int_equal(o.rx_ring_size, 1024);
	assert_int_equal(o.tx_ring_size, 0);
	assert_int_equal(o.memory_mb, 512);
	assert_true(o.fib_mb == 4096);
	assert_string_equal(o.log_level, "info");
	assert_string_equal(o.groups[ROLE_READ], "corelane-read");
	assert_string_equal(o.groups[ROLE_OPERATE], "corelane-operate");
	assert_string_equal(o.groups[ROLE_ADMINISTER], "corelane-admin");
	assert_false(o.idle_given || o.no_huge || o.check || o.run_to_completion);
}

static void all_given(void **state)
{
	assert_int_equal(parse("--run-dir /tmp/x --worker-cpus 0 --idle sleep --control-cpus 0 --service-cpus (0) "
			       "--allow-overlap "
			       "--worker-ring-size 4096 --run-to-completion --no-huge --memory 1024 --mbufs "
			       "4096 --mbuf-size "
			       "9216 --read-group daemon --operate-group bin --admin-group root --fib-memory 64 "
			       "--router-mac 02:00:00:00:00:01 --log-level debug --check"),
			 0);
	assert_string_equal(o.run_dir, "/tmp/x");
	assert_string_equal(o.socket, "/tmp/x/corelaned.sock");
	assert_int_equal(o.placement.n_workers, 1);
	assert_int_equal(o.placement.worker_cpus[0], 0);
	assert_int_equal(o.idle, IDLE_SLEEP);
	assert_true(o.idle_given && o.no_huge && o.check && o.run_to_completion);
	assert_true(cpu_list_has(&o.placement.control, 0) && cpu_list_has(&o.placement.service, 0) &&
		    cpu_list_has(&o.overlap, 0));
	assert_int_equal(o.rx_ring_size, 4096);
	assert_int_equal(o.memory_mb, 1024);
	assert_int_equal(o.mbufs, 4096);
	assert_int_equal(o.mbuf_size, 9216);
	assert_true(o.fib_mb == 64);
	assert_memory_equal(o.router_mac.addr_bytes, "\2\0\0\0\0\1", 6);
	assert_string_equal(o.log_level, "debug");
	assert_string_equal(o.groups[ROLE_READ], "daemon");
	assert_string_equal(o.groups[ROLE_OPERATE], "bin");
	assert_string_equal(o.groups[ROLE_ADMINISTER], "root");
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
		{"--mbuf-size 2047", "--mbuf-size", "2047"}, // the limit of the pool
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
		{"--control-cpus f0", "--control-cpus", "f0"}, // a mask needs its 0x
		{"--service-cpus 0x0", "--service-cpus", "0x0"},
		{"--service-cpus (0", "--service-cpus", "(0"},
		{"--service_core_mask 0xzz", "--service_core_mask", "0xzz"},
		{"--dpdk_ctrl_thread_mask abc", "--dpdk_ctrl_thread_mask", "abc"},
		{"--worker-ring-size 1000", "--worker-ring-size", "1000"},
		{"--worker-ring-size 32", "--worker-ring-size", "32"},
		{"--worker-ring-size 8388608", "--worker-ring-size", "8388608"},
		{"--worker-ring-size 0", "--worker-ring-size", "0"},
		{"--vr_dpdk_rx_ring_sz abc", "--vr_dpdk_rx_ring_sz", "abc"},
		{"--vr_dpdk_tx_ring_sz 1025", "--vr_dpdk_tx_ring_sz", "1025"},
		{"--yield_option 2", "--yield_option", "2"},
		{"--yield_option yes", "--yield_option", "yes"},
		{"--admin-group nobody-has-this", "--admin-group", "nobody-has-this"},
		{"--allow-debug", "--allow-debug", ""}, // this program cannot inject faults
	};
	unsigned i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(parse(bad[i].line), -EINVAL);
		assert_string_equal(err.field, bad[i].field);
		assert_string_equal(err.value, bad[i].value);
		assert_true(err.valid[0] != '\0');
	}
	parse("--memory 63");
	assert_string_equal(err.message, "--memory '63': is out of range; valid: 64 to 1048576");
	parse("--worker-ring-size 99999999999999999999");
	assert_string_equal(err.message, "--worker-ring-size '99999999999999999999': is out of range; valid: "
					 "a power of two from 64 to 4194304");
	parse("--mbufs many");
	assert_string_equal(err.message, "--mbufs 'many': is not a number; valid: 1024 to 16777216");
}

static void faults_where_they_are_linked(void **state)
{
	struct fault_injection linked = {0};

	fault_injection = &linked;
	assert_int_equal(parse("--allow-debug"), 0);
	assert_true(o.allow_debug);
	fault_injection = NULL;
	assert_int_equal(parse("--allow-debug"), -EINVAL);
	assert_non_null(strstr(err.message, "cannot inject faults"));
}

static void long_paths(void **state)
{
	char line[256], path[128];

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[79] = '\0';
	snprintf(line, sizeof(line), "--run-dir %s", path);
	assert_int_equal(parse(line), 0);
	snprintf(line, sizeof(line), "--user nobody --run-dir %s", path); // DPDK's socket is below it
	assert_int_equal(parse(line), -EINVAL);
	assert_string_equal(err.field, "--run-dir");
	path[67] = '\0';
	snprintf(line, sizeof(line), "--user nobody --run-dir %s", path);
	assert_int_equal(parse(line), 0);
	path[67] = 'x';
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

// vRouter's start scripts write options like these.
static void names_of_vrouter(void **state)
{
	assert_int_equal(
		parse("--worker-cpus 0 --service_core_mask 0x1 --dpdk_ctrl_thread_mask (0) --vr_dpdk_rx_ring_sz 2048 "
		      "--vr_dpdk_tx_ring_sz 512 --yield_option 0 --vr_no_load_balance --ddp --allow-overlap"),
		0);
	assert_true(cpu_list_has(&o.placement.service, 0) && cpu_list_count(&o.placement.service) == 1);
	assert_true(cpu_list_eq(&o.placement.service, &o.placement.control));
	assert_int_equal(o.rx_ring_size, 2048);
	assert_int_equal(o.tx_ring_size, 512);
	assert_true(o.idle_given && o.idle == IDLE_SPIN && o.run_to_completion);
	assert_int_equal(parse("--yield_option 1"), 0);
	assert_int_equal(o.idle, IDLE_YIELD);
}

static void order_of_workers(void **state)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return; // a single worker has no order
	assert_int_equal(parse("--worker-cpus 1,0 --allow-overlap"), 0);
	assert_int_equal(o.placement.n_workers, 2);
	assert_int_equal(o.placement.worker_cpus[0], 1);
	assert_int_equal(o.placement.worker_cpus[1], 0);
}

static void rights(void **state)
{
	assert_int_equal(parse(""), 0);
	assert_string_equal(o.user, "");
	assert_int_equal(o.system_calls, FILTER_OFF);
	assert_false(o.core_dumps);
	assert_int_equal(parse("--user corelane --core-dumps"), 0);
	assert_string_equal(o.user, "corelane");
	assert_int_equal(o.system_calls, FILTER_KILL);
	assert_true(o.core_dumps);
	assert_int_equal(parse("--system-calls any --user corelane"), 0);
	assert_int_equal(o.system_calls, FILTER_OFF);
	assert_int_equal(parse("--system-calls logged"), 0);
	assert_int_equal(o.system_calls, FILTER_LOG);
	assert_int_equal(parse("--system-calls some"), -EINVAL);
	assert_string_equal(err.valid, "any, logged, filtered");
}

static void kinds_of_ports(void **state)
{
	assert_true(port_kind_allowed("tap") && port_kind_allowed("dpdk"));
	assert_int_equal(parse("--port-kinds vhost,tap"), 0);
	assert_true(port_kind_allowed("tap") && port_kind_allowed("vhost"));
	assert_false(port_kind_allowed("dpdk") || port_kind_allowed("memif"));
	assert_int_equal(parse("--port-kinds tap,veth"), -EINVAL);
	assert_string_equal(err.message,
			    "--port-kinds 'tap,veth': 'veth' is not a kind of port; valid: a list of dpdk, tap, memif, "
			    "vhost, subport");
	assert_int_equal(parse("--port-kinds tap,"), -EINVAL);
	assert_true(port_kind_allowed("vhost")); // as before
	assert_int_equal(parse("--port-kinds dpdk,tap,memif,vhost,subport"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),         cmocka_unit_test(all_given),
		cmocka_unit_test(eal_arguments),    cmocka_unit_test(refused),
		cmocka_unit_test(long_paths),       cmocka_unit_test(names_of_vrouter),
		cmocka_unit_test(order_of_workers), cmocka_unit_test(faults_where_they_are_linked),
		cmocka_unit_test(rights),           cmocka_unit_test(kinds_of_ports)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
