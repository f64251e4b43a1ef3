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

// EAL's own threads run on the CPUs of the process at start, except the CPUs of EAL's lcores, or on the main lcore's
// CPU if none is left. So the affinity that is set here decides where they run. The master moves to the service CPUs
// and workers pin themselves later.
static int eal_confine(const struct options *o, char *lcores, size_t size, struct error *err)
{
	const struct cpu_list *control = &o->placement.control;
	char text[CPU_LIST_TEXT];
	unsigned cpu = cpu_list_next(control, 0);
	int ret = cpu_list_set_affinity(0, control);

	if (ret < 0)
		return error_set(err, -ret, "--control-cpus", cpu_list_format(control, text, sizeof(text)),
				 "CPUs that this process may use", "cannot be used: %s", strerror(-ret));
	// EAL does not support such high numbers. Its threads start elsewhere, and threads_start() moves them.
	if (cpu >= CPU_SETSIZE)
		cpu = cpu_list_next(&o->machine.allowed, 0);
	snprintf(lcores, size, "--lcores=0@%u", cpu);
	return 0;
}

static int level_number(const char *name)
{
	static const char *const levels[] = {"emergency", "alert",  "critical", "error",
					     "warning",   "notice", "info",     "debug"};
	int i;

	for (i = 0; i < 8 && strcmp(levels[i], name) != 0; i++)
		;
	return i + 1; // RTE_LOG_EMERG is 1
}

int eal_start(const struct options *o, struct error *err)
{
	char lcores[32], memory[16], prefix[64], level[16];
	const char *argv[48] = {"corelaned"};
	unsigned i;
	int argc = 1, ret;

	ret = eal_confine(o, lcores, sizeof(lcores), err);
	if (ret < 0)
		return ret;
	hugepages = !o->no_huge && hugepages_free_mb() >= o->memory_mb;
	snprintf(memory, sizeof(memory), "%u", o->memory_mb);
	snprintf(prefix, sizeof(prefix), "--file-prefix=corelane-%d", (int)getpid());
	snprintf(level, sizeof(level), "corelane*:%d", level_number(o->log_level));
	argv[argc++] = lcores;
	argv[argc++] = prefix;
	argv[argc++] = hugepages ? "--in-memory" : "--no-shconf"; // leaves no files; needs hugepages
	argv[argc++] = "-a";                                      // probe no device unasked: ports name theirs
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
		return error_set(err, EINVAL, "DPDK", NULL, NULL, "cannot start (the lines above say why): %s",
				 rte_strerror(rte_errno));
	rte_log_set_level(corelane_logtype, (uint32_t)level_number(o->log_level));
	if (!hugepages)
		LOG(NOTICE,
		    "running without hugepages (%lu MB free, %u needed): packets cost about a third more; see the "
		    "guide on hugepages",
		    hugepages_free_mb(), o->memory_mb);
	return 0;
}
