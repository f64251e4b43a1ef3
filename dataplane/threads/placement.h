// SPDX-License-Identifier: Apache-2.0
// Decides which role runs on which CPUs at start.
//
// A worker has a CPU of its own; the service threads (the master, svc-*, vhost-user) and DPDK's control threads have a
// set each. The machine is an argument: nothing here reads it.
#pragma once

#include <stdbool.h>

#include "base/cpu_list.h"
#include "threads/machine.h"
#include "worker/worker.h"

struct placement {
	unsigned worker_cpus[WORKER_MAX];           // in the order of the workers' ids
	unsigned n_workers;                         // 0: not given
	struct cpu_list service, control;           // empty: not given
	bool own_workers, own_service, own_control; // chosen by placement_fill()
	bool allow_overlap;
};

// Chooses what the options left open: one worker, on the highest free CPU; for service threads the CPUs given for
// control threads and vice versa, or else all CPUs without a worker. With one CPU everything runs there.
void placement_fill(struct placement *p, const struct machine *m);

// Refuses CPUs that do not exist, are offline or not allowed, and workers' CPUs in another role's set unless they are
// allowed to overlap or there is only one CPU. *overlap receives the workers' CPUs that are also in another set.
int placement_check(const struct placement *p, const struct machine *m, struct cpu_list *overlap, struct error *err);
struct cpu_list placement_workers(const struct placement *p);
