// SPDX-License-Identifier: Apache-2.0
// Rings between workers: one for each pair that needs it, with one producer and one consumer, so that packets stay in
// order.
//
// A packet's meta->arg (enum inject) selects its edge in the consumer's graph, as for packets of the control plane.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "base/check.h"
#include "base/error.h"

#define HANDOFF_SIZE 1024  // default
#define HANDOFF_BUCKETS 40 // of the histogram: bucket b counts times of 2^b to 2^(b+1)-1 TSC cycles

struct worker;

struct handoff {
	// Master: wo, before it is published.
	struct rte_ring *ring;
	uint32_t size; // packets that fit
	uint8_t from, to;
	bool bell;              // the consumer may wait for interrupts: ring its doorbell. Master: wo, producer: ro
	struct handoff *before; // the ring that this one replaces, which must be emptied first. Master: wo, others: ro
	// Producer: rw, others: ro.
	uint64_t sent __rte_cache_aligned; // packets, including the rings that this one replaced
	uint64_t refused;                  // packets that found no room
	uint32_t high;                     // highest number of packets in it
	bool opened;                       // the producer uses it
	bool closed;                       // the producer uses its successor
	// One packet at a time is timed: the producer notes the time of packet number sample_at, the consumer clears
	// sampling.
	uint64_t sample_at, sample_tsc;
	bool sampling;
	// Consumer: rw, others: ro.
	uint64_t taken __rte_cache_aligned; // packets, counted as in sent
	uint64_t done;                      // of these, packets that have left the graph
	bool flowing;                       // the ring that this one replaces is empty
	uint16_t most;                      // largest burst, 0 = BATCH (worker/burst.h)
	uint64_t waited[HANDOFF_BUCKETS];
};

struct handoff_list { // the rings to one worker: immutable, replaced as a whole
	unsigned n;
	struct handoff *h[];
};

extern const struct number_limits handoff_sizes;

// Master. Creates the ring between two workers unless it exists. -ENOMEM with err.
int handoff_connect(struct worker *from, struct worker *to, struct error *err);
// Replaces all rings to this worker by rings of its ring_size. No packet is lost or reordered. -EAGAIN: the rings are
// still being replaced from the last call.
int handoff_resize(struct worker *to, struct error *err);
void handoff_set_bell(struct worker *to, bool bell); // of all rings to it; new rings follow its idle policy
bool handoff_poll(void);                             // frees replaced rings once they are empty. True: none is left
// Frees the rings of a worker that has stopped, and the packets that are left in them.
void handoff_disconnect(struct worker *w);

// Producer. All packets came in by one port; arg: enum inject. Returns how many fit; the caller keeps the rest.
unsigned handoff_give(struct worker *from, unsigned to, struct rte_mbuf **pkts, unsigned n, uint32_t arg);
unsigned handoff_room(const struct worker *from, unsigned to);
bool handoff_pending(const struct worker *from, unsigned to); // packets that it gave have not left the graph of `to`

// Consumer. It calls held_end() for each of them.
unsigned handoff_take(struct handoff *h, struct rte_mbuf **pkts, unsigned n);
void handoff_done(struct worker *w); // at the end of each walk: the packets that it took have left the graph

// Packets sent so far. Called by the producer, or by the master once the producer sends no more through this ring.
static inline uint64_t handoff_sent(const struct handoff *h)
{
	if (__atomic_load_n(&h->opened, __ATOMIC_ACQUIRE))
		return __atomic_load_n(&h->sent, __ATOMIC_RELAXED);
	return h->before ? __atomic_load_n(&h->before->sent, __ATOMIC_RELAXED) : 0;
}

// True: all packets up to this position (see sent) have left the consumer's graph.
static inline bool handoff_passed(const struct handoff *h, uint64_t position)
{
	return __atomic_load_n(&h->done, __ATOMIC_ACQUIRE) >= position;
}
