// SPDX-License-Identifier: Apache-2.0
// Sleeping doubles: from 1 us to the worker's bound, which is how long packets and the master's messages wait at most (and the
// kernel's wake-up). A nap of more than OFFLINE_NS is none that the master waits for: the worker says that it reads nothing.
#include "worker/idle.h"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_pause.h>

#include "base/rcu.h"
#include "base/system_calls.h"
#include "worker/recorder.h"
#include "worker/wait.h"
#include "worker/worker.h"

#define SLEEP_AFTER_US 20 // of empty polls
#define NAP_MIN_NS 1000
#define OFFLINE_NS 1000000

void idle_enter(void)
{
	prctl(PR_SET_TIMERSLACK, 1); // the default of 50 us would be the shortest nap
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

static void sleep_longer(struct worker *w)
{
	uint32_t max_ns = __atomic_load_n(&w->idle_state.sleep_max_us, __ATOMIC_RELAXED) * 1000;
	uint32_t ns = RTE_MAX(w->idle_state.nap_ns, (uint32_t)NAP_MIN_NS);

	ns = RTE_MIN(ns, max_ns);
	idle_nap(w, ns);
	w->idle_state.nap_ns = RTE_MIN(ns, UINT32_MAX / 2) * 2;
}

static bool empty_for_long(struct idle *idle)
{
	uint64_t now = rte_rdtsc();

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

// The CPU is given away: not taken.
static void give_away(struct worker *w, void (*how)(struct worker *w))
{
	uint64_t start = rte_rdtsc();

	recorder_leave(w->recorder);
	how(w);
	recorder_return(w->recorder);
	recorder_spent(w->recorder, STAGE_IDLE, rte_rdtsc() - start);
}

static void idle_doze(struct worker *w)
{
	idle_nap(w, SLEEP_MAX_US * 1000);
}

// Time in which the worker was to be woken belongs to no loop, however long it was: it is idle time and nothing else.
static void wait_for_packets(struct worker *w)
{
	uint64_t start = rte_rdtsc(), waited;
	bool ok;

	recorder_leave(w->recorder);
	ok = wait_wait(w);
	recorder_return(w->recorder);
	waited = rte_rdtsc() - start;
	w->idle_cycles += waited;
	w->recorder->trail.begin += waited;
	w->recorder->trail.end += waited;
	if (!ok)
		give_away(w, idle_doze);
}

// After the queues were armed their packets are looked for once more; then the worker waits.
static void idle_interrupt(struct worker *w)
{
	if (w->idle_state.armed)
		wait_for_packets(w);
	else if (!empty_for_long(&w->idle_state))
		rte_pause();
	else if (!wait_arm(w))
		give_away(w, sleep_longer);
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
		give_away(w, idle_yield);
		break;
	case IDLE_SLEEP:
		if (empty_for_long(&w->idle_state))
			give_away(w, sleep_longer);
		else
			rte_pause();
		break;
	case IDLE_INTERRUPT:
		idle_interrupt(w);
		break;
	}
}
