// SPDX-License-Identifier: Apache-2.0
// The threads of this process and the CPUs that the plan gives to each. A thread that is found elsewhere is moved back.
// Master thread only.
#pragma once

#include "threads/machine.h"
#include "threads/placement.h"
#include "threads/task.h"

enum thread_role { THREAD_SERVICE, THREAD_CONTROL, THREAD_FORWARDING, THREAD_ISOLATED_RX, THREAD_HOST_PATH };

struct thread {
	struct task task;
	enum thread_role role;
	int worker; // its id, -1: none
	struct cpu_list planned;
	uint32_t moved_back; // times that it was found elsewhere
	uint64_t displaced;  // since when the kernel keeps it from its CPUs, ns of the monotonic clock; 0: it does not
	bool seen;
};

// The input of threads_look(), and the actions that it may take.
struct thread_plan {
	const char *root;
	int master; // its tid
	struct cpu_list service, control;
	int (*worker)(int tid, unsigned *cpu); // id of the worker that runs in this thread, -1: none
	int (*move)(int tid, const struct cpu_list *cpus);
};

enum thread_role thread_role(const char *name, bool master);

struct threads { // all known threads
	struct thread *list;
	unsigned n, room;
};

void threads_look(struct threads *all, const struct thread_plan *plan, uint64_t now_ns);

// Of this process.
void threads_start(const struct machine *m, const struct placement *p); // moves each thread to its planned CPUs
void threads_poll(void);                                                // called each second
const struct threads *threads_all(void);
