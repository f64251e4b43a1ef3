// SPDX-License-Identifier: Apache-2.0
// Applies the current plan to the threads of this process, once a second.
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "threads/threads.h"
#include "worker/worker.h"

static struct machine machine;
static struct placement placement; // as the options gave it
static struct threads threads;

static int worker_of(int tid, unsigned *cpu)
{
	struct worker *w;

	for (w = worker_next(NULL); w; w = worker_next(w)) {
		if (w->tid == tid) {
			*cpu = w->cpu;
			return (int)w->id;
		}
	}
	return -1;
}

// Workers are added, removed and moved at run time. Sets that no option gave follow them: they hold the CPUs without a
// worker, or stay as they were when there is none.
static struct placement placement_now(void)
{
	struct placement p = placement;
	struct cpu_list workers = {0};
	struct worker *w;

	for (w = worker_next(NULL), p.n_workers = 0; w; w = worker_next(w)) {
		p.worker_cpus[p.n_workers++] = w->cpu;
		cpu_list_add(&workers, w->cpu);
	}
	if (p.n_workers == 0 || cpu_list_within(&machine.started, &workers))
		return placement;
	if (placement.own_service)
		p.service = (struct cpu_list){0};
	if (placement.own_control)
		p.control = (struct cpu_list){0};
	placement_fill(&p, &machine);
	return p;
}

void threads_poll(void)
{
	struct placement p = placement_now();
	struct thread_plan plan = {.root = "",
				   .master = (int)getpid(),
				   .service = p.service,
				   .control = p.control,
				   .worker = worker_of,
				   .move = cpu_list_set_affinity};
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	threads_look(&threads, &plan, (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec);
}

void threads_start(const struct machine *m, const struct placement *p)
{
	char service[CPU_LIST_TEXT], control[CPU_LIST_TEXT];

	machine = *m;
	placement = *p;
	LOG(INFO, "service threads run on CPUs %s, control threads on %s",
	    cpu_list_format(&placement.service, service, sizeof(service)),
	    cpu_list_format(&placement.control, control, sizeof(control)));
	threads_poll();
}

const struct threads *threads_all(void)
{
	return &threads;
}
