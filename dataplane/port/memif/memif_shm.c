// SPDX-License-Identifier: Apache-2.0
// One connection's regions and rings, before and after workers use them.
#include "port/memif/memif_burst.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_malloc.h>

#include "base/event_signal.h"
#include "base/wake_fd.h"

struct memif_shm *memif_shm_new(void)
{
	struct memif_shm *shm = rte_zmalloc("memif", sizeof(*shm), RTE_CACHE_LINE_SIZE);

	if (shm != NULL)
		shm->region_fd = -1;
	return shm;
}

void memif_shm_free(struct memif_shm *shm)
{
	uint16_t i;

	for (i = 0; i < shm->n_rx; i++) {
		close(shm->rx[i].kick_fd);
		if (shm->rx[i].wake_fd >= 0)
			close(shm->rx[i].wake_fd);
	}
	for (i = 0; i < shm->n_tx; i++)
		close(shm->tx[i].kick_fd);
	for (i = 0; i < shm->n_regions; i++)
		memif_region_unmap(&shm->regions[i]);
	if (shm->region_fd >= 0)
		close(shm->region_fd);
	rte_free(shm);
}

static uint64_t ring_bytes(uint8_t log2_ring)
{
	return RTE_CACHE_LINE_ROUNDUP(sizeof(struct memif_ring) + (sizeof(struct memif_desc) << log2_ring));
}

uint32_t memif_ring_offset(uint16_t i, uint8_t log2_ring)
{
	return i * ring_bytes(log2_ring);
}

// The distance of two buffers is an odd number of cache lines. At a distance of 2048 bytes the first lines of all
// buffers would compete for 1/32 of each cache; spreading them saves a third of the cycles of 128-byte frames, half of
// 512-byte ones.
static uint64_t buffer_stride(uint32_t buffer_size)
{
	return (buffer_size / RTE_CACHE_LINE_SIZE | 1) * RTE_CACHE_LINE_SIZE;
}

uint64_t memif_shm_size(uint32_t n_rings, uint8_t log2_ring, uint32_t buffer_size)
{
	return n_rings * (ring_bytes(log2_ring) + (buffer_stride(buffer_size) << log2_ring));
}

static void queue_init(struct memif_shm *shm, struct memif_queue *q, struct memif_ring *ring, uint32_t size,
		       int kick_fd)
{
	q->ring = ring;
	q->regions = shm->regions;
	q->size = size;
	q->kick_fd = kick_fd;
	q->wake_fd = -1;
	rte_spinlock_init(&q->lock);
}

// Ring i of a client: c2s rings first, then s2c, then the buffers of all.
static int ring_build(struct memif_shm *shm, uint16_t i, uint16_t n_rings, bool c2s, uint8_t log2_ring,
		      uint32_t buffer_size)
{
	struct memif_queue *q = c2s ? &shm->tx[shm->n_tx] : &shm->rx[shm->n_rx];
	uint64_t stride = buffer_stride(buffer_size),
		 buffers = n_rings * ring_bytes(log2_ring) + (i * stride << log2_ring);
	struct memif_ring *ring = (void *)(shm->regions[0].addr + memif_ring_offset(i, log2_ring));
	uint32_t slot, size = 1u << log2_ring;
	int kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	if (kick_fd < 0)
		return -errno;
	for (slot = 0; slot < size; slot++) {
		ring->desc[slot].length = buffer_size;
		ring->desc[slot].offset = buffers + slot * stride;
	}
	ring->cookie = MEMIF_COOKIE;
	ring->flags = c2s ? 0 : MEMIF_RING_MASK_INT;
	queue_init(shm, q, ring, size, kick_fd);
	q->peer_index = &ring->tail;
	q->own_index = &ring->head;
	q->buffers = shm->regions[0].addr + buffers;
	q->buffer_size = buffer_size;
	q->buffer_stride = stride;
	if (c2s)
		shm->n_tx++;
	else
		shm->n_rx++;
	return 0;
}

int memif_shm_build(struct memif_shm *shm, uint16_t n_c2s, uint16_t n_s2c, uint8_t log2_ring, uint32_t buffer_size)
{
	uint16_t i, n = n_c2s + n_s2c;
	int ret;

	shm->region_fd = memif_region_create(&shm->regions[0], memif_shm_size(n, log2_ring, buffer_size));
	if (shm->region_fd < 0)
		return shm->region_fd;
	shm->n_regions = 1;
	for (i = 0; i < n; i++) {
		ret = ring_build(shm, i, n, i < n_c2s, log2_ring, buffer_size);
		if (ret < 0)
			return ret;
	}
	return 0;
}

// Not before CONNECTED: DPDK's server resets both indexes just before it sends that.
void memif_shm_offer(struct memif_shm *shm)
{
	uint16_t i;

	for (i = 0; i < shm->n_rx; i++)
		__atomic_store_n(shm->rx[i].own_index, shm->rx[i].size, __ATOMIC_RELEASE);
}

int memif_shm_add_region(struct memif_shm *shm, int fd, uint64_t size)
{
	int ret;

	if (shm->n_regions == MEMIF_MAX_REGIONS)
		return -ENOSPC;
	ret = memif_region_map(&shm->regions[shm->n_regions], fd, size);
	if (ret == 0)
		shm->n_regions++;
	return ret;
}

int memif_shm_add_ring(struct memif_shm *shm, bool rx, uint16_t region, uint32_t offset, uint8_t log2_size, int kick_fd)
{
	uint16_t *count = rx ? &shm->n_rx : &shm->n_tx;
	struct memif_queue *q = rx ? &shm->rx[*count] : &shm->tx[*count];
	const struct memif_region *r = &shm->regions[region < shm->n_regions ? region : 0];
	struct memif_ring *ring;

	if (*count == MEMIF_MAX_RINGS)
		return -ENOSPC;
	if (region >= shm->n_regions || log2_size > MEMIF_MAX_LOG2_RING || offset % sizeof(struct memif_desc) != 0 ||
	    offset + sizeof(*ring) + (sizeof(struct memif_desc) << log2_size) > r->size)
		return -EINVAL;
	ring = (void *)(r->addr + offset);
	if (__atomic_load_n(&ring->cookie, __ATOMIC_RELAXED) != MEMIF_COOKIE)
		return -EPROTO;
	if (!wake_fd_is_eventfd(kick_fd) /* a worker could block in a write to another file */ ||
	    event_signal_prepare(kick_fd) < 0)
		return -EBADF;
	queue_init(shm, q, ring, 1u << log2_size, kick_fd);
	q->peer_index = &ring->head;
	q->own_index = &ring->tail;
	__atomic_store_n(&ring->tail, 0, __ATOMIC_RELAXED);
	if (rx)
		__atomic_fetch_or(&ring->flags, MEMIF_RING_MASK_INT, __ATOMIC_RELAXED);
	(*count)++;
	return 0;
}

void memif_queue_attach_rx(struct memif_queue *q, struct rte_mempool *pool, uint16_t mbuf_port,
			   struct memif_counters *count)
{
	struct rte_mbuf sample = {.data_off = RTE_PKTMBUF_HEADROOM, .refcnt = 1, .nb_segs = 1, .port = mbuf_port};

	memcpy(&q->mbuf_init, (const char *)&sample + offsetof(struct rte_mbuf, data_off), sizeof(q->mbuf_init));
	q->pool = pool;
	q->room = rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;
	q->data_at = sizeof(struct rte_mbuf) + rte_pktmbuf_priv_size(pool) + RTE_PKTMBUF_HEADROOM;
	q->count = count;
	q->longest = MEMIF_MAX_FRAME;
}

void memif_queue_watch(struct memif_queue *q)
{
	int fd = wake_fd_new();

	if (fd >= 0 && wake_fd_watch(fd, q->kick_fd, true) < 0) {
		close(fd);
		fd = -1;
	}
	q->wake_fd = fd;
}

int memif_rx_arm(struct memif_queue *q)
{
	if (q->fault)
		return -ENOTCONN;
	if (q->wake_fd < 0)
		return -ENOTSUP;
	__atomic_fetch_and(&q->ring->flags, (uint16_t)~MEMIF_RING_MASK_INT, __ATOMIC_SEQ_CST);
	return q->wake_fd;
}

int memif_rx_disarm(struct memif_queue *q, bool signalled)
{
	__atomic_fetch_or(&q->ring->flags, MEMIF_RING_MASK_INT, __ATOMIC_RELAXED);
	return signalled && q->wake_fd >= 0 ? wake_fd_rest(q->wake_fd) : 0;
}

void memif_queue_attach_tx(struct memif_queue *q, struct memif_counters *count, bool shared)
{
	q->count = count;
	q->shared = shared;
}

int memif_lie(struct memif_queue *q, enum memif_fault fault)
{
	__atomic_store_n(&q->fault, fault, __ATOMIC_RELAXED);
	return -1;
}

int memif_lie_bounds(struct memif_queue *q, uint16_t region, bool own)
{
	bool unknown = !own && (region >= MEMIF_MAX_REGIONS || q->regions[region].addr == NULL);

	return memif_lie(q, unknown ? MEMIF_FAULT_REGION : MEMIF_FAULT_BOUNDS);
}

enum memif_fault memif_shm_fault(const struct memif_shm *shm)
{
	uint8_t fault = MEMIF_FAULT_NONE;
	uint16_t i;

	for (i = 0; i < shm->n_regions; i++)
		if (memif_region_lost(&shm->regions[i]))
			return MEMIF_FAULT_MEMORY;
	for (i = 0; i < shm->n_rx && fault == MEMIF_FAULT_NONE; i++)
		fault = __atomic_load_n(&shm->rx[i].fault, __ATOMIC_RELAXED);
	for (i = 0; i < shm->n_tx && fault == MEMIF_FAULT_NONE; i++)
		fault = __atomic_load_n(&shm->tx[i].fault, __ATOMIC_RELAXED);
	return fault;
}

const char *memif_fault_text(enum memif_fault fault)
{
	static const char *const texts[] = {
		[MEMIF_FAULT_NONE] = "none",
		[MEMIF_FAULT_INDEX] = "ring index out of range",
		[MEMIF_FAULT_REGION] = "descriptor names an unknown region",
		[MEMIF_FAULT_BOUNDS] = "descriptor points outside its region",
		[MEMIF_FAULT_CHAIN] = "frame without an end, of more than 128 descriptors or 65535 bytes",
		[MEMIF_FAULT_BUFFER] = "offered buffer has no room",
		[MEMIF_FAULT_MEMORY] = "shared memory was taken away",
	};

	return texts[fault];
}
