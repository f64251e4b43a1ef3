// SPDX-License-Identifier: Apache-2.0
// Detects stalled workers: their loop counters do not grow, because something keeps them from their CPU or a
// loop does not end. The master only reads the counters; it never waits for a worker.
//
// An idle worker keeps looping, so each idle policy has to wake up within WATCH_STALL_NS.
#pragma once

#include "threads/task.h"

#define WATCH_STALL_NS 500000000ull   // ns without a loop after which a worker is reported
#define WATCH_STEADY_NS 1000000000ull // ns of steady loops after which it has recovered

struct watch {
	int tid;                  // 0: the worker is not known yet
	uint64_t loops, progress; // ns when they were last seen to grow
	uint64_t begin;           // of the stall that was reported
	uint64_t steady;          // since when it has looped without a stall
	uint64_t longest;
	bool stalled; // until it loops again, however often the master itself is late
	bool hangs;   // also until it loops again: it does not loop although it has its CPU
	bool reported, sampled;
	struct task sample; // when it was first seen not to loop
};

enum watch_result { WATCH_NOTHING, WATCH_SUSPECT, WATCH_STALLED, WATCH_RESUMED };

// One poll; now is in ns.
enum watch_result watch_step(struct watch *w, uint64_t loops, uint64_t now);
void watch_restart(struct watch *w, uint64_t loops, uint64_t now); // forgets what was seen

// Whether the thread could run between the samples, but others had its CPU.
bool watch_is_preempted(const struct task *before, const struct task *now);
// Whether the thread had its CPU between the samples, at least for half of WATCH_STALL_NS in all, or does not want it.
bool watch_is_hanging(const struct task *before, const struct task *now);
// Explains a stall from two samples of the thread. cpu is the planned one.
const char *watch_why(const struct task *before, const struct task *now, unsigned cpu, char *buf, size_t size);

void worker_watch_poll(void);                      // called each 100 ms
uint64_t worker_watch_stalled_ns(unsigned worker); // how long it has been stalled; 0: it is not
// Whether a worker is stalled by itself: not one that could run, but whose CPU others have.
bool worker_watch_hangs(void);
