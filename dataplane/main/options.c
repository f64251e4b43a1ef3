// SPDX-License-Identifier: Apache-2.0
#include "main/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include <rte_version.h>

#include "flow/flow.h"
#include "main/options_private.h"
#include "port/registry.h"
#include "worker/handoff.h"

enum {
	OPT_RUN_DIR = 256,
	OPT_SOCKET,
	OPT_WORKERS,
	OPT_SERVICE,
	OPT_CONTROL,
	OPT_OVERLAP,
	OPT_IDLE,
	OPT_YIELD,
	OPT_RING,
	OPT_TX_RING,
	OPT_COMPLETION,
	OPT_NO_HUGE,
	OPT_MEMORY,
	OPT_MBUFS,
	OPT_MBUF_SIZE,
	OPT_FIB,
	OPT_FLOWS,
	OPT_ROUTER_MAC,
	OPT_READ_GROUP,
	OPT_OPERATE_GROUP,
	OPT_ADMIN_GROUP,
	OPT_LOG,
	OPT_ALLOW_DEBUG,
	OPT_USER,
	OPT_KINDS,
	OPT_SYSTEM_CALLS,
	OPT_CORE_DUMPS,
	OPT_CHECK
};

static const struct option longs[] = {{"run-dir", required_argument, NULL, OPT_RUN_DIR},
				      {"socket", required_argument, NULL, OPT_SOCKET},
				      {"worker-cpus", required_argument, NULL, OPT_WORKERS},
				      {"service-cpus", required_argument, NULL, OPT_SERVICE},
				      {"service_core_mask", required_argument, NULL, OPT_SERVICE},
				      {"control-cpus", required_argument, NULL, OPT_CONTROL},
				      {"dpdk_ctrl_thread_mask", required_argument, NULL, OPT_CONTROL},
				      {"allow-overlap", no_argument, NULL, OPT_OVERLAP},
				      {"idle", required_argument, NULL, OPT_IDLE},
				      {"yield_option", required_argument, NULL, OPT_YIELD},
				      {"worker-ring-size", required_argument, NULL, OPT_RING},
				      {"vr_dpdk_rx_ring_sz", required_argument, NULL, OPT_RING},
				      {"vr_dpdk_tx_ring_sz", required_argument, NULL, OPT_TX_RING},
				      {"run-to-completion", no_argument, NULL, OPT_COMPLETION},
				      {"vr_no_load_balance", no_argument, NULL, OPT_COMPLETION},
				      {"no-huge", no_argument, NULL, OPT_NO_HUGE},
				      {"memory", required_argument, NULL, OPT_MEMORY},
				      {"mbufs", required_argument, NULL, OPT_MBUFS},
				      {"mbuf-size", required_argument, NULL, OPT_MBUF_SIZE},
				      {"fib-memory", required_argument, NULL, OPT_FIB},
				      {"flows", required_argument, NULL, OPT_FLOWS},
				      {"router-mac", required_argument, NULL, OPT_ROUTER_MAC},
				      {"read-group", required_argument, NULL, OPT_READ_GROUP},
				      {"operate-group", required_argument, NULL, OPT_OPERATE_GROUP},
				      {"admin-group", required_argument, NULL, OPT_ADMIN_GROUP},
				      {"log-level", required_argument, NULL, OPT_LOG},
				      {"user", required_argument, NULL, OPT_USER},
				      {"port-kinds", required_argument, NULL, OPT_KINDS},
				      {"system-calls", required_argument, NULL, OPT_SYSTEM_CALLS},
				      {"core-dumps", no_argument, NULL, OPT_CORE_DUMPS},
				      {"allow-debug", no_argument, NULL, OPT_ALLOW_DEBUG},
				      {"check", no_argument, NULL, OPT_CHECK},
				      {"version", no_argument, NULL, 'V'},
				      {"help", no_argument, NULL, 'h'},
				      {0}};

static int options_option(int opt, const char *name, const char *arg, struct options *o, struct error *err)
{
	struct rte_ether_addr mac;
	unsigned long v = 0;
	int ret = 0;

	switch (opt) {
	case OPT_RUN_DIR:
		return option_path(name, o->run_dir, sizeof(o->run_dir), arg, err);
	case OPT_SOCKET:
		return option_path(name, o->socket, sizeof(o->socket), arg, err);
	case OPT_WORKERS:
		return option_workers(name, arg, o, err);
	case OPT_SERVICE:
		return option_cpus(name, arg, &o->placement.service, &o->machine, err);
	case OPT_CONTROL:
		return option_cpus(name, arg, &o->placement.control, &o->machine, err);
	case OPT_OVERLAP:
		o->placement.allow_overlap = true;
		return 0;
	case OPT_IDLE:
		return option_idle(name, arg, o, err);
	case OPT_YIELD:
		return option_yield(name, arg, o, err);
	case OPT_RING:
		return option_ring_size(name, arg, &o->rx_ring_size, err);
	case OPT_TX_RING:
		return option_ring_size(name, arg, &o->tx_ring_size, err);
	case OPT_COMPLETION:
		o->run_to_completion = true;
		return 0;
	case OPT_NO_HUGE:
		o->no_huge = true;
		return 0;
	case OPT_MEMORY:
		ret = option_number(name, arg, 64, 1 << 20, &v, err);
		o->memory_mb = (unsigned)v;
		return ret;
	case OPT_MBUFS:
		ret = option_number(name, arg, 1024, 1 << 24, &v, err);
		o->mbufs = (unsigned)v;
		return ret;
	case OPT_MBUF_SIZE:
		ret = option_number(name, arg, 2048, 16384, &v, err);
		o->mbuf_size = (unsigned)v;
		return ret;
	case OPT_FIB:
		ret = option_number(name, arg, 16, 65536, &v, err);
		o->fib_bytes = (uint64_t)v << 20;
		return ret;
	case OPT_FLOWS:
		ret = option_number(name, arg, FLOW_CAPACITY_MIN, FLOW_CAPACITY_MAX, &v, err);
		o->flows = (uint32_t)v;
		return ret;
	case OPT_ROUTER_MAC:
		ret = mac_parse(arg, name, &mac, err);
		return ret < 0 ? ret : option_path(name, o->router_mac, sizeof(o->router_mac), arg, err);
	case OPT_READ_GROUP:
		return option_group(name, arg, &o->groups[ROLE_READ], err);
	case OPT_OPERATE_GROUP:
		return option_group(name, arg, &o->groups[ROLE_OPERATE], err);
	case OPT_ADMIN_GROUP:
		return option_group(name, arg, &o->groups[ROLE_ADMINISTER], err);
	case OPT_LOG:
		return option_level(name, arg, o, err);
	case OPT_USER:
		return option_path(name, o->user, sizeof(o->user), arg, err);
	case OPT_KINDS:
		return port_allow_kinds(arg, err);
	case OPT_SYSTEM_CALLS:
		return option_system_calls(name, arg, o, err);
	case OPT_CORE_DUMPS:
		o->core_dumps = true;
		return 0;
	case OPT_ALLOW_DEBUG:
		o->allow_debug = true;
		return option_allow_debug(name, err);
	default:
		o->check = true;
		return 0;
	}
}

static int options_defaults(struct options *o, struct error *err)
{
	if (o->socket[0] == '\0' &&
	    snprintf(o->socket, sizeof(o->socket), "%s/corelaned.sock", o->run_dir) >= (int)sizeof(o->socket))
		return error_set(err, EINVAL, "--run-dir", o->run_dir, "a shorter path",
				 "is too long for a socket in it");
	if (!o->system_calls_given)
		o->system_calls = o->user[0] ? FILTER_KILL : FILTER_OFF;
	if (o->memory_mb == 0)
		o->memory_mb = 512;
	if (o->fib_bytes == 0)
		o->fib_bytes = 4ull << 30;
	placement_fill(&o->placement, &o->machine);
	return placement_check(&o->placement, &o->machine, &o->overlap, err);
}

int options_parse(int argc, char **argv, struct options *o, struct error *err)
{
	int opt, ret, index;
	char name[48];

	*o = (struct options){.flows = FLOW_CAPACITY_DEFAULT,
			      .rx_ring_size = HANDOFF_SIZE,
			      .run_dir = "/run/corelane",
			      .log_level = "info",
			      .groups = {[ROLE_READ] = "corelane-read",
					 [ROLE_OPERATE] = "corelane-operate",
					 [ROLE_ADMINISTER] = "corelane-admin"}};
	machine_read("", &o->machine);
	machine_read_process(&o->machine);
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
		snprintf(name, sizeof(name), "--%s", longs[index].name);
		ret = options_option(opt, name, optarg, o, err);
		if (ret < 0)
			return ret;
	}
	if (optind < argc && strcmp(argv[optind - 1], "--") != 0)
		return error_set(err, EINVAL, "argument", argv[optind], "options only; see corelaned --help",
				 "is not understood");
	for (; optind < argc; optind++) {
		if (o->n_eal == sizeof(o->eal) / sizeof(o->eal[0]))
			return error_set(err, EINVAL, "argument", argv[optind], "at most 32 arguments for DPDK",
					 "is one too many");
		o->eal[o->n_eal++] = argv[optind];
	}
	return options_defaults(o, err);
}
