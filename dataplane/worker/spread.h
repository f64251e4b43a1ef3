// SPDX-License-Identifier: Apache-2.0
// Decides which worker finishes a packet. By default it is the worker that polled the packet (run to completion). The
// packets of a spread port (mode hybrid) are distributed by a hash of their innermost addresses and ports, which is the
// same in both directions, and a table of 1024 entries, each of which names a worker. Isolated-receive and host-path
// workers pass on every packet that they poll.
//
// The poller of a queue keeps a view of the port's table. When an entry moves to another worker, the poller pauses the
// queue until the old worker has finished the packets that it was handed: no packet is lost, and none overtakes another
// of its flow.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "port/port.h"
#include "worker/worker.h"

#define SPREAD_ENTRIES 1024
#define SPREAD_SEVERAL 0xfe // more than one worker
#define SPREAD_LATE_MS 100  // longest wait for a worker that still holds packets; after it, order may be lost

struct worker;

// Which workers finish a port's packets.
enum port_mode {
	PORT_RUN_TO_COMPLETION, // the worker that polled them
	PORT_HYBRID,            // all forwarding workers, or those with a weight, by a hash
	PORT_AUTO,              // run to completion until the polling workers are busy, then hybrid
	PORT_MODES
};
enum spread_full { SPREAD_FULL_DROP, SPREAD_FULL_LOCAL, SPREAD_FULL_WAIT, SPREAD_FULLS };

struct spread_config {                      // of a port (PORT_SETTINGS())
	uint8_t mode;                       // enum port_mode
	uint8_t ring_full;                  // enum spread_full; also in port_fwd
	uint8_t polled_by[PORT_MAX_QUEUES]; // by queue: worker + 1, 0 = any
	uint32_t weights[WORKER_MAX];       // by worker, of hybrid mode; all 0: every forwarding worker alike
};
const struct spread_config *spread_config(const struct port_config *cfg);
struct spread_config *spread_config_edit(struct port_config *cfg);

extern bool spread_never; // --run-to-completion: no port may be spread. Set once, before the first port

struct spread { // of a port: immutable, replaced as a whole
	uint8_t to[SPREAD_ENTRIES];
};

struct spread_port {
	struct spread *table; // NULL: not spread. Master: wo (RCU), polling workers: ro
	// Master only.
	bool busy;              // PORT_AUTO: its polling workers are busy, so that it is spread
	unsigned quiet_seconds; // PORT_AUTO: seconds for which the pollers alone would have been enough
	bool moved;             // rebalancing has moved entries of its table
	uint64_t weighed;       // bitmap of the workers over which the table was last distributed
};
extern struct spread_port spread_ports[PORT_MAX]; // by id

struct spread_view {         // of a queue. Poller: rw, master: ro
	uint32_t epoch;      // the spread_epoch that it follows, 0 = none
	uint8_t all_to;      // the worker that gets all packets; SPREAD_SEVERAL = by the entries
	uint8_t home;        // the worker that gets packets without a hash
	uint8_t host;        // the worker that sends the kernel's packets; SPREAD_LOCAL = the one that has the packet
	bool leaving;        // the queue is moving to another worker
	uint8_t full;        // enum spread_full
	unsigned n_waits;    // workers that must finish packets first
	uint64_t wait_since; // TSC
	uint64_t gave_up;    // waits that took longer than SPREAD_LATE_MS
	uint64_t targets;    // bit per worker
	struct {
		uint8_t to;
		uint64_t position;
	} waits[WORKER_MAX];
	uint8_t to[SPREAD_ENTRIES];
	uint64_t load[SPREAD_ENTRIES]; // packets
	// Master only (load.c): load as of a second ago, and packets per second.
	uint64_t seen[SPREAD_ENTRIES];
	double rate[SPREAD_ENTRIES];
};

extern uint32_t spread_epoch; // changes with every table and target. Master: wo, workers: ro

// Master.
// Distributes n entries over workers by these weights (0 = none), as evenly as possible, and changes as few of to[] as
// possible.
void spread_deal(uint8_t *to, unsigned n, const uint32_t weights[WORKER_MAX]);
void spread_deal_lost(uint8_t *to, unsigned n,
		      const uint32_t weights[WORKER_MAX]); // only the entries of workers with weight 0
// Updates rings, tables and views. Called after any change of the configuration of ports or workers.
int spread_refresh(struct error *err);
// Moves an entry to another worker at the next refresh. It stays there until weights or workers change.
int spread_move(struct port *port, unsigned entry, uint8_t to, struct error *err);
bool spread_settled(void);                // every polled queue follows the present tables
void spread_port_gone(struct port *port); // when no thread uses the port any more

// Called by the poller of the queue. False: it must not poll now.
bool spread_ready(struct worker *w, struct port_queue *q, struct spread_view *v);
uint16_t spread_room(const struct worker *w, const struct spread_view *v, uint16_t room); // room of the fullest ring
void spread_give_queue(struct worker *w, struct port_queue *q); // hands it to its new poller, once nothing is pending
