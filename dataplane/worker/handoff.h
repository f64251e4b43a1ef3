// SPDX-License-Identifier: Apache-2.0
// Rings between workers: one for each pair that needs it, single producer, single consumer, so that order holds within it.
//
// A packet's meta->arg says where it goes in the taker's graph (enum inject), as for packets of the control plane.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "base/error.h"

#define HANDOFF_SIZE 1024 // default
#define HANDOFF_SIZE_MIN 64
#define HANDOFF_SIZE_MAX (1u << 22)
#define HANDOFF_BUCKETS 40 // of the histogram: bucket b counts times of 2^b to 2^(b+1)-1 TSC cycles

struct worker;

struct handoff {
	// Master: wo, before anybody sees it.
	struct rte_ring *ring;
	uint32_t size; // packets that fit
	uint8_t from, to;
	bool bell;              // the taker may wait: ring after giving. Master: wo, giver: ro
	struct handoff *before; // the ring that this one replaces: to be emptied first. Master: wo, giver and taker: ro
	// Giver: rw, others: ro.
	uint64_t sent __rte_cache_aligned; // with those of the rings that this one replaced
	uint64_t refused;                  // packets that found no room
	uint32_t high;                     // most packets that were in it
	bool opened;                       // the giver uses it
	bool closed;                       // and will not any more
	// One packet at a time is timed: the giver sets when it goes in as number sample_at, the taker sets sampling back.
	uint64_t sample_at, sample_tsc;
	bool sampling;
	// Taker: rw, others: ro.
	uint64_t taken __rte_cache_aligned; // as sent
	uint64_t done;                      // of these, those whose walk through the graph is over
	bool flowing;                       // the ring before is empty
	uint64_t waited[HANDOFF_BUCKETS];
};

struct handoff_list { // what one worker takes from: immutable, replaced as a whole
	unsigned n;
	struct handoff *h[];
};

bool handoff_size_ok(uint32_t size); // a power of two in range

// Master. Makes the ring from one to the other, unless there is one. -ENOMEM with err.
int handoff_connect(struct worker *from, struct worker *to, struct error *err);
// All rings to this worker are replaced by ones of its ring_size: no packet is lost, order holds.
int handoff_resize(struct worker *to, struct error *err);
void handoff_set_bell(struct worker *to, bool bell); // of all rings to it, also those to come as long as it is IDLE_INTERRUPT
bool handoff_poll(void);                             // frees rings that were replaced, once they are empty. True: none is left
// Neither gives nor takes any more, and nothing is in its rings but what a dead worker left: freed.
void handoff_disconnect(struct worker *w);

// Giver. Number of packets taken; the rest is the caller's.
unsigned handoff_give(struct worker *from, unsigned to, struct rte_mbuf **pkts, unsigned n);
unsigned handoff_room(const struct worker *from, unsigned to);

// Taker.
unsigned handoff_take(struct handoff *h, struct rte_mbuf **pkts, unsigned n);
void handoff_done(struct worker *w); // at the end of each walk: what was taken has left the graph

// Packets that this giver has given so far. Giver; master once the giver has stopped.
static inline uint64_t handoff_sent(const struct handoff *h)
{
	return h->opened ? h->sent : h->before ? h->before->sent : 0;
}

// Everything that was given up to this position (sent) has left the taker's graph.
static inline bool handoff_passed(const struct handoff *h, uint64_t position)
{
	return __atomic_load_n(&h->done, __ATOMIC_ACQUIRE) >= position;
}
