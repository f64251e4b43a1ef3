// SPDX-License-Identifier: Apache-2.0
// Records how long a worker's loops take, and where the long ones spent their time. Always on: a loop that is not long
// costs two additions to a histogram's count and two comparisons.
//
// Preemption is detected without a system call. A thread's struct rseq points to a critical section that the thread
// never enters. The kernel clears that pointer whenever it resumes the thread after a preemption, a move to another CPU
// or a signal (rseq(2)). A NULL at the end of a loop means that the kernel interrupted it.
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
#define LONG_LOOP_US LIMIT_WORKER_LOOP_THRESHOLD_US_DEFAULT
#define LONG_LOOP_FORGET_S 600 // any long loop may replace an older one

enum loop_stage {
	STAGE_RECEIVE,  // polling the queues
	STAGE_GRAPH,    // all other nodes
	STAGE_MESSAGES, // quiescent state, orders of the master, ageing of flows, the loop itself
	STAGE_IDLE,     // the CPU was given up: yielding, sleeping
	STAGE_DELAY,    // injected (corelane debug delay)
	LOOP_STAGES
};

struct loop_node {
	uint32_t node; // for graph_step_name()
	uint32_t runs;
	uint64_t cycles;
};

struct long_loop {
	uint64_t end, cycles; // TSC
	uint64_t stages[LOOP_STAGES];
	uint32_t packets;
	uint32_t cpu; // that it ended on
	bool taken;   // the kernel interrupted it
	bool moved;   // to another CPU
	unsigned n_nodes;
	struct loop_node nodes[LONG_LOOP_NODES]; // the longest first
};

struct long_loop_slot {
	uint32_t sequence;   // odd while it is written
	uint32_t generation; // recorder.generation when it was written; 0 = empty
	struct long_loop loop;
};

struct recorder {
	// Worker: rw. What every loop touches comes first.
	volatile uint64_t *armed; // struct rseq's pointer; without rseq, a word that is never cleared
	uint64_t mark;            // the value that *armed is set to
	uint64_t threshold;       // TSC cycles; master: wo, worker: ro
	uint64_t loops;
	struct histogram busy, empty; // loops with and without packets; worker: rw, master: ro
	struct graph_trail trail;
	// Worker: rw, in rare cases only; master: ro.
	uint64_t taken, moved;
	uint64_t taken_in;                     // number of the last interrupted loop
	uint64_t spent_in, spent[LOOP_STAGES]; // number of a loop, and the cycles that it spent outside the graph
	uint32_t cpu;
	bool sees_kernel; // rseq is available
	uint64_t unarmed; // what armed points to without rseq
	struct long_loop_slot longest[LONGEST_LOOPS];
	// Master: rw.
	uint32_t generation; // worker: ro; from 1
	uint64_t since;      // TSC of the last reset
	uint64_t taken_base, moved_base;
	struct histogram busy_base, empty_base;
} __rte_cache_aligned;

// Worker.
void recorder_enter(struct recorder *r); // first, on the worker's thread
void recorder_taken(struct recorder *r);
void recorder_long(struct recorder *r, uint64_t now, uint32_t packets);
// Adds cycles that the present loop spent outside the graph.
void recorder_spent(struct recorder *r, enum loop_stage stage, uint64_t cycles);

// Called before and after system calls that give up the CPU: such a switch is not a preemption.
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
void recorder_init(struct recorder *r, const struct rte_graph *graph); // graph: that the worker walks
void recorder_set_threshold(struct recorder *r, uint32_t us);
uint32_t recorder_threshold(const struct recorder *r);
void recorder_reset(struct recorder *r); // starts all counts and the list of long loops anew
void recorder_counts(const struct recorder *r, struct histogram *busy, struct histogram *empty); // since the reset
// The length of the longest of these loops: exact if it was recorded as a long loop, else the upper bound of its
// bucket.
uint64_t recorder_max(const struct recorder *r, const struct histogram *busy, const struct histogram *empty);
// The long loops since the reset, longest first. Returns how many.
unsigned recorder_longest(const struct recorder *r, struct long_loop out[LONGEST_LOOPS]);
