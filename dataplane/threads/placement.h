// SPDX-License-Identifier: Apache-2.0
// Which role runs on which CPUs at start.
//
// A worker has a CPU of its own; the service threads (the master, svc-*, vhost-user) and DPDK's control threads have a set each. Nothing
// here asks the machine: it is given.
#pragma once

#include <stdbool.h>

#include "base/cpu_list.h"
#include "threads/machine.h"
#include "worker/worker.h"

struct placement {
	unsigned worker_cpus[WORKER_MAX];           // in the order of the workers' ids
	unsigned n_workers;                         // 0: not said
	struct cpu_list service, control;           // empty: not said
	bool own_workers, own_service, own_control; // found by placement_fill()
	bool allow_overlap;
};

// What was not said: one worker, on the last CPU that is left; the threads of a role on the other role's CPUs when those were said,
// else on all that no worker has. On a machine with one CPU everything is there.
void placement_fill(struct placement *p, const struct machine *m);

// Refuses CPUs that do not exist, are offline or not allowed, and workers' CPUs in another role's set unless they are allowed to
// overlap or there is only one CPU. What overlaps nevertheless is put into *overlap.
int placement_check(const struct placement *p, const struct machine *m, struct cpu_list *overlap, struct error *err);
struct cpu_list placement_workers(const struct placement *p);
