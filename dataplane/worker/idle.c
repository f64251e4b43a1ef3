// SPDX-License-Identifier: Apache-2.0
// Each sleep is twice as long as the last one, from 1 us to the worker's bound. Packets and messages of the master wait
// at most for that bound and the kernel's wake-up. During sleeps of OFFLINE_NS and more the worker is not an RCU
// reader, so that no grace period waits for it.
#include "worker/idle.h"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_pause.h>

#include "base/clock.h"
#include "base/rcu.h"
#include "base/system_calls.h"
#include "worker/recorder.h"
#include "worker/wait.h"
#include "worker/worker.h"

#define SLEEP_AFTER_US 20 // time of empty polls before the first sleep
#define NAP_MIN_NS 1000
#define OFFLINE_NS 1000000

void idle_enter(void)
{
	prctl(PR_SET_TIMERSLACK, 1); // with the default of 50 us, no sleep would be shorter than that
}

static void idle_nap(struct worker *w, uint32_t ns)
{
	const struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

	if (ns >= OFFLINE_NS)
		rcu_reader_rest(w->id);
	system_calls++;
	nanosleep(&t, NULL);
	if (ns >= OFFLINE_NS)
		rcu_reader_resume(w->id);
}

static void idle_sleep_longer(struct worker *w)
{
	uint32_t max_ns = __atomic_load_n(&w->idle_state.sleep_max_us, __ATOMIC_RELAXED) * 1000;
	uint32_t ns = RTE_MAX(w->idle_state.nap_ns, (uint32_t)NAP_MIN_NS);

	ns = RTE_MIN(ns, max_ns);
	idle_nap(w, ns);
	w->idle_state.nap_ns = RTE_MIN(ns, UINT32_MAX / 2) * 2;
}

static bool idle_empty_for_long(struct idle *idle)
{
	uint64_t now = clock_now();

	if (idle->empty_since == 0) {
		idle->empty_since = now;
		idle->nap_ns = 0;
	}
	return now - idle->empty_since >= rte_get_tsc_hz() / 1000000 * SLEEP_AFTER_US;
}

static void idle_yield(struct worker *w)
{
	system_calls++;
	sched_yield();
}

// Calls a function that gives up the CPU; the recorder does not take that for a preemption.
static void idle_give_up_cpu(struct worker *w, void (*how)(struct worker *w))
{
	uint64_t start = clock_now();

	recorder_leave(w->recorder);
	how(w);
	recorder_return(w->recorder);
	recorder_spent(w->recorder, STAGE_IDLE, clock_now() - start);
}

static void idle_sleep_max(struct worker *w)
{
	idle_nap(w, SLEEP_MAX_US * 1000);
}

// Time in which the worker waits to be woken counts as idle time, and not as part of a loop.
static void idle_wait_for_packets(struct worker *w)
{
	uint64_t start = clock_now(), waited;
	bool ok;

	recorder_leave(w->recorder);
	ok = wait_wait(w);
	recorder_return(w->recorder);
	waited = clock_now() - start;
	w->idle_cycles += waited;
	w->recorder->trail.begin += waited;
	w->recorder->trail.end += waited;
	if (!ok)
		idle_give_up_cpu(w, idle_sleep_max);
}

// After it has armed the queues the worker polls them once more; then it waits.
static void idle_interrupt(struct worker *w)
{
	if (w->idle_state.armed)
		idle_wait_for_packets(w);
	else if (!idle_empty_for_long(&w->idle_state))
		rte_pause();
	else if (!wait_arm(w))
		idle_give_up_cpu(w, idle_sleep_longer);
}

void worker_idle_over(struct worker *w)
{
	w->idle_state.empty_since = 0;
	if (w->idle_state.armed)
		wait_disarm(w);
}

void worker_idle(struct worker *w)
{
	enum idle_policy policy = __atomic_load_n(&w->idle, __ATOMIC_ACQUIRE);

	if (unlikely(w->idle_state.armed && policy != IDLE_INTERRUPT))
		wait_disarm(w);
	switch (policy) {
	case IDLE_SPIN:
		break;
	case IDLE_PAUSE:
		rte_pause();
		break;
	case IDLE_YIELD:
		idle_give_up_cpu(w, idle_yield);
		break;
	case IDLE_SLEEP:
		if (idle_empty_for_long(&w->idle_state))
			idle_give_up_cpu(w, idle_sleep_longer);
		else
			rte_pause();
		break;
	case IDLE_INTERRUPT:
		idle_interrupt(w);
		break;
	}
}
