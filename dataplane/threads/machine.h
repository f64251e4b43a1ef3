// SPDX-License-Identifier: Apache-2.0
// The CPUs of this machine, as far as this process is concerned.
#pragma once

#include "base/cpu_list.h"

struct machine {
	struct cpu_list possible; // that may ever be there; numbers can have holes
	struct cpu_list online;
	struct cpu_list allowed; // by the cpuset of this process
	struct cpu_list started; // that it was started with (taskset, CPUAffinity=); all online and allowed
};

void machine_read(const char *root, struct machine *m);                          // possible and online; root is "" but in tests
void machine_read_process(struct machine *m);                                    // then the rest, of the calling thread
int machine_read_list(const char *root, const char *path, struct cpu_list *out); // a file of the kernel that holds a list of CPUs
