// SPDX-License-Identifier: Apache-2.0
// Starts DPDK.
#include "eal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>

#include "base/cpu_list.h"
#include "base/eal_init.h"
#include "base/hugepages.h"
#include "base/log.h"

// Keeps the control thread and EAL's threads off the router's CPU, and off the polling CPU if there are others.
static int eal_confine(const struct options *o, unsigned *main_cpu, struct error *err)
{
	struct cpu_list set, others, one = {0};
	int ret;

	cpu_list_get_affinity(0, &set);
	if (o->round_trip_cpu >= 0) {
		cpu_list_add(&one, (unsigned)o->round_trip_cpu);
		set = cpu_list_without(&set, &one);
	}
	cpu_list_add(&one, (unsigned)o->cpu);
	others = cpu_list_without(&set, &one);
	if (!cpu_list_empty(&others))
		set = others;
	if (cpu_list_empty(&set))
		return error_set(err, EINVAL, "--round-trip-cpu", NULL, "another CPU",
				 "leaves no other CPU to this process");
	ret = cpu_list_set_affinity(0, &set);
	if (ret < 0)
		return error_set(err, -ret, NULL, NULL, NULL, "cannot choose CPUs: %s", strerror(-ret));
	*main_cpu = cpu_list_next(&set, 0);
	return 0;
}

int eal_start(const struct options *o, struct error *err)
{
	char lcores[32], memory[16], prefix[64];
	const char *argv[32] = {"corelane-gen"};
	bool huge = hugepages_free_mb() >= o->memory_mb;
	unsigned main_cpu = 0;
	int argc = 1, ret = eal_confine(o, &main_cpu, err);

	if (ret < 0)
		return ret;
	snprintf(lcores, sizeof(lcores), "--lcores=0@%u", main_cpu);
	snprintf(memory, sizeof(memory), "%u", o->memory_mb);
	snprintf(prefix, sizeof(prefix), "--file-prefix=corelane-gen-%d", (int)getpid());
	argv[argc++] = lcores;
	argv[argc++] = prefix;
	argv[argc++] = huge ? "--in-memory" : "--no-shconf";          // leaves no files; --in-memory needs hugepages
	argv[argc++] = huge ? "--single-file-segments" : "--no-huge"; // virtio-user shares only a few files
	argv[argc++] = "--no-telemetry";
	argv[argc++] = "-a"; // disables the probing of devices: ports name theirs
	argv[argc++] = "0000:00:00.0";
	argv[argc++] = "-m";
	argv[argc++] = memory;
	argv[argc++] = "--log-level";
	argv[argc++] = "lib.*:warning";
	argv[argc++] = "--log-level";
	argv[argc++] = "lib.corelane:info";
	argv[argc] = NULL;
	if (eal_init(argc, (char **)(uintptr_t)argv) < 0)
		return error_set(err, EINVAL, "DPDK", NULL, "see the lines above", "cannot start: %s",
				 rte_strerror(rte_errno));
	return 0;
}
