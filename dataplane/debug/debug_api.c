// SPDX-License-Identifier: Apache-2.0
// API of fault injection (api/debug.proto).
#include <errno.h>
#include <stdio.h>

#include "api/api.h"
#include "common.pb-c.h"
#include "debug.pb-c.h"
#include "debug/delay.h"
#include "debug/disturb.h"
#include "debug/forbidden_call.h"
#include "worker/worker.h"

static struct worker *debug_worker(uint32_t id, struct error *err)
{
	struct worker *w = worker_get(id);
	char text[16];

	snprintf(text, sizeof(text), "%u", id);
	if (w == NULL)
		error_set(err, ENOENT, "worker", text, "the id of a worker that exists", "there is no such worker");
	return w;
}

static int debug_delay(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__DebugDelayRequest *in = req;
	struct worker *w = debug_worker(in->worker, err);

	return w ? delay_set(w, in->us, err) : -ENOENT;
}

static int debug_forbidden_call(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__DebugForbiddenCallRequest *in = req;
	struct worker *w = debug_worker(in->worker, err);

	return w ? forbidden_call(w, err) : -ENOENT;
}

static int debug_disturb(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__DebugDisturbRequest *in = req;

	return disturb_set((enum disturbance)in->what, in->per_second, err);
}

static const struct api_method methods[] = {
	{"corelane.v1.Debug", "Delay", &corelane__v1__debug_delay_request__descriptor, &corelane__v1__empty__descriptor,
	 .unary = debug_delay},
	{"corelane.v1.Debug", "ForbiddenCall", &corelane__v1__debug_forbidden_call_request__descriptor,
	 &corelane__v1__empty__descriptor, .unary = debug_forbidden_call},
	{"corelane.v1.Debug", "Disturb", &corelane__v1__debug_disturb_request__descriptor,
	 &corelane__v1__empty__descriptor, .unary = debug_disturb},
};
API_METHODS(methods)
