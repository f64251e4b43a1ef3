// SPDX-License-Identifier: Apache-2.0
// What the generator is configured to do: ports and streams, checked and made ready to send.
#pragma once

#include "generator.pb-c.h"
#include "stream.h"

#define PROFILE_PORTS 64
#define PROFILE_STREAMS 4096
#define PROFILE_FLOWS (4 * PROBE_MAX_FLOWS) // of all streams

struct profile {
	struct gen_port *ports[PROFILE_PORTS];
	unsigned n_ports;
	struct stream *streams;
	unsigned n_streams;
};

extern struct profile profile; // control thread: rw; gen-poll: r while a trial runs

// Replaces it. Refused: -errno with err, and nothing has changed, unless a port could not be opened: then there is no profile.
int profile_set(const Corelane__V1__GeneratorProfile *in, struct error *err);
void profile_clear(void);

// --- between the files of the profile ---

int profile_ports(const Corelane__V1__GeneratorProfile *in, struct port_config *out, struct error *err);
// ports: their configurations; room is raised to what the stream sends and gets.
int profile_stream(const Corelane__V1__GeneratorStream *in, struct stream *s, struct port_config *ports, unsigned n_ports,
		   struct error *err);
int profile_flows(const Corelane__V1__GeneratorStream *in, struct stream *s, struct error *err);
void stream_free(struct stream *s);
int refuse_number(struct error *err, const char *field, uint64_t value, const char *valid, const char *why);
