// SPDX-License-Identifier: Apache-2.0
#include "worker/worker.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_pause.h>

#include "base/log.h"
#include "base/rcu.h"
#include "base/thread.h"
#include "graph/counters.h"
#include "graph/drop.h"
#include "graph/graph.h"
#include "graph/meta.h"
#include "worker/assign.h"

#define INJECT_RING 1024
#define SLEEP_AFTER 256 // empty polls
#define SLEEP_NS 50000

DROP_REASON(inject_full, "The control plane sent more packets at once (answers to ARP and ND, packets that had waited for a "
			 "neighbour) than a worker took.");

__thread struct worker *this_worker;

static struct worker *workers[WORKER_MAX];

static const char *const idle_names[] = {
	[IDLE_SPIN] = "spin", [IDLE_PAUSE] = "pause", [IDLE_YIELD] = "yield", [IDLE_SLEEP] = "sleep"};

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

static void worker_idle(struct worker *w, unsigned empty)
{
	static const struct timespec nap = {.tv_nsec = SLEEP_NS};

	switch (w->idle) {
	case IDLE_SPIN:
		break;
	case IDLE_PAUSE:
		rte_pause();
		break;
	case IDLE_YIELD:
		sched_yield();
		break;
	case IDLE_SLEEP:
		if (empty > SLEEP_AFTER)
			nanosleep(&nap, NULL);
		break;
	}
}

static void worker_loop(struct worker *w)
{
	uint64_t start = rte_rdtsc(), now;
	unsigned empty = 0;

	while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
		w->polled = 0;
		graph_walk(w->graph);
		rcu_quiescent(w->id);
		w->loops++;
		if (w->polled > 0) {
			empty = 0;
			w->busy_loops++;
			w->packets += w->polled;
		} else {
			empty++;
			worker_idle(w, empty);
		}
		now = rte_rdtsc();
		*(w->polled > 0 ? &w->busy_cycles : &w->idle_cycles) += now - start;
		start = now;
	}
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
	snprintf(name, sizeof(name), "pmd-fwd-%u", w->id);
	pthread_setname_np(pthread_self(), name);
	if (rte_thread_register() < 0)
		return -rte_errno;
	w->lcore = rte_lcore_id();
	w->tid = (int)syscall(SYS_gettid);
	this_worker = w;
	counters = w->counters;
	rcu_reader_online(w->id);
	return 0;
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
	pthread_mutex_unlock(&s->lock); // s is gone from here on
	if (ret < 0)
		return NULL;
	worker_loop(w);
	rcu_reader_offline(w->id);
	rte_thread_unregister();
	return NULL;
}

// Returns once the thread runs on its CPU, or says why it cannot.
static int worker_start(struct worker *w)
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

static void worker_free(struct worker *w)
{
	struct rte_mbuf *m;

	if (w->inject) {
		while (rte_ring_sc_dequeue(w->inject, (void **)&m) == 0)
			worker_inject(m, meta(m)->arg); // another worker's now
		rte_ring_free(w->inject);
	}
	if (w->counters)
		counters_release(w->counters);
	graph_destroy(w->graph);
	rte_free(w->rx);
	rte_free(w);
}

static int check_cpu(unsigned cpu, struct error *err)
{
	char text[32], valid[64];
	unsigned i;

	snprintf(text, sizeof(text), "%u", cpu);
	snprintf(valid, sizeof(valid), "a CPU that is online, 0 to %ld", sysconf(_SC_NPROCESSORS_CONF) - 1);
	if ((long)cpu >= sysconf(_SC_NPROCESSORS_CONF))
		return error_set(err, EINVAL, "worker.cpu", text, valid, "does not exist");
	for (i = 0; i < WORKER_MAX; i++)
		if (workers[i] && workers[i]->cpu == cpu && workers[i]->idle == IDLE_SPIN)
			return error_set(err, EBUSY, "worker.cpu", text, "a CPU without a spinning worker, or another idle policy",
					 "is taken by worker %u, which never gives it up", i);
	return 0;
}

static int worker_check(uint32_t id, unsigned cpu, struct error *err)
{
	char text[32];

	snprintf(text, sizeof(text), "%u", id);
	if (id >= WORKER_MAX || workers[id])
		return error_set(err, id < WORKER_MAX ? EEXIST : EINVAL, "worker.id", text, "a free id from 0 to 63",
				 "cannot be used");
	return check_cpu(cpu, err);
}

static struct worker *worker_new(uint32_t id, unsigned cpu, enum idle_policy idle, struct error *err)
{
	int numa = SOCKET_ID_ANY; // memory goes where the worker runs; one node here and there has no memory at all
	struct worker *w = rte_zmalloc_socket("worker", sizeof(*w), RTE_CACHE_LINE_SIZE, numa);
	char name[RTE_RING_NAMESIZE];

	if (w == NULL) {
		error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a worker");
		return NULL;
	}
	w->id = id;
	w->cpu = cpu;
	w->idle = idle;
	w->numa = numa;
	w->rx = rte_zmalloc("rx_list", sizeof(*w->rx), 0);
	w->counters = counters_create(numa);
	snprintf(name, sizeof(name), "inject-%u", id);
	w->inject = rte_ring_create(name, INJECT_RING, numa, RING_F_SC_DEQ);
	snprintf(name, sizeof(name), "worker-%u", id);
	w->graph = graph_create(name, numa, err);
	if (w->rx && w->counters && w->inject && w->graph)
		return w;
	if (w->graph)
		error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for worker %u", id);
	worker_free(w);
	return NULL;
}

struct worker *worker_add(uint32_t id, unsigned cpu, enum idle_policy idle, struct error *err)
{
	struct worker *w;
	char text[16];
	int ret;

	if (id == WORKER_NONE)
		for (id = 0; id < WORKER_MAX && workers[id]; id++)
			;
	if (worker_check(id, cpu, err) < 0)
		return NULL;
	w = worker_new(id, cpu, idle, err);
	if (w == NULL)
		return NULL;
	worker_set_growing(id);
	ret = worker_start(w);
	if (ret < 0) {
		snprintf(text, sizeof(text), "%u", cpu);
		error_set(err, -ret, "worker.cpu", text, "a CPU that this process may use", "a worker cannot run there: %s",
			  strerror(-ret));
		worker_free(w);
		return NULL;
	}
	workers[id] = w;
	LOG(INFO, "worker %u runs on CPU %u (%s when idle)", id, cpu, idle_policy_name(idle));
	worker_set_changed();
	return w;
}

int worker_move(struct worker *w, unsigned cpu, struct error *err)
{
	char text[16];
	int ret;

	if (cpu == w->cpu)
		return 0;
	ret = check_cpu(cpu, err);
	if (ret < 0)
		return ret;
	snprintf(text, sizeof(text), "%u", cpu);
	ret = thread_pin(w->thread, cpu); // refuses what is not online or not allowed
	if (ret < 0)
		return error_set(err, -ret, "worker.cpu", text, "a CPU that is online and that this process may use",
				 "worker %u cannot move there: %s", w->id, strerror(-ret));
	LOG(INFO, "worker %u moved from CPU %u to CPU %u", w->id, w->cpu, cpu);
	w->cpu = cpu;
	return 0;
}

void worker_set_idle(struct worker *w, enum idle_policy idle)
{
	__atomic_store_n(&w->idle, idle, __ATOMIC_RELAXED);
}

static void worker_stop(struct worker *w)
{
	__atomic_store_n(&w->stop, true, __ATOMIC_RELAXED);
	pthread_join(w->thread, NULL);
	workers[w->id] = NULL;
	worker_free(w);
}

int worker_del(uint32_t id, struct error *err)
{
	struct worker *w = worker_get(id);
	char text[16];

	snprintf(text, sizeof(text), "%u", id);
	if (w == NULL)
		return error_set(err, ENOENT, "worker.id", text, NULL, "there is no such worker");
	if (worker_count() == 1 && w->rx->n > 0)
		return error_set(err, EBUSY, "worker.id", text, "another worker added first", "is the last one and polls %u queues",
				 w->rx->n);
	worker_handover(w);
	worker_stop(w);
	worker_set_changed();
	LOG(INFO, "worker %u has gone", id);
	return 0;
}

void worker_del_all(void)
{
	unsigned i;

	for (i = 0; i < WORKER_MAX; i++)
		if (workers[i])
			worker_stop(workers[i]);
}

struct worker *worker_get(uint32_t id)
{
	return id < WORKER_MAX ? workers[id] : NULL;
}

unsigned worker_count(void)
{
	unsigned i, n = 0;

	for (i = 0; i < WORKER_MAX; i++)
		n += workers[i] != NULL;
	return n;
}

struct worker *worker_next(struct worker *w)
{
	unsigned i = w ? w->id + 1 : 0;

	while (i < WORKER_MAX && workers[i] == NULL)
		i++;
	return i < WORKER_MAX ? workers[i] : NULL;
}

int worker_inject(struct rte_mbuf *m, enum inject edge)
{
	struct worker *w = worker_next(NULL);

	meta(m)->arg = edge;
	meta(m)->nexthop = NULL; // one from an earlier walk may be gone
	if (w && rte_ring_mp_enqueue(w->inject, m) == 0)
		return 0;
	drop(m, inject_full);
	drop_packets(&m, 1);
	return -EAGAIN;
}
