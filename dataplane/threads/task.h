// SPDX-License-Identifier: Apache-2.0
// What the kernel says of a thread of this process, from /proc/self/task. root is "" but in tests, where it holds a copy of a machine.
#pragma once

#include <stddef.h>

#include "base/cpu_list.h"

struct task {
	int tid;
	char name[32];
	char state; // R S D T t Z X, as the kernel has it
	struct cpu_list affinity;
	uint64_t voluntary, involuntary; // context switches
	int cpu;                         // where it ran last
	uint64_t run_ns, wait_ns;        // on a CPU, and runnable without one
};

int *task_ids(const char *root, unsigned *n); // to be freed; NULL with errno
// Each fills a part and returns 0 or -errno: -ENOENT, -ESRCH: the thread has gone; -EINVAL: the file is not understood.
int task_read_status(const char *root, int tid, struct task *t); // name, state, affinity, switches
int task_read_sched(const char *root, int tid, struct task *t);  // state, cpu, run_ns, wait_ns
