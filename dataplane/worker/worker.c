// SPDX-License-Identifier: Apache-2.0
#include "worker/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_malloc.h>

#include "base/cpu_list.h"
#include "base/doorbell.h"
#include "base/id_table.h"
#include "base/log.h"
#include "worker/numa.h"
#include "graph/counters.h"
#include "graph/drop.h"
#include "graph/graph.h"
#include "graph/held.h"
#include "graph/meta.h"
#include "worker/assign.h"
#include "worker/handoff.h"
#include "worker/health.h"
#include "worker/recorder.h"
#include "worker/wait.h"
#include "worker/worker_private.h"

#define INJECT_RING 1024
#define LEAVE_MS 200
#define END_MS 10000 // when the process ends

DROP_REASON(inject_full,
	    "The control plane sent more packets at once (answers to ARP and ND, packets that had waited for a "
	    "neighbour) than a worker accepted.");

static struct worker *workers[WORKER_MAX];
bool worker_ended[WORKER_MAX];

static void worker_free(struct worker *w)
{
	struct rte_mbuf *m;

	if (w->inject) {
		while (rte_ring_sc_dequeue(w->inject, (void **)&m) == 0) {
			held_end(m);
			worker_inject(m, meta(m)->arg); // goes to another worker
		}
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

static int worker_check(uint32_t id, const struct worker_config *cfg, struct error *err)
{
	char text[32];

	snprintf(text, sizeof(text), "%u", id);
	if (id >= WORKER_MAX || workers[id])
		return error_set(err, id < WORKER_MAX ? EEXIST : EINVAL, "worker.id", text,
				 "a free id from " LIMIT_WORKER_ID_VALID,
				 id < WORKER_MAX ? "is taken" : "is too large");
	if (cfg->ring_size && check_limits("worker.ring_size", cfg->ring_size, &handoff_sizes, err) < 0)
		return -ERANGE;
	return worker_check_cpu(cfg->cpu, cfg->idle, err);
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
	w->idle = cfg->idle; // before producers exist: they read it
	w->role = (uint8_t)cfg->role;
	w->target = WORKER_MAX;
	w->share = BUFFERS_ENOUGH;
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
	if (w->rx && w->counters && w->inject && w->graph && w->recorder && w->health && w->wait &&
	    doorbell_open(id) == 0)
		return w;
	if (w->graph)
		error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for worker %u", id);
	worker_free(w);
	return NULL;
}

static int worker_begin(struct worker *w, struct error *err)
{
	char text[16], valid[CPU_LIST_TEXT + 16], cpus[CPU_LIST_TEXT];
	struct cpu_list allowed;
	int ret;

	if (!worker_set_growing(w->id))
		return error_set(err, ETIMEDOUT, "worker", NULL, "the same request when that worker runs again",
				 "cannot be added while another worker is stalled: they would share a "
				 "transmit queue");
	ret = worker_start(w);
	if (ret == 0)
		return 0;
	snprintf(text, sizeof(text), "%u", w->cpu);
	cpu_list_get_allowed(&allowed);
	snprintf(valid, sizeof(valid), "one of CPUs %s", cpu_list_format(&allowed, cpus, sizeof(cpus)));
	return error_set(err, -ret, "worker.cpu", text, valid, "a worker cannot run there: %s", strerror(-ret));
}

struct worker *worker_add(uint32_t id, const struct worker_config *cfg, struct error *err)
{
	struct worker *w;
	char name[16];

	if (id == WORKER_NONE)
		id = id_table_free(workers, WORKER_MAX, 0);
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
	worker_notify_set(NULL);
	return w;
}

static void worker_ask_to_stop(struct worker *w)
{
	__atomic_store_n(&w->stop, true, __ATOMIC_RELAXED);
	doorbell_ring(w->id);
	worker_gate_look();
}

static struct timespec worker_deadline(unsigned ms)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	return until;
}

// False: it has not ended within this time.
static bool worker_stop(struct worker *w, unsigned ms)
{
	struct timespec until = worker_deadline(ms);

	worker_ask_to_stop(w);
	return pthread_timedjoin_np(w->thread, NULL, &until) == 0;
}

static void worker_end(struct worker *w)
{
	handoff_disconnect(w);
	worker_orphan_queues(w);
	workers[w->id] = NULL;
	worker_ended[w->id] = false;
	worker_free(w);
}

// Others have finished the packets that it gave them.
static bool worker_is_emptied(const struct worker *w)
{
	unsigned i;

	for (i = 0; i < WORKER_MAX; i++)
		if (w->out[i] && !handoff_passed(w->out[i], handoff_sent(w->out[i])))
			return false;
	return true;
}

// It has no packets and gets none, so it gives no more to others: only then it may stop. Its rings are looked at twice,
// because worker_is_free() takes long while another worker is late, and what a worker does last is to give packets.
static bool worker_may_stop(const void *arg)
{
	const struct worker *w = arg;

	return worker_is_emptied(w) && rte_ring_empty(w->inject) && worker_is_free(w) && worker_is_emptied(w);
}

// False: it has not ended yet; worker_poll() tries again.
static bool worker_leave(struct worker *w, unsigned ms)
{
	unsigned id = w->id;

	if (!worker_stop(w, ms))
		return false;
	worker_end(w);
	worker_set_changed();
	LOG(INFO, "worker %u was removed", id);
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
		return error_set(err, EBUSY, "worker.id", text, "the same request with another forwarding worker",
				 "is the last forwarding worker, and polls %u queues", w->rx->n);
	if (worker_may_leave(w, err) < 0)
		return -EBUSY;
	worker_notify_set(w);
	worker_handover(w);
	if (!worker_settle(worker_may_stop, w, LEAVE_MS) || !worker_leave(w, LEAVE_MS * worker_patience))
		return error_set(err, ETIMEDOUT, "worker.id", text, NULL,
				 "is being removed: it ends as soon as a late worker has finished its packets");
	return 0;
}

void worker_poll(void)
{
	struct worker *w, *next;

	for (w = worker_next(NULL); w; w = next) {
		next = worker_next(w);
		if (w->leaving && (w->stop || worker_may_stop(w)))
			worker_leave(w, 0);
	}
	worker_tidy();
	handoff_poll();
}

bool worker_end_all(unsigned ms)
{
	struct timespec until = worker_deadline(ms);
	struct worker *w, *next;
	bool all = true;

	for (w = worker_next(NULL); w; w = worker_next(w))
		worker_ask_to_stop(w);
	for (w = worker_next(NULL); w; w = worker_next(w)) {
		worker_ended[w->id] = worker_ended[w->id] || pthread_timedjoin_np(w->thread, NULL, &until) == 0;
		if (!worker_ended[w->id])
			LOG(ERR, "worker %u has not ended: its loop is stalled", w->id);
		all &= worker_ended[w->id];
	}
	for (w = worker_next(NULL); w && all; w = next) {
		next = worker_next(w);
		worker_end(w);
	}
	return all;
}

bool worker_del_all(void)
{
	return worker_end_all(END_MS);
}

struct worker *worker_get(uint32_t id)
{
	return id < WORKER_MAX ? workers[id] : NULL;
}

unsigned worker_count(void)
{
	return id_table_count(workers, WORKER_MAX);
}

struct worker *worker_next(struct worker *w)
{
	return id_table_next(workers, WORKER_MAX, w ? w->id + 1 : 0);
}

int worker_inject(struct rte_mbuf *m, enum inject edge)
{
	struct worker *w = worker_next(NULL);

	while (w && (w->role != WORKER_FORWARDING || w->leaving))
		w = worker_next(w);
	meta(m)->arg = edge;
	meta(m)->nexthop = NULL; // one from an earlier walk may be stale
	held_begin(m);
	if (w && rte_ring_mp_enqueue(w->inject, m) == 0) {
		doorbell_ring(w->id);
		return 0;
	}
	held_end(m);
	drop(m, inject_full);
	drop_packets(&m, 1);
	return -EAGAIN;
}
