// SPDX-License-Identifier: Apache-2.0
// Waiting for interrupts (IDLE_INTERRUPT). Private to worker/.
//
// A worker that has nothing to do listens to its doorbell and arms its queues, walks its graph once more, and, when that brings
// nothing either, waits in poll(). Who gives it packets (handoff.h), changes what it polls or wants something of it rings.
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#define WAIT_MAX_MS 100 // for all that goes by time: ageing of flows, and peers that forget to signal
#define WAIT_FDS 1024   // its doorbell, and one for each queue: with more it sleeps

struct worker;
struct port_queue;

struct wait {
	// Worker: rw, master: ro.
	uint64_t waits;       // how often it waited
	uint64_t timeouts;    // of these, how often for WAIT_MAX_MS
	uint32_t timer_queue; // port << 16 | queue that gives no interrupts now, so that the worker sleeps; 0 = none
	// Worker: rw.
	unsigned n;
	struct pollfd fds[WAIT_FDS];
	// Master: wo, before the policy is set.
	uint64_t token; // of RCU: when this has passed, all who give packets know that they have to ring
};

// Worker, after an empty poll. False: not now, and it has to look again soon.
bool wait_arm(struct worker *w); // when it is not armed
// When it is armed and the walk since brought nothing. False: a descriptor reports an error, and would again.
bool wait_wait(struct worker *w);
void wait_disarm(struct worker *w);                             // it goes on polling
void wait_disarm_queue(struct worker *w, struct port_queue *q); // before another worker gets it
