// SPDX-License-Identifier: Apache-2.0
// A pool that bounds the buffers that librte_vhost takes for one burst. It has none of its own: it hands out buffers of
// the packet pool, and they return there when they are freed.
//
// Without the bound a guest's chain of descriptors, which may be as long as its memory, would take every free buffer.
// RTE_VHOST_USER_LINEARBUF_SUPPORT alone would not bound a frame either: the library adds a chain's lengths in 32 bits,
// so a guest whose descriptors sum up to 4 GiB and 60 bytes passes that check with a short frame.
#include "port/vhost.h"

#include <errno.h>

#include <rte_errno.h>
#include <rte_mempool.h>

static __thread unsigned at_once, allowed, taken; // buffers
static __thread bool lacks;
static struct rte_mempool *pool;

void vhost_pool_allow(unsigned packets, unsigned more)
{
	at_once = packets;
	allowed = more;
	taken = 0;
	lacks = false;
}

unsigned vhost_pool_taken(void)
{
	return taken;
}

bool vhost_pool_lacks(void)
{
	return lacks;
}

static int vhost_pool_get(struct rte_mempool *packets, void **objs, unsigned n)
{
	int ret = rte_mempool_get_bulk(packets, objs, n);

	lacks = lacks || ret < 0;
	return ret;
}

static int pool_take(struct rte_mempool *mp, void **objs, unsigned n)
{
	if (at_once > 0) { // the first call of a burst
		if (n > at_once)
			return -ENOBUFS;
		at_once = 0;
		return vhost_pool_get(mp->pool_data, objs, n);
	}
	if (n > allowed - taken)
		return -ENOBUFS;
	taken += n;
	return vhost_pool_get(mp->pool_data, objs, n);
}

// Required by DPDK but not used: each buffer names the packet pool as its own.
static int pool_put(struct rte_mempool *mp, void *const *objs, unsigned n)
{
	rte_mempool_put_bulk(mp->pool_data, (void **)(uintptr_t)objs, n);
	return 0;
}

static unsigned pool_count(const struct rte_mempool *mp)
{
	return rte_mempool_avail_count(mp->pool_data);
}

static int pool_alloc(struct rte_mempool *mp)
{
	return 0;
}

static const struct rte_mempool_ops pool_ops = {
	.name = "corelane_vhost",
	.alloc = pool_alloc,
	.enqueue = pool_put,
	.dequeue = pool_take,
	.get_count = pool_count,
};
RTE_MEMPOOL_REGISTER_OPS(pool_ops);

struct rte_mempool *vhost_pool(void)
{
	struct rte_mempool *packets = port_pool(SOCKET_ID_ANY);

	if (packets == NULL || (pool != NULL && pool->pool_data == packets))
		return pool;
	rte_mempool_free(pool);
	pool = rte_mempool_create_empty("vhost", 1, packets->elt_size, 0, packets->private_data_size, SOCKET_ID_ANY, 0);
	if (pool == NULL || rte_mempool_set_ops_byname(pool, pool_ops.name, NULL) < 0)
		return NULL;
	pool->pool_data = packets;
	memcpy(rte_mempool_get_priv(pool), rte_mempool_get_priv(packets), packets->private_data_size);
	return pool;
}
