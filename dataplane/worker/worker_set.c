// SPDX-License-Identifier: Apache-2.0
// Changes to a running worker: its CPU, idle policy, role, target and ring size.
#include "worker/worker.h"

#include <errno.h>
#include <stdio.h>

#include "base/cpu_list.h"
#include "base/doorbell.h"
#include "base/log.h"
#include "worker/numa.h"
#include "base/rcu.h"
#include "base/thread.h"
#include "worker/assign.h"
#include "worker/handoff.h"
#include "worker/recorder.h"
#include "worker/spread.h"
#include "worker/wait.h"
#include "worker/worker_private.h"

static const char *const idle_names[] = {[IDLE_SPIN] = "spin",
					 [IDLE_PAUSE] = "pause",
					 [IDLE_YIELD] = "yield",
					 [IDLE_SLEEP] = "sleep",
					 [IDLE_INTERRUPT] = "interrupt"};

const char *idle_policy_name(enum idle_policy idle)
{
	return idle_names[idle];
}

int idle_policy_parse(const char *name, enum idle_policy *out)
{
	unsigned i;

	for (i = 0; i < RTE_DIM(idle_names); i++) {
		if (strcmp(name, idle_names[i]) == 0) {
			*out = i;
			return 0;
		}
	}
	return -EINVAL;
}

static bool worker_keeps_cpu(enum idle_policy idle)
{
	return idle == IDLE_SPIN || idle == IDLE_PAUSE;
}

int worker_check_cpu(unsigned cpu, enum idle_policy idle, struct error *err)
{
	struct worker *w;
	char text[32];

	snprintf(text, sizeof(text), "%u", cpu);
	if (cpu >= CPU_LIST_MAX) // the kernel checks the rest
		return error_set(err, EINVAL, "worker.cpu", text, "a CPU that is online", "does not exist");
	for (w = worker_next(NULL); w; w = worker_next(w)) {
		if (w->cpu != cpu)
			continue;
		if (worker_keeps_cpu(w->idle))
			return error_set(err, EBUSY, "worker.cpu", text, "a CPU without a worker that keeps it",
					 "is taken by worker %u, which never yields it (idle policy %s)", w->id,
					 idle_policy_name(w->idle));
		if (worker_keeps_cpu(idle))
			return error_set(err, EBUSY, "worker.cpu", text,
					 "a CPU without a worker, or the idle policy yield, sleep or interrupt",
					 "is worker %u's, and a worker with the idle policy %s never yields its CPU",
					 w->id, idle_policy_name(idle));
	}
	return 0;
}

int worker_move(struct worker *w, unsigned cpu, struct error *err)
{
	char text[16], valid[CPU_LIST_TEXT + 16], cpus[CPU_LIST_TEXT];
	struct cpu_list allowed;
	int ret;

	if (cpu == w->cpu)
		return 0;
	ret = worker_check_cpu(cpu, w->idle, err);
	if (ret < 0)
		return ret;
	snprintf(text, sizeof(text), "%u", cpu);
	ret = thread_pin(w->thread, cpu); // fails for a CPU that is offline or not allowed
	if (ret < 0) {
		cpu_list_get_allowed(&allowed);
		snprintf(valid, sizeof(valid), "one of CPUs %s", cpu_list_format(&allowed, cpus, sizeof(cpus)));
		return error_set(err, -ret, "worker.cpu", text, valid, "worker %u cannot move there: %s", w->id,
				 strerror(-ret));
	}
	LOG(INFO, "worker %u moved from CPU %u to CPU %u", w->id, w->cpu, cpu);
	w->cpu = cpu;
	w->numa = numa_of_cpu("", cpu); // its memory stays
	return 0;
}

int worker_set_idle(struct worker *w, enum idle_policy idle, struct error *err)
{
	int ret = idle == IDLE_INTERRUPT ? worker_may_wait(w, err) : 0;

	if (ret < 0)
		return ret;
	handoff_set_bell(w, idle == IDLE_INTERRUPT);
	// It waits once all producers have seen the bell.
	__atomic_store_n(&w->wait->token, rcu_token(), __ATOMIC_RELAXED);
	__atomic_store_n(&w->idle, idle, __ATOMIC_RELEASE);
	doorbell_ring(w->id);
	return 0;
}

void worker_set_sleep_max(struct worker *w, uint32_t us)
{
	__atomic_store_n(&w->idle_state.sleep_max_us, us ? us : SLEEP_MAX_US, __ATOMIC_RELAXED);
}

void worker_set_loop_threshold(struct worker *w, uint32_t us)
{
	recorder_set_threshold(w->recorder, us ? us : LONG_LOOP_US);
}

int worker_set_role(struct worker *w, enum worker_role role, struct error *err)
{
	struct worker *to = worker_least_loaded(w);
	char name[16];
	int ret;

	if (role == w->role)
		return 0;
	if (to == NULL && w->role == WORKER_FORWARDING)
		return error_set(err, EBUSY, "worker.role", NULL, "the same request with another forwarding worker",
				 "worker %u is the last forwarding worker", w->id);
	if (w->role == WORKER_HOST_PATH)
		worker_notify_set(w);
	w->role = (uint8_t)role;
	w->target = WORKER_MAX;
	pthread_setname_np(w->thread, worker_thread_name(w, name));
	LOG(INFO, "worker %u is %s now", w->id, name);
	if (role == WORKER_FORWARDING)
		return spread_refresh(err);
	worker_retarget(w);
	ret = worker_set_target(w, WORKER_NONE, err);
	if (ret == 0)
		worker_notify_set(NULL);
	return ret;
}

int worker_set_target(struct worker *w, uint32_t target, struct error *err)
{
	struct worker *to = target == WORKER_NONE ? worker_least_loaded(w) : worker_get(target);
	char text[16];
	int ret;

	snprintf(text, sizeof(text), "%u", target);
	if (w->role == WORKER_FORWARDING)
		return error_set(err, EINVAL, "worker.target", text, "none: only workers of other roles have a target",
				 "cannot be set for a forwarding worker");
	if (to == NULL || to->role != WORKER_FORWARDING || to->leaving)
		return error_set(err, ENOENT, "worker.target", target == WORKER_NONE ? "" : text,
				 "the id of a forwarding worker", "is not a worker that can take packets");
	ret = handoff_connect(w, to, err);
	if (ret < 0)
		return ret;
	__atomic_store_n(&w->target, (uint8_t)to->id, __ATOMIC_RELAXED);
	return spread_refresh(err);
}

static bool worker_set_rings_settled(const void *arg)
{
	return handoff_poll();
}

int worker_set_ring_size(struct worker *w, uint32_t size, struct error *err)
{
	uint32_t old = w->ring_size;
	int ret = check_limits("worker.ring_size", size, &handoff_sizes, err);

	if (ret < 0)
		return ret;
	w->ring_size = size;
	ret = handoff_resize(w, err);
	if (ret < 0)
		w->ring_size = old;
	else
		worker_settle(worker_set_rings_settled, NULL, SETTLE_MS);
	return ret;
}
