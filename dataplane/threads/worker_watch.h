// SPDX-License-Identifier: Apache-2.0
// Workers that stand still: their loops are not counted up any more, because something keeps them from their CPU or a loop does not end.
// The master only looks; it waits for nobody.
//
// A worker that has nothing to do loops on, so each idle policy has to wake up within WATCH_STANDS.
#pragma once

#include "threads/task.h"

#define WATCH_STANDS 500000000ull // ns without a loop that are reported
#define WATCH_CALM 1000000000ull  // ns of loops after which it is well again
#define WATCH_AWAY 1000000000ull  // ns that the master was away itself: it cannot say anything of others

struct watch {
	int tid;                  // 0: nothing is known yet
	uint64_t loops, progress; // ns when they were last seen to grow
	uint64_t begin;           // of the standstill that was reported
	uint64_t calm;            // since when it loops again
	uint64_t longest;
	bool reported, sampled;
	struct task sample; // when it was first seen to stand
};

enum watch_result { WATCH_NOTHING, WATCH_SUSPECT, WATCH_STANDS_STILL, WATCH_GOES_ON };

// One look, at a time in ns.
enum watch_result watch_step(struct watch *w, uint64_t loops, uint64_t now);
void watch_restart(struct watch *w, uint64_t loops, uint64_t now); // forgives what has been

// Why it stands, from two looks at its thread. cpu is the planned one.
const char *watch_why(const struct task *before, const struct task *now, unsigned cpu, char *buf, size_t size);

void worker_watch_poll(void);                    // each 100 ms
uint64_t worker_watch_still_ns(unsigned worker); // since when it stands, 0: it does not
