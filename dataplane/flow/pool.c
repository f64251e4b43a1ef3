// SPDX-License-Identifier: Apache-2.0
// The memory of flows. The numbers of free ones lie on a stack; each worker has some at hand, so workers meet once in TAKE flows.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_malloc.h>
#include <rte_spinlock.h>

#include "base/prefetch.h"
#include "base/reserve.h"
#include "flow/flow_private.h"
#include "worker/worker.h"

#define TAKE 64u
#define AT_HAND (2 * TAKE)
#define FLOWS_BYTES ((FLOW_CAPACITY_MAX + 1ull) * sizeof(struct flow))
#define FREE_BYTES ((FLOW_CAPACITY_MAX + 1ull) * sizeof(uint32_t))

struct cache {          // of one worker
	uint64_t taken; // flows handed out: worker rw, master ro
	uint32_t n, free[AT_HAND];
} __rte_cache_aligned;

struct flow *flows;
struct flow_table *flow_table;
uint64_t flow_tsc_start, flow_tsc_hz = 1;

static struct cache caches[WORKER_MAX];
static uint64_t given_back; // by workers and the master, atomic

static struct {
	rte_spinlock_t lock;
	uint32_t *free; // numbers of those that were in use before
	uint32_t n_free;
	uint32_t fresh;    // from here on never used
	uint32_t capacity; // flows 1..capacity may be used
	uint32_t filled;   // memory is there for flows below
} pool;

static int fill(uint32_t capacity)
{
	uint64_t from = (uint64_t)pool.filled * sizeof(struct flow), to = ((uint64_t)capacity + 1) * sizeof(struct flow);
	int ret = reserve_fill(flows, from, to);

	if (ret == 0)
		ret = reserve_fill(pool.free, pool.filled * sizeof(pool.free[0]), (capacity + 1ull) * sizeof(pool.free[0]));
	if (ret == 0)
		pool.filled = RTE_MAX(pool.filled, capacity + 1);
	return ret;
}

static int capacity_error(uint32_t capacity, int code, struct error *err)
{
	char text[16], valid[64];

	snprintf(text, sizeof(text), "%u", capacity);
	snprintf(valid, sizeof(valid), "%u to %u", RTE_MAX(FLOW_CAPACITY_MIN, pool.capacity), FLOW_CAPACITY_MAX);
	if (code == ENOMEM)
		return error_set(err, code, "flows", text, valid, "needs %lu MiB that the system does not have",
				 (unsigned long)((uint64_t)capacity * FLOW_BYTES >> 20));
	return error_set(err, code, "flows", text, valid,
			 code == EBUSY ? "cannot be set while the table grows" : "is not a number of flows in range");
}

int flow_init(uint32_t capacity)
{
	flow_secret_init(NULL);
	flow_tsc_hz = rte_get_tsc_hz();
	flow_tsc_start = rte_rdtsc();
	flows = reserve_range(FLOWS_BYTES);
	pool.free = reserve_range(FREE_BYTES);
	if (flows == NULL || pool.free == NULL) {
		flow_fini();
		return -ENOMEM;
	}
	rte_spinlock_init(&pool.lock);
	pool.fresh = 1;
	pool.capacity = capacity;
	return 0;
}

int flow_start(struct error *err)
{
	if (flow_table)
		return 0;
	if (fill(pool.capacity) == 0)
		flow_table = flow_table_create(pool.capacity * 2ull, SOCKET_ID_ANY);
	return flow_table ? 0 : capacity_error(pool.capacity, ENOMEM, err);
}

void flow_fini(void)
{
	flow_table_destroy(flow_table);
	flow_table = NULL;
	if (flows)
		reserve_release(flows, FLOWS_BYTES);
	if (pool.free)
		reserve_release(pool.free, FREE_BYTES);
	flows = NULL;
	memset(&pool, 0, sizeof(pool));
	memset(caches, 0, sizeof(caches));
	given_back = 0;
}

int flow_set_capacity(uint32_t capacity, struct error *err)
{
	int ret;

	if (capacity == pool.capacity)
		return 0;
	if (capacity < RTE_MAX(FLOW_CAPACITY_MIN, pool.capacity) || capacity > FLOW_CAPACITY_MAX)
		return capacity_error(capacity, EINVAL, err);
	if (flow_table == NULL) { // nobody keeps flows yet
		pool.capacity = capacity;
		return 0;
	}
	if (fill(capacity) < 0)
		return capacity_error(capacity, ENOMEM, err);
	ret = flow_table_grow_begin(flow_table, capacity * 2ull);
	if (ret < 0)
		return capacity_error(capacity, -ret, err);
	rte_spinlock_lock(&pool.lock);
	pool.capacity = capacity;
	rte_spinlock_unlock(&pool.lock);
	return 0;
}

uint32_t flow_capacity(void)
{
	return pool.capacity;
}

uint32_t flow_used_range(void)
{
	return __atomic_load_n(&pool.fresh, __ATOMIC_ACQUIRE);
}

uint32_t flow_count(void)
{
	uint64_t n = 0;
	unsigned i;

	for (i = 0; i < WORKER_MAX; i++)
		n += __atomic_load_n(&caches[i].taken, __ATOMIC_RELAXED);
	return (uint32_t)(n - __atomic_load_n(&given_back, __ATOMIC_RELAXED));
}

// Those that were in use last are used next: they are the likeliest to be in a cache.
static void take(struct cache *c)
{
	uint32_t i, n, first;

	rte_spinlock_lock(&pool.lock);
	n = RTE_MIN(TAKE, pool.n_free);
	pool.n_free -= n;
	memcpy(&c->free[c->n], &pool.free[pool.n_free], n * sizeof(c->free[0]));
	c->n += n;
	first = pool.fresh;
	n = RTE_MIN(TAKE - n, pool.capacity + 1 - first);
	for (i = n; i-- > 0;)
		c->free[c->n++] = first + i;
	__atomic_store_n(&pool.fresh, first + n, __ATOMIC_RELEASE);
	rte_spinlock_unlock(&pool.lock);
}

void flow_alloc_prefetch(unsigned worker, unsigned n)
{
	struct cache *c = &caches[worker];
	unsigned i;

	if (c->n < n && c->n <= AT_HAND - TAKE)
		take(c);
	for (i = c->n; i-- > 0 && n-- > 0;) {
		prefetch_write(&flows[c->free[i]].dir[0]);
		prefetch_write(&flows[c->free[i]].dir[1]);
		prefetch_write(&flows[c->free[i]].state);
	}
}

struct flow *flow_alloc(unsigned worker)
{
	struct cache *c = &caches[worker];
	struct flow *f;

	if (unlikely(c->n == 0))
		take(c);
	if (unlikely(c->n == 0))
		return NULL;
	f = &flows[c->free[--c->n]];
	c->taken++;
	memset(f, 0, sizeof(*f));
	return f;
}

void flow_put_back(unsigned worker, struct flow *f)
{
	struct cache *c = &caches[worker];

	f->state = FLOW_FREE;
	c->free[c->n++] = (uint32_t)(f - flows); // there is room: it came from here
	c->taken--;
}

void flow_free_list(void *list)
{
	uint32_t i, n = 0;

	rte_spinlock_lock(&pool.lock);
	for (i = (uint32_t)(uintptr_t)list; i != 0; i = flows[i].next, n++) {
		flows[i].state = FLOW_FREE;
		pool.free[pool.n_free++] = i;
	}
	rte_spinlock_unlock(&pool.lock);
	__atomic_add_fetch(&given_back, n, __ATOMIC_RELAXED);
}
