// SPDX-License-Identifier: Apache-2.0
// Decodes and encodes how a port's packets are spread over workers (api/port.proto): weights, pollers and queues.
#include "control/port_message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/spread.h"
#include "worker/worker.h"

#define WEIGHT_MAX 1000

int port_decode_weights(char **in, size_t n, struct spread_config *c, struct error *err)
{
	size_t i;

	memset(c->weights, 0, sizeof(c->weights));
	for (i = 0; i < n; i++) {
		char *end;
		unsigned long id = strtoul(in[i], &end, 10), weight = 1;

		if (*end == ':' && end[1] >= '0' && end[1] <= '9')
			weight = strtoul(end + 1, &end, 10);
		if (*in[i] < '0' || *in[i] > '9' || *end || id >= WORKER_MAX || weight == 0 || weight > WEIGHT_MAX)
			return error_set(err, EINVAL, "port.spread_workers", in[i], NOTATION_WEIGHT_VALID,
					 "is not a worker with a weight");
		if (c->weights[id])
			return error_set(err, EINVAL, "port.spread_workers", in[i], "each worker once",
					 "is given twice");
		c->weights[id] = (uint32_t)weight;
	}
	return 0;
}

char **port_encode_weights(struct api_call *call, const struct spread_config *c, size_t *n)
{
	char **out = api_alloc(call, (WORKER_MAX + 1) * sizeof(*out));
	unsigned i;

	for (i = *n = 0; i < WORKER_MAX; i++)
		if (c->weights[i])
			out[(*n)++] = c->weights[i] == 1 ? api_printf(call, "%u", i)
							 : api_printf(call, "%u:%u", i, c->weights[i]);
	return out;
}

int port_decode_pollers(char **in, size_t n, struct spread_config *c, struct error *err)
{
	size_t i;

	memset(c->polled_by, 0, sizeof(c->polled_by));
	for (i = 0; i < n; i++) {
		char *end;
		unsigned long queue = strtoul(in[i], &end, 10), worker = WORKER_MAX;

		if (*in[i] >= '0' && *in[i] <= '9' && *end == ':' && end[1] >= '0' && end[1] <= '9')
			worker = strtoul(end + 1, &end, 10);
		if (*end || queue >= PORT_MAX_QUEUES || worker >= WORKER_MAX)
			return error_set(err, EINVAL, "port.polled_by", in[i], NOTATION_POLLER_VALID,
					 "is not a queue with its worker");
		if (c->polled_by[queue])
			return error_set(err, EINVAL, "port.polled_by", in[i], "each queue once", "is given twice");
		c->polled_by[queue] = (uint8_t)(worker + 1);
	}
	return 0;
}

char **port_encode_polled_by(struct api_call *call, const struct spread_config *c, size_t *n)
{
	char **out = api_alloc(call, (PORT_MAX_QUEUES + 1) * sizeof(*out));
	unsigned i;

	for (i = *n = 0; i < PORT_MAX_QUEUES; i++)
		if (c->polled_by[i])
			out[(*n)++] = api_printf(call, "%u:%u", i, c->polled_by[i] - 1u);
	return out;
}

void port_encode_queue(const struct port_queue *q, Corelane__V1__PortQueue *out)
{
	const struct spread_view *v = q->view;

	out->moving = q->owner != q->rx_worker;
	out->spread = v && v->all_to != SPREAD_LOCAL;
	out->order_given_up = v ? __atomic_load_n(&v->gave_up, __ATOMIC_RELAXED) : 0;
}
