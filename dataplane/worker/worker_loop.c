// SPDX-License-Identifier: Apache-2.0
// A worker's thread: what it does from its first to its last loop.
#include "worker/worker.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_lcore.h>

#include "base/notify.h"
#include "base/rcu.h"
#include "base/system_calls.h"
#include "base/thread.h"
#include "graph/counters.h"
#include "graph/graph.h"
#include "graph/held.h"
#include "worker/buffer_share.h"
#include "worker/handoff.h"
#include "worker/orders.h"
#include "worker/recorder.h"
#include "worker/worker_private.h"

__thread struct worker *this_worker;
static struct worker_listener *listeners; // written before there are workers

const char *worker_thread_name(const struct worker *w, char name[16])
{
	static const char *const prefixes[] = {
		[WORKER_FORWARDING] = "fwd", [WORKER_ISOLATED_RX] = "rx", [WORKER_HOST_PATH] = "host"};

	snprintf(name, 16, "pmd-%s-%u", prefixes[w->role], w->id);
	return name;
}

void worker_listen(struct worker_listener *l)
{
	LISTEN(listeners, l);
}

bool worker_unfinished(const struct worker *w)
{
	const struct worker_listener *l;

	for (l = listeners; l; l = l->next)
		if (l->unfinished && l->unfinished(w->id))
			return true;
	return false;
}

void worker_notify_set(const struct worker *leaving)
{
	const struct worker_listener *l;

	for (l = listeners; l; l = l->next)
		if (l->set_changed)
			l->set_changed(leaving);
}

static void worker_notify_loop(const struct worker *w, uint64_t tsc)
{
	const struct worker_listener *l;

	for (l = listeners; l; l = l->next)
		if (l->each_loop)
			l->each_loop(w->id, tsc);
}

static int worker_notify_enter(const struct worker *w)
{
	const struct worker_listener *l;
	int ret = 0;

	for (l = listeners; l && ret == 0; l = l->next)
		if (l->enter)
			ret = l->enter(w->id);
	return ret;
}

static void worker_loop(struct worker *w)
{
	struct recorder *r = w->recorder;
	uint64_t now, walk;

	burst_init(&w->burst);
	r->trail.begin = rte_rdtsc();
	while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
		w->polled = 0;
		graph_walk(w->graph, &r->trail);
		walk = r->trail.end - r->trail.begin;
		// If others had the CPU meanwhile, the walk says nothing about its packets.
		if (unlikely(walk > w->burst.longest) && *r->armed != 0)
			burst_walked(&w->burst, r->trail.end, walk);
		handoff_done(w);
		rcu_quiescent(w->id);
		w->loops++;
		if (unlikely(__atomic_load_n(&w->orders, __ATOMIC_RELAXED) != 0))
			worker_handle_orders(w);
		if (unlikely(r->trail.begin >= w->share_until))
			buffer_share_update(w, r->trail.begin);
		worker_notify_loop(w, r->trail.begin);
		if (w->polled > 0) {
			if (w->idle_state.empty_since != 0)
				worker_idle_over(w);
			w->busy_loops++;
			w->packets += w->polled;
		} else {
			worker_idle(w);
		}
		now = rte_rdtsc();
		*(w->polled > 0 ? &w->busy_cycles : &w->idle_cycles) += now - r->trail.begin;
		recorder_loop(r, now, w->polled);
	}
}

// --- While ports are held, new workers wait at the gate. RCU does not wait for them, because they read nothing. ---

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool closed;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

void worker_gate_set(bool closed)
{
	pthread_mutex_lock(&gate.lock);
	gate.closed = closed;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}

void worker_gate_look(void)
{
	pthread_mutex_lock(&gate.lock);
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}

static void worker_gate_wait(const struct worker *w)
{
	pthread_mutex_lock(&gate.lock);
	while (gate.closed && !__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
		rcu_reader_rest(w->id);
		pthread_cond_wait(&gate.changed, &gate.lock);
		rcu_reader_resume(w->id);
	}
	pthread_mutex_unlock(&gate.lock);
}

struct start { // handed to a new thread, which answers in ret
	struct worker *w;
	int ret;
	bool done;
	pthread_mutex_t lock;
	pthread_cond_t cond;
};

static int worker_enter(struct worker *w)
{
	char name[16];
	int ret = thread_pin(pthread_self(), w->cpu);

	if (ret < 0)
		return ret;
	pthread_setname_np(pthread_self(), worker_thread_name(w, name));
	if (rte_thread_register() < 0)
		return -rte_errno;
	w->lcore = rte_lcore_id();
	w->tid = (int)syscall(SYS_gettid);
	w->system_calls = &system_calls;
	this_worker = w;
	graph_worker = (uint16_t)w->id;
	counters = w->counters;
	held_enter(w->id);
	idle_enter();
	recorder_enter(w->recorder);
	ret = worker_notify_enter(w); // may take rights from this thread: what needs them is done
	if (ret < 0)
		rte_thread_unregister();
	else
		rcu_reader_online(w->id);
	return ret;
}

static void *worker_main(void *arg)
{
	struct start *s = arg;
	struct worker *w = s->w;
	int ret = worker_enter(w);

	pthread_mutex_lock(&s->lock);
	s->ret = ret;
	s->done = true;
	pthread_cond_signal(&s->cond);
	pthread_mutex_unlock(&s->lock); // s is no longer valid after this
	if (ret < 0)
		return NULL;
	worker_gate_wait(w);
	worker_loop(w);
	worker_idle_over(w);
	rcu_reader_offline(w->id);
	rte_thread_unregister();
	return NULL;
}

int worker_start(struct worker *w)
{
	struct start s = {.w = w, .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
	int ret = pthread_create(&w->thread, NULL, worker_main, &s);

	if (ret != 0)
		return -ret;
	pthread_mutex_lock(&s.lock);
	while (!s.done)
		pthread_cond_wait(&s.cond, &s.lock);
	pthread_mutex_unlock(&s.lock);
	if (s.ret < 0)
		pthread_join(w->thread, NULL);
	return s.ret;
}
