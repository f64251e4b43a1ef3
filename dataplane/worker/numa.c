// SPDX-License-Identifier: Apache-2.0
// The node of a CPU as /sys has it; whether a node has memory is found by allocating some.
#include "worker/numa.h"

#include <dirent.h>
#include <stdio.h>

#include <rte_eal.h>
#include <rte_malloc.h>
#include <rte_memory.h>

#define PROBE_BYTES (4u << 20) // about the memory of a worker

int numa_of_cpu(const char *root, uint32_t cpu)
{
	char path[160];
	struct dirent *e;
	int numa = -1;
	DIR *d;

	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%u", root, cpu);
	d = opendir(path);
	while (d && numa < 0 && (e = readdir(d)) != NULL)
		if (sscanf(e->d_name, "node%d", &numa) != 1)
			numa = -1;
	if (d)
		closedir(d);
	return numa;
}

int numa_memory(int numa)
{
	void *probe = NULL;

	if (numa >= 0 && rte_eal_has_hugepages()) // without them DPDK knows only one node
		probe = rte_malloc_socket(NULL, PROBE_BYTES, 0, numa);
	rte_free(probe);
	return probe ? numa : SOCKET_ID_ANY;
}
