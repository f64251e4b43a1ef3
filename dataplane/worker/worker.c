// SPDX-License-Identifier: Apache-2.0
#include "worker/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include "base/cpu_list.h"
#include "base/doorbell.h"
#include "base/log.h"
#include "base/numa.h"
#include "base/rcu.h"
#include "base/system_calls.h"
#include "base/thread.h"
#include "graph/counters.h"
#include "graph/drop.h"
#include "graph/graph.h"
#include "graph/meta.h"
#include "worker/assign.h"
#include "worker/handoff.h"
#include "worker/health.h"
#include "worker/orders.h"
#include "worker/recorder.h"
#include "worker/spread.h"
#include "worker/wait.h"

#define INJECT_RING 1024
#define SETTLE_MS 20
#define LEAVE_MS 200
#define END_MS 10000 // at the end of the process

DROP_REASON(inject_full, "The control plane sent more packets at once (answers to ARP and ND, packets that had waited for a "
			 "neighbour) than a worker took.");

__thread struct worker *this_worker;
void (*worker_each_loop)(unsigned worker, uint64_t tsc);
bool (*worker_unfinished)(unsigned worker);

static struct worker *workers[WORKER_MAX];
void (*worker_set_hook)(const struct worker *leaving);

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

const char *worker_thread_name(const struct worker *w, char name[16])
{
	static const char *const prefixes[] = {
		[WORKER_FORWARDING] = "fwd", [WORKER_ISOLATED_RX] = "rx", [WORKER_HOST_PATH] = "host"};

	snprintf(name, 16, "pmd-%s-%u", prefixes[w->role], w->id);
	return name;
}

static void worker_loop(struct worker *w)
{
	struct recorder *r = w->recorder;
	uint64_t now;

	r->trail.begin = rte_rdtsc();
	while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
		w->polled = 0;
		graph_walk(w->graph, &r->trail);
		handoff_done(w);
		rcu_quiescent(w->id);
		w->loops++;
		if (unlikely(w->orders != 0))
			worker_obey(w);
		if (worker_each_loop)
			worker_each_loop(w->id, r->trail.begin);
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
	counters = w->counters;
	idle_enter();
	recorder_enter(w->recorder);
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
	worker_idle_over(w);
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
	rte_free(w->recorder);
	rte_free(w->wait);
	free(w->health);
	rte_free(w->rx);
	rte_free(w);
}

static int check_cpu(unsigned cpu, struct error *err)
{
	char text[32];
	unsigned i;

	snprintf(text, sizeof(text), "%u", cpu);
	if (cpu >= CPU_LIST_MAX) // whether it is there, the kernel says
		return error_set(err, EINVAL, "worker.cpu", text, "a CPU that is online", "does not exist");
	for (i = 0; i < WORKER_MAX; i++)
		if (workers[i] && workers[i]->cpu == cpu && workers[i]->idle == IDLE_SPIN)
			return error_set(err, EBUSY, "worker.cpu", text, "a CPU without a spinning worker, or another idle policy",
					 "is taken by worker %u, which never gives it up", i);
	return 0;
}

static int check_ring_size(uint32_t size, struct error *err)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", size);
	return handoff_size_ok(size) ? 0
				     : error_set(err, EINVAL, "worker.ring_size", text, "a power of two from 64 to 4194304",
						 "is no size of a ring");
}

static int worker_check(uint32_t id, const struct worker_config *cfg, struct error *err)
{
	char text[32];

	snprintf(text, sizeof(text), "%u", id);
	if (id >= WORKER_MAX || workers[id])
		return error_set(err, id < WORKER_MAX ? EEXIST : EINVAL, "worker.id", text, "a free id from 0 to 63",
				 "cannot be used");
	if (cfg->ring_size && check_ring_size(cfg->ring_size, err) < 0)
		return -EINVAL;
	return check_cpu(cfg->cpu, err);
}

static struct worker *worker_new(uint32_t id, const struct worker_config *cfg, struct error *err)
{
	int numa = numa_of_cpu("", cfg->cpu), memory = numa_memory(numa);
	struct worker *w = rte_zmalloc_socket("worker", sizeof(*w), RTE_CACHE_LINE_SIZE, memory);
	char name[RTE_RING_NAMESIZE];

	if (w == NULL) {
		error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a worker");
		return NULL;
	}
	w->id = id;
	w->cpu = cfg->cpu;
	w->idle = cfg->idle; // whoever will give it packets knows from the beginning
	w->role = (uint8_t)cfg->role;
	w->target = WORKER_MAX;
	w->ring_size = cfg->ring_size ? cfg->ring_size : HANDOFF_SIZE;
	w->numa = numa;
	w->memory = memory;
	w->idle_state.sleep_max_us = SLEEP_MAX_US;
	w->rx = rte_zmalloc("rx_list", sizeof(*w->rx), 0);
	w->recorder = rte_zmalloc_socket("recorder", sizeof(*w->recorder), RTE_CACHE_LINE_SIZE, memory);
	w->wait = rte_zmalloc_socket("wait", sizeof(*w->wait), RTE_CACHE_LINE_SIZE, memory);
	w->health = calloc(1, sizeof(*w->health));
	w->counters = counters_create(memory);
	snprintf(name, sizeof(name), "inject-%u", id);
	w->inject = rte_ring_create(name, INJECT_RING, memory, RING_F_SC_DEQ);
	snprintf(name, sizeof(name), "worker-%u", id);
	w->graph = graph_create(name, memory, err);
	if (w->recorder && w->graph)
		recorder_init(w->recorder, w->graph);
	if (w->rx && w->counters && w->inject && w->graph && w->recorder && w->health && w->wait && doorbell_open(id) == 0)
		return w;
	if (w->graph)
		error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for worker %u", id);
	worker_free(w);
	return NULL;
}

static int worker_begin(struct worker *w, struct error *err)
{
	char text[16];
	int ret;

	if (!worker_set_growing(w->id))
		return error_set(err, ETIMEDOUT, "worker", NULL, "the same when it goes on",
				 "cannot be added while another one stands still: %s", "they would share a transmit queue");
	ret = worker_start(w);
	snprintf(text, sizeof(text), "%u", w->cpu);
	if (ret < 0)
		return error_set(err, -ret, "worker.cpu", text, "a CPU that this process may use", "a worker cannot run there: %s",
				 strerror(-ret));
	return 0;
}

struct worker *worker_add(uint32_t id, const struct worker_config *cfg, struct error *err)
{
	struct worker *w;
	char name[16];

	if (id == WORKER_NONE)
		for (id = 0; id < WORKER_MAX && workers[id]; id++)
			;
	if (worker_check(id, cfg, err) < 0)
		return NULL;
	w = worker_new(id, cfg, err);
	if (w == NULL)
		return NULL;
	if ((w->role != WORKER_FORWARDING && worker_set_target(w, cfg->target, err) < 0) || worker_begin(w, err) < 0) {
		handoff_disconnect(w);
		worker_free(w);
		return NULL;
	}
	workers[id] = w;
	LOG(INFO, "worker %u (%s) runs on CPU %u (%s when idle)", id, worker_thread_name(w, name), cfg->cpu,
	    idle_policy_name(cfg->idle));
	worker_set_changed();
	if (worker_set_hook)
		worker_set_hook(NULL);
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
	w->numa = numa_of_cpu("", cpu); // its memory stays
	return 0;
}

int worker_set_idle(struct worker *w, enum idle_policy idle, struct error *err)
{
	int ret = idle == IDLE_INTERRUPT ? worker_may_wait(w, err) : 0;

	if (ret < 0)
		return ret;
	handoff_set_bell(w, idle == IDLE_INTERRUPT);
	w->wait->token = rcu_token(); // it waits when all who give it packets have seen that
	__atomic_store_n(&w->idle, idle, __ATOMIC_RELEASE);
	doorbell_ring(w->id);
	return 0;
}

int worker_check_tuning(uint32_t sleep_max_us, uint32_t loop_threshold_us, struct error *err)
{
	char text[16], valid[32];

	snprintf(text, sizeof(text), "%u", sleep_max_us);
	snprintf(valid, sizeof(valid), "1 to %d", SLEEP_MAX_US_LIMIT);
	if (sleep_max_us > SLEEP_MAX_US_LIMIT)
		return error_set(err, EINVAL, "worker.sleep_max_us", text, valid, "is too long to sleep");
	snprintf(text, sizeof(text), "%u", loop_threshold_us);
	snprintf(valid, sizeof(valid), "1 to %d", LONG_LOOP_US_MAX);
	if (loop_threshold_us > LONG_LOOP_US_MAX)
		return error_set(err, EINVAL, "worker.loop_threshold_us", text, valid, "is too long for a loop");
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

// False: it has not ended within this time.
static bool worker_stop(struct worker *w, unsigned ms)
{
	struct timespec until;

	__atomic_store_n(&w->stop, true, __ATOMIC_RELAXED);
	doorbell_ring(w->id);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	return pthread_timedjoin_np(w->thread, NULL, &until) == 0;
}

static void worker_end(struct worker *w)
{
	handoff_disconnect(w);
	worker_orphan_queues(w);
	workers[w->id] = NULL;
	worker_free(w);
}

static bool is_free(const void *w)
{
	return worker_is_free(w);
}

static bool is_emptied(const void *arg)
{
	const struct worker *w = arg;
	unsigned i;

	for (i = 0; i < WORKER_MAX; i++)
		if (w->out[i] && !handoff_passed(w->out[i], handoff_sent(w->out[i])))
			return false;
	return true;
}

// False: it does not end, and is tried again.
static bool worker_leave(struct worker *w, unsigned ms)
{
	unsigned id = w->id;

	if (!worker_stop(w, ms))
		return false;
	worker_settle(is_emptied, w, SETTLE_MS); // others take what it has given them
	worker_end(w);
	worker_set_changed();
	LOG(INFO, "worker %u has gone", id);
	return true;
}

int worker_del(uint32_t id, struct error *err)
{
	struct worker *w = worker_get(id);
	char text[16];

	snprintf(text, sizeof(text), "%u", id);
	if (w == NULL)
		return error_set(err, ENOENT, "worker.id", text, NULL, "there is no such worker");
	if (!worker_replaceable(w) && (w->rx->n > 0 || worker_count() > 1))
		return error_set(err, EBUSY, "worker.id", text, "another forwarding worker added first",
				 "is the last one that forwards and polls %u queues", w->rx->n);
	if (worker_may_leave(w, err) < 0)
		return -EBUSY;
	if (worker_set_hook)
		worker_set_hook(w);
	worker_handover(w);
	if (!worker_settle(is_free, w, LEAVE_MS) || !worker_leave(w, LEAVE_MS))
		return error_set(err, ETIMEDOUT, "worker.id", text, NULL,
				 "is leaving: it goes as soon as a worker that is late has let go of its packets");
	return 0;
}

int worker_set_role(struct worker *w, enum worker_role role, struct error *err)
{
	struct worker *to = worker_least_loaded(w);
	char name[16];
	int ret;

	if (role == w->role)
		return 0;
	if (to == NULL && w->role == WORKER_FORWARDING)
		return error_set(err, EBUSY, "worker.role", NULL, "another forwarding worker added first",
				 "worker %u is the last one that forwards", w->id);
	if (w->role == WORKER_HOST_PATH && worker_set_hook)
		worker_set_hook(w);
	w->role = (uint8_t)role;
	w->target = WORKER_MAX;
	pthread_setname_np(w->thread, worker_thread_name(w, name));
	LOG(INFO, "worker %u is %s now", w->id, name);
	if (role == WORKER_FORWARDING)
		return spread_refresh(err);
	worker_retarget(w);
	ret = worker_set_target(w, WORKER_NONE, err);
	if (ret == 0 && worker_set_hook)
		worker_set_hook(NULL);
	return ret;
}

int worker_set_target(struct worker *w, uint32_t target, struct error *err)
{
	struct worker *to = target == WORKER_NONE ? worker_least_loaded(w) : worker_get(target);
	char text[16];
	int ret;

	snprintf(text, sizeof(text), "%u", target);
	if (w->role == WORKER_FORWARDING)
		return error_set(err, EINVAL, "worker.target", text, "workers of other roles have one",
				 "is not for a forwarding worker");
	if (to == NULL || to->role != WORKER_FORWARDING || to->leaving)
		return error_set(err, ENOENT, "worker.target", target == WORKER_NONE ? "" : text, "the id of a forwarding worker",
				 "is none that could take packets");
	ret = handoff_connect(w, to, err);
	if (ret < 0)
		return ret;
	__atomic_store_n(&w->target, (uint8_t)to->id, __ATOMIC_RELAXED);
	return spread_refresh(err);
}

static bool rings_settled(const void *arg)
{
	return handoff_poll();
}

int worker_set_ring_size(struct worker *w, uint32_t size, struct error *err)
{
	uint32_t old = w->ring_size;
	int ret = check_ring_size(size, err);

	if (ret < 0)
		return ret;
	w->ring_size = size;
	ret = handoff_resize(w, err);
	if (ret < 0)
		w->ring_size = old;
	else
		worker_settle(rings_settled, NULL, SETTLE_MS);
	return ret;
}

void worker_poll(void)
{
	struct worker *w, *next;

	for (w = worker_next(NULL); w; w = next) {
		next = worker_next(w);
		if (w->leaving && (w->stop || worker_is_free(w)))
			worker_leave(w, 0);
	}
	worker_tidy();
	handoff_poll();
}

void worker_del_all(void)
{
	bool ended[WORKER_MAX] = {false};
	unsigned i;

	for (i = 0; i < WORKER_MAX; i++)
		ended[i] = workers[i] && worker_stop(workers[i], END_MS);
	for (i = 0; i < WORKER_MAX; i++) {
		if (ended[i])
			worker_end(workers[i]);
		else if (workers[i])
			LOG(ERR, "worker %u has not ended: it stands still", i);
	}
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

	while (w && (w->role != WORKER_FORWARDING || w->leaving))
		w = worker_next(w);
	meta(m)->arg = edge;
	meta(m)->nexthop = NULL; // one from an earlier walk may be gone
	if (w && rte_ring_mp_enqueue(w->inject, m) == 0) {
		doorbell_ring(w->id);
		return 0;
	}
	drop(m, inject_full);
	drop_packets(&m, 1);
	return -EAGAIN;
}
