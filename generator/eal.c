// SPDX-License-Identifier: Apache-2.0
#include "eal.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>

#include "base/eal_init.h"
#include "base/hugepages.h"
#include "base/log.h"

// The control thread and EAL's own stay off the router's CPU, and off the polling one where there are others.
static int confine(const struct options *o, unsigned *main_cpu, struct error *err)
{
	cpu_set_t set, others;
	unsigned i;

	sched_getaffinity(0, sizeof(set), &set);
	if (o->round_trip_cpu >= 0)
		CPU_CLR((unsigned)o->round_trip_cpu, &set);
	others = set;
	CPU_CLR((unsigned)o->cpu, &others);
	if (CPU_COUNT(&others) > 0)
		set = others;
	if (CPU_COUNT(&set) == 0)
		return error_set(err, EINVAL, "--round-trip-cpu", NULL, "another CPU", "is the only one that this process may use");
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		return error_set(err, errno, NULL, NULL, NULL, "cannot choose CPUs: %s", strerror(errno));
	for (i = 0; i < CPU_SETSIZE && !CPU_ISSET(i, &set); i++)
		;
	*main_cpu = i;
	return 0;
}

int eal_start(const struct options *o, struct error *err)
{
	char lcores[32], memory[16], prefix[64];
	const char *argv[32] = {"corelane-gen"};
	bool huge = hugepages_free_mb() >= o->memory_mb;
	unsigned main_cpu = 0;
	int argc = 1, ret = confine(o, &main_cpu, err);

	if (ret < 0)
		return ret;
	snprintf(lcores, sizeof(lcores), "--lcores=0@%u", main_cpu);
	snprintf(memory, sizeof(memory), "%u", o->memory_mb);
	snprintf(prefix, sizeof(prefix), "--file-prefix=corelane-gen-%d", (int)getpid());
	argv[argc++] = lcores;
	argv[argc++] = prefix;
	argv[argc++] = huge ? "--in-memory" : "--no-shconf"; // nothing is left behind; there is no --in-memory without hugepages
	argv[argc++] = huge ? "--single-file-segments" : "--no-huge"; // virtio-user can share a few files, not one for each page
	argv[argc++] = "--no-telemetry";
	argv[argc++] = "-a"; // probe no device by itself: ports name theirs
	argv[argc++] = "0000:00:00.0";
	argv[argc++] = "-m";
	argv[argc++] = memory;
	argv[argc++] = "--log-level";
	argv[argc++] = "lib.*:warning";
	argv[argc++] = "--log-level";
	argv[argc++] = "lib.corelane:info";
	argv[argc] = NULL;
	if (eal_init(argc, (char **)(uintptr_t)argv) < 0)
		return error_set(err, EINVAL, "DPDK", NULL, "see the lines above", "cannot start: %s", rte_strerror(rte_errno));
	return 0;
}
