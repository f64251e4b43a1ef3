// SPDX-License-Identifier: Apache-2.0
#include "main/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_version.h>

#include "flow/flow.h"

enum {
	OPT_RUN_DIR = 256,
	OPT_SOCKET,
	OPT_WORKERS,
	OPT_IDLE,
	OPT_CONTROL,
	OPT_NO_HUGE,
	OPT_MEMORY,
	OPT_MBUFS,
	OPT_MBUF_SIZE,
	OPT_FIB,
	OPT_FLOWS,
	OPT_ROUTER_MAC,
	OPT_LOG,
	OPT_CHECK
};

static const struct option longs[] = {{"run-dir", required_argument, NULL, OPT_RUN_DIR},
				      {"socket", required_argument, NULL, OPT_SOCKET},
				      {"worker-cpus", required_argument, NULL, OPT_WORKERS},
				      {"idle", required_argument, NULL, OPT_IDLE},
				      {"control-cpus", required_argument, NULL, OPT_CONTROL},
				      {"no-huge", no_argument, NULL, OPT_NO_HUGE},
				      {"memory", required_argument, NULL, OPT_MEMORY},
				      {"mbufs", required_argument, NULL, OPT_MBUFS},
				      {"mbuf-size", required_argument, NULL, OPT_MBUF_SIZE},
				      {"fib-memory", required_argument, NULL, OPT_FIB},
				      {"flows", required_argument, NULL, OPT_FLOWS},
				      {"router-mac", required_argument, NULL, OPT_ROUTER_MAC},
				      {"log-level", required_argument, NULL, OPT_LOG},
				      {"check", no_argument, NULL, OPT_CHECK},
				      {"version", no_argument, NULL, 'V'},
				      {"help", no_argument, NULL, 'h'},
				      {0}};

static void usage(void)
{
	printf("corelaned: the data plane of Corelane, a virtual router for compute nodes\n\n"
	       "usage: corelaned [OPTION...] [-- DPDK-ARGUMENT...]\n\n"
	       "  --run-dir DIR        sockets and lock of this instance (default /run/corelane)\n"
	       "  --socket PATH        API socket (default DIR/corelaned.sock)\n"
	       "  --worker-cpus LIST   CPUs that forward, one worker each: 2,4-7 (default: the last CPU)\n"
	       "  --idle POLICY        of the workers: spin, pause, yield, sleep (default spin; yield when a worker shares its\n"
	       "                       CPU with the control threads)\n"
	       "  --control-cpus LIST  CPUs of all other threads (default: all that no worker has)\n"
	       "  --no-huge            do not use hugepages\n"
	       "  --memory MB          memory for packets and tables, 64 to 1048576 (default 512)\n"
	       "  --mbufs N            packet buffers, 1024 to 16777216 (default by the memory)\n"
	       "  --mbuf-size BYTES    room for a packet in one buffer, 2048 to 16384 (default 2048)\n"
	       "  --fib-memory MB      upper bound of the forwarding tables, 16 to 65536 (default 4096; used as routes come)\n"
	       "  --flows N            flows that can be kept at once, 1024 to 33554432 (default 524288; memory is taken when the\n"
	       "                       first port keeps flows, 214 bytes each)\n"
	       "  --router-mac MAC     of routed VXLAN (default: derived from the host and DIR)\n"
	       "  --log-level LEVEL    emergency, alert, critical, error, warning, notice, info, debug (default info)\n"
	       "  --check              validate the options and exit\n"
	       "  --version, --help\n\n"
	       "Everything else is configured with `corelane`. Arguments after -- go to DPDK's EAL unchanged.\n");
}

static int number(const char *name, const char *text, unsigned long min, unsigned long max, unsigned long *out, struct error *err)
{
	char valid[64], *end;

	errno = 0;
	*out = strtoul(text, &end, 10);
	if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *out >= min && *out <= max)
		return 0;
	snprintf(valid, sizeof(valid), "%lu to %lu", min, max);
	return error_set(err, EINVAL, name, text, valid, "is not a number in range");
}

static int path(const char *name, char *dst, size_t size, const char *src, struct error *err)
{
	char valid[64];

	if (*src && strlen(src) < size) {
		snprintf(dst, size, "%s", src);
		return 0;
	}
	snprintf(valid, sizeof(valid), "1 to %zu characters", size - 1);
	return error_set(err, EINVAL, name, src, valid, "is no usable path");
}

static int add_cpu(unsigned cpu, unsigned *cpus, unsigned max, unsigned *n)
{
	unsigned i;

	for (i = 0; i < *n; i++)
		if (cpus[i] == cpu)
			return -EEXIST;
	if (*n == max)
		return -ENOSPC;
	cpus[(*n)++] = cpu;
	return 0;
}

int cpu_list_parse(const char *name, const char *text, unsigned *cpus, unsigned max, unsigned *n, struct error *err)
{
	unsigned long limit = (unsigned long)sysconf(_SC_NPROCESSORS_CONF), a, b, i;
	char valid[64], *end;
	const char *s = text;

	snprintf(valid, sizeof(valid), "a list such as 2,4-7 of CPUs 0 to %lu, each once", limit - 1);
	*n = 0;
	do {
		if (*s < '0' || *s > '9')
			break;
		a = b = strtoul(s, &end, 10);
		s = end;
		if (*s == '-' && s[1] >= '0' && s[1] <= '9') {
			b = strtoul(s + 1, &end, 10);
			s = end;
		}
		if (a > b || b >= limit)
			return error_set(err, EINVAL, name, text, valid, "names CPUs that do not exist");
		for (i = a; i <= b; i++)
			if (add_cpu((unsigned)i, cpus, max, n) < 0)
				return error_set(err, EINVAL, name, text, valid, "names a CPU twice, or too many");
		if (*s == '\0')
			return 0;
	} while (*s++ == ',');
	return error_set(err, EINVAL, name, text, valid, "is not a CPU list");
}

static int level_ok(const char *s)
{
	static const char *const levels[] = {"emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"};
	unsigned i;

	for (i = 0; i < sizeof(levels) / sizeof(*levels); i++)
		if (strcmp(s, levels[i]) == 0)
			return 1;
	return 0;
}

static int option(int opt, const char *arg, struct options *o, struct error *err)
{
	unsigned cpus[CPU_SETSIZE], n;
	struct rte_ether_addr mac;
	unsigned long v = 0;
	int ret = 0;

	switch (opt) {
	case OPT_RUN_DIR:
		return path("--run-dir", o->run_dir, sizeof(o->run_dir), arg, err);
	case OPT_SOCKET:
		return path("--socket", o->socket, sizeof(o->socket), arg, err);
	case OPT_WORKERS:
		return cpu_list_parse("--worker-cpus", arg, o->worker_cpus, WORKER_MAX, &o->n_workers, err);
	case OPT_IDLE:
		o->idle_given = true;
		if (idle_policy_parse(arg, &o->idle) < 0)
			return error_set(err, EINVAL, "--idle", arg, "spin, pause, yield, sleep", "is no idle policy");
		return 0;
	case OPT_CONTROL:
		ret = cpu_list_parse("--control-cpus", arg, cpus, CPU_SETSIZE, &n, err);
		return ret < 0 ? ret : path("--control-cpus", o->control_cpus, sizeof(o->control_cpus), arg, err);
	case OPT_NO_HUGE:
		o->no_huge = true;
		return 0;
	case OPT_MEMORY:
		ret = number("--memory", arg, 64, 1 << 20, &v, err);
		o->memory_mb = (unsigned)v;
		return ret;
	case OPT_MBUFS:
		ret = number("--mbufs", arg, 1024, 1 << 24, &v, err);
		o->mbufs = (unsigned)v;
		return ret;
	case OPT_MBUF_SIZE:
		ret = number("--mbuf-size", arg, 2048, 16384, &v, err);
		o->mbuf_size = (unsigned)v;
		return ret;
	case OPT_FIB:
		ret = number("--fib-memory", arg, 16, 65536, &v, err);
		o->fib_bytes = (uint64_t)v << 20;
		return ret;
	case OPT_FLOWS:
		ret = number("--flows", arg, FLOW_CAPACITY_MIN, FLOW_CAPACITY_MAX, &v, err);
		o->flows = (uint32_t)v;
		return ret;
	case OPT_ROUTER_MAC:
		ret = mac_parse(arg, "--router-mac", &mac, err);
		return ret < 0 ? ret : path("--router-mac", o->router_mac, sizeof(o->router_mac), arg, err);
	case OPT_LOG:
		if (!level_ok(arg))
			return error_set(err, EINVAL, "--log-level", arg,
					 "emergency, alert, critical, error, warning, notice, info, debug", "is no log level");
		return path("--log-level", o->log_level, sizeof(o->log_level), arg, err);
	default:
		o->check = true;
		return 0;
	}
}

static int defaults(struct options *o, struct error *err)
{
	if (o->socket[0] == '\0' &&
	    snprintf(o->socket, sizeof(o->socket), "%s/corelaned.sock", o->run_dir) >= (int)sizeof(o->socket))
		return error_set(err, EINVAL, "--run-dir", o->run_dir, "a shorter path", "is too long for a socket in it");
	if (o->n_workers == 0) {
		o->worker_cpus[0] = (unsigned)sysconf(_SC_NPROCESSORS_ONLN) - 1;
		o->n_workers = 1;
	}
	if (o->memory_mb == 0)
		o->memory_mb = 512;
	if (o->fib_bytes == 0)
		o->fib_bytes = 4ull << 30;
	return 0;
}

int options_parse(int argc, char **argv, struct options *o, struct error *err)
{
	int opt, ret;

	*o = (struct options){.flows = FLOW_CAPACITY_DEFAULT, .run_dir = "/run/corelane", .log_level = "info"};
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "+hV", longs, NULL)) != -1) {
		if (opt == 'h') {
			usage();
			return 1;
		}
		if (opt == 'V') {
			printf("corelaned %s, %s\n", CORELANE_VERSION, rte_version());
			return 1;
		}
		if (opt == '?' || opt == ':')
			return error_set(err, EINVAL, "option", argv[optind - 1], "see corelaned --help",
					 "is unknown or lacks its value");
		ret = option(opt, optarg, o, err);
		if (ret < 0)
			return ret;
	}
	if (optind < argc && strcmp(argv[optind - 1], "--") != 0)
		return error_set(err, EINVAL, "argument", argv[optind], "options only; see corelaned --help", "is not understood");
	for (; optind < argc; optind++) {
		if (o->n_eal == sizeof(o->eal) / sizeof(o->eal[0]))
			return error_set(err, EINVAL, "argument", argv[optind], "at most 32 arguments for DPDK", "is one too many");
		o->eal[o->n_eal++] = argv[optind];
	}
	return defaults(o, err);
}
