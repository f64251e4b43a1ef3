// SPDX-License-Identifier: Apache-2.0
// API of workers (api/worker.proto).
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>

#include "main/api.h"
#include "worker.pb-c.h"
#include "worker/worker.h"

#define PbWorker Corelane__V1__Worker

static void put_queues(struct api_call *call, const struct worker *w, Corelane__V1__WorkerState *s)
{
	unsigned i;

	s->n_queues = w->rx->n;
	s->queues = api_alloc(call, (w->rx->n + 1) * sizeof(*s->queues));
	for (i = 0; i < w->rx->n; i++) {
		s->queues[i] = api_alloc(call, sizeof(**s->queues));
		corelane__v1__worker_queue__init(s->queues[i]);
		s->queues[i]->port = api_strdup(call, w->rx->q[i]->port->cfg.name);
		s->queues[i]->queue = w->rx->q[i]->index;
	}
}

static void put_worker(struct api_call *call, const struct worker *w, PbWorker *out)
{
	Corelane__V1__WorkerState *s = api_alloc(call, sizeof(*s));

	corelane__v1__worker_state__init(s);
	out->id = w->id;
	out->cpu = w->cpu;
	out->idle = (Corelane__V1__IdlePolicy)w->idle;
	out->state = s;
	s->thread = api_printf(call, "pmd-fwd-%u", w->id);
	s->tid = w->tid;
	s->loops = w->loops;
	s->busy_loops = w->busy_loops;
	s->busy_cycles = w->busy_cycles;
	s->idle_cycles = w->idle_cycles;
	s->packets = w->packets;
	s->tsc_hz = rte_get_tsc_hz();
	put_queues(call, w, s);
}

static int check_idle(unsigned idle, struct error *err)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", idle);
	return idle <= IDLE_SLEEP ? 0
				  : error_set(err, EINVAL, "worker.idle", text, "spin, pause, yield, sleep", "is no idle policy");
}

static int add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__WorkerAddRequest *in = req;
	struct worker *w;

	if (in->worker == NULL)
		return error_set(err, EINVAL, "worker", NULL, NULL, "is missing");
	if (check_idle((unsigned)in->worker->idle, err) < 0)
		return -EINVAL;
	w = worker_add(in->auto_id ? WORKER_NONE : in->worker->id, in->worker->cpu, (enum idle_policy)in->worker->idle, err);
	if (w == NULL)
		return -(err->code ? err->code : EINVAL);
	put_worker(call, w, resp);
	return 0;
}

static struct worker *find(uint32_t id, struct error *err)
{
	struct worker *w = worker_get(id);
	char text[16];

	snprintf(text, sizeof(text), "%u", id);
	if (w == NULL)
		error_set(err, ENOENT, "worker.id", text, "the id of a worker that exists", "there is no such worker");
	return w;
}

static int set(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__WorkerSetRequest *in = req;
	struct worker *w = in->worker ? find(in->worker->id, err) : NULL;
	size_t i;
	int ret = w ? check_idle((unsigned)in->worker->idle, err) : -(err->code ? err->code : EINVAL);

	for (i = 0; i < in->n_fields && ret == 0; i++) {
		if (strcmp(in->fields[i], "cpu") != 0 && strcmp(in->fields[i], "idle") != 0)
			ret = error_set(err, EINVAL, "fields", in->fields[i], "cpu, idle", "cannot be set");
	}
	for (i = 0; i < in->n_fields && ret == 0; i++) {
		if (strcmp(in->fields[i], "cpu") == 0)
			ret = worker_move(w, in->worker->cpu, err);
		else
			worker_set_idle(w, (enum idle_policy)in->worker->idle);
	}
	if (ret == 0)
		put_worker(call, w, resp);
	return ret;
}

static int del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	return worker_del(((const Corelane__V1__WorkerDelRequest *)req)->id, err);
}

static int list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	uint32_t *next = cursor;

	while (*next < WORKER_MAX) {
		struct worker *w = worker_get((*next)++);

		if (w) {
			put_worker(call, w, item);
			return 1;
		}
	}
	return 0;
}

static const struct api_method methods[] = {
	{"corelane.v1.Workers", "Add", &corelane__v1__worker_add_request__descriptor, &corelane__v1__worker__descriptor,
	 .unary = add},
	{"corelane.v1.Workers", "Set", &corelane__v1__worker_set_request__descriptor, &corelane__v1__worker__descriptor,
	 .unary = set},
	{"corelane.v1.Workers", "Del", &corelane__v1__worker_del_request__descriptor, &corelane__v1__empty__descriptor,
	 .unary = del},
	{"corelane.v1.Workers", "List", &corelane__v1__worker_list_request__descriptor, &corelane__v1__worker__descriptor,
	 .next = list, .cursor_size = sizeof(uint32_t)},
};
API_METHODS(methods)
