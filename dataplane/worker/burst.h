// SPDX-License-Identifier: Apache-2.0
// Bounds the length of a worker's walks, so that costly packets of one port do not delay those of others. A walk takes
// up to BATCH packets from any queues and rings. After one that took longer than BURST_WALK_US, the worker bounds
// bursts for a while: of each further long walk, the source with the most packets gets half the burst and walks of its
// own; the burst is doubled again when its walks are short.
//
// All functions run on the worker. Ordinary walks cost two comparisons.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define BURST_WALK_US 20  // about the time of 256 packets of known flows from guests to tunnels
#define BURST_LEAST 8     // packets; drivers with vector instructions return none when they are asked for fewer
#define BURST_CALM_MS 100 // without a long walk or a bounded burst: then bursts are not bounded any more

// A source's largest burst is a uint16_t of its queue or ring, 0 = BATCH. The worker that polls the source writes it;
// one that is about to get the queue, or has lost it, may read it.
struct burst {
	bool bounded;     // bursts are bounded
	uint64_t longest; // TSC cycles; burst_walked() is due after a longer walk. 0 while bursts are bounded
	uint64_t until;   // TSC when they are not bounded any more
	// Of the walk, while bursts are bounded: the source with the most packets.
	uint16_t *most;   // its largest burst
	uint16_t brought; // packets
};

void burst_init(struct burst *b);
// After a walk that ended at `now` and took more than `longest`; before a quiescent state, because a source that the
// walk has polled may be freed then.
void burst_walked(struct burst *b, uint64_t now, uint64_t cycles);

// Before a walk's first source: what an earlier walk polled may belong to another worker by now, or be freed.
static inline void burst_begin(struct burst *b)
{
	b->brought = 0;
}

static inline uint16_t burst_most(const uint16_t *most)
{
	return __atomic_load_n(most, __ATOMIC_RELAXED);
}

// How many packets a source with this largest burst may bring into a walk with this room.
static inline uint16_t burst_room(uint16_t most, uint16_t room)
{
	return most > 0 && most < room ? most : room;
}

// A source has brought n packets.
static inline void burst_brought(struct burst *b, uint16_t *most, uint16_t n)
{
	if (n <= b->brought)
		return;
	b->brought = n;
	b->most = most;
}
