// SPDX-License-Identifier: Apache-2.0
// The memory of flows. Free ones lie in chains of up to CHAIN; each worker keeps one chain at hand, so workers meet once in CHAIN flows.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_malloc.h>
#include <rte_spinlock.h>

#include "base/prefetch.h"
#include "base/reserve.h"
#include "flow/flow_private.h"
#include "worker/worker.h"

#define CHAIN 64u

struct cache {
	uint32_t head;
	uint64_t taken; // flows handed out: worker rw, master ro
} __rte_cache_aligned;

struct flow *flows;
struct flow_table *flow_table;
uint64_t flow_tsc_start, flow_tsc_hz = 1;

static struct cache caches[WORKER_MAX];
static uint64_t given_back; // by workers and the master, atomic

static struct {
	rte_spinlock_t lock;
	uint32_t chains;   // head of the first chain, of at most CHAIN flows; a chain's head names the next chain
	uint32_t fresh;    // from here on never used
	uint32_t capacity; // flows 1..capacity may be used
	uint32_t filled;   // memory is there for flows below
} pool;

// What a free flow's third line holds.
static uint32_t *next_in_chain(uint32_t i)
{
	return &flows[i].next;
}

static uint32_t *next_chain(uint32_t i)
{
	return &flows[i].created;
}

static int fill(uint32_t capacity)
{
	uint64_t from = (uint64_t)pool.filled * sizeof(struct flow), to = ((uint64_t)capacity + 1) * sizeof(struct flow);
	int ret = reserve_fill(flows, from, to);

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
	flows = reserve_range((FLOW_CAPACITY_MAX + 1ull) * sizeof(struct flow));
	if (flows == NULL)
		return -ENOMEM;
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
		reserve_release(flows, (FLOW_CAPACITY_MAX + 1ull) * sizeof(struct flow));
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

static void take_chain(struct cache *c)
{
	rte_spinlock_lock(&pool.lock);
	if (pool.chains != 0) {
		c->head = pool.chains;
		pool.chains = *next_chain(c->head);
	} else {
		uint32_t i, first = pool.fresh, n = RTE_MIN(CHAIN, pool.capacity + 1 - first);

		for (i = 0; i < n; i++)
			*next_in_chain(first + i) = i + 1 < n ? first + i + 1 : 0;
		c->head = n ? first : 0;
		__atomic_store_n(&pool.fresh, first + n, __ATOMIC_RELEASE);
	}
	rte_spinlock_unlock(&pool.lock);
}

struct flow *flow_alloc(unsigned worker)
{
	struct cache *c = &caches[worker];
	struct flow *f;

	if (c->head == 0)
		take_chain(c);
	if (c->head == 0)
		return NULL;
	f = &flows[c->head];
	c->head = f->next;
	c->taken++;
	memset(f, 0, sizeof(*f));
	return f;
}

// Chains are followed by their links: a flow's third line has to be here before the next one is known.
void flow_alloc_prefetch(unsigned worker, unsigned n)
{
	uint32_t i = caches[worker].head;

	for (; i != 0 && n > 0; n--, i = flows[i].next) {
		prefetch_write(&flows[i].dir[0]);
		prefetch_write(&flows[i].dir[1]);
	}
}

void flow_put_back(unsigned worker, struct flow *f)
{
	struct cache *c = &caches[worker];

	f->state = FLOW_FREE;
	f->next = c->head;
	c->head = (uint32_t)(f - flows);
	c->taken--;
}

// --- Master: what has been killed goes back after a grace period, in whole chains. ---

static void give_back_chain(uint32_t head)
{
	rte_spinlock_lock(&pool.lock);
	*next_chain(head) = pool.chains;
	pool.chains = head;
	rte_spinlock_unlock(&pool.lock);
}

void flow_free_list(void *list)
{
	uint32_t i = (uint32_t)(uintptr_t)list, head = 0, n = 0, next;

	for (; i != 0; i = next) {
		next = flows[i].next;
		flows[i].state = FLOW_FREE;
		*next_in_chain(i) = head;
		head = i;
		if (++n % CHAIN == 0 || next == 0) {
			give_back_chain(head);
			head = 0;
		}
	}
	__atomic_add_fetch(&given_back, n, __ATOMIC_RELAXED);
}
