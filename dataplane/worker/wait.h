// SPDX-License-Identifier: Apache-2.0
// Waiting for interrupts (IDLE_INTERRUPT). Private to worker/.
//
// An idle worker listens to its doorbell and arms its queues, walks its graph once more and, if that brings no packets
// either, waits in poll(). A thread that hands it packets (handoff.h), changes its queues or sends it an order rings
// the doorbell.
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#define WAIT_MAX_MS 100 // bounds the delay of timed work (ageing of flows), and of peers that do not signal
#define WAIT_FDS 1024   // its doorbell, and one for each queue: a worker with more queues sleeps

struct worker;
struct port_queue;

extern int wait_max_ms; // WAIT_MAX_MS, unless a test needs to know that it was something else that ended a wait

struct wait {
	// Worker: rw, master: ro.
	uint64_t waits;       // number of waits
	uint64_t timeouts;    // of these, waits that lasted wait_max_ms
	uint32_t timer_queue; // port << 16 | queue that gives no interrupts now, so that the worker sleeps; 0 = none
	// Worker: rw.
	unsigned n;
	struct pollfd fds[WAIT_FDS];
	// Master: wo, before the policy is set.
	uint64_t token; // of RCU: once it has passed, all producers ring the doorbell
};

// Called by the worker after an empty poll. False: it cannot wait now, and must poll again soon.
bool wait_arm(struct worker *w); // if it is not armed
// If it is armed and the walk since then was empty. False: a descriptor reports an error, and would do so again.
bool wait_wait(struct worker *w);
void wait_disarm(struct worker *w);                             // it goes on polling
void wait_disarm_queue(struct worker *w, struct port_queue *q); // before another worker gets it
