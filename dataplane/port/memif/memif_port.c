// SPDX-License-Identifier: Apache-2.0
// memif as a kind of port.
//
// A peer may disconnect while workers poll its memory. So workers find their queues by RCU: when the peer disconnects,
// the pointers are cleared at once, and the memory is unmapped after all workers have passed a quiescent state.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_malloc.h>

#include "base/log.h"
#include "base/loop.h"
#include "base/rcu.h"
#include "port/memif/memif_conn.h"
#include "port/port.h"

static_assert(1u << MEMIF_MAX_LOG2_RING == LIMIT_MEMIF_DEVICE_RING_SIZE_MAX, "memif offers its largest ring");
static_assert(LIMIT_MEMIF_DEVICE_BUFFER_SIZE_MULTIPLE_OF % RTE_CACHE_LINE_SIZE == 0, "buffers are whole cache lines");
static_assert(MEMIF_TURN_BYTES == PORT_TURN_BYTES, "a poll of memif has the bound of all kinds");
static_assert(NOTATION_SECRET_LONGEST < MEMIF_SECRET_SIZE, "a secret ends with a zero");

struct memif_port_queue {            // port_queue.priv
	struct memif_queue *rx, *tx; // master: publishes, workers: read; NULL = no peer, or fewer rings than queues
	struct memif_counters rx_count __rte_cache_aligned;
	struct memif_counters tx_count __rte_cache_aligned;
} __rte_cache_aligned;

struct memif_port {
	struct port *port;
	struct memif_if mif;
	uint64_t refused; // connections that did not come up
	unsigned losses;  // connections whose peer took memory away
	unsigned told_losses;
	struct memif_port_queue queues[PORT_MAX_QUEUES];
};

static void set_reason(struct memif_port *mp, const char *reason)
{
	struct port *port = mp->port;

	if (strcmp(port->last_error, reason) != 0)
		LOG(INFO, "port %s: %s", port->cfg.name, reason);
	snprintf(port->last_error, sizeof(port->last_error), "%s", reason);
}

static void memif_port_on_up(struct memif_if *mif, struct memif_shm *shm)
{
	struct memif_port *mp = mif->arg;
	struct port *port = mp->port;
	uint16_t i;

	for (i = 0; i < port->n_queues && i < shm->n_rx; i++) {
		memif_queue_attach_rx(&shm->rx[i], port_pool(port->numa), port->id, &mp->queues[i].rx_count);
		shm->rx[i].whole = shm->whole;
		memif_queue_watch(&shm->rx[i]);
		rcu_publish(mp->queues[i].rx, &shm->rx[i]);
		port_queue_changed(&port->queues[i]);
	}
	for (i = 0; i < port->n_queues && shm->n_tx > 0; i++) { // a peer with fewer rings: some queues share one
		struct memif_queue *q = &shm->tx[i % shm->n_tx];

		q->whole = shm->whole;
		if (i < shm->n_tx)
			memif_queue_attach_tx(q, &mp->queues[i].tx_count, i + shm->n_tx < port->n_queues);
		rcu_publish(mp->queues[i].tx, q);
	}
	__atomic_store_n(&port->takes, shm->whole ? PORT_TAKES_WHOLE : 0, __ATOMIC_RELAXED);
	LOG(INFO, "port %s: connected to %s", port->cfg.name, memif_if_peer(mif));
	port_link_changed(port, true, true);
}

static void free_shm(void *shm)
{
	memif_shm_free(shm);
}

static void memif_port_on_down(struct memif_if *mif, struct memif_shm *shm, const char *reason)
{
	struct memif_port *mp = mif->arg;
	uint16_t i;

	__atomic_store_n(&mp->port->takes, 0, __ATOMIC_RELAXED);
	for (i = 0; i < PORT_MAX_QUEUES; i++) {
		rcu_publish(mp->queues[i].rx, NULL);
		rcu_publish(mp->queues[i].tx, NULL);
		port_queue_changed(&mp->port->queues[i]);
	}
	set_reason(mp, reason);
	mp->losses += memif_shm_fault(shm) == MEMIF_FAULT_MEMORY;
	port_memory_lost(mp->port, mp->losses, &mp->told_losses);
	rcu_defer(free_shm, shm);
	port_link_changed(mp->port, false, false);
}

static void memif_port_on_failed(struct memif_if *mif, const char *reason)
{
	struct memif_port *mp = mif->arg;

	mp->refused++;
	set_reason(mp, reason);
}

// Offsets in the shared memory have 32 bits. The ranges of the sizes are checked before (api/check.h, port/devargs.h).
static int memif_port_check_memory(const struct port_config *cfg, uint32_t ring, uint32_t buffer, struct error *err)
{
	char text[16];

	if (!cfg->client || memif_shm_size(2 * cfg->queues, rte_log2_u32(ring), buffer) <= UINT32_MAX)
		return 0;
	snprintf(text, sizeof(text), "%u", ring);
	return error_set(err, ERANGE, "port.memif.ring_size", text, "queues * ring_size * buffer_size below 2 GiB",
			 "needs too much shared memory");
}

// A whole segment is one frame: it has to fit into a ring, and into the longest chain of descriptors. The client makes
// the rings.
static int memif_port_check_whole(const struct port_config *cfg, uint32_t ring, uint32_t buffer, struct error *err)
{
	if (!cfg->whole_segments || !cfg->client ||
	    (buffer * MEMIF_MAX_CHAIN >= MEMIF_MAX_FRAME && (uint64_t)ring * buffer >= MEMIF_MAX_FRAME))
		return 0;
	return error_set(err, ERANGE, "port.memif.whole_segments", NULL,
			 "a buffer_size of at least 512, and 65535 bytes or more in all buffers of a ring",
			 "segments of 64 KB do not fit into the ring");
}

static int fill_if(struct memif_port *mp, const struct port_config *cfg, struct error *err)
{
	uint32_t ring = cfg->ring_size != 0 ? cfg->ring_size : LIMIT_MEMIF_DEVICE_RING_SIZE_DEFAULT;
	uint32_t buffer = cfg->buffer_size != 0 ? cfg->buffer_size : LIMIT_MEMIF_DEVICE_BUFFER_SIZE_DEFAULT;
	struct memif_if *mif = &mp->mif;
	int ret = memif_port_check_memory(cfg, ring, buffer, err);

	if (ret == 0)
		ret = memif_port_check_whole(cfg, ring, buffer, err);
	if (ret == 0)
		ret = socket_access_parse(cfg->socket_owner, cfg->socket_group, cfg->socket_mode, NULL, "port.memif",
					  &mif->access, err);
	if (ret < 0)
		return ret;
	mif->base = loop_base();
	mif->id = cfg->memif_id;
	mif->client = cfg->client;
	mif->queues = mp->port->n_queues;
	mif->log2_ring = rte_log2_u32(ring);
	mif->buffer_size = buffer;
	mif->whole = cfg->whole_segments && cfg->role == PORT_FABRIC;
	mif->up = memif_port_on_up;
	mif->down = memif_port_on_down;
	mif->failed = memif_port_on_failed;
	mif->arg = mp;
	memcpy(mif->socket, cfg->socket, sizeof(mif->socket));
	snprintf(mif->name, sizeof(mif->name), "%s", cfg->name);
	snprintf(mif->secret, sizeof(mif->secret), "%s", cfg->secret);
	return 0;
}

static int memif_open(struct port *port, const struct port_config *cfg, struct error *err)
{
	struct memif_port *mp = rte_zmalloc("memif_port", sizeof(*mp), RTE_CACHE_LINE_SIZE);
	uint16_t i;
	int ret;

	if (mp == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "out of memory");
	mp->port = port;
	ret = port_pool(port->numa) == NULL ? error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for packet buffers")
					    : 0;
	if (ret == 0)
		ret = fill_if(mp, cfg, err);
	if (ret == 0)
		ret = memif_if_start(&mp->mif, err);
	if (ret < 0) {
		rte_free(mp);
		return ret;
	}
	for (i = 0; i < port->n_queues; i++)
		port->queues[i].priv = &mp->queues[i];
	port->priv = mp;
	rte_eth_random_addr(port->mac.addr_bytes);
	snprintf(port->driver, sizeof(port->driver), "memif %s", cfg->client ? "client" : "server");
	return 0;
}

static void memif_port_close(struct port *port)
{
	struct memif_port *mp = port->priv;

	memif_if_stop(&mp->mif);
	rte_free(mp);
}

static uint16_t memif_port_rx(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	struct memif_port_queue *pq = q->priv;
	struct memif_queue *mq = rcu_read(pq->rx);

	if (unlikely(mq == NULL))
		return 0;
	mq->longest = mq->whole ? MEMIF_MAX_FRAME : q->port->longest; // changes with the MTU; port_rx bounds it, too
	n = memif_rx(mq, pkts, n);
	for (; unlikely(mq->too_long > 0); mq->too_long--)
		port_refused_too_long(q->port);
	if (unlikely(mq->no_mbuf)) {
		mq->no_mbuf = false;
		port_no_buffer(q->port);
	}
	return n;
}

static uint16_t memif_port_tx(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	struct memif_port_queue *pq = q->priv;
	struct memif_queue *mq = rcu_read(pq->tx);

	return likely(mq != NULL) ? memif_tx(mq, pkts, n) : 0;
}

static int memif_port_arm(struct port_queue *q)
{
	struct memif_port_queue *pq = q->priv;
	struct memif_queue *mq = rcu_read(pq->rx);

	return mq ? memif_rx_arm(mq) : -ENOTCONN;
}

// The peer may be another one than at memif_port_arm(); its ring is marked as polled already.
static int memif_port_disarm(struct port_queue *q, bool signalled)
{
	struct memif_port_queue *pq = q->priv;
	struct memif_queue *mq = rcu_read(pq->rx);

	return mq ? memif_rx_disarm(mq, signalled) : 0;
}

static uint32_t memif_port_depth(struct port_queue *q)
{
	struct memif_port_queue *pq = q->priv;
	const struct memif_queue *mq = rcu_read(pq->rx);

	return mq ? (uint16_t)(__atomic_load_n(mq->peer_index, __ATOMIC_RELAXED) - mq->pos) : 0;
}

static void memif_port_xstats(struct port *port, void (*cb)(void *arg, const char *name, uint64_t value), void *arg)
{
	const struct memif_port *mp = port->priv;
	char name[64];
	uint16_t i;

	cb(arg, "connections_failed", mp->refused);
	for (i = 0; i < port->n_queues; i++) {
		const struct {
			const char *name;
			uint64_t value;
		} all[] = {
			{"rx_frames", mp->queues[i].rx_count.frames},
			{"rx_no_buffer", mp->queues[i].rx_count.no_mbuf},
			{"rx_empty_frames", mp->queues[i].rx_count.empty},
			{"tx_frames", mp->queues[i].tx_count.frames},
			{"tx_wakeups", mp->queues[i].tx_count.kicks},
			{"tx_wakeups_failed", mp->queues[i].tx_count.kicks_lost},
		};
		unsigned j;

		for (j = 0; j < RTE_DIM(all); j++) {
			snprintf(name, sizeof(name), "queue%u_%s", i, all[j].name);
			cb(arg, name, all[j].value);
		}
	}
}

const struct port_ops port_memif_ops = {
	.kind = "memif",
	.open = memif_open,
	.close = memif_port_close,
	.rx = memif_port_rx,
	.tx = memif_port_tx,
	.depth = memif_port_depth,
	.arm = memif_port_arm,
	.disarm = memif_port_disarm,
	.xstats = memif_port_xstats,
};
