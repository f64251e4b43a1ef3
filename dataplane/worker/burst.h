// SPDX-License-Identifier: Apache-2.0
// Bounds the length of a worker's walks, so that the packets of one source (a queue or ring) do not delay those of
// others. A walk takes up to BATCH packets from any sources. After a walk that took longer than BURST_WALK_US, or than
// BURST_SHARED_US while the worker is shared, the worker bounds bursts for a while: of each further long walk, the
// source that brought the most packets and has more gets half the burst and walks of its own. The burst is doubled
// again when its walks are short or when they empty the source, so a source that was idle may bring a large burst.
//
// A worker is shared while a source has more than it may bring, and others do not. If all sources have more, shorter
// walks would only lower the rate of all.
//
// A burst of one frame cannot be halved. If such a frame of ordinary length still takes longer than BURST_SHARED_US, as
// one in a hundred descriptors does, its source is not polled for BURST_REST times as long while the worker is shared:
// otherwise it would have most of the worker's time, in pieces that each delay the others.
//
// All functions run on the worker. A short walk costs one comparison.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "port/port.h"

#define BURST_WALK_US 20   // about the time of 256 packets of known flows from guests to tunnels
#define BURST_CALM_MS 100  // without a long walk or a bounded burst: then bursts are not bounded any more
#define BURST_SHARED_US 3  // about the time of 40 such packets; at 32, a packet takes 4 % more instructions than at 256
#define BURST_SHARED_MS 10 // without a packet of others: then the worker is not shared any more
// A burst of long packets from the fabric is not bounded to fewer than this: packets of one connection are joined to a
// large segment only if they come in one burst, and one by one they would take a guest's port several times as long.
#define BURST_JOIN 48    // a large segment of 64 KB
#define BURST_LONG 1000  // bytes of a packet, on average
#define BURST_REST 3     // so the source has a quarter of the time at most
#define BURST_FRAME 9622 // bytes of the longest frame that is no large segment

// A source's largest burst is a uint16_t of its queue or ring, 0 = BATCH. The worker that polls the source writes it;
// one that is about to get the queue, or has lost it, may read it.
struct burst {
	bool bounded;          // bursts are bounded
	bool shared;           // the worker is shared
	uint64_t longest;      // TSC cycles; burst_walked() is due after a longer walk. 0 while bursts are bounded
	uint64_t costly_until; // TSC
	uint64_t shared_until; // TSC
	// Of the walk. While bursts are not bounded, only `others`.
	bool others;          // a source other than `full` brought packets and has no more
	uint16_t *most;       // largest burst of the source that has more and brought the most packets, or NULL
	uint16_t brought;     // its packets
	uint16_t least;       // its smallest burst
	bool dear;            // they are one frame of at most BURST_FRAME bytes, from a port
	const uint16_t *full; // the last `most`; only compared
	uint64_t rest_until;  // TSC
	bool resting;         // sources whose largest burst is one packet are not polled
};

void burst_init(struct burst *b);
// After a walk that ended at `now` and took more than `longest`; before a quiescent state, because a source that the
// walk has polled may be freed then.
void burst_walked(struct burst *b, uint64_t now, uint64_t cycles);

// Before a walk's first source: what an earlier walk polled may belong to another worker by now, or be freed.
static inline void burst_begin(struct burst *b)
{
	b->others = false;
	b->most = NULL;
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

static inline void burst_double(uint16_t *most)
{
	__atomic_store_n(most, *most < BATCH / 2 ? (uint16_t)(2 * *most) : 0, __ATOMIC_RELAXED);
}

// A source has brought n > 0 packets. more: it was not emptied. least: packets that its rx can be asked for. bytes: of
// the packets, 0 = unknown.
static inline void burst_brought(struct burst *b, uint16_t *most, uint16_t n, bool more, uint16_t least, uint64_t bytes)
{
	if (!more) {
		b->others |= most != b->full;
		if (*most > 0)
			burst_double(most);
	} else if (n > b->brought) {
		b->brought = n;
		b->least = least;
		b->most = most;
		b->dear = n == 1 && bytes > 0 && bytes <= BURST_FRAME;
	}
}
