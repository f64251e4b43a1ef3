// SPDX-License-Identifier: Apache-2.0
// On which NUMA nodes DPDK takes its memory: on those of the workers' CPUs. By itself it takes it where the main lcore
// runs, which is a CPU of the control threads.
#pragma once

#include "threads/placement.h"

#define EAL_NODES 32

struct eal_memory {
	char list[EAL_NODES * 12]; // for --socket-mem: MB of each node
	unsigned node;             // with the most workers; after -ENOMEM the one that has too little
};

// Divides memory over the nodes of the workers. root: "" or a captured tree. Returns 0; -ENOENT: the kernel does not
// say on which nodes the workers are; -ENOMEM: a node has too few free hugepages for its share.
int eal_memory(const char *root, const struct placement *p, unsigned mb, struct eal_memory *m);
