// SPDX-License-Identifier: Apache-2.0
// Private to port/: ports in the messages of the API.
#pragma once

#include "api/api.h"
#include "base/error.h"
#include "port.pb-c.h"
#include "port/port.h"

#define PbPort Corelane__V1__Port

int port_get_config(const PbPort *in, struct port_config *c, struct error *err);
int port_get_field(const PbPort *in, const char *field, struct port_config *c, struct error *err); // one that can be set later
void port_put(struct api_call *call, struct port *p, PbPort *out);

// Who finishes a port's packets (port_mode.c).
int port_weights_get(char **in, size_t n, struct port_config *c, struct error *err);   // "ID" or "ID:WEIGHT"
int port_polled_by_get(char **in, size_t n, struct port_config *c, struct error *err); // "QUEUE:WORKER"
char **port_polled_by_put(struct api_call *call, const struct port_config *c, size_t *n);
char **port_weights_put(struct api_call *call, const struct port_config *c, size_t *n);
void port_queue_put(const struct port_queue *q, Corelane__V1__PortQueue *out); // what is spread of it
