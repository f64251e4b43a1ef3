// SPDX-License-Identifier: Apache-2.0
// API of workers (api/worker.proto).
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/fields.h"
#include "control/worker_message.h"
#include "port/registry.h"
#include "worker/handoff.h"
#include "worker/load.h"
#include "worker/recorder.h"
#include "worker/worker.h"

#define PbWorker Corelane__V1__Worker

void worker_encode(struct api_call *call, const struct worker *w, PbWorker *out)
{
	out->id = w->id;
	out->cpu = w->cpu;
	out->idle = (Corelane__V1__IdlePolicy)w->idle;
	out->role = (Corelane__V1__WorkerRole)w->role;
	out->target = w->target < WORKER_MAX ? api_printf(call, "%u", w->target) : api_strdup(call, "");
	out->ring_size = w->ring_size;
	out->sleep_max_us = w->idle_state.sleep_max_us;
	out->loop_threshold_us = recorder_threshold(w->recorder);
	out->state = api_alloc(call, sizeof(*out->state));
	corelane__v1__worker_state__init(out->state);
	worker_encode_state(call, w, out->state);
}

static int worker_api_decode_target(const char *text, uint32_t *out, struct error *err)
{
	char *end;
	unsigned long id = strtoul(text, &end, 10);

	*out = *text ? (uint32_t)id : WORKER_NONE;
	if (*text == '\0' || (*text >= '0' && *text <= '9' && *end == '\0' && id < WORKER_MAX))
		return 0;
	return error_set(err, EINVAL, "worker.target", text, "the id of a forwarding worker", "is not an id");
}

static int worker_api_set_target(struct worker *w, const char *text, struct error *err)
{
	uint32_t target;
	int ret = worker_api_decode_target(text, &target, err);

	return ret < 0 ? ret : worker_set_target(w, target, err);
}

static int worker_api_add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__WorkerAddRequest *in = req;
	struct worker_config cfg;
	struct worker *w;

	cfg = (struct worker_config){
		.cpu = in->worker->cpu,
		.idle = (enum idle_policy)in->worker->idle,
		.role = (enum worker_role)in->worker->role,
		.ring_size = in->worker->ring_size,
	};
	if (worker_api_decode_target(in->worker->target, &cfg.target, err) < 0)
		return -EINVAL;
	w = worker_add(in->auto_id ? WORKER_NONE : in->worker->id, &cfg, err);
	if (w == NULL)
		return -(err->code ? err->code : EINVAL);
	worker_set_sleep_max(w, in->worker->sleep_max_us);
	worker_set_loop_threshold(w, in->worker->loop_threshold_us);
	worker_encode(call, w, resp);
	return 0;
}

struct worker *worker_api_find(uint32_t id, struct error *err)
{
	struct worker *w = worker_get(id);
	char text[16];

	snprintf(text, sizeof(text), "%u", id);
	if (w == NULL)
		error_set(err, ENOENT, "worker.id", text, "the id of a worker that exists", "there is no such worker");
	return w;
}

static int worker_api_set_cpu(struct worker *w, const PbWorker *in, struct error *err)
{
	return worker_move(w, in->cpu, err);
}

static int worker_api_set_role(struct worker *w, const PbWorker *in, struct error *err)
{
	return worker_set_role(w, (enum worker_role)in->role, err);
}

static int worker_api_set_target_of(struct worker *w, const PbWorker *in, struct error *err)
{
	return worker_api_set_target(w, in->target, err);
}

static int worker_api_set_ring_size(struct worker *w, const PbWorker *in, struct error *err)
{
	return worker_set_ring_size(w, in->ring_size, err);
}

static int worker_api_set_idle(struct worker *w, const PbWorker *in, struct error *err)
{
	return worker_set_idle(w, (enum idle_policy)in->idle, err);
}

static int worker_api_set_sleep_max(struct worker *w, const PbWorker *in, struct error *err)
{
	worker_set_sleep_max(w, in->sleep_max_us);
	return 0;
}

static int worker_api_set_loop_threshold(struct worker *w, const PbWorker *in, struct error *err)
{
	worker_set_loop_threshold(w, in->loop_threshold_us);
	return 0;
}

static const struct {
	const char *name;
	int (*set)(struct worker *w, const PbWorker *in, struct error *err);
} worker_fields[] = {
	{"cpu", worker_api_set_cpu},
	{"role", worker_api_set_role},
	{"target", worker_api_set_target_of},
	{"ring_size", worker_api_set_ring_size},
	{"idle", worker_api_set_idle},
	{"sleep_max_us", worker_api_set_sleep_max},
	{"loop_threshold_us", worker_api_set_loop_threshold},
};
API_FIELDS(worker, worker_fields)

static int worker_api_set(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__WorkerSetRequest *in = req;
	struct worker *w = worker_api_find(in->worker->id, err);
	int ret = w ? 0 : -err->code;
	size_t i;

	for (i = 0; i < in->n_fields && ret == 0; i++)
		ret = API_FIELD_FIND(worker_fields, in->fields[i])->set(w, in->worker, err);
	if (ret == 0)
		worker_encode(call, w, resp);
	return ret;
}

static int worker_api_del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	return worker_del(((const Corelane__V1__WorkerDelRequest *)req)->id, err);
}

static int worker_api_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	uint32_t *next = cursor;

	while (*next < WORKER_MAX) {
		struct worker *w = worker_get((*next)++);

		if (w) {
			worker_encode(call, w, item);
			return 1;
		}
	}
	return 0;
}

static const struct handoff *ring_at(uint32_t at)
{
	struct worker *from = worker_get(at / WORKER_MAX);

	return from ? from->out[at % WORKER_MAX] : NULL;
}

static void worker_api_encode_ring(struct api_call *call, const struct handoff *h, Corelane__V1__WorkerRing *out)
{
	out->from = h->from;
	out->to = h->to;
	out->size = h->size;
	out->used = rte_ring_count(h->ring);
	out->high = h->high;
	out->packets = handoff_sent(h);
	out->refused = h->refused;
	out->tsc_hz = rte_get_tsc_hz();
	out->n_waited = HANDOFF_BUCKETS;
	out->waited = api_alloc(call, sizeof(h->waited));
	memcpy(out->waited, h->waited, sizeof(h->waited));
}

static int worker_api_rings(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	uint32_t *next = cursor;

	while (*next < WORKER_MAX * WORKER_MAX) {
		const struct handoff *h = ring_at((*next)++);

		if (h) {
			worker_api_encode_ring(call, h, item);
			return 1;
		}
	}
	return 0;
}

static void worker_api_encode_move(struct api_call *call, const struct load_move *m, Corelane__V1__RebalanceMove *out)
{
	corelane__v1__rebalance_move__init(out);
	out->port = api_strdup(call, port_get(m->port)->cfg.name);
	out->queue = m->queue ? m->queue->index : 0;
	out->entries = m->entries;
	out->from = m->from;
	out->to = m->to;
	out->packets = m->packets;
}

static int worker_api_rebalance(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__RebalanceRequest *in = req;
	Corelane__V1__RebalancePlan *out = resp;
	struct load_plan plan;
	unsigned i;
	int ret = load_rebalance(in->cross_numa, in->apply, &plan, err);

	out->most_before = plan.before;
	out->most_after = plan.after;
	out->mean = plan.mean;
	out->applied = in->apply && plan.n > 0;
	out->moves = api_alloc(call, (plan.n + 1) * sizeof(*out->moves));
	out->n_moves = plan.n;
	for (i = 0; i < plan.n; i++) {
		out->moves[i] = api_alloc(call, sizeof(**out->moves));
		worker_api_encode_move(call, &plan.moves[i], out->moves[i]);
	}
	free(plan.moves);
	return ret;
}

static const struct api_method methods[] = {
	{"corelane.v1.Workers", "Add", &corelane__v1__worker_add_request__descriptor, &corelane__v1__worker__descriptor,
	 .unary = worker_api_add},
	{"corelane.v1.Workers", "Set", &corelane__v1__worker_set_request__descriptor, &corelane__v1__worker__descriptor,
	 .unary = worker_api_set},
	{"corelane.v1.Workers", "Del", &corelane__v1__worker_del_request__descriptor, &corelane__v1__empty__descriptor,
	 .unary = worker_api_del},
	{"corelane.v1.Workers", "List", &corelane__v1__worker_list_request__descriptor,
	 &corelane__v1__worker__descriptor, .next = worker_api_list, .cursor_size = sizeof(uint32_t)},
	{"corelane.v1.Workers", "Rebalance", &corelane__v1__rebalance_request__descriptor,
	 &corelane__v1__rebalance_plan__descriptor, .unary = worker_api_rebalance},
	{"corelane.v1.Workers", "Rings", &corelane__v1__worker_ring_list_request__descriptor,
	 &corelane__v1__worker_ring__descriptor, .next = worker_api_rings, .cursor_size = sizeof(uint32_t)},
};
API_METHODS(methods)
