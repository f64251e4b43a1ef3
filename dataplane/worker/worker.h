// SPDX-License-Identifier: Apache-2.0
// Workers: threads that poll queues and walk the graph, one CPU each. They can be added, moved and removed under
// traffic.
#pragma once

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_ring.h>

#include "base/error.h"
#include "base/field_limits.h"
#include "port/port.h"
#include "worker/burst.h"
#include "worker/idle.h"

#define WORKER_MAX (LIMIT_WORKER_ID_MAX + 1)
static_assert(WORKER_MAX <= 64, "a set of workers is the bits of a number");

enum idle_policy { IDLE_SPIN, IDLE_PAUSE, IDLE_YIELD, IDLE_SLEEP, IDLE_INTERRUPT };
#define IDLE_POLICIES (IDLE_INTERRUPT + 1u)
#define IDLE_POLICY_NAMES "spin, pause, yield, sleep, interrupt"

// All roles walk the same graph. They differ in where their packets go, and only forwarding workers get queues by
// default.
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
	// Other roles than forwarding: the worker that gets their packets; WORKER_NONE = the one with the fewest
	// queues.
	uint32_t target;
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
	const struct handoff_list *in_now; // rings that it polls in this walk
	unsigned next_queue;               // where the next poll begins
	struct burst burst;
	uint32_t polled;      // packets that this walk brought
	uint32_t share;       // buffers that a tenant port may hold, or BUFFERS_ENOUGH
	uint64_t share_until; // TSC when it is computed again
	uint64_t tsc;         // when the running flow node began its batch
	uint64_t loops, busy_loops, busy_cycles, idle_cycles, packets;
	struct recorder *recorder; // of its loops
	uint64_t *system_calls;    // its thread's (base/system_calls.h)
	struct idle idle_state;
	struct wait *wait;
	uint32_t orders;                 // enum order; master: sets, worker: clears
	uint64_t delay;                  // TSC cycles to waste in each loop, 0 = none; master: wo, worker: ro
	void (*fault)(struct worker *w); // ORDER_FAULT; master: wo, worker: ro
	// Master: wo, worker: ro.
	enum idle_policy idle;
	bool stop;
	uint8_t role;                    // enum worker_role
	uint8_t target;                  // WORKER_MAX = none
	bool reopen;                     // rings of out[] were replaced. Worker: clears it
	struct handoff_list *in;         // rings to this worker (RCU)
	struct handoff *out[WORKER_MAX]; // rings to others, by their id (RCU)
	unsigned id;
	// Master only.
	unsigned cpu;
	uint32_t ring_size;
	bool leaving; // is being removed: gets no new work
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

// Callbacks for other modules (base/notify.h); NULL: not needed. Registered before there are workers.
struct worker_listener {
	// On the worker, before its first loop. A negative errno ends the thread, and the worker is not added.
	int (*enter)(unsigned worker);
	// On the worker, between two walks of its graph; tsc: when the last one began.
	void (*each_loop)(unsigned worker, uint64_t tsc);
	// On the worker. True: there is more to do soon, so it must not wait for a packet.
	bool (*unfinished)(unsigned worker);
	// Master: after a worker was added or has changed its role (leaving is NULL), and before a worker is removed or
	// leaves the host-path role.
	void (*set_changed)(const struct worker *leaving);
	struct worker_listener *next;
};
void worker_listen(struct worker_listener *l);

// Master thread. id: WORKER_NONE = the lowest free one. The new worker gets the queues that have no poller; the queues
// of a removed worker go to the others.
struct worker *worker_add(uint32_t id, const struct worker_config *cfg, struct error *err);
int worker_move(struct worker *w, unsigned cpu, struct error *err);
// IDLE_INTERRUPT is refused while the worker polls a queue that gives no interrupts.
int worker_set_idle(struct worker *w, enum idle_policy idle, struct error *err);
void worker_set_sleep_max(struct worker *w, uint32_t us);      // of IDLE_SLEEP; 0 = the default
void worker_set_loop_threshold(struct worker *w, uint32_t us); // shortest loop to record; 0 = the default
int worker_del(uint32_t id, struct error *err);
// How many times longer than usual the master and workers wait for a worker that is late: 1, unless a test must not
// depend on how soon its threads get a CPU.
extern unsigned worker_patience;
// False: a worker has not ended, and goes on to use what it was given: nothing may be freed.
bool worker_del_all(void);
struct worker *worker_get(uint32_t id); // NULL
unsigned worker_count(void);
struct worker *worker_next(struct worker *w); // by id; NULL: the first one

// Takes effect with the packets that are polled next.
int worker_set_role(struct worker *w, enum worker_role role, struct error *err);
int worker_set_target(struct worker *w, uint32_t target, struct error *err);
int worker_set_ring_size(struct worker *w, uint32_t size, struct error *err);
void worker_poll(void); // finishes changes that wait for workers; called from the master's loop

// Queues. The old worker hands a queue to the new one between two polls; neither of them stops. If the old worker is
// late, the queue moves as soon as it continues.
int worker_assign(struct port_queue *q, struct worker *w, struct error *err);
// Assigns the port's queues to their configured workers, and unpolled ones to the worker with the fewest queues.
void worker_spread(struct port *port);
// Between the two, ports are not polled: their queues get workers when they are released. Workers that are added
// meanwhile begin then, too, so no change waits for them. For a start, which has rules and routes in place before the
// first packet meets them.
void worker_hold_ports(void);
void worker_release_ports(void);
void worker_share_tx(struct port *port); // sets PORT_TX_SHARED, which workers read before they send
// Checks that there is a worker that may poll each of its queues.
int worker_may_spread(const struct port *port, const struct port_config *cfg, struct error *err);
void worker_forget(struct port *port); // takes the port's queues from all workers

// Sends a packet of the master into the graph of a worker. -EAGAIN: no worker had room, and the packet was dropped.
enum inject { INJECT_TX, INJECT_INPUT };
int worker_inject(struct rte_mbuf *m, enum inject edge);

void worker_health_poll(void); // master, every 100 ms
