// SPDX-License-Identifier: Apache-2.0
// Memory of flows and chunks, and the chunks that have no owner.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_spinlock.h>

#include "base/event.h"
#include "base/rcu.h"
#include "flow/reserve.h"
#include "flow/flow_private.h"

#define CHUNKS_MAX (FLOW_CAPACITY_MAX / FLOW_CHUNK)
#define FLOWS_BYTES ((FLOW_CAPACITY_MAX + 1ull) * sizeof(struct flow))
#define CHUNKS_BYTES ((CHUNKS_MAX + 1ull) * sizeof(struct flow_chunk))
#define OWNERS_BYTES (CHUNKS_MAX + 1ull)
#define FILL_SHARE 128    // chunks that get memory in the request that needs them, and then in each turn of the master
#define START_FLOWS 65536 // that the table has room for at first: for more it grows in the master's turns

EVENT_KIND(flow_memory, ERROR,
	   "There was no memory for all flows any more while the table got it. It keeps the flows that have memory: "
	   "`corelane flow resize` asks for more.");

struct flow *flows;
struct flow_table *flow_table;
uint64_t flow_tsc_start, flow_tsc_hz = 1;

static struct {
	rte_spinlock_t lock;
	struct flow_chunk *chunks;
	uint8_t *owners;
	uint32_t used;     // chunks that have ever had an owner
	uint32_t returned; // list of used chunks without an owner
	uint32_t capacity; // configured number of flows; rounded up to whole chunks
	uint32_t filled;   // chunks with memory. Master: rw, workers: ro
	uint32_t table;    // flows that the table has room for, or is growing for. Master only
	unsigned workers;
} pool;

static uint32_t chunks_of(uint32_t capacity)
{
	return (capacity + FLOW_CHUNK - 1) / FLOW_CHUNK;
}

static int pool_fill_one(void *range, uint64_t item, uint64_t from, uint64_t to)
{
	return reserve_fill(range, from ? (from + 1) * item : 0, (to + 1) * item); // number 0 is unused
}

// Takes memory for up to n more chunks.
static int flow_pool_fill(uint32_t capacity, uint32_t n)
{
	uint32_t from = pool.filled, to = RTE_MIN(chunks_of(capacity), from + n);
	int ret = pool_fill_one(flows, sizeof(struct flow), (uint64_t)from * FLOW_CHUNK, (uint64_t)to * FLOW_CHUNK);

	if (ret == 0)
		ret = pool_fill_one(pool.chunks, sizeof(struct flow_chunk), from, to);
	if (ret == 0)
		ret = pool_fill_one(pool.owners, 1, from, to);
	if (ret == 0)
		__atomic_store_n(&pool.filled, RTE_MAX(from, to), __ATOMIC_RELEASE);
	return ret;
}

// Whether there is memory for this many flows. Only that for the first ones is taken at once, see flow_grow_step().
static bool flow_pool_has_room(uint32_t capacity)
{
	return reserve_available((uint64_t)(chunks_of(capacity) - pool.filled) * FLOW_CHUNK * FLOW_BYTES);
}

static void flow_pool_shrink(uint32_t capacity)
{
	event_report(flow_memory, NULL, "memory for %u flows was to be taken, there is enough for %u", pool.capacity,
		     capacity);
	__atomic_store_n(&pool.capacity, capacity, __ATOMIC_RELEASE);
}

// Both return whether something is left to do.
static bool flow_pool_fill_step(void)
{
	if (pool.filled >= chunks_of(pool.capacity))
		return false;
	if (flow_pool_fill(pool.capacity, FILL_SHARE) == 0)
		return true;
	flow_pool_shrink(pool.filled * FLOW_CHUNK);
	return false;
}

static bool flow_pool_table_step(unsigned buckets)
{
	if (!flow_table_grow_step(flow_table, buckets))
		return true;
	if (pool.table >= pool.capacity)
		return false;
	if (flow_table_grow_begin(flow_table, pool.capacity * 2ull) == 0) {
		pool.table = pool.capacity;
		return true;
	}
	flow_pool_shrink(pool.table);
	return false;
}

bool flow_grow_step(unsigned buckets)
{
	bool memory = flow_pool_fill_step(), table = flow_pool_table_step(buckets);

	return memory || table;
}

bool flow_growing(void)
{
	return flow_table && (pool.table < pool.capacity || flow_table_growing(flow_table));
}

static int capacity_error(uint32_t capacity, int code, struct error *err)
{
	char text[16], valid[64];

	snprintf(text, sizeof(text), "%u", capacity);
	snprintf(valid, sizeof(valid), "%u to %u", RTE_MAX(FLOW_CAPACITY_MIN, pool.capacity), FLOW_CAPACITY_MAX);
	if (code == ENOMEM)
		return error_set(err, code, "flows", text, valid, "needs %lu MiB, which are not free",
				 (unsigned long)((uint64_t)capacity * FLOW_BYTES >> 20));
	return error_set(err, code, "flows", text, valid, "is not a number of flows in range");
}

int flow_init(uint32_t capacity)
{
	flow_secret_init(NULL);
	flow_tsc_hz = rte_get_tsc_hz();
	flow_tsc_start = rte_rdtsc();
	flows = reserve_range(FLOWS_BYTES);
	pool.chunks = reserve_range(CHUNKS_BYTES);
	pool.owners = reserve_range(OWNERS_BYTES);
	if (flows == NULL || pool.chunks == NULL || pool.owners == NULL) {
		flow_fini();
		return -ENOMEM;
	}
	rte_spinlock_init(&pool.lock);
	pool.capacity = capacity;
	return 0;
}

int flow_start(struct error *err)
{
	if (flow_table)
		return 0;
	errno = ENOMEM;
	pool.table = RTE_MIN(pool.capacity, (uint32_t)START_FLOWS);
	if (flow_pool_has_room(pool.capacity) && flow_pool_fill(pool.capacity, FILL_SHARE) == 0)
		rcu_publish(flow_table, flow_table_create(pool.table * 2ull));
	return flow_table ? 0 : capacity_error(pool.capacity, errno, err);
}

void flow_fini(void)
{
	flow_table_destroy(flow_table);
	flow_table = NULL;
	if (flows)
		reserve_release(flows, FLOWS_BYTES);
	if (pool.chunks)
		reserve_release(pool.chunks, CHUNKS_BYTES);
	if (pool.owners)
		reserve_release(pool.owners, OWNERS_BYTES);
	flows = NULL;
	memset(&pool, 0, sizeof(pool));
	flow_chunks_forget();
}

int flow_set_capacity(uint32_t capacity, struct error *err)
{
	if (capacity == pool.capacity)
		return 0;
	if (capacity < RTE_MAX(FLOW_CAPACITY_MIN, pool.capacity) || capacity > FLOW_CAPACITY_MAX)
		return capacity_error(capacity, EINVAL, err);
	if (flow_table == NULL) { // no port has kept flows yet
		pool.capacity = capacity;
		return 0;
	}
	if (!flow_pool_has_room(capacity))
		return capacity_error(capacity, ENOMEM, err);
	__atomic_store_n(&pool.capacity, capacity, __ATOMIC_RELEASE);
	flow_pool_fill(capacity, FILL_SHARE); // flow_grow_step() tries again, and reports a failure
	return 0;
}

uint32_t flow_capacity(void)
{
	return __atomic_load_n(&pool.capacity, __ATOMIC_ACQUIRE);
}

uint32_t flow_used_range(void)
{
	return flow_chunks_used() * FLOW_CHUNK + 1;
}

// --- Chunks. ---

struct flow_chunk *flow_chunk(uint32_t chunk)
{
	return &pool.chunks[chunk];
}

uint8_t *flow_chunk_owner(uint32_t chunk)
{
	return &pool.owners[chunk];
}

uint32_t flow_chunks_used(void)
{
	return __atomic_load_n(&pool.used, __ATOMIC_ACQUIRE);
}

unsigned flow_pool_workers(void)
{
	return __atomic_load_n(&pool.workers, __ATOMIC_RELAXED);
}

// Prefers returned chunks, as their memory is more likely to be cached.
static uint32_t pool_get(void)
{
	uint32_t chunk = pool.returned;

	if (chunk) {
		pool.returned = pool.chunks[chunk].next;
		return chunk;
	}
	if (pool.used == __atomic_load_n(&pool.filled, __ATOMIC_ACQUIRE))
		return 0;
	__atomic_store_n(&pool.used, pool.used + 1, __ATOMIC_RELEASE);
	return pool.used;
}

uint32_t flow_pool_get(unsigned worker)
{
	uint32_t chunk;

	if (__atomic_load_n(&pool.returned, __ATOMIC_RELAXED) == 0 &&
	    flow_chunks_used() == __atomic_load_n(&pool.filled, __ATOMIC_ACQUIRE))
		return 0; // without the lock: the common case when all flows are in use
	rte_spinlock_lock(&pool.lock);
	chunk = pool_get();
	if (chunk) {
		__atomic_store_n(&pool.owners[chunk], (uint8_t)(worker + 1), __ATOMIC_RELEASE);
		__atomic_store_n(&pool.workers, RTE_MAX(pool.workers, worker + 1), __ATOMIC_RELAXED);
	}
	rte_spinlock_unlock(&pool.lock);
	return chunk;
}

void flow_pool_put(uint32_t chunk)
{
	__atomic_store_n(&pool.owners[chunk], 0, __ATOMIC_RELAXED);
	rte_spinlock_lock(&pool.lock);
	pool.chunks[chunk].next = pool.returned;
	__atomic_store_n(&pool.returned, chunk, __ATOMIC_RELAXED);
	rte_spinlock_unlock(&pool.lock);
}
