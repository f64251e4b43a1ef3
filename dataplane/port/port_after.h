// SPDX-License-Identifier: Apache-2.0
// What follows a change of a port once no worker sees what was before: a removed port is closed, the rules of an old
// configuration are detached. Nothing waits for that: the master does one such thing in a turn, in the order of the
// changes. Master thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

// A request of a change is answered when the change is done, or after this time, because a worker may be stalled.
#define PORT_PATIENCE_MS 200

void port_poll(void); // from the master's loop
uint64_t port_last_change(void);
bool port_change_done(uint64_t change); // after a port_poll()

// Private to port/.
struct port_after {
	STAILQ_ENTRY(port_after) next;
	void (*fn)(void *arg);
	void *arg;
	uint64_t change, token, since; // ns
	bool told;
};

// fn(arg) is called when all workers have passed the present moment. It may free `a`.
void port_after_add(struct port_after *a, void (*fn)(void *arg), void *arg);
