// SPDX-License-Identifier: Apache-2.0
// Command line of corelane-gen.
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_version.h>

enum { OPT_SOCKET = 256, OPT_CPU, OPT_ROUND_TRIP, OPT_MEMORY };

static const struct option longs[] = {{"socket", required_argument, NULL, OPT_SOCKET},
				      {"cpu", required_argument, NULL, OPT_CPU},
				      {"round-trip-cpu", required_argument, NULL, OPT_ROUND_TRIP},
				      {"memory", required_argument, NULL, OPT_MEMORY},
				      {"version", no_argument, NULL, 'V'},
				      {"help", no_argument, NULL, 'h'},
				      {0}};

static void generator_options_usage(void)
{
	printf("corelane-gen: sends traffic through a router and checks what comes back\n\n"
	       "usage: corelane-gen --socket PATH --cpu N [OPTION...]\n\n"
	       "  --socket PATH        API socket; `corelane bench` uses it\n"
	       "  --cpu N              CPU that sends and receives; a trial uses all of it\n"
	       "  --round-trip-cpu M   CPU of the router; the round trip to it is measured between windows\n"
	       "  --memory MB          memory for DPDK's devices, 64 to 65536 (default 128)\n"
	       "  --version, --help\n");
}

static int options_number(const char *name, const char *text, unsigned long min, unsigned long max, unsigned long *out,
			  struct error *err)
{
	char valid[64], *end;

	errno = 0;
	*out = strtoul(text, &end, 10);
	if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *out >= min && *out <= max)
		return 0;
	snprintf(valid, sizeof(valid), "%lu to %lu", min, max);
	return error_set(err, EINVAL, name, text, valid, "is not a number in range");
}

static int options_option(int opt, const char *arg, struct options *o, struct error *err)
{
	unsigned long cpus = (unsigned long)sysconf(_SC_NPROCESSORS_CONF), v = 0;
	int ret;

	switch (opt) {
	case OPT_SOCKET:
		if (*arg == '\0' || strlen(arg) >= sizeof(o->socket))
			return error_set(err, EINVAL, "--socket", arg, "1 to 107 characters", "is not a usable path");
		snprintf(o->socket, sizeof(o->socket), "%s", arg);
		return 0;
	case OPT_CPU:
		ret = options_number("--cpu", arg, 0, cpus - 1, &v, err);
		o->cpu = (int)v;
		return ret;
	case OPT_ROUND_TRIP:
		ret = options_number("--round-trip-cpu", arg, 0, cpus - 1, &v, err);
		o->round_trip_cpu = (int)v;
		return ret;
	default:
		ret = options_number("--memory", arg, 64, 65536, &v, err);
		o->memory_mb = (unsigned)v;
		return ret;
	}
}

static int options_complete(const struct options *o, struct error *err)
{
	char text[16];

	if (o->socket[0] == '\0')
		return error_set(err, EINVAL, "--socket", NULL, "a path", "is missing");
	if (o->cpu < 0)
		return error_set(err, EINVAL, "--cpu", NULL, "a CPU that polls", "is missing");
	snprintf(text, sizeof(text), "%d", o->cpu);
	if (o->cpu == o->round_trip_cpu)
		return error_set(err, EINVAL, "--round-trip-cpu", text, "a CPU other than --cpu", "is the polling CPU");
	return 0;
}

int options_parse(int argc, char **argv, struct options *o, struct error *err)
{
	int opt, ret;

	*o = (struct options){.cpu = -1, .round_trip_cpu = -1, .memory_mb = 128};
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "+hV", longs, NULL)) != -1) {
		if (opt == 'h') {
			generator_options_usage();
			return 1;
		}
		if (opt == 'V') {
			printf("corelane-gen %s, %s\n", CORELANE_VERSION, rte_version());
			return 1;
		}
		if (opt == '?' || opt == ':')
			return error_set(err, EINVAL, "option", argv[optind - 1], "see corelane-gen --help",
					 "is unknown or lacks its value");
		ret = options_option(opt, optarg, o, err);
		if (ret < 0)
			return ret;
	}
	if (optind < argc)
		return error_set(err, EINVAL, "argument", argv[optind], "options only; see corelane-gen --help",
				 "is not understood");
	return options_complete(o, err);
}
