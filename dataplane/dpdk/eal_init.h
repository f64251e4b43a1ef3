// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "base/error.h"

#define EAL_MORE 32

struct eal_process {
	const char *program, *prefix; // name, and beginning of the names of its files
	unsigned cpu;                 // of the main lcore, below CPU_SETSIZE
	unsigned memory_mb;
	const char *node_memory; // MB of each NUMA node, for --socket-mem; NULL: memory_mb on the main lcore's
	bool hugepages;
	const char *more[EAL_MORE]; // further arguments
	unsigned n_more;
};

// Starts EAL for a program that names its devices itself.
int eal_start_process(const struct eal_process *p, struct error *err);

// Calls rte_eal_init(). When the process ends, the directory that DPDK has made for it is removed.
int eal_init(int argc, char **argv);
