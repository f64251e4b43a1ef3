// SPDX-License-Identifier: Apache-2.0
// Shared by memif_rx.c and memif_tx.c: copies, and descriptors that are read once. Each frame is copied once.
//
// The usual frame (one descriptor, one mbuf) goes through a run of up to RUN frames: first all descriptors are read,
// checked and their data prefetched, then all are copied, so that the misses on lines that the peer's core wrote
// overlap. Any other frame ends the run and takes the slow function. "own" is a constant: true for the client, which
// owns the memory.
#pragma once

#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_mempool.h>

#include "base/offload.h"
#include "base/prefetch.h"
#include "port/memif/memif_ring.h"

#define RUN 32

#define PREFETCH_LINES 4 // of a frame; the hardware prefetches the rest

static __rte_always_inline void prefetch_write_frame(const uint8_t *p, uint32_t length)
{
	uint32_t at;

	prefetch_write(p);
	for (at = 64; unlikely(at < length) && at < PREFETCH_LINES * 64; at += 64)
		prefetch_write(p + at);
}

static __rte_always_inline void copy32(uint8_t *dst, const uint8_t *src)
{
	memcpy(dst, src, 32);
}

static __rte_always_inline void copy64(uint8_t *dst, const uint8_t *src)
{
	memcpy(dst, src, 64);
}

// Copies exactly n bytes: the peer must not see what lies behind a frame in an mbuf.
static __rte_always_inline void copy_exact(uint8_t *dst, const uint8_t *src, uint32_t n)
{
	if (likely(n >= 32 && n <= 64)) {
		copy32(dst, src);
		copy32(dst + n - 32, src + n - 32);
	} else if (n > 64 && n <= 128) {
		copy64(dst, src);
		copy64(dst + n - 64, src + n - 64);
	} else {
		memcpy(dst, src, n);
	}
}

// A descriptor, read once.
struct snapshot {
	uint64_t head; // flags | region << 16 | length << 32
	uint32_t offset;
};

static __rte_always_inline struct snapshot desc_read(const struct memif_queue *q, uint16_t pos, bool own)
{
	const uint64_t *words = (const uint64_t *)&q->ring->desc[pos & (q->size - 1)];
	struct snapshot s = {.head = __atomic_load_n(&words[0], __ATOMIC_RELAXED)};

	if (!own)
		s.offset = (uint32_t)__atomic_load_n(&words[1], __ATOMIC_RELAXED);
	return s;
}

static __rte_always_inline void desc_write(struct memif_queue *q, uint16_t pos, uint64_t head)
{
	// Without the cast clang assumes the packed type's alignment.
	uint64_t *word = (uint64_t *)&q->ring->desc[pos & (q->size - 1)];

	__atomic_store_n(word, head, __ATOMIC_RELAXED);
}

// The cast as above.
static __rte_always_inline uint32_t *desc_metadata(const struct memif_queue *q, uint16_t pos)
{
	return (uint32_t *)(void *)&q->ring->desc[pos & (q->size - 1)] + 3;
}

static __rte_always_inline uint32_t desc_length(struct snapshot s)
{
	return s.head >> 32;
}

static __rte_always_inline uint64_t desc_head(struct snapshot s, uint32_t length, uint16_t flags)
{
	return (uint64_t)length << 32 | (s.head & 0xffff0000u) | flags;
}

// The buffer of a slot; NULL when fewer than n bytes of it are inside its region. The owner of the memory knows its
// buffers and takes only the length from the ring.
static __rte_always_inline uint8_t *desc_data(const struct memif_queue *q, uint16_t pos, struct snapshot s, uint32_t n,
					      bool own)
{
	const struct memif_region *r;
	uint16_t region = s.head >> 16;

	if (own)
		return n <= q->buffer_size ? q->buffers + (size_t)(pos & (q->size - 1)) * q->buffer_stride : NULL;
	if (unlikely(region >= MEMIF_MAX_REGIONS))
		return NULL;
	r = &q->regions[region];
	if (unlikely((uint64_t)s.offset + n > r->size || r->addr == NULL)) // no address: not mapped, and n may be 0
		return NULL;
	return r->addr + s.offset;
}

static __rte_always_inline uint16_t run_length(uint16_t wanted, uint16_t avail)
{
	uint16_t n = RTE_MIN(wanted, avail);

	return RTE_MIN(n, RUN);
}

// Marks the queue as faulty. Returns -1.
int memif_lie(struct memif_queue *q, enum memif_fault fault);
int memif_lie_bounds(struct memif_queue *q, uint16_t region, bool own);
