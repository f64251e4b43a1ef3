// SPDX-License-Identifier: Apache-2.0
// Internal interface between the files of the flow module.
#pragma once

#include "flow/flow.h"

// Memory per flow: the flow, its two table slots at a load of 0.9, its share of a chunk.
#define FLOW_BYTES (sizeof(struct flow) + 1 + 2 * 64 * 10 / 72 + 1)

// --- Chunks (chunk.c). A chunk is 64 flows and has an owner: the worker that ages its flows and frees them, so that
// their cache lines stay with one CPU. Chunks are numbered from 1; 0 is none. ---
#define FLOW_CHUNK 64u

struct flow_chunk {
	uint64_t free;       // bitmap of free flows. Under the owner's lock
	uint64_t dying;      // bitmap of flows in their grace period. Owner only
	uint32_t next, prev; // links of the owner's list of chunks with free flows. Under the owner's lock
	uint32_t next_dying; // link of the owner's list of chunks with dying flows. Owner only
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

// Called by the owner of the chunk.
bool flow_chunk_mine(unsigned worker, uint32_t chunk);
uint64_t flow_chunk_used(uint32_t chunk); // bitmap of flows that may be in use; 0 while some are in their grace period
// Starts the grace period of an ended flow. Flows of a chunk are buried in one go, after flow_chunk_used() was not 0.
void flow_bury(unsigned worker, struct flow *f);
void flow_reclaim(unsigned worker); // frees flows past their grace period; called periodically

// Master. Moves up to n chunks of the removed worker `from` to `to`, after the grace period of the flows that ended in
// them. Returns true once `from` owns nothing.
bool flow_hand_over(unsigned from, unsigned to, uint32_t n);
void flow_chunks_forget(void); // flow_fini()

// --- Memory of flows and chunks (pool.c). ---
struct flow_chunk *flow_chunk(uint32_t chunk);
uint8_t *flow_chunk_owner(uint32_t chunk); // worker + 1, 0 = none. Atomic; owner (master once it is removed): wo
uint32_t flow_chunks_used(void);           // chunks with a higher number have never been used
unsigned flow_pool_workers(void);          // workers with this id or a higher one have never owned a chunk
uint32_t flow_pool_get(unsigned worker);   // makes the worker the owner of a chunk without one; 0: none left
void flow_pool_put(uint32_t chunk);        // the chunk loses its owner

struct nexthop;
// The packet for which a flow is re-evaluated.
struct flow_again {
	unsigned dir;
	const struct nexthop *via; // of its label or VNI, or NULL
	uint32_t way;              // in a bridge domain (bridged.h); FLOW_WAY_NONE: the flow keeps its way
	bool hit;                  // count a hit for the rules
};

// Re-evaluates a stale flow. Returns -ESTALE if it must end: it would no longer be kept, or be translated by another
// rule; -EBUSY if a worker that was preempted is at it.
int flow_decide_again(struct flow *f, const struct flow_again *p);

// Generations have 16 bits. Direction 1 is routed with its own packets only; if none came while the zone changed 65,535
// times, its old generation would look like the current one. So a stale one becomes 0, which never is current.
static inline void flow_forget_generation(struct flow *f)
{
	if (f->dir[1].gen != __atomic_load_n(&flow_zones[f->dir[1].key.zone].gen, __ATOMIC_RELAXED))
		__atomic_store_n(&f->dir[1].gen, 0, __ATOMIC_RELAXED);
}
