// SPDX-License-Identifier: Apache-2.0
// How long a worker's loops take, and what the long ones did. Always on: a loop that is not long costs two additions to
// a histogram's count and two comparisons.
//
// Whether the kernel took the CPU away is asked without a system call. A thread's struct rseq points to a critical section that
// it is never in: the kernel clears that pointer whenever it lets the thread go on after another one had the CPU, after a
// move to another CPU or after a signal (rseq(2)). A pointer that is gone at the end of a loop is the answer.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "base/field_limits.h"
#include "base/histogram.h"
#include "graph/graph.h"

#define LONGEST_LOOPS 32
#define LONG_LOOP_NODES 8
#define LONG_LOOP_US LIMIT_WORKER_LOOP_THRESHOLD_US_DEFAULT // threshold unless somebody sets another
#define LONG_LOOP_FORGET_S 600                              // an older one makes room for any that is long

enum loop_stage {
	STAGE_RECEIVE,  // polling the queues
	STAGE_GRAPH,    // all other nodes
	STAGE_MESSAGES, // quiescent state, what the master asked for, ageing of flows, the loop itself
	STAGE_IDLE,     // given away: yielding, sleeping
	STAGE_DELAY,    // injected (corelane debug delay)
	LOOP_STAGES
};

struct loop_node {
	uint32_t node; // of graph_step_name()
	uint32_t runs;
	uint64_t cycles;
};

struct long_loop {
	uint64_t end, cycles; // TSC
	uint64_t stages[LOOP_STAGES];
	uint32_t packets;
	uint32_t cpu; // where it ended
	bool taken;   // the kernel had given the CPU to somebody else
	bool moved;   // to another CPU
	unsigned n_nodes;
	struct loop_node nodes[LONG_LOOP_NODES]; // that took longest
};

struct long_loop_slot {
	uint32_t sequence;   // odd while it is written
	uint32_t generation; // recorder.generation when it was written; 0 = empty
	struct long_loop loop;
};

struct recorder {
	// Worker: rw. What every loop touches comes first.
	volatile uint64_t *armed; // struct rseq's pointer; where there is none, a word that nobody clears
	uint64_t mark;            // what it is set to
	uint64_t threshold;       // TSC cycles; master: wo, worker: ro
	uint64_t loops;
	struct histogram busy, empty; // of all loops, by whether they brought packets; worker: rw, master: ro
	struct graph_trail trail;
	// Worker: rw, in rare cases only; master: ro.
	uint64_t taken, moved;
	uint64_t taken_in;                     // loop that the CPU was last taken in
	uint64_t spent_in, spent[LOOP_STAGES]; // loop, and what was measured in it besides the graph
	uint32_t cpu;
	bool sees_kernel; // rseq is there
	uint64_t unarmed; // else
	struct long_loop_slot longest[LONGEST_LOOPS];
	// Master: rw.
	uint32_t generation; // worker: ro; from 1
	uint64_t since;      // TSC of the last reset
	uint64_t taken_base, moved_base;
	struct histogram busy_base, empty_base;
} __rte_cache_aligned;

// Worker.
void recorder_enter(struct recorder *r); // on its own thread, first
void recorder_taken(struct recorder *r);
void recorder_long(struct recorder *r, uint64_t now, uint32_t packets);
// Notes what a loop spent besides the graph; several of one loop add up.
void recorder_spent(struct recorder *r, enum loop_stage stage, uint64_t cycles);

// Around system calls that may give the CPU away: that is not the kernel's doing.
static inline void recorder_leave(struct recorder *r)
{
	if (unlikely(*r->armed == 0))
		recorder_taken(r);
}

static inline void recorder_return(struct recorder *r)
{
	*r->armed = r->mark;
}

// The end of every loop, which began at trail.begin.
static inline void recorder_loop(struct recorder *r, uint64_t now, uint32_t packets)
{
	uint64_t cycles = now - r->trail.begin;

	histogram_add(packets > 0 ? &r->busy : &r->empty, cycles);
	if (unlikely(*r->armed == 0))
		recorder_taken(r);
	if (unlikely(cycles >= r->threshold))
		recorder_long(r, now, packets);
	r->loops++;
	r->trail.begin = now;
}

// Master.
void recorder_init(struct recorder *r, const struct rte_graph *graph); // that it will walk
void recorder_set_threshold(struct recorder *r, uint32_t us);
uint32_t recorder_threshold(const struct recorder *r);
void recorder_reset(struct recorder *r); // all counts and long loops start anew
void recorder_counts(const struct recorder *r, struct histogram *busy, struct histogram *empty); // since the reset
// The longest of these loops; exact when it was over the threshold, else the upper bound of its bucket.
uint64_t recorder_max(const struct recorder *r, const struct histogram *busy, const struct histogram *empty);
// The long loops since the reset, longest first. Returns how many.
unsigned recorder_longest(const struct recorder *r, struct long_loop out[LONGEST_LOOPS]);
