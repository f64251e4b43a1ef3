// SPDX-License-Identifier: Apache-2.0
#include "main/options.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>
#include <rte_version.h>

#include "base/fault_injection.h"
#include "flow/flow.h"
#include "main/options_private.h"
#include "worker/handoff.h"

#define INTO(member) .at = offsetof(struct options, member), .size = sizeof(((struct options *)0)->member)

// The names with underscores are vRouter's.
static const struct option_row rows[] = {
	{"run-dir", option_path, INTO(run_dir)},
	{"socket", option_path, INTO(socket)},
	{"state-dir", option_path, INTO(state_dir)},
	{.name = "worker-cpus", .parse = option_workers},
	{"service-cpus", option_cpus, INTO(placement.service)},
	{"service_core_mask", option_cpus, INTO(placement.service)},
	{"control-cpus", option_cpus, INTO(placement.control)},
	{"dpdk_ctrl_thread_mask", option_cpus, INTO(placement.control)},
	{"allow-overlap", NULL, INTO(placement.allow_overlap)},
	{.name = "idle", .parse = option_idle},
	{.name = "yield_option", .parse = option_yield},
	{"worker-ring-size", option_number, INTO(rx_ring_size), .limits = &handoff_sizes},
	{"vr_dpdk_rx_ring_sz", option_number, INTO(rx_ring_size), .limits = &handoff_sizes},
	{"vr_dpdk_tx_ring_sz", option_number, INTO(tx_ring_size), .limits = &handoff_sizes},
	{"run-to-completion", NULL, INTO(run_to_completion)},
	{"vr_no_load_balance", NULL, INTO(run_to_completion)},
	{"ddp", NULL, INTO(ddp)},
	{"no-huge", NULL, INTO(no_huge)},
	{"memory", option_number, INTO(memory_mb), .limits = &memory_sizes},
	{"mbufs", option_number, INTO(mbufs), .limits = &mbuf_counts},
	{"mbuf-size", option_number, INTO(mbuf_size), .limits = &mbuf_sizes},
	{"fib-memory", option_number, INTO(fib_mb), .limits = &fib_sizes},
	{"flows", option_number, INTO(flows), .limits = &flow_counts},
	{"router-mac", option_mac, INTO(router_mac)},
	{"read-group", option_group, INTO(groups[ROLE_READ])},
	{"operate-group", option_group, INTO(groups[ROLE_OPERATE])},
	{"admin-group", option_group, INTO(groups[ROLE_ADMINISTER])},
	{"log-level", option_level, INTO(log_level)},
	{"user", option_path, INTO(user)},
	{.name = "port-kinds", .parse = option_kinds},
	{.name = "system-calls", .parse = option_system_calls},
	{"core-dumps", NULL, INTO(core_dumps)},
	{"takeover", NULL, INTO(takeover)},
	{"detach", NULL, INTO(detach)},
	{"standby", NULL, INTO(standby)},
	{"allow-debug", NULL, INTO(allow_debug)},
	{"check", NULL, INTO(check)},
};

// Of getopt_long(): each row returns ROW, with its index.
#define ROW 256
static void options_longs(struct option longs[RTE_DIM(rows) + 3])
{
	unsigned i;

	for (i = 0; i < RTE_DIM(rows); i++)
		longs[i] = (struct option){rows[i].name, rows[i].parse ? required_argument : no_argument, NULL, ROW};
	longs[i++] = (struct option){"version", no_argument, NULL, 'V'};
	longs[i++] = (struct option){"help", no_argument, NULL, 'h'};
	longs[i] = (struct option){0};
}

static int options_row(const struct option_row *row, const char *text, struct options *o, struct error *err)
{
	char name[48];

	snprintf(name, sizeof(name), "--%s", row->name);
	if (row->parse)
		return row->parse(&(struct option_given){name, text, row}, o, err);
	*(bool *)((char *)o + row->at) = true;
	return 0;
}

// DPDK has a directory with a socket in the run directory of a daemon that is not root's.
#define DPDK_SOCKET "/dpdk/corelane-4194304/dpdk_telemetry.v2" // with the highest process id

static int options_defaults(struct options *o, struct error *err)
{
	bool own = o->socket[0] == '\0';

	if ((own &&
	     snprintf(o->socket, sizeof(o->socket), "%s/corelaned.sock", o->run_dir) >= (int)sizeof(o->socket)) ||
	    (o->user[0] && strlen(o->run_dir) + sizeof(DPDK_SOCKET) > sizeof(o->socket)))
		return error_set(err, EINVAL, "--run-dir", o->run_dir, "a shorter path",
				 "is too long for a socket in it");
	if (!o->system_calls_given)
		o->system_calls = o->user[0] ? FILTER_KILL : FILTER_OFF;
	if (o->allow_debug && !fault_injection)
		return error_set(err, EINVAL, "--allow-debug", NULL, "bin/corelaned of a build tree",
				 "this corelaned cannot inject faults: it is the production build");
	if (o->detach && !o->takeover)
		return error_set(err, EINVAL, "--detach", NULL, "--takeover beside it", "works only with --takeover");
	placement_fill(&o->placement, &o->machine);
	return placement_check(&o->placement, &o->machine, &o->overlap, err);
}

int options_parse(int argc, char **argv, struct options *o, struct error *err)
{
	struct option longs[RTE_DIM(rows) + 3];
	int opt, ret, index;

	*o = (struct options){.memory_mb = MEMORY_DEFAULT,
			      .fib_mb = FIB_DEFAULT,
			      .flows = FLOW_CAPACITY_DEFAULT,
			      .rx_ring_size = HANDOFF_SIZE,
			      .run_dir = "/run/corelane",
			      .log_level = "info",
			      .groups = {[ROLE_READ] = "corelane-read",
					 [ROLE_OPERATE] = "corelane-operate",
					 [ROLE_ADMINISTER] = "corelane-admin"}};
	machine_read("", &o->machine);
	machine_read_process(&o->machine);
	options_longs(longs);
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "+hV", longs, &index)) != -1) {
		if (opt == 'h') {
			options_usage();
			return 1;
		}
		if (opt == 'V') {
			printf("corelaned %s, %s\n", CORELANE_VERSION, rte_version());
			return 1;
		}
		if (opt == '?' || opt == ':')
			return error_set(err, EINVAL, "option", argv[optind - 1], "see corelaned --help",
					 "is unknown or lacks its value");
		ret = options_row(&rows[index], optarg, o, err);
		if (ret < 0)
			return ret;
	}
	if (optind < argc && strcmp(argv[optind - 1], "--") != 0)
		return error_set(err, EINVAL, "argument", argv[optind], "options only; see corelaned --help",
				 "is not understood");
	for (; optind < argc; optind++) {
		if (o->n_eal == RTE_DIM(o->eal))
			return error_full(err, EINVAL, "argument", argv[optind], RTE_DIM(o->eal), "arguments for DPDK");
		o->eal[o->n_eal++] = argv[optind];
	}
	return options_defaults(o, err);
}
