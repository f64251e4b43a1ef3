// SPDX-License-Identifier: Apache-2.0
// The CPUs of this machine, and those that this process may use.
#pragma once

#include "base/cpu_list.h"

struct machine {
	struct cpu_list possible; // CPUs that may ever exist; numbers can have holes
	struct cpu_list online;
	struct cpu_list allowed; // CPUs that the cpuset of this process allows
	struct cpu_list started; // affinity at its start (taskset, CPUAffinity=); all online and allowed
};

void machine_read(const char *root, struct machine *m); // possible, online; root: "" or a copy
void machine_read_process(struct machine *m);           // the others; after machine_read()
// Reads a list of CPUs from a file of the kernel.
int machine_read_list(const char *root, const char *path, struct cpu_list *out);
