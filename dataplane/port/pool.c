// SPDX-License-Identifier: Apache-2.0
#include "port/port_kinds.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>

#include "base/check.h"
#include "base/log.h"

#define POOL_CACHE 256        // per worker: one batch
#define POOL_OPS "ring_mp_mc" // a struct rte_ring, of which pool_share() reads the fill level

static struct rte_mempool *pools[RTE_MAX_NUMA_NODES]; // master: creates, workers: ro
static unsigned kept[RTE_MAX_NUMA_NODES];             // buffers that devices keep. Master: rw, workers: ro
static unsigned pool_size, pool_room;

static_assert(PORT_POOL_ROOM_MAX + RTE_PKTMBUF_HEADROOM <= UINT16_MAX, "a mempool has rooms of up to this size");

unsigned port_pool_data_room(void)
{
	return RTE_PKTMBUF_HEADROOM + (pool_room ? pool_room : PORT_POOL_ROOM);
}

static void leave_out_of_dumps(struct rte_mempool *pool, void *arg, struct rte_mempool_memhdr *memory, unsigned i)
{
	const uintptr_t mask = (uintptr_t)getpagesize() - 1;
	uintptr_t from = ((uintptr_t)memory->addr + mask) & ~mask, to = ((uintptr_t)memory->addr + memory->len) & ~mask;

	if (from < to)
		madvise((void *)from, to - from,
			MADV_DONTDUMP); // fails for hugepages, which are shared: no dump has them
}

static struct rte_mempool *pool_new(unsigned numa)
{
	unsigned n = pool_size ? pool_size : rte_eal_has_hugepages() ? PORT_POOL_HUGE : PORT_POOL_NO_HUGE;
	struct rte_mempool *pool;
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "packets%u", numa);
	// One less than a power of two is what the pool's ring holds without doubling.
	pool = rte_pktmbuf_pool_create_by_ops(name, n - 1, POOL_CACHE, 0, (uint16_t)port_pool_data_room(), (int)numa,
					      POOL_OPS);
	if (pool == NULL)
		LOG(ERR, "cannot create %u packet buffers of %u bytes on NUMA node %u: %s", n, port_pool_data_room(),
		    numa, rte_strerror(rte_errno));
	else
		rte_mempool_mem_iter(pool, leave_out_of_dumps, NULL);
	return pool;
}

static unsigned pool_node(int numa)
{
	unsigned node = numa >= 0 && numa < RTE_MAX_NUMA_NODES ? (unsigned)numa : rte_socket_id();

	return node < RTE_MAX_NUMA_NODES ? node : 0; // the master is not bound to one node
}

struct rte_mempool *port_pool(int numa)
{
	unsigned node = pool_node(numa);

	if (pools[node] == NULL)
		__atomic_store_n(&pools[node], pool_new(node), __ATOMIC_RELEASE);
	return pools[node];
}

int port_pool_init(unsigned n_mbufs, unsigned data_room)
{
	pool_size = n_mbufs;
	pool_room = data_room;
	return port_pool(SOCKET_ID_ANY) ? 0 : -ENOMEM;
}

// Only when the pool's ring is short of buffers, those in the caches of workers are counted, too: that takes longer.
static uint32_t pool_share(unsigned node)
{
	struct rte_mempool *pool = __atomic_load_n(&pools[node], __ATOMIC_ACQUIRE);
	uint32_t buffers, share;

	if (pool == NULL)
		return BUFFERS_ENOUGH;
	buffers = pool->size - __atomic_load_n(&kept[node], __ATOMIC_RELAXED);
	share = port_share_of(buffers, rte_ring_count(pool->pool_data));
	return share == BUFFERS_ENOUGH ? share : port_share_of(buffers, rte_mempool_avail_count(pool));
}

uint32_t port_pool_share(int numa)
{
	return pool_share(pool_node(numa));
}

uint32_t port_pool_share_least(void)
{
	uint32_t share = BUFFERS_ENOUGH;
	unsigned i;

	for (i = 0; i < RTE_MAX_NUMA_NODES; i++)
		share = RTE_MIN(share, pool_share(i));
	return share;
}

int port_pool_keep(struct port *port, unsigned queues, unsigned each, struct error *err)
{
	unsigned node = pool_node(port->numa), n = queues * each, most = pools[node]->size / 4 * 3;
	char text[16], valid[80];

	if (kept[node] + n <= most) {
		__atomic_store_n(&kept[node], kept[node] + n, __ATOMIC_RELAXED);
		port->kept = n;
		return 0;
	}
	snprintf(text, sizeof(text), "%u", queues);
	snprintf(valid, sizeof(valid), "up to %u, or corelaned with --mbufs %u",
		 (most - RTE_MIN(kept[node], most)) / each, rte_align32pow2((kept[node] + n) / 3 * 4 + 4));
	return error_set(err, ENOBUFS, "port.queues", text, valid,
			 "need %u packet buffers for their descriptors; other devices keep %u, and all of them may "
			 "keep %u of the %u that there are",
			 n, kept[node], most, pools[node]->size);
}

void port_pool_release(struct port *port)
{
	unsigned node = pool_node(port->numa);

	__atomic_store_n(&kept[node], kept[node] - port->kept, __ATOMIC_RELAXED);
	port->kept = 0;
}

void port_pool_usage(unsigned *total, unsigned *in_use)
{
	unsigned i;

	*total = *in_use = 0;
	for (i = 0; i < RTE_MAX_NUMA_NODES; i++) {
		if (pools[i] == NULL)
			continue;
		*total += pools[i]->size;
		*in_use += rte_mempool_in_use_count(pools[i]);
	}
}

void port_pool_fini(void)
{
	unsigned i;

	for (i = 0; i < RTE_MAX_NUMA_NODES; i++) {
		rte_mempool_free(pools[i]);
		pools[i] = NULL;
		kept[i] = 0;
	}
}
