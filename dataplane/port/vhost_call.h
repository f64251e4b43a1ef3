// SPDX-License-Identifier: Apache-2.0
// The notifications of guests (the "calls" of their rings).
//
// The library would notify by a write to the descriptor of SET_VRING_CALL. The front end shares its file, can make it
// blocking, and the worker would wait in the write. So the library gets a descriptor to which no write succeeds. After
// each attempt it calls back on the worker, which signals the front end's descriptor (base/event_signal.h).
//
// The front thread keeps these descriptors. That of a ring keeps its number until the ring has none: workers may use it
// at any time, and a new file replaces the old one under it. It is closed when the library has accepted that the ring
// is not notified any more, or has ended the device. The library calls back with the lock of the ring held, so no
// worker uses the number then.
#pragma once

#include <stdint.h>

#include "port/vhost_message.h"

struct vhost_calls {
	int fds[VHOST_SESSION_VRINGS]; // -1 = none. Front thread: wo, workers: ro
};

// Where the calling worker's next notification goes to, and where it counts those that are lost.
struct vhost_call {
	const int *fd;
	uint64_t *lost;
};
extern __thread struct vhost_call vhost_call;

int vhost_call_init(void); // master thread. 0 or -errno
void vhost_calls_begin(struct vhost_calls *c);
void vhost_calls_end(struct vhost_calls *c); // workers do not use them any more

// Both on the front thread. Before the library gets the message: keeps the descriptor of a SET_VRING_CALL, and puts the
// library's in its place. Returns 0 or -errno.
int vhost_call_pass(struct vhost_calls *c, struct vhost_message *m);
void vhost_call_passed(struct vhost_calls *c, const struct vhost_message *m); // the library has accepted it

void vhost_call_signal(void); // worker, in a callback of the library
