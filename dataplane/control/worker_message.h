// SPDX-License-Identifier: Apache-2.0
// Shared by worker_api.c, worker_state_api.c and worker_latency_api.c.
#pragma once

#include "worker.pb-c.h"

struct api_call;
struct error;
struct worker;

struct worker *worker_api_find(uint32_t id, struct error *err); // NULL with err
void worker_encode(struct api_call *call, const struct worker *w, Corelane__V1__Worker *out);
void worker_encode_state(struct api_call *call, const struct worker *w, Corelane__V1__WorkerState *s);
const char *worker_api_seen_by(const struct worker *w);

// Converts TSC cycles to nanoseconds.
uint64_t worker_api_ns(uint64_t cycles);
