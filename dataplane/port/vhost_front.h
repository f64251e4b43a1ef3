// SPDX-License-Identifier: Apache-2.0
// The front ends of all vhost-user ports: their sockets, and each of their messages before librte_vhost gets it.
//
// One thread serves them. It never waits for one of them: a message that has come in part, a port that sends too many,
// workers that still poll and a library that has not answered yet each hold the messages of their own port alone.
//
// A message that changes what workers use is held until the workers have let go of the port's rings (vhost_conn.c).
// The library's callbacks could not wait for that: a worker may be spinning on a lock that they are called with.
#pragma once

struct vhost;

// Both on the master thread. listener: a socket that listens and does not block, and the front thread's from now on;
// -1: the thread connects to the port's path again and again.
int vhost_front_add(struct vhost *v, int listener); // 0 or -errno; then listener is closed
// When it returns, the thread knows nothing of the port. Returns a descriptor to close when the library knows nothing
// of it either, -1 = none: the library complains if it cannot answer.
int vhost_front_remove(struct vhost *v);

// Any thread but workers: a device of the library has ended.
void vhost_front_wake(void);
// Any thread, also in a signal handler: a guest has taken memory away. The front thread ends its connection.
void vhost_front_lost(void);
