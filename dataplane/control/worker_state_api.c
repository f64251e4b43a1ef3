// SPDX-License-Identifier: Apache-2.0
// Encodes a worker's state (api/worker.proto, WorkerState).
#include <rte_cycles.h>

#include "graph/counters.h"
#include "api/api.h"
#include "control/worker_message.h"
#include "worker/health.h"
#include "worker/orders.h"
#include "port/registry.h"
#include "worker/recorder.h"
#include "worker/wait.h"
#include "worker/worker.h"

uint64_t worker_api_ns(uint64_t cycles)
{
	return (uint64_t)((unsigned __int128)cycles * 1000000000 / rte_get_tsc_hz());
}

const char *worker_api_seen_by(const struct worker *w)
{
	return w->recorder->sees_kernel ? "rseq" : "switches";
}

static void worker_state_api_encode_queue(struct api_call *call, const struct port_queue *q,
					  Corelane__V1__WorkerQueue *out)
{
	uint32_t depth = __atomic_load_n(&q->depth, __ATOMIC_RELAXED);

	corelane__v1__worker_queue__init(out);
	out->port = api_strdup(call, q->port->cfg.name);
	out->queue = q->index;
	out->rx_packets = q->rx_packets;
	out->depth_unknown = depth == DEPTH_UNKNOWN;
	out->no_interrupts = !port_queue_wakes(q);
	out->depth = out->depth_unknown ? 0 : depth;
}

static bool first_of_its_port(const struct rx_list *l, unsigned i)
{
	unsigned k;

	for (k = 0; k < i && l->q[k]->port != l->q[i]->port; k++)
		;
	return k == i;
}

static uint64_t worker_state_api_missed(struct port *port)
{
	struct port_stats s = {0};

	if (port->ops->stats)
		port->ops->stats(port, &s);
	return s.rx_missed;
}

static void worker_state_api_encode_queues(struct api_call *call, const struct worker *w, Corelane__V1__WorkerState *s)
{
	const struct rx_list *l = w->rx;
	unsigned i;

	s->queues = api_alloc(call, (l->n + 1) * sizeof(*s->queues));
	for (i = 0; i < l->n; i++) {
		s->queues[i] = api_alloc(call, sizeof(**s->queues));
		worker_state_api_encode_queue(call, l->q[i], s->queues[i]);
		if (first_of_its_port(l, i))
			s->rx_missed += worker_state_api_missed(l->q[i]->port);
	}
	s->n_queues = l->n;
}

static void worker_state_api_encode_drops(struct api_call *call, const struct worker *w, Corelane__V1__WorkerState *s)
{
	uint64_t sums[DROP_MAX] = {0};
	Corelane__V1__WorkerDrop *d;
	unsigned port, reason;

	for (port = 0; port < PORT_MAX; port++)
		for (reason = 0; reason < DROP_MAX; reason++)
			sums[reason] += w->counters->drops[port][reason];
	s->drops = api_alloc(call, DROP_MAX * sizeof(*s->drops));
	for (reason = 0; reason < DROP_MAX; reason++) {
		if (sums[reason] == 0 || drop_reason_get((uint16_t)reason) == NULL)
			continue;
		d = api_alloc(call, sizeof(*d));
		corelane__v1__worker_drop__init(d);
		d->reason = api_strdup(call, drop_reason_get((uint16_t)reason)->name);
		d->packets = sums[reason];
		s->drops[s->n_drops++] = d;
		s->dropped_packets += sums[reason];
	}
}

static void worker_state_api_encode_health(struct api_call *call, const struct worker *w, Corelane__V1__WorkerState *s)
{
	const struct worker_health *h = w->health;

	s->numa = h->numa > 0 ? (uint32_t)h->numa : 0;
	s->affinity = api_strdup(call, h->affinity);
	s->last_cpu = h->last_cpu;
	s->involuntary_switches = h->involuntary;
	s->voluntary_switches = h->voluntary;
	s->waited_ns = h->waited_ns;
	s->behind_us = (uint32_t)RTE_MIN(worker_api_ns(health_behind(w)) / 1000, UINT32_MAX);
}

static void worker_state_api_encode_loops(struct api_call *call, const struct worker *w, Corelane__V1__WorkerState *s)
{
	struct histogram busy, empty;
	struct recorder *r = w->recorder;

	recorder_counts(r, &busy, &empty);
	s->busy_p99_ns = worker_api_ns(histogram_quantile(&busy, 990000));
	s->longest_loop_ns = worker_api_ns(recorder_max(r, &busy, &empty));
	s->taken_loops = r->taken - r->taken_base;
	s->moved_loops = r->moved - r->moved_base;
	s->taken_seen_by = api_strdup(call, worker_api_seen_by(w));
}

// Returns "PORT queue N" of the queue that a timer polls, or "".
static char *timer_queue(struct api_call *call, const struct worker *w)
{
	uint32_t q = __atomic_load_n(&w->wait->timer_queue, __ATOMIC_RELAXED);
	const struct port *port = port_get((uint16_t)(q >> 16));

	if (w->idle != IDLE_INTERRUPT || port == NULL)
		return api_strdup(call, "");
	return api_printf(call, "%s queue %u", port->cfg.name, q & 0xffff);
}

void worker_encode_state(struct api_call *call, const struct worker *w, Corelane__V1__WorkerState *s)
{
	char name[16];

	s->thread = api_strdup(call, worker_thread_name(w, name));
	s->tid = w->tid;
	s->loops = w->loops;
	s->busy_loops = w->busy_loops;
	s->empty_loops = s->loops > s->busy_loops ? s->loops - s->busy_loops : 0;
	s->busy_cycles = w->busy_cycles;
	s->idle_cycles = w->idle_cycles;
	s->packets = w->packets;
	s->tsc_hz = rte_get_tsc_hz();
	s->system_calls = __atomic_load_n(w->system_calls, __ATOMIC_RELAXED);
	s->debug_delay_us = (uint32_t)(worker_api_ns(w->delay) / 1000);
	s->waits = w->wait->waits;
	s->polled_by_time = timer_queue(call, w);
	worker_state_api_encode_queues(call, w, s);
	worker_state_api_encode_drops(call, w, s);
	worker_state_api_encode_health(call, w, s);
	worker_state_api_encode_loops(call, w, s);
}
