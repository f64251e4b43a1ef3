// SPDX-License-Identifier: Apache-2.0
// Ports of the generator: frames are built and checked where the port has them.
//
// gen-poll reserves frames, writes them, commits them; it peeks at frames that came, reads them, releases them. The control
// thread opens and closes ports, and takes their memory away only while gen-poll is out (poll_quiesce).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>

#include "base/error.h"

#define PORT_NAME_SIZE 64
#define PORT_ROOM 2048u // at least: what clients of memif usually have
#define PORT_QUEUES 16
#define PORT_BURST 64u // frames reserved or peeked at once
#define PORT_AHEAD 32u // so long before a frame is touched its lines have to be on their way
#define PORT_FRAMES (PORT_BURST + PORT_AHEAD)

struct frame {
	uint8_t *data;
	uint32_t length;
};

struct gen_port;

// Arrays of frames have room for PORT_FRAMES: behind the n that are asked for, the addresses of those that come next are
// filled in, for prefetching, or any address.
struct gen_port_ops {
	// Both may be NULL. touch: the lines that tell how much came, and how much room there is, are on their way. look: the
	// first of the frames that came are on their way when peek comes.
	void (*touch)(struct gen_port *p, unsigned queue);
	void (*look)(struct gen_port *p, unsigned queue);
	// Up to n buffers that hold the pattern (head.h) from the port's head on.
	unsigned (*reserve)(struct gen_port *p, unsigned queue, struct frame *frames, unsigned n);
	// The first n of them are complete. Returns how many the port took.
	unsigned (*commit)(struct gen_port *p, unsigned queue, struct frame *frames, unsigned n);
	// Up to n frames that came, oldest first, each in one piece.
	unsigned (*peek)(struct gen_port *p, unsigned queue, struct frame *frames, unsigned n);
	void (*release)(struct gen_port *p, unsigned queue, unsigned n); // the first n of them
	bool (*up)(const struct gen_port *p);
	void (*lay)(struct gen_port *p); // the pattern, into all buffers: heads have become shorter
	void (*close)(struct gen_port *p);
};

struct port_config {
	char name[PORT_NAME_SIZE];
	char devargs[256]; // empty: memif
	char socket[108];
	uint32_t id;
	bool server;
	uint32_t ring_size, queues;
	uint32_t room; // room for the largest frame
};

struct gen_port {
	const struct gen_port_ops *ops;
	struct port_config cfg;
	unsigned n_tx, n_rx;              // queues
	uint64_t rest_until[PORT_QUEUES]; // gen-poll: rw
	// Set by the profile.
	uint16_t head;  // bytes of frames sent here that are rewritten each time
	uint16_t probe; // where most frames that come here have their probe
};

// Returns 0 or -errno with err filled, field "ports...".
int gen_port_open(struct gen_port **port, const struct port_config *cfg, struct error *err);
void gen_port_close(struct gen_port *p);
void *port_new(size_t size);                                // zeroed, aligned to cache lines; free() it
void gen_port_down(struct gen_port *p, const char *reason); // ends a trial that uses it
