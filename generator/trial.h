// SPDX-License-Identifier: Apache-2.0
// A trial: what it is asked for, what it counts, and how gen-poll runs it.
#pragma once

#include "sink.h"

#define TRIAL_REAL_TIME 16
#define REST_US_MAX 1000
#define TRIAL_WINDOWS 1024 // windows that the control thread has not taken yet

enum { TRIAL_STOP = 1, TRIAL_ABANDON }; // ABANDON: nobody wants the total

struct trial_plan {
	uint64_t duration, window, drain, pause; // TSC cycles; no duration: until all packets are due
	uint64_t packets;                        // 0 = no limit
	double packets_per_second;               // 0 = as fast as the ports take them
	uint32_t burst;
	enum verify verify;
	bool latency;
	bool share;                     // the CPU, with something else that polls
	const struct gen_port *unread;  // port that nothing is taken from; NULL = none
	unsigned rest_us;               // sleep after a poll that moved few frames
	int real_time[TRIAL_REAL_TIME]; // threads that get real-time priority
	unsigned n_real_time;
};

struct window {
	uint64_t start, cycles, busy; // TSC; start since the trial's
	struct stream_count count;    // of all streams
	uint64_t round_trip;
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
	unsigned n_written; // windows; runs freely
	struct window total;
	bool ended;
	// Control thread: w, gen-poll: r.
	unsigned n_read;
	int stop; // TRIAL_...
	// gen-poll.
	bool paced;
	uint64_t turns, turn_cycles; // of others on this CPU
	unsigned real_time;          // threads that got it
	uint64_t start, active;      // active: cycles in which frames were due, before this window
	uint64_t away;               // cycles: a gap that is longer is one in which gen-poll did not run
	uint64_t last_sent;          // active, when frames were last sent
	uint64_t last_seen;          // TSC, when frames were last received
	unsigned blind;              // polls in which frames are not timed
	struct send_state *send;
};

int trial_init(struct trial *t, uint8_t number); // of the profile's streams, after t->plan is set. -ENOMEM
void trial_run(struct trial *t);                 // on gen-poll
void send_fini(struct trial *t);                 // the trial has ended

// --- between the files of the trial ---

// Without a rate a ring rests so many cycles after it was looked at: each look takes its lines from the router, and would
// only bring a few frames. A ring of 1024 gathers some 250 at 30 million a second.
#define REST_PER_SLOT 16
#define REST_PER_SLOT_TIMED 4 // where it would show in latencies

static inline uint64_t rest_of(const struct trial *t, const struct gen_port *p)
{
	return (uint64_t)(t->plan.latency ? REST_PER_SLOT_TIMED : REST_PER_SLOT) * p->cfg.ring_size;
}

#define AWAY_US 20
#define AWAY_SHARED_US 1000 // of others' turns some are long
#define AWAY_RESTED_US 100  // beyond the rest
#define LATE_MS 1           // frames that are due for longer are not sent

int send_init(struct trial *t); // -ENOMEM
// Sends what is due after so many cycles in which frames were due. Returns how many frames.
unsigned send_due(struct trial *t, uint64_t now, uint64_t active);
bool send_done(const struct trial *t);          // all packets that were asked for were due
void look(const struct trial *t, uint64_t now); // at what receive will take
unsigned receive(struct trial *t, uint64_t now);
