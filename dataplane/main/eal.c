// SPDX-License-Identifier: Apache-2.0
#include "main/eal.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include <rte_lcore.h>
#include <rte_log.h>

#include "base/log.h"
#include "dpdk/eal_init.h"
#include "dpdk/hugepages.h"
#include "main/eal_memory.h"
#include "worker/numa.h"

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

static bool eal_is_memory(const char *arg)
{
	return strncmp(arg, "-m", 2) == 0 || strncmp(arg, "--socket-mem", 12) == 0;
}

// Without hugepages, and where the arguments for DPDK say it, memory is not spread over nodes.
static bool eal_spreads_memory(const struct options *o)
{
	unsigned i;

	for (i = 0; i < o->n_eal && !eal_is_memory(o->eal[i]); i++)
		;
	return hugepages && i == o->n_eal;
}

// DPDK takes memory for which no node is given from the node that it has noted for the calling thread, when it set the
// thread's affinity. threads_start() moves the master to its own CPUs, and DPDK does not notice. So tables and the
// buffers of ports without a node are the workers'.
static void eal_allocate_on(const struct options *o, unsigned node)
{
	struct cpu_list cpus = {}, workers = placement_workers(&o->placement), others;
	rte_cpuset_t set;
	unsigned cpu;

	for (cpu = cpu_list_next(&o->machine.allowed, 0); cpu < CPU_SETSIZE;
	     cpu = cpu_list_next(&o->machine.allowed, cpu + 1))
		if (numa_of_cpu("", cpu) == (int)node)
			cpu_list_add(&cpus, cpu);
	others = cpu_list_without(&cpus, &workers); // a predecessor may still work on the workers' CPUs
	if (!cpu_list_empty(&others))
		cpus = others;
	CPU_ZERO(&set);
	for (cpu = cpu_list_next(&cpus, 0); cpu < CPU_SETSIZE; cpu = cpu_list_next(&cpus, cpu + 1))
		CPU_SET(cpu, &set);
	if (rte_socket_id() != node && CPU_COUNT(&set) > 0 && rte_thread_set_affinity(&set) < 0)
		LOG(NOTICE, "memory of tables comes from NUMA node %u, not from the workers' node %u", rte_socket_id(),
		    node);
}

int eal_start(const struct options *o, struct error *err)
{
	struct eal_process p = {.program = "corelaned", .prefix = "corelane", .memory_mb = o->memory_mb};
	struct eal_memory memory;
	int ret = eal_confine(o, &p.cpu, err), spread;

	if (ret < 0)
		return ret;
	hugepages = p.hugepages = !o->no_huge && hugepages_free_mb() >= o->memory_mb;
	spread = eal_spreads_memory(o) ? eal_memory("", &o->placement, o->memory_mb, &memory) : -ENOENT;
	if (spread == 0)
		p.node_memory = memory.list;
	memcpy(p.more, o->eal, o->n_eal * sizeof(p.more[0]));
	p.n_more = o->n_eal;
	ret = eal_start_process(&p, err);
	if (ret < 0)
		return ret;
	rte_openlog_stream(stderr); // alone: the journal has it, and no thread needs a socket of syslog
	rte_log_set_level(corelane_logtype, (uint32_t)level_number(o->log_level));
	if (spread == 0)
		eal_allocate_on(o, memory.node);
	else if (spread == -ENOMEM)
		LOG(NOTICE,
		    "NUMA node %u of workers has only %lu MB of hugepages free: memory comes from other nodes, too, "
		    "and packets cost more; see `corelane cores verify`",
		    memory.node, hugepages_free_mb_on("", memory.node));
	if (!hugepages)
		LOG(NOTICE,
		    "running without hugepages (%lu MB free, %u needed): packets cost about a third more; see the "
		    "guide on hugepages",
		    hugepages_free_mb(), o->memory_mb);
	return 0;
}
