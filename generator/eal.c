// SPDX-License-Identifier: Apache-2.0
// Starts DPDK.
#include "eal.h"

#include <errno.h>
#include <string.h>

#include "base/cpu_list.h"
#include "dpdk/eal_init.h"
#include "dpdk/hugepages.h"
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
	struct eal_process p = {.program = "corelane-gen", .prefix = "corelane-gen", .memory_mb = o->memory_mb};
	int ret = eal_confine(o, &p.cpu, err);

	if (ret < 0)
		return ret;
	p.hugepages = hugepages_free_mb() >= o->memory_mb;
	p.more[p.n_more++] = "--no-telemetry";
	if (p.hugepages)
		p.more[p.n_more++] = "--single-file-segments"; // virtio-user shares only a few files
	return eal_start_process(&p, err);
}
