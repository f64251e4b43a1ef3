// SPDX-License-Identifier: Apache-2.0
// Between the files of this module.
#pragma once

#include "flow/flow.h"

#define FLOW_BYTES \
	(sizeof(struct flow) + 1 + 2 * 64 * 10 / 72 + 1) // of a flow, its part of a chunk, and its two slots at a load of 0.9

// --- Chunks (chunk.c). Flows are handed out 64 at a time. Whose worker a chunk is, that worker ends its flows and gives them back, so that
// their cache lines stay where they are used. Chunks are numbered from 1; 0 is none. ---
#define FLOW_CHUNK 64u

struct flow_chunk {
	uint64_t free;       // flows that nobody has. The lock of its owner
	uint64_t dying;      // in their grace period. Its owner only
	uint32_t next, prev; // of its owner's chunks with free flows. The lock of its owner
	uint32_t next_dying; // Its owner only
};

static inline uint32_t flow_chunk_of(const struct flow *f)
{
	return (uint32_t)(f - flows + FLOW_CHUNK - 1) / FLOW_CHUNK;
}

static inline struct flow *flow_chunk_first(uint32_t chunk)
{
	return &flows[(uint64_t)(chunk - 1) * FLOW_CHUNK + 1];
}

static inline uint64_t flow_chunk_bit(const struct flow *f)
{
	return 1ull << ((f - flows - 1) % FLOW_CHUNK);
}

// A worker, of what is its own.
bool flow_chunk_mine(unsigned worker, uint32_t chunk);
uint64_t flow_chunk_used(uint32_t chunk);        // flows that may be in use; none while some are in their grace period
void flow_bury(unsigned worker, struct flow *f); // it has ended. All of a chunk at once: only when some were in use a moment ago
void flow_reclaim(unsigned worker);              // takes back what is past its grace period; again and again

// Master. `from` has gone: up to n of its chunks become another worker's, once nobody sees what ended in them. True: it has nothing.
bool flow_hand_over(unsigned from, unsigned to, uint32_t n);
void flow_chunks_forget(void); // flow_fini()

// --- Their memory (pool.c). ---
struct flow_chunk *flow_chunk(uint32_t chunk);
uint8_t *flow_chunk_owner(uint32_t chunk); // worker + 1, 0 = nobody. Atomic: its owner and, when that has gone, the master
uint32_t flow_chunks_used(void);           // those behind this number have never been used
unsigned flow_pool_workers(void);          // workers from this id on have never had a chunk
uint32_t flow_pool_get(unsigned worker);   // a chunk without an owner becomes this worker's; 0: there is none
void flow_pool_put(uint32_t chunk);        // has no owner any more

struct nexthop;
// False: the flow is no longer what it would be now, and has to end. via: of the packet's label or VNI, or NULL. hit: counts for the rules.
bool flow_decide_again(struct flow *f, unsigned dir, const struct nexthop *via, bool hit);
