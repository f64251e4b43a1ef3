// SPDX-License-Identifier: Apache-2.0
// API of the loop times that workers record, of their history, and of their share of each port's counters
// (api/worker.proto).
#include <errno.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>

#include "api/api.h"
#include "control/loop_times.h"
#include "control/worker_message.h"
#include "graph/counters.h"
#include "port/registry.h"
#include "worker/health.h"
#include "worker/orders.h"
#include "worker/recorder.h"
#include "worker/worker.h"

#define PbLoop Corelane__V1__LongLoop

static void worker_latency_api_encode_nodes(struct api_call *call, const struct worker *w, const struct long_loop *l,
					    PbLoop *out)
{
	unsigned i;

	out->nodes = api_alloc(call, LONG_LOOP_NODES * sizeof(*out->nodes));
	for (i = 0; i < l->n_nodes; i++) {
		out->nodes[i] = api_alloc(call, sizeof(**out->nodes));
		corelane__v1__loop_node__init(out->nodes[i]);
		out->nodes[i]->node = api_strdup(call, graph_step_name(w->graph, l->nodes[i].node));
		out->nodes[i]->runs = l->nodes[i].runs;
		out->nodes[i]->ns = worker_api_ns(l->nodes[i].cycles);
	}
	out->n_nodes = l->n_nodes;
}

static PbLoop *worker_latency_api_encode_loop(struct api_call *call, const struct worker *w, const struct long_loop *l)
{
	PbLoop *out = api_alloc(call, sizeof(*out));
	struct timespec now;

	corelane__v1__long_loop__init(out);
	clock_gettime(CLOCK_REALTIME, &now);
	out->time_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - worker_api_ns(rte_rdtsc() - l->end);
	out->ns = worker_api_ns(l->cycles);
	out->packets = l->packets;
	out->receive_ns = worker_api_ns(l->stages[STAGE_RECEIVE]);
	out->graph_ns = worker_api_ns(l->stages[STAGE_GRAPH]);
	out->messages_ns = worker_api_ns(l->stages[STAGE_MESSAGES]);
	out->idle_ns = worker_api_ns(l->stages[STAGE_IDLE]);
	out->delay_ns = worker_api_ns(l->stages[STAGE_DELAY]);
	out->taken = l->taken;
	out->moved = l->moved;
	out->cpu = l->cpu;
	worker_latency_api_encode_nodes(call, w, l, out);
	return out;
}

static void worker_latency_api_encode_longest(struct api_call *call, const struct worker *w,
					      Corelane__V1__WorkerLatency *out)
{
	struct long_loop loops[LONGEST_LOOPS];
	unsigned i, n = recorder_longest(w->recorder, loops);

	out->longest = api_alloc(call, LONGEST_LOOPS * sizeof(*out->longest));
	for (i = 0; i < n; i++)
		out->longest[i] = worker_latency_api_encode_loop(call, w, &loops[i]);
	out->n_longest = n;
}

static void worker_latency_api_encode(struct api_call *call, const struct worker *w, Corelane__V1__WorkerLatency *out)
{
	static struct histogram busy, empty; // static: too large for some stacks. Master only
	static const struct histogram none;
	const struct recorder *r = w->recorder;

	recorder_counts(r, &busy, &empty);
	out->worker = w->id;
	out->cpu = w->cpu;
	out->since_seconds = (double)worker_api_ns(rte_rdtsc() - r->since) / 1e9;
	out->threshold_us = recorder_threshold(r);
	out->busy = loop_times_encode(call, &busy, recorder_max(r, &busy, &none), worker_api_ns);
	out->empty = loop_times_encode(call, &empty, recorder_max(r, &none, &empty), worker_api_ns);
	out->taken_loops = r->taken - r->taken_base;
	out->taken_seen_by = api_strdup(call, worker_api_seen_by(w));
	worker_latency_api_encode_longest(call, w, out);
}

static int worker_api_latency(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__WorkerLatencyRequest *in = req;
	uint32_t *next = cursor;
	struct worker *w;

	if (in->one_worker && worker_api_find(in->id, err) == NULL)
		return -(err->code ? err->code : ENOENT);
	while (*next < WORKER_MAX) {
		w = worker_get((*next)++);
		if (w == NULL || (in->one_worker && w->id != in->id))
			continue;
		worker_latency_api_encode(call, w, item);
		return 1;
	}
	return 0;
}

static int worker_api_history(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	static struct history_sample samples[2 * HISTORY_SAMPLES]; // static: large. Master only
	Corelane__V1__WorkerHistory *out = item;
	uint32_t *next = cursor;
	struct worker *w = NULL;
	uint64_t now = rte_rdtsc();
	size_t i;

	while (w == NULL && *next < WORKER_MAX)
		w = worker_get((*next)++);
	if (w == NULL)
		return 0;
	out->worker = w->id;
	out->n_samples = history_read(&w->health->history, samples);
	out->samples = api_alloc(call, (out->n_samples + 1) * sizeof(*out->samples));
	for (i = 0; i < out->n_samples; i++) {
		out->samples[i] = api_alloc(call, sizeof(**out->samples));
		corelane__v1__worker_sample__init(out->samples[i]);
		out->samples[i]->age_ns = worker_api_ns(now - samples[i].tsc);
		out->samples[i]->packets = samples[i].packets;
		out->samples[i]->loops = samples[i].loops;
		out->samples[i]->busy_loops = samples[i].busy_loops;
		out->samples[i]->busy_cycles = samples[i].busy_cycles;
		out->samples[i]->idle_cycles = samples[i].idle_cycles;
		out->samples[i]->waited_ns = samples[i].waited_ns;
	}
	return 1;
}

static int worker_latency_api_reset(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__WorkerLatencyRequest *in = req;
	struct worker *w;

	if (in->one_worker && worker_api_find(in->id, err) == NULL)
		return -ENOENT;
	for (w = worker_next(NULL); w; w = worker_next(w))
		if (!in->one_worker || w->id == in->id)
			recorder_reset(w->recorder);
	return 0;
}

static void worker_latency_api_encode_port(struct api_call *call, const struct port *p, const struct worker *w,
					   Corelane__V1__WorkerPort *out)
{
	const struct port_counters *c = &w->counters->port[p->id];
	unsigned reason;

	out->worker = w->id;
	out->cpu = w->cpu;
	out->port = api_strdup(call, p->cfg.name);
	out->rx_packets = c->rx_packets;
	out->rx_bytes = c->rx_bytes;
	out->tx_packets = c->tx_packets;
	out->tx_bytes = c->tx_bytes;
	for (reason = 0; reason < DROP_MAX; reason++)
		out->dropped += w->counters->drops[p->id][reason];
}

static int worker_latency_api_ports(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__WorkerPortsRequest *in = req;
	uint32_t *next = cursor, at;
	struct worker *w;
	struct port *p;

	if (*in->port && port_find(in->port) == NULL)
		return error_set(err, ENOENT, "port", in->port, "the name of a port that exists",
				 "there is no such port");
	while (*next < PORT_MAX * WORKER_MAX) {
		at = (*next)++;
		p = port_get((uint16_t)(at / WORKER_MAX));
		w = worker_get(at % WORKER_MAX);
		if (p && w && (*in->port == '\0' || strcmp(in->port, p->cfg.name) == 0)) {
			worker_latency_api_encode_port(call, p, w, item);
			return 1;
		}
	}
	return 0;
}

static const struct api_method methods[] = {
	{"corelane.v1.Workers", "Latency", &corelane__v1__worker_latency_request__descriptor,
	 &corelane__v1__worker_latency__descriptor, .next = worker_api_latency, .cursor_size = sizeof(uint32_t)},
	{"corelane.v1.Workers", "ResetLatency", &corelane__v1__worker_latency_request__descriptor,
	 &corelane__v1__empty__descriptor, .unary = worker_latency_api_reset},
	{"corelane.v1.Workers", "History", &corelane__v1__worker_history_request__descriptor,
	 &corelane__v1__worker_history__descriptor, .next = worker_api_history, .cursor_size = sizeof(uint32_t)},
	{"corelane.v1.Workers", "Ports", &corelane__v1__worker_ports_request__descriptor,
	 &corelane__v1__worker_port__descriptor, .next = worker_latency_api_ports, .cursor_size = sizeof(uint32_t)},
};
API_METHODS(methods)
