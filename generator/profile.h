// SPDX-License-Identifier: Apache-2.0
// The generator's configuration: ports and streams, checked and prepared for sending.
#pragma once

#include "generator.pb-c.h"
#include "stream.h"

#define PROFILE_PORTS LIMIT_GENERATOR_PROFILE_PORTS_ITEMS
#define PROFILE_FLOWS (4 * PROBE_MAX_FLOWS) // in all streams

struct profile {
	struct gen_port *ports[PROFILE_PORTS];
	unsigned n_ports;
	struct stream *streams;
	unsigned n_streams;
};

extern struct profile profile; // control thread: rw; gen-poll: r while a trial runs

// Replaces the profile. Returns -errno with err if it is refused; then nothing has changed, except that there is no
// profile any more if a port could not be opened.
int profile_set(const Corelane__V1__GeneratorProfile *in, struct error *err);
void profile_clear(void);

// --- Internal interface between the files of the profile. ---

int profile_ports(const Corelane__V1__GeneratorProfile *in, struct port_config *out, struct error *err);
// ports: configurations by index; raises their room to the largest frame that the stream sends and receives.
int profile_stream(const Corelane__V1__GeneratorStream *in, struct stream *s, struct port_config *ports,
		   unsigned n_ports, struct error *err);
int profile_flows(const Corelane__V1__GeneratorStream *in, struct stream *s, struct error *err);
void stream_free(struct stream *s);
int refuse_number(struct error *err, const char *field, uint64_t value, const char *valid, const char *why);
