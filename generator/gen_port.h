// SPDX-License-Identifier: Apache-2.0
// Ports of the generator. Frames are built and checked in the port's own buffers.
//
// gen-poll reserves frames, writes them and commits them; it peeks at received frames, reads them and releases them.
// The control thread opens and closes ports, and frees their memory only after poll_quiesce().
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>

#include "base/error.h"
#include "base/field_limits.h"

#define PORT_NAME_SIZE (LIMIT_GENERATOR_PORT_NAME_MAX + 1)
#define PORT_ROOM 2048u // minimum buffer size: the usual one of memif clients
#define PORT_QUEUES LIMIT_GENERATOR_MEMIF_QUEUES_MAX
#define PORT_BURST 64u // frames reserved or peeked at once
#define PORT_AHEAD 32u // prefetch distance in frames
#define PORT_FRAMES (PORT_BURST + PORT_AHEAD)

struct frame {
	uint8_t *data;
	uint32_t length;
};

struct gen_port;

// Arrays of frames have room for PORT_FRAMES. Behind the n frames that are asked for, the addresses of the following
// ones are filled in for prefetching; an address that is not known is replaced by any other.
struct gen_port_ops {
	// Prefetches; both may be NULL. touch: the indices that tell how much was received and how much room there is.
	// look: the first received frames, for the following peek.
	void (*touch)(struct gen_port *p, unsigned queue);
	void (*look)(struct gen_port *p, unsigned queue);
	// Returns up to n buffers that hold the pattern (head.h) from offset gen_port.head on.
	unsigned (*reserve)(struct gen_port *p, unsigned queue, struct frame *frames, unsigned n);
	// Sends the first n reserved frames. Returns how many the port took.
	unsigned (*commit)(struct gen_port *p, unsigned queue, struct frame *frames, unsigned n);
	// Returns up to n received frames, oldest first, each contiguous.
	unsigned (*peek)(struct gen_port *p, unsigned queue, struct frame *frames, unsigned n);
	void (*release)(struct gen_port *p, unsigned queue, unsigned n); // the first n frames peeked at
	bool (*up)(const struct gen_port *p);
	void (*lay)(struct gen_port *p); // writes the pattern to all buffers, after a change of heads
	void (*close)(struct gen_port *p);
};

struct port_config {
	char name[PORT_NAME_SIZE];
	char devargs[256]; // empty: memif
	char socket[108];
	uint32_t id;
	bool server;
	uint32_t ring_size, queues;
	uint32_t room; // bytes of a buffer, enough for the largest frame
};

struct gen_port {
	const struct gen_port_ops *ops;
	struct port_config cfg;
	unsigned n_tx, n_rx;              // queues
	uint64_t rest_until[PORT_QUEUES]; // gen-poll: rw
	// Set by the profile.
	uint16_t head;  // bytes of each frame that are rewritten when it is sent
	uint16_t probe; // offset of the probe in most frames received here
};

// Returns 0 or -errno with err filled, field "ports...".
int gen_port_open(struct gen_port **port, const struct port_config *cfg, struct error *err);
void gen_port_close(struct gen_port *p);
void *port_new(size_t size);                                // zeroed, aligned to cache lines; free() it
void gen_port_down(struct gen_port *p, const char *reason); // the peer is gone: ends a running trial
