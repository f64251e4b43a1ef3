// SPDX-License-Identifier: Apache-2.0
#include "main/eal.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>

#include "base/eal_init.h"
#include "base/hugepages.h"
#include "base/log.h"

static bool hugepages;

bool eal_has_hugepages(void)
{
	return hugepages;
}

// EAL gives its own threads the affinity that the process has at start, less its lcores. So this decides where they all run; workers
// pin themselves later.
static int confine(const struct options *o, unsigned *main_cpu, struct error *err)
{
	unsigned cpus[CPU_SETSIZE], n = 0, i;
	cpu_set_t set;

	if (o->control_cpus[0]) {
		cpu_list_parse("--control-cpus", o->control_cpus, cpus, CPU_SETSIZE, &n, NULL);
		CPU_ZERO(&set);
		for (i = 0; i < n; i++)
			CPU_SET(cpus[i], &set);
	} else {
		sched_getaffinity(0, sizeof(set), &set);
		for (i = 0; i < o->n_workers; i++)
			CPU_CLR(o->worker_cpus[i], &set);
		if (CPU_COUNT(&set) == 0) // one CPU for everything
			sched_getaffinity(0, sizeof(set), &set);
	}
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		return error_set(err, errno, "--control-cpus", o->control_cpus, "CPUs that this process may use", "%s",
				 strerror(errno));
	for (i = 0; i < CPU_SETSIZE && !CPU_ISSET(i, &set); i++)
		;
	*main_cpu = i;
	return 0;
}

static int level_number(const char *name)
{
	static const char *const levels[] = {"emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"};
	int i;

	for (i = 0; i < 8 && strcmp(levels[i], name) != 0; i++)
		;
	return i + 1; // RTE_LOG_EMERG is 1
}

int eal_start(const struct options *o, struct error *err)
{
	char lcores[32], memory[16], prefix[64], level[16];
	const char *argv[48] = {"corelaned"};
	unsigned main_cpu = 0, i;
	int argc = 1, ret;

	ret = confine(o, &main_cpu, err);
	if (ret < 0)
		return ret;
	hugepages = !o->no_huge && hugepages_free_mb() >= o->memory_mb;
	snprintf(lcores, sizeof(lcores), "--lcores=0@%u", main_cpu);
	snprintf(memory, sizeof(memory), "%u", o->memory_mb);
	snprintf(prefix, sizeof(prefix), "--file-prefix=corelane-%d", (int)getpid());
	snprintf(level, sizeof(level), "corelane*:%d", level_number(o->log_level));
	argv[argc++] = lcores;
	argv[argc++] = prefix;
	argv[argc++] =
		hugepages ? "--in-memory" : "--no-shconf"; // nothing is left behind; DPDK has no --in-memory without hugepages
	argv[argc++] = "-a";                               // probe no device by itself: ports name theirs
	argv[argc++] = "0000:00:00.0";
	argv[argc++] = "-m";
	argv[argc++] = memory;
	argv[argc++] = "--log-level";
	argv[argc++] = "lib.*:warning";
	argv[argc++] = "--log-level";
	argv[argc++] = "lib.corelane:info";
	if (!hugepages)
		argv[argc++] = "--no-huge";
	for (i = 0; i < o->n_eal; i++)
		argv[argc++] = o->eal[i];
	argv[argc] = NULL;
	if (eal_init(argc, (char **)(uintptr_t)argv) < 0)
		return error_set(err, EINVAL, "DPDK", NULL, "see the lines above", "cannot start: %s", rte_strerror(rte_errno));
	rte_log_set_level(corelane_logtype, (uint32_t)level_number(o->log_level));
	if (!hugepages)
		LOG(NOTICE,
		    "running without hugepages (%lu MB free, %u needed): packets cost about a third more; see the guide on "
		    "hugepages",
		    hugepages_free_mb(), o->memory_mb);
	return 0;
}
