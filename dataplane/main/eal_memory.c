// SPDX-License-Identifier: Apache-2.0
#include "main/eal_memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dpdk/hugepages.h"
#include "worker/numa.h"

// Counts the workers of each node. Returns how many nodes the list needs.
static unsigned eal_memory_workers(const char *root, const struct placement *p, unsigned workers[EAL_NODES])
{
	unsigned i, n = 0;
	int node;

	memset(workers, 0, EAL_NODES * sizeof(workers[0]));
	for (i = 0; i < p->n_workers; i++) {
		node = numa_of_cpu(root, p->worker_cpus[i]);
		if (node < 0 || node >= EAL_NODES)
			return 0;
		workers[node]++;
		n = (unsigned)node >= n ? (unsigned)node + 1 : n;
	}
	return n;
}

int eal_memory(const char *root, const struct placement *p, unsigned mb, struct eal_memory *m)
{
	unsigned workers[EAL_NODES], n = eal_memory_workers(root, p, workers), i, share, left = mb, seen = 0;
	size_t at = 0;

	if (n == 0 || p->n_workers == 0)
		return -ENOENT;
	m->node = 0;
	for (i = 0; i < n; i++) {
		seen += workers[i];
		share = seen == p->n_workers ? left : mb / p->n_workers * workers[i];
		share = workers[i] ? share : 0;
		left -= share;
		if (workers[i] > workers[m->node])
			m->node = i;
		if (share > hugepages_free_mb_on(root, i)) {
			m->node = i;
			return -ENOMEM;
		}
		at += (size_t)snprintf(m->list + at, sizeof(m->list) - at, "%s%u", i ? "," : "", share);
	}
	return 0;
}
