// SPDX-License-Identifier: Apache-2.0
// A trial: its plan, its counts, and how gen-poll runs it.
#pragma once

#include "sink.h"

#define TRIAL_REAL_TIME LIMIT_GENERATOR_TRIAL_REAL_TIME_ITEMS
#define TRIAL_WINDOWS 1024 // windows that the control thread has not taken yet

enum { TRIAL_STOP = 1, TRIAL_ABANDON }; // ABANDON: no client waits for the total

struct trial_plan {
	uint64_t duration, window, drain, pause; // TSC cycles; duration 0: until all packets are due
	uint64_t packets;                        // 0 = no limit
	double packets_per_second;               // 0 = as fast as the ports take them
	uint32_t burst;
	enum verify verify;
	bool latency;
	bool share;                     // another poller shares the CPU: yield after each turn
	const struct gen_port *unread;  // port that is not read; NULL = none
	unsigned rest_us;               // sleep after a turn that moved few frames
	int real_time[TRIAL_REAL_TIME]; // threads that get real-time priority
	unsigned n_real_time;
};

struct window {
	uint64_t start, cycles, busy; // TSC; start since the trial's
	struct stream_count count;    // sum over all streams
	uint64_t round_trip;
	uint64_t p99; // latency in clock units
};

struct trial {
	struct trial_plan plan;
	struct stream *streams;
	unsigned n_streams;
	struct gen_port **ports;
	unsigned n_ports;
	struct sink sink;
	// gen-poll: w, control thread: r.
	struct window windows[TRIAL_WINDOWS];
	unsigned n_written; // windows; wraps around
	struct window total;
	bool ended;
	// Control thread: w, gen-poll: r.
	unsigned n_read;
	int stop; // TRIAL_...
	// gen-poll.
	bool paced;
	uint64_t turns, turn_cycles; // pauses for other threads on this CPU
	unsigned real_time;          // threads that got real-time priority
	struct histogram before;     // the latencies before this window
	uint64_t start, active;      // active: cycles in sending windows before this one
	uint64_t away;               // cycles of long gaps between two turns, in which gen-poll did not run
	uint64_t last_sent;          // value of `active` at the last sending
	uint64_t last_seen;          // TSC at the last look for frames
	unsigned blind;              // turns left in which latencies are not measured
	struct send_state *send;
};

int trial_init(struct trial *t, uint8_t number); // from the profile, after t->plan is set. Negative: no memory
void trial_run(struct trial *t);                 // on gen-poll
void send_fini(struct trial *t);                 // the trial has ended

// --- Internal interface between the files of the trial. ---

// Without a rate, a ring is not polled for so many cycles after a poll, because each poll takes its cache lines from
// the router and would yield only a few frames. A ring of 1024 gathers about 250 at 30 million frames/s.
#define REST_PER_SLOT 16
#define REST_PER_SLOT_TIMED 4 // if latencies are measured

static inline uint64_t rest_of(const struct trial *t, const struct gen_port *p)
{
	return (uint64_t)(t->plan.latency ? REST_PER_SLOT_TIMED : REST_PER_SLOT) * p->cfg.ring_size;
}

#define AWAY_US 20
#define AWAY_SHARED_US 1000 // with another poller on the CPU, which may take long turns
#define AWAY_RESTED_US 100  // in addition to rest_us
#define LATE_MS 1           // frames that have been due for longer are not sent

int send_init(struct trial *t); // negative: no memory
// Sends the frames that are due after `active` cycles of sending windows. Returns their number.
unsigned send_due(struct trial *t, uint64_t now, uint64_t active);
bool send_done(const struct trial *t);          // all plan.packets have become due
void look(const struct trial *t, uint64_t now); // prefetches for the following receive()
unsigned receive(struct trial *t, uint64_t now);
