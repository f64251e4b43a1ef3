// SPDX-License-Identifier: Apache-2.0
#include "main/eal.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include <rte_log.h>

#include "dpdk/eal_init.h"
#include "dpdk/hugepages.h"
#include "base/log.h"

static bool hugepages;

bool eal_has_hugepages(void)
{
	return hugepages;
}

// EAL's own threads run on the CPUs of the process at start, except the CPUs of EAL's lcores, or on the main lcore's
// CPU if none is left. So the affinity that is set here decides where they run. The master moves to the service CPUs
// and workers pin themselves later.
static int eal_confine(const struct options *o, unsigned *main_cpu, struct error *err)
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
	*main_cpu = cpu;
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
	struct eal_process p = {.program = "corelaned", .prefix = "corelane", .memory_mb = o->memory_mb};
	int ret = eal_confine(o, &p.cpu, err);

	if (ret < 0)
		return ret;
	hugepages = p.hugepages = !o->no_huge && hugepages_free_mb() >= o->memory_mb;
	memcpy(p.more, o->eal, o->n_eal * sizeof(p.more[0]));
	p.n_more = o->n_eal;
	ret = eal_start_process(&p, err);
	if (ret < 0)
		return ret;
	rte_openlog_stream(stderr); // alone: the journal has it, and no thread needs a socket of syslog
	rte_log_set_level(corelane_logtype, (uint32_t)level_number(o->log_level));
	if (!hugepages)
		LOG(NOTICE,
		    "running without hugepages (%lu MB free, %u needed): packets cost about a third more; see the "
		    "guide on hugepages",
		    hugepages_free_mb(), o->memory_mb);
	return 0;
}
