// SPDX-License-Identifier: Apache-2.0
// Which worker finishes a packet. By default the one that polled it does (run to completion). The packets of a port that is
// spread (hybrid) are dealt by a hash of their innermost addresses and ports, the same in both directions: 1024 entries,
// each of one worker. Workers of other roles than forwarding hand on all that they poll.
//
// Who polls a queue keeps a view of its port's table. When an entry goes to another worker, the poller lets the queue
// wait until the old worker has let go of what it was given: no packet is lost, none overtakes another of its flow.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "port/port.h"

#define SPREAD_ENTRIES 1024
#define SPREAD_SEVERAL 0xfe // not one for all
#define SPREAD_LATE_MS 100  // a worker that holds packets for so long is not waited for any more: order may be lost

struct worker;

struct spread { // of a port: immutable, replaced as a whole
	uint8_t to[SPREAD_ENTRIES];
};

struct spread_view {         // of a queue. Who polls it: rw, master: ro
	uint32_t epoch;      // of spread_epoch, 0 = of none
	uint8_t all_to;      // where everything goes, SPREAD_SEVERAL = by the entries
	uint8_t home;        // where packets go that no hash can be made of
	uint8_t host;        // who sends what is the kernel's, SPREAD_LOCAL = whoever has the packet
	bool leaving;        // it is being given to another worker
	uint8_t full;        // enum spread_full (port/port.h)
	unsigned n_waits;    // workers that have to let go of packets first
	uint64_t wait_since; // TSC
	uint64_t gave_up;    // waits that took too long
	uint64_t targets;    // bit per worker
	struct {
		uint8_t to;
		uint64_t position;
	} waits[64];
	uint8_t to[SPREAD_ENTRIES];
	uint64_t load[SPREAD_ENTRIES]; // packets
	// Master only (load.c): what load was a second ago, and packets per second.
	uint64_t seen[SPREAD_ENTRIES];
	double rate[SPREAD_ENTRIES];
};

extern uint32_t spread_epoch; // of all tables and targets. Master: wo, workers: ro

// Master.
// n entries over workers with these weights (0 = none), as evenly as it goes, changing as few of to[] as possible.
void spread_deal(uint8_t *to, unsigned n, const uint32_t weights[64]);
void spread_deal_lost(uint8_t *to, unsigned n, const uint32_t weights[64]); // only entries whose worker has weight 0
// What ports and workers want now takes effect: rings, tables, views. Call after any change of either.
int spread_refresh(struct error *err);
// This entry goes to another worker with the next refresh, and stays there until weights or workers change.
int spread_move(struct port *port, unsigned entry, uint8_t to, struct error *err);
bool spread_settled(void);                // every queue that is polled follows
void spread_port_gone(struct port *port); // nobody polls or sees it any more

// Worker that polls: false = not now.
bool spread_ready(struct worker *w, struct port_queue *q, struct spread_view *v);
uint16_t spread_room(const struct worker *w, const struct spread_view *v,
		     uint16_t room);                            // packets that the fullest ring still takes
void spread_give_queue(struct worker *w, struct port_queue *q); // somebody else shall poll it
