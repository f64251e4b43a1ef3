// SPDX-License-Identifier: Apache-2.0
// Ownership of chunks. A worker allocates flows from its own chunks, then takes chunks without an owner, then steals
// free flows from chunks of other workers, which keep their owners. An ended flow always returns to its chunk.
#include <stddef.h>
#include <string.h>

#include <rte_spinlock.h>

#include "base/prefetch.h"
#include "flow/flow_private.h"
#include "worker/worker.h"

#define AT_HAND (2 * FLOW_CHUNK)
#define KEEP (128 * FLOW_CHUNK) // free flows that a worker keeps; above that it gives up chunks that are wholly free

static struct holder {             // one worker's flows. Written by the worker, after its removal by the master
	uint64_t taken, freed;     // flows since the start. Owner: rw, master: ro
	uint32_t collecting;       // list of chunks with flows that ended since the token was taken
	uint32_t waiting;          // list of chunks with flows that ended before
	uint64_t token;            // of the grace period of `waiting`
	uint32_t chunks;           // number of chunks owned, atomic
	uint32_t at;               // last chunk that flow_hand_over() examined
	uint32_t n, hand[AT_HAND]; // flows at hand for flow_alloc()
	// Under the lock, which mostly the owner takes.
	alignas(RTE_CACHE_LINE_SIZE) rte_spinlock_t lock;
	uint32_t list;   // chunks with free flows
	uint32_t n_free; // free flows in them
} __rte_cache_aligned holders[WORKER_MAX];

// --- The list of chunks with free flows. The caller holds the lock. ---

static void chunk_list_add(struct holder *h, uint32_t chunk, uint64_t free)
{
	struct flow_chunk *c = flow_chunk(chunk);

	if (c->free == 0) {
		c->next = h->list;
		c->prev = 0;
		if (h->list)
			flow_chunk(h->list)->prev = chunk;
		__atomic_store_n(&h->list, chunk, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&c->free, c->free | free, __ATOMIC_RELAXED);
	h->n_free += (uint32_t)__builtin_popcountll(free);
}

// Returns a bitmap of the chunk's free flows; the caller owns them now.
static uint64_t chunk_list_remove(struct holder *h, uint32_t chunk)
{
	struct flow_chunk *c = flow_chunk(chunk);
	uint64_t free = c->free;

	if (free == 0)
		return 0;
	if (c->prev)
		flow_chunk(c->prev)->next = c->next;
	else
		__atomic_store_n(&h->list, c->next, __ATOMIC_RELAXED);
	if (c->next)
		flow_chunk(c->next)->prev = c->prev;
	__atomic_store_n(&c->free, 0, __ATOMIC_RELAXED);
	h->n_free -= (uint32_t)__builtin_popcountll(free);
	return free;
}

// --- Allocation. ---

static void chunk_into_hand(struct holder *h, uint32_t chunk, uint64_t free)
{
	uint32_t first = (chunk - 1) * FLOW_CHUNK + 1;
	unsigned i;

	for (i = FLOW_CHUNK; i-- > 0;) // backwards: flow_alloc() takes from the end
		if (free >> i & 1)
			h->hand[h->n++] = first + i;
}

// Takes all free flows of one chunk of `from`, which stays the chunk's owner. The caller holds the lock of `from`.
static bool chunk_take_from(struct holder *from, struct holder *to)
{
	uint32_t chunk = from->list;

	if (chunk == 0)
		return false;
	chunk_into_hand(to, chunk, chunk_list_remove(from, chunk));
	return true;
}

static bool chunk_take_own(struct holder *h)
{
	bool any;

	if (__atomic_load_n(&h->list, __ATOMIC_RELAXED) == 0)
		return false;
	rte_spinlock_lock(&h->lock);
	any = chunk_take_from(h, h);
	rte_spinlock_unlock(&h->lock);
	return any;
}

static bool chunk_take_others(unsigned worker)
{
	unsigned i, n = flow_pool_workers();
	bool any = false;

	for (i = 1; i <= n && !any; i++) {
		struct holder *h = &holders[(worker + i) % n];

		if (__atomic_load_n(&h->list, __ATOMIC_RELAXED) == 0 || !rte_spinlock_trylock(&h->lock))
			continue;
		any = chunk_take_from(h, &holders[worker]);
		rte_spinlock_unlock(&h->lock);
	}
	return any;
}

static bool chunk_take(unsigned worker)
{
	struct holder *h = &holders[worker];
	uint32_t chunk;

	if (chunk_take_own(h))
		return true;
	chunk = flow_pool_get(worker);
	if (chunk == 0)
		return chunk_take_others(worker);
	__atomic_add_fetch(&h->chunks, 1, __ATOMIC_RELAXED);
	chunk_into_hand(h, chunk, UINT64_MAX);
	return true;
}

void flow_alloc_prefetch(unsigned worker, unsigned n)
{
	struct holder *h = &holders[worker];
	unsigned i;

	while (h->n < n && h->n <= AT_HAND - FLOW_CHUNK && chunk_take(worker))
		;
	for (i = h->n; i-- > 0 && n-- > 0;) {
		prefetch_write(&flows[h->hand[i]].dir[0]);
		prefetch_write(&flows[h->hand[i]].dir[1]);
		prefetch_write(&flows[h->hand[i]].state);
	}
}

struct flow *flow_alloc(unsigned worker)
{
	struct holder *h = &holders[worker];
	struct flow *f;

	if (unlikely(h->n == 0) && !chunk_take(worker))
		return NULL;
	f = &flows[h->hand[--h->n]];
	h->taken++;
	// One by one: for more bytes the compiler uses slow string instructions.
	memset(&f->dir[0], 0, sizeof(f->dir[0]));
	memset(&f->dir[1], 0, sizeof(f->dir[1]));
	__atomic_store_n(&f->state, FLOW_FREE, __ATOMIC_RELAXED); // the chunk's owner may read it
	memset(&f->tcp, 0, sizeof(*f) - offsetof(struct flow, tcp));
	return f;
}

void flow_unalloc(unsigned worker, struct flow *f)
{
	struct holder *h = &holders[worker];

	__atomic_store_n(&f->state, FLOW_FREE, __ATOMIC_RELAXED);
	h->hand[h->n++] = (uint32_t)(f - flows); // there is room: flow_alloc() took it from here
	h->taken--;
}

uint32_t flow_count(void)
{
	uint64_t n = 0;
	unsigned i;

	for (i = 0; i < WORKER_MAX; i++)
		n += __atomic_load_n(&holders[i].taken, __ATOMIC_RELAXED) -
		     __atomic_load_n(&holders[i].freed, __ATOMIC_RELAXED);
	return (uint32_t)n;
}

// --- Freeing. ---

bool flow_chunk_mine(unsigned worker, uint32_t chunk)
{
	return __atomic_load_n(flow_chunk_owner(chunk), __ATOMIC_ACQUIRE) == worker + 1;
}

uint64_t flow_chunk_used(uint32_t chunk)
{
	const struct flow_chunk *c = flow_chunk(chunk);

	return c->dying ? 0 : ~__atomic_load_n(&c->free, __ATOMIC_RELAXED);
}

void flow_bury(unsigned worker, struct flow *f)
{
	struct holder *h = &holders[worker];
	uint32_t chunk = flow_chunk_of(f);
	struct flow_chunk *c = flow_chunk(chunk);

	__atomic_store_n(&f->state, FLOW_DYING, __ATOMIC_RELAXED);
	if (c->dying == 0) {
		c->next_dying = h->collecting;
		h->collecting = chunk;
	}
	c->dying |= flow_chunk_bit(f);
}

static void chunk_add_free(unsigned worker, uint32_t chunk, uint64_t free)
{
	rte_spinlock_lock(&holders[worker].lock);
	chunk_list_add(&holders[worker], chunk, free);
	rte_spinlock_unlock(&holders[worker].lock);
}

static void chunk_give_back(unsigned worker, uint32_t chunk, uint64_t free)
{
	struct holder *h = &holders[worker];
	bool whole;

	rte_spinlock_lock(&h->lock);
	chunk_list_add(h, chunk, free);
	whole = flow_chunk(chunk)->free == UINT64_MAX && h->n_free > KEEP;
	if (whole)
		chunk_list_remove(h, chunk);
	rte_spinlock_unlock(&h->lock);
	if (!whole)
		return;
	__atomic_sub_fetch(&h->chunks, 1, __ATOMIC_RELAXED);
	flow_pool_put(chunk);
}

void flow_reclaim(unsigned worker)
{
	struct holder *h = &holders[worker];

	if (h->waiting && !rcu_passed(h->token))
		return;
	while (h->waiting) {
		uint32_t chunk = h->waiting;
		struct flow_chunk *c = flow_chunk(chunk);
		uint64_t dying = c->dying;

		h->waiting = c->next_dying;
		c->dying = 0;
		h->freed += (unsigned)__builtin_popcountll(dying);
		chunk_give_back(worker, chunk, dying);
	}
	h->waiting = h->collecting;
	h->collecting = 0;
	if (h->waiting)
		h->token = rcu_token();
}

// --- Chunks of a removed worker. ---

static void chunk_empty_hand(struct holder *h)
{
	while (h->n > 0) {
		struct flow *f = &flows[h->hand[--h->n]];
		uint32_t chunk = flow_chunk_of(f);

		chunk_add_free(*flow_chunk_owner(chunk) - 1u, chunk, flow_chunk_bit(f));
	}
}

static void chunk_move(uint32_t chunk, unsigned from, unsigned to)
{
	uint64_t free;

	rte_spinlock_lock(&holders[from].lock);
	free = chunk_list_remove(&holders[from], chunk);
	rte_spinlock_unlock(&holders[from].lock);
	__atomic_sub_fetch(&holders[from].chunks, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&holders[to].chunks, 1, __ATOMIC_RELAXED);
	__atomic_store_n(flow_chunk_owner(chunk), (uint8_t)(to + 1), __ATOMIC_RELEASE);
	if (free)
		chunk_add_free(to, chunk, free);
}

static bool chunk_has_nothing(const struct holder *h)
{
	return h->n == 0 && __atomic_load_n(&h->chunks, __ATOMIC_RELAXED) == 0;
}

bool flow_hand_over(unsigned from, unsigned to, uint32_t n)
{
	struct holder *h = &holders[from];

	if (chunk_has_nothing(h))
		return true;
	chunk_empty_hand(h);
	flow_reclaim(from);
	for (; n > 0 && h->waiting == 0 && h->chunks > 0; n--) { // before, readers may still hold flows of these chunks
		h->at = h->at < flow_chunks_used() ? h->at + 1 : 1;
		if (flow_chunk_mine(from, h->at))
			chunk_move(h->at, from, to);
	}
	return chunk_has_nothing(h);
}

void flow_chunks_forget(void)
{
	memset(holders, 0, sizeof(holders));
}
