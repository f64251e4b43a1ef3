// SPDX-License-Identifier: Apache-2.0
// vhost-user messages on a socket that never blocks. A message may come in pieces, and its descriptors with any of
// them.
#pragma once

#include <stdbool.h>

#include "port/vhost_message.h"

#define VHOST_WIRE_MOST 253 // descriptors that the kernel passes on at once

struct vhost_wire {
	int fd;        // -1 = none
	bool library;  // its answers have headers that a front end may not send
	unsigned have; // bytes of m that have come
	struct vhost_message m;
	unsigned n_refused;
	int refused[VHOST_WIRE_MOST]; // descriptors that do not fit into m
};

void vhost_wire_begin(struct vhost_wire *w, int fd, bool library); // takes fd
// Ends it without closing anything. Returns how many descriptors are to be closed: its own, and those of a message.
#define VHOST_WIRE_FDS (1 + VHOST_MESSAGE_FDS + VHOST_WIRE_MOST)
unsigned vhost_wire_end(struct vhost_wire *w, int fds[VHOST_WIRE_FDS]);

// Reads what belongs to one message. Returns 1 when w->m is complete, until vhost_wire_next(); 0: the rest may come
// later; -ECONNRESET: the peer has gone; -EPROTO: *why tells what is wrong with the message.
int vhost_wire_read(struct vhost_wire *w, const char **why);
void vhost_wire_next(struct vhost_wire *w); // closes the message's descriptors, which were checked

// Returns 0, or -EPIPE when the peer has gone or does not read.
int vhost_wire_send(const struct vhost_wire *w, const struct vhost_message *m);
