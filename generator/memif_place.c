// SPDX-License-Identifier: Apache-2.0
#include "memif_place.h"

#include <errno.h>
#include <stdlib.h>

#include "head.h"
#include "port/memif/memif_burst.h"

#define AHEAD 32 // slots fetched beyond those that are asked for

static __rte_always_inline uint8_t *buffer_of(const struct memif_queue *q, uint16_t pos)
{
	return q->buffers + (size_t)(pos & (q->size - 1)) * q->buffer_stride;
}

void place_lay(struct place_tx *t)
{
	uint32_t i;

	for (i = 0; i < t->q->size; i++)
		memcpy(buffer_of(t->q, (uint16_t)i), pattern, RTE_MIN(t->q->buffer_size, (uint32_t)FRAME_MAX));
}

int place_tx_init(struct place_tx *t, struct memif_queue *q)
{
	*t = (struct place_tx){.q = q, .lengths = calloc(q->size, sizeof(*t->lengths))};
	if (t->lengths == NULL)
		return -ENOMEM;
	place_lay(t);
	return 0;
}

int place_rx_init(struct place_rx *r, struct memif_queue *q)
{
	*r = (struct place_rx){.q = q, .scratch = malloc(PLACE_MAX_FRAME)};
	return r->scratch == NULL ? -ENOMEM : 0;
}

void place_tx_fini(struct place_tx *t)
{
	free(t->lengths);
}

void place_rx_fini(struct place_rx *r)
{
	free(r->scratch);
}

static __rte_always_inline uint16_t peer_index(const struct memif_queue *q)
{
	return __atomic_load_n(q->peer_index, __ATOMIC_ACQUIRE);
}

// Slots that we may fill. The peer's index is in a line that it writes: read only when it matters.
static __rte_always_inline unsigned room_of(struct place_tx *t, unsigned n)
{
	uint16_t room = (uint16_t)(t->q->size - (uint16_t)(t->q->pos - t->taken));

	if (room < n) {
		t->taken = peer_index(t->q);
		room = (uint16_t)(t->q->size - (uint16_t)(t->q->pos - t->taken));
	}
	if (likely(room <= t->q->size))
		return room;
	memif_lie(t->q, MEMIF_FAULT_INDEX);
	return 0;
}

unsigned place_reserve(struct place_tx *t, struct frame *frames, unsigned n, unsigned head)
{
	struct memif_queue *q = t->q;
	unsigned room = room_of(t, n + AHEAD), fetch = RTE_MIN(room, n + AHEAD), i, line;

	if (unlikely(q->fault))
		return 0;
	if ((uint16_t)(t->fetched - q->pos) > q->size)
		t->fetched = q->pos;
	for (; t->fetched != (uint16_t)(q->pos + fetch); t->fetched++) {
		uint8_t *b = buffer_of(q, t->fetched);

		for (line = 0; line < head; line += RTE_CACHE_LINE_SIZE)
			prefetch_write(b + line);
	}
	n = RTE_MIN(n, room);
	for (i = 0; i < n; i++)
		frames[i].data = buffer_of(q, (uint16_t)(q->pos + i));
	return n;
}

// The peer sleeps unless it says that it polls. Its flag must not be read before it can see the new index.
static __rte_always_inline void wake(struct memif_queue *q)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (unlikely(!(__atomic_load_n(&q->ring->flags, __ATOMIC_RELAXED) & MEMIF_RING_MASK_INT)))
		memif_kick(q);
}

unsigned place_commit(struct place_tx *t, const struct frame *frames, unsigned n)
{
	struct memif_queue *q = t->q;
	unsigned i;

	for (i = 0; i < n; i++) {
		uint16_t slot = (uint16_t)((q->pos + i) & (q->size - 1));

		if (t->lengths[slot] != frames[i].length) {
			t->lengths[slot] = frames[i].length;
			desc_write(q, slot, (uint64_t)frames[i].length << 32);
		}
	}
	q->pos = (uint16_t)(q->pos + n);
	__atomic_store_n(q->own_index, q->pos, __ATOMIC_RELEASE);
	wake(q);
	return n;
}

static __rte_always_inline unsigned filled_of(struct place_rx *r, unsigned n)
{
	uint16_t filled = (uint16_t)(r->filled - r->q->pos);

	if (filled < n) {
		r->filled = peer_index(r->q);
		filled = (uint16_t)(r->filled - r->q->pos);
	}
	if (likely(filled <= r->q->size))
		return filled;
	memif_lie(r->q, MEMIF_FAULT_INDEX);
	return 0;
}

static __rte_always_inline void fetch(struct place_rx *r, unsigned n, unsigned probe)
{
	struct memif_queue *q = r->q;

	if ((uint16_t)(r->fetched - q->pos) > q->size)
		r->fetched = q->pos;
	for (; r->fetched != (uint16_t)(q->pos + n); r->fetched++) {
		const uint8_t *b = buffer_of(q, r->fetched) + probe;

		if ((r->fetched & 3) == 0)
			prefetch_write(&q->ring->desc[r->fetched & (q->size - 1)]);
		__builtin_prefetch(b);
		if ((probe & 63) > 64 - PROBE_SIZE)
			__builtin_prefetch(b + PROBE_SIZE - 1);
	}
}

// A frame in several buffers: none of ours is too small for what we sent, but others may send, too.
static __rte_noinline unsigned gather(struct place_rx *r, struct frame *f, unsigned avail)
{
	struct memif_queue *q = r->q;
	struct snapshot s;
	uint32_t length = 0;
	unsigned i = 0;

	do {
		if (i == avail)
			return avail == q->size ? memif_lie(q, MEMIF_FAULT_CHAIN), 0 : 0; // not complete yet, or never
		s = desc_read(q, (uint16_t)(q->pos + i), true);
		if (desc_length(s) > q->buffer_size || length + desc_length(s) > PLACE_MAX_FRAME)
			return memif_lie(q, MEMIF_FAULT_CHAIN), 0;
		memcpy(r->scratch + length, buffer_of(q, (uint16_t)(q->pos + i)), desc_length(s));
		length += desc_length(s);
		i++;
	} while (s.head & MEMIF_DESC_NEXT);
	*f = (struct frame){.data = r->scratch, .length = length};
	r->chain = (uint16_t)i;
	return 1;
}

unsigned place_peek(struct place_rx *r, struct frame *frames, unsigned n, unsigned probe)
{
	struct memif_queue *q = r->q;
	unsigned avail = filled_of(r, n + AHEAD), i;

	if (avail == 0 || unlikely(q->fault))
		return 0;
	fetch(r, RTE_MIN(avail, n + AHEAD), probe);
	n = RTE_MIN(n, avail);
	for (i = 0; i < n; i++) {
		struct snapshot s = desc_read(q, (uint16_t)(q->pos + i), true);

		if (unlikely(s.head & MEMIF_DESC_NEXT || desc_length(s) > q->buffer_size))
			return i > 0 ? i : gather(r, frames, avail);
		frames[i] = (struct frame){.data = buffer_of(q, (uint16_t)(q->pos + i)), .length = desc_length(s)};
	}
	return n;
}

void place_release(struct place_rx *r, unsigned n)
{
	struct memif_queue *q = r->q;
	unsigned i;

	if (unlikely(r->chain > 0)) {
		n = r->chain;
		r->chain = 0;
	}
	for (i = 0; i < n; i++)
		desc_write(q, (uint16_t)(q->pos + i), (uint64_t)q->buffer_size << 32);
	q->pos = (uint16_t)(q->pos + n);
	__atomic_store_n(q->own_index, (uint16_t)(q->pos + q->size), __ATOMIC_RELEASE);
}
