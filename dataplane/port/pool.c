// SPDX-License-Identifier: Apache-2.0
#include "port/port_kinds.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>

#include "base/check.h"
#include "base/log.h"

#define POOL_CACHE 256 // per worker: one batch

static struct rte_mempool *pools[RTE_MAX_NUMA_NODES];
static unsigned pool_size, pool_room;

static_assert(PORT_POOL_ROOM_MAX + RTE_PKTMBUF_HEADROOM <= UINT16_MAX, "a mempool has rooms of up to this size");

void port_pool_init(unsigned n_mbufs, unsigned data_room)
{
	pool_size = n_mbufs;
	pool_room = data_room;
}

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
	pool = rte_pktmbuf_pool_create(name, n - 1, POOL_CACHE, 0, (uint16_t)port_pool_data_room(), (int)numa);
	if (pool == NULL)
		LOG(ERR, "cannot create %u packet buffers of %u bytes on NUMA node %u: %s", n, port_pool_data_room(),
		    numa, rte_strerror(rte_errno));
	else
		rte_mempool_mem_iter(pool, leave_out_of_dumps, NULL);
	return pool;
}

struct rte_mempool *port_pool(int numa)
{
	unsigned node = numa >= 0 && numa < RTE_MAX_NUMA_NODES ? (unsigned)numa : rte_socket_id();

	if (node >= RTE_MAX_NUMA_NODES) // the master is not bound to one node
		node = 0;
	if (pools[node] == NULL)
		pools[node] = pool_new(node);
	return pools[node];
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
	}
}
