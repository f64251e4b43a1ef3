// SPDX-License-Identifier: Apache-2.0
// Ports as messages of the API.
#pragma once

#include "api/api.h"
#include "base/error.h"
#include "port.pb-c.h"
#include "port/port.h"
#include "worker/spread.h"

#define PbPort Corelane__V1__Port

int port_decode(const PbPort *in, struct port_config *c, struct error *err);
// Decodes one field that a Set may change.
int port_decode_field(const PbPort *in, const char *field, struct port_config *c, struct error *err);
void port_encode(struct api_call *call, struct port *p, PbPort *out);

// The workers that poll a port's queues, and those that finish its packets (port_spread.c).
int port_decode_weights(char **in, size_t n, struct spread_config *c, struct error *err); // "ID" or "ID:WEIGHT"
int port_decode_pollers(char **in, size_t n, struct spread_config *c, struct error *err); // "QUEUE:WORKER"
char **port_encode_polled_by(struct api_call *call, const struct spread_config *c, size_t *n);
char **port_encode_weights(struct api_call *call, const struct spread_config *c, size_t *n);
void port_encode_queue(const struct port_queue *q, Corelane__V1__PortQueue *out); // its moving and spreading
