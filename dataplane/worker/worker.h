// SPDX-License-Identifier: Apache-2.0
// Workers: threads that poll queues and walk the graph, one CPU each. They come, go and move while traffic flows.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_ring.h>

#include "base/error.h"
#include "port/port.h"

#define WORKER_MAX 64
#define WORKER_NONE UINT32_MAX

enum idle_policy { IDLE_SPIN, IDLE_PAUSE, IDLE_YIELD, IDLE_SLEEP };

// The queues that one worker polls: immutable, replaced as a whole.
struct rx_list {
	unsigned n;
	struct port_queue *q[];
};

struct worker {
	// Worker: rw.
	struct rx_list *rx;      // master: wo (RCU), worker: ro
	struct rte_ring *inject; // packets from the master
	struct rte_graph *graph;
	unsigned next_queue; // where the next poll begins
	uint32_t polled;     // packets that this walk brought
	uint64_t tsc;        // when the flow node that runs began its batch
	uint64_t loops, busy_loops, busy_cycles, idle_cycles, packets;
	// Master: wo, worker: ro.
	enum idle_policy idle;
	bool stop;
	unsigned id;
	// Master only.
	unsigned cpu;
	int numa;
	int tid;
	unsigned lcore;
	pthread_t thread;
	struct counters *counters;
} __rte_cache_aligned;

extern __thread struct worker *this_worker;

const char *idle_policy_name(enum idle_policy idle);
int idle_policy_parse(const char *name, enum idle_policy *out);

// Master thread. id: WORKER_NONE = the lowest free one. Queues that nobody polls go to the new worker, and those of a worker that
// goes to the others.
struct worker *worker_add(uint32_t id, unsigned cpu, enum idle_policy idle, struct error *err);
int worker_move(struct worker *w, unsigned cpu, struct error *err);
void worker_set_idle(struct worker *w, enum idle_policy idle);
int worker_del(uint32_t id, struct error *err);
void worker_del_all(void);
struct worker *worker_get(uint32_t id); // NULL
unsigned worker_count(void);
struct worker *worker_next(struct worker *w); // by id; NULL: the first one

// Queues. A queue leaves its old worker before the new one sees it, without stopping either.
int worker_assign(struct port_queue *q, struct worker *w, struct error *err);
void worker_spread(struct port *port); // gives each unpolled queue to the worker with the fewest
void worker_forget(struct port *port); // takes the port's queues from all workers

// Packets from the master into the graph: edge is one of enum inject. Frees the packet and returns -EAGAIN when no worker can.
enum inject { INJECT_TX, INJECT_INPUT };
int worker_inject(struct rte_mbuf *m, enum inject edge);
