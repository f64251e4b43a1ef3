// SPDX-License-Identifier: Apache-2.0
// Workers: threads that poll queues and walk the graph, one CPU each. They come, go and move while traffic flows.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_ring.h>

#include "base/error.h"
#include "port/port.h"
#include "worker/idle.h"

#define WORKER_MAX 64

enum idle_policy { IDLE_SPIN, IDLE_PAUSE, IDLE_YIELD, IDLE_SLEEP, IDLE_INTERRUPT };
#define IDLE_POLICIES (IDLE_INTERRUPT + 1u)
#define IDLE_POLICY_NAMES "spin, pause, yield, sleep, interrupt"

// All roles walk the same graph. They differ in where their packets go and in whether queues come to them unasked (forwarding only).
enum worker_role {
	WORKER_FORWARDING,  // pmd-fwd-N
	WORKER_ISOLATED_RX, // pmd-rx-N: hands all that it polls to one forwarding worker
	WORKER_HOST_PATH,   // pmd-host-N: the kernel's port
	WORKER_ROLES
};

struct worker_config {
	unsigned cpu;
	enum idle_policy idle;
	enum worker_role role;
	uint32_t target; // other roles than forwarding: the worker that gets what they poll; WORKER_NONE = the one with the fewest
	uint32_t ring_size; // packets in each ring to it, a power of two; 0 = HANDOFF_SIZE
};

struct handoff;
struct handoff_list;

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
	const struct handoff_list *in_now; // what it takes from in this walk
	unsigned next_queue;               // where the next poll begins
	uint32_t polled;                   // packets that this walk brought
	uint64_t tsc;                      // when the flow node that runs began its batch
	uint64_t loops, busy_loops, busy_cycles, idle_cycles, packets;
	struct recorder *recorder; // of its loops
	uint64_t *system_calls;    // its thread's (base/system_calls.h)
	struct idle idle_state;
	struct wait *wait;
	uint32_t orders;                 // enum order; master: sets, worker: clears
	uint64_t delay;                  // TSC cycles of each loop that are lost on purpose, 0 = none; master: wo, worker: ro
	void (*fault)(struct worker *w); // ORDER_FAULT; master: wo, worker: ro
	// Master: wo, worker: ro.
	enum idle_policy idle;
	bool stop;
	uint8_t role;                    // enum worker_role
	uint8_t target;                  // WORKER_MAX = none
	bool reopen;                     // rings of out[] were replaced. Worker: sets it back
	struct handoff_list *in;         // rings to this worker (RCU)
	struct handoff *out[WORKER_MAX]; // rings to others, by their id (RCU)
	unsigned id;
	// Master only.
	unsigned cpu;
	uint32_t ring_size;
	bool leaving; // gets nothing new
	int numa;     // node of its CPU, -1 = unknown
	int memory;   // node that its memory comes from, or SOCKET_ID_ANY
	int tid;
	unsigned lcore;
	pthread_t thread;
	struct counters *counters;
	struct worker_health *health;
} __rte_cache_aligned;

extern __thread struct worker *this_worker;

const char *idle_policy_name(enum idle_policy idle);
int idle_policy_parse(const char *name, enum idle_policy *out);
const char *worker_thread_name(const struct worker *w, char name[16]); // "pmd-fwd-0"

// Other modules follow the workers; NULL: this one does not care. Registered before there are workers.
struct worker_listener {
	void (*each_loop)(unsigned worker,
			  uint64_t tsc);     // on the worker, between two walks of its graph; tsc: when the last one began
	bool (*unfinished)(unsigned worker); // on the worker: there is more to do soon, so it must not wait for a packet
	void (*set_changed)(const struct worker *leaving); // master: after a worker was added or has changed its role (leaving is
							   // NULL), and before it goes or is host-path no longer
	struct worker_listener *next;
};
void worker_listen(struct worker_listener *l);

// Master thread. id: WORKER_NONE = the lowest free one. Queues that nobody polls go to the new worker, and those of a worker that
// goes to the others.
struct worker *worker_add(uint32_t id, const struct worker_config *cfg, struct error *err);
int worker_move(struct worker *w, unsigned cpu, struct error *err);
// IDLE_INTERRUPT is refused while the worker polls a queue that gives none.
int worker_set_idle(struct worker *w, enum idle_policy idle, struct error *err);
void worker_set_sleep_max(struct worker *w, uint32_t us);      // of IDLE_SLEEP
void worker_set_loop_threshold(struct worker *w, uint32_t us); // from which on loops are long
int worker_del(uint32_t id, struct error *err);
void worker_del_all(void);
struct worker *worker_get(uint32_t id); // NULL
unsigned worker_count(void);
struct worker *worker_next(struct worker *w); // by id; NULL: the first one

// Takes effect with the packets that are polled next.
int worker_set_role(struct worker *w, enum worker_role role, struct error *err);
int worker_set_target(struct worker *w, uint32_t target, struct error *err);
int worker_set_ring_size(struct worker *w, uint32_t size, struct error *err);
void worker_poll(void); // finishes changes that wait for workers; called from the master's loop

// Queues. The old worker gives a queue to the new one when it comes to it, without a gap and without stopping either. When it is late the
// queue goes over as soon as it goes on.
int worker_assign(struct port_queue *q, struct worker *w, struct error *err);
void worker_spread(
	struct port *port); // gives queues to the workers that are named for them, and unpolled ones to whom has the fewest
int worker_may_spread(const struct port *port, const struct port_config *cfg,
		      struct error *err); // somebody may poll each of its queues
void worker_forget(struct port *port);    // takes the port's queues from all workers

// Packets from the master into the graph: edge is one of enum inject. Frees the packet and returns -EAGAIN when no worker can.
enum inject { INJECT_TX, INJECT_INPUT };
int worker_inject(struct rte_mbuf *m, enum inject edge);

void worker_health_poll(void); // master, every 100 ms
