// SPDX-License-Identifier: Apache-2.0
// The state of a thread of this process, read from /proc/self/task. root is "" except in tests, where it holds copies
// of the files.
#pragma once

#include <stddef.h>

#include "base/cpu_list.h"

struct task {
	int tid;
	char name[32];
	char state; // the kernel's letter: R S D T t Z X
	struct cpu_list affinity;
	uint64_t voluntary, involuntary; // context switches
	int cpu;                         // where it ran last
	uint64_t run_ns, wait_ns;        // on a CPU, and runnable without one
};

int *task_ids(const char *root, unsigned *n); // the caller frees it; NULL with errno
// Each fills a part and returns 0 or -errno: -ENOENT, -ESRCH: the thread has gone; -EINVAL: the file is not understood.
int task_read_status(const char *root, int tid, struct task *t); // name, state, affinity, switches
int task_read_sched(const char *root, int tid, struct task *t);  // state, cpu, run_ns, wait_ns
