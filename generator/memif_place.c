// SPDX-License-Identifier: Apache-2.0
// Zero-copy sending and receiving on the rings of a memif client.
#include "memif_place.h"

#include <errno.h>
#include <stdlib.h>

#include "head.h"
#include "port/memif/memif_burst.h"

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

// The number of free slots. The peer writes the line of its index, so it is read only when the last value does not
// suffice.
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

static __rte_always_inline void fetch_tx(struct place_tx *t, unsigned n, unsigned head)
{
	unsigned line;

	if ((uint16_t)(t->fetched - t->q->pos) > t->q->size)
		t->fetched = t->q->pos;
	for (; (int16_t)(t->q->pos + n - t->fetched) > 0; t->fetched++)
		for (line = 0; line < head; line += RTE_CACHE_LINE_SIZE)
			prefetch_write(buffer_of(t->q, t->fetched) + line);
}

// An iterator over slots.
struct walk {
	const struct memif_queue *q;
	uint8_t *buffer;
	uint64_t *desc; // first word: flags, region, length
	unsigned left;  // slots up to the end of the ring
};

static __rte_always_inline struct walk walk_from(const struct memif_queue *q, uint16_t pos)
{
	unsigned slot = pos & (q->size - 1);

	return (struct walk){.q = q,
			     .buffer = q->buffers + (size_t)slot * q->buffer_stride,
			     .desc = (uint64_t *)&q->ring->desc[slot],
			     .left = q->size - slot};
}

static __rte_always_inline void walk_on(struct walk *w)
{
	if (unlikely(--w->left == 0)) {
		*w = walk_from(w->q, 0);
		return;
	}
	w->buffer += w->q->buffer_stride;
	w->desc += 2;
}

// Fills in the addresses of the next buffers, for prefetching, but of none that the peer owns.
static __rte_always_inline void fill_ahead(struct walk *w, struct frame *frames, unsigned ours)
{
	unsigned i;

	for (i = 0; i < ours; i++, walk_on(w))
		frames[i].data = w->buffer;
	for (; i < PORT_AHEAD; i++)
		frames[i].data = w->q->buffers;
}

unsigned place_reserve(struct place_tx *t, struct frame *frames, unsigned n, unsigned head)
{
	unsigned room = room_of(t, n), more, i;
	struct walk w = walk_from(t->q, t->q->pos);

	if (room == 0 || unlikely(t->q->fault))
		return 0;
	fetch_tx(t, RTE_MIN(room, PORT_AHEAD), head);
	n = RTE_MIN(n, room);
	more = RTE_MIN(room - n, PORT_AHEAD);
	for (i = 0; i < n; i++, walk_on(&w))
		frames[i].data = w.buffer;
	fill_ahead(&w, frames + n, more);
	t->fetched = (uint16_t)(t->q->pos + n + more); // the caller prefetches them
	return n;
}

static bool memif_place_asleep(const struct memif_queue *q)
{
	return !(__atomic_load_n(&q->ring->flags, __ATOMIC_RELAXED) & MEMIF_RING_MASK_INT);
}

unsigned place_commit(struct place_tx *t, const struct frame *frames, unsigned n)
{
	struct memif_queue *q = t->q;
	unsigned i;

	for (i = 0; i < n; i++) {
		uint16_t slot = (uint16_t)((q->pos + i) & (q->size - 1));

		if (unlikely(t->lengths[slot] != frames[i].length)) {
			t->lengths[slot] = frames[i].length;
			desc_write(q, slot, (uint64_t)frames[i].length << 32);
		}
	}
	q->pos = (uint16_t)(q->pos + n);
	__atomic_store_n(q->own_index, q->pos, __ATOMIC_RELEASE);
	// To read the flag after the index is visible to the peer would take a fence, which waits for all the lines
	// just written. So it is read again later, when they have been written (place_touch_tx).
	t->unsure = true;
	if (unlikely(memif_place_asleep(q)))
		memif_kick(q);
	return n;
}

void place_touch_tx(struct place_tx *t)
{
	struct memif_queue *q = t->q;

	if (t->unsure && unlikely(memif_place_asleep(q)))
		memif_kick(q);
	t->unsure = false;
	if ((uint16_t)(q->size - (uint16_t)(q->pos - t->taken)) < PORT_BURST)
		__builtin_prefetch(q->peer_index);
}

void place_touch_rx(struct place_rx *r)
{
	if (r->filled == r->q->pos)
		__builtin_prefetch(r->q->peer_index);
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

// Prefetches descriptors, four of which share a line, and probes.
static __rte_always_inline void fetch_rx(struct place_rx *r, unsigned n, unsigned probe)
{
	struct memif_queue *q = r->q;

	if ((uint16_t)(r->fetched - q->pos) > q->size)
		r->fetched = q->pos;
	for (; (int16_t)(q->pos + n - r->fetched) > 0; r->fetched++) {
		if ((r->fetched & 3) == 0 || r->fetched == q->pos)
			prefetch_write(&q->ring->desc[r->fetched & (q->size - 1)]);
		__builtin_prefetch(buffer_of(q, r->fetched) + probe);
	}
}

void place_look(struct place_rx *r, unsigned probe)
{
	fetch_rx(r, RTE_MIN(filled_of(r, PORT_BURST), PORT_AHEAD), probe);
}

// Copies a frame that spans several buffers. Our own frames fit into one, but the router may send others.
static __rte_noinline unsigned memif_place_gather(struct place_rx *r, struct frame *f, unsigned avail)
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
	const struct memif_queue *q = r->q;
	unsigned avail = filled_of(r, n), more, i;
	struct walk w = walk_from(q, q->pos);
	uint64_t head;

	if (avail == 0 || unlikely(q->fault))
		return 0;
	fetch_rx(r, RTE_MIN(avail, PORT_AHEAD), probe);
	n = RTE_MIN(n, avail);
	more = RTE_MIN(avail - n, PORT_AHEAD);
	for (i = PORT_AHEAD; i < n + more; i += 4)
		prefetch_write(&q->ring->desc[(q->pos + i) & (q->size - 1)]);
	for (i = 0; i < n; i++, walk_on(&w)) {
		head = __atomic_load_n(w.desc, __ATOMIC_RELAXED);
		if (unlikely(head & MEMIF_DESC_NEXT || head >> 32 > q->buffer_size))
			break;
		frames[i] = (struct frame){.data = w.buffer, .length = (uint32_t)(head >> 32)};
	}
	if (unlikely(i < n)) {
		if (i == 0)
			n = memif_place_gather(r, frames, avail);
		else
			n = i;
		more = 0;
	}
	fill_ahead(&w, frames + n, more);
	r->fetched = (uint16_t)(q->pos + n + more); // the caller prefetches them
	return n;
}

void place_release(struct place_rx *r, unsigned n)
{
	struct memif_queue *q = r->q;
	struct walk w = walk_from(q, q->pos);
	uint64_t empty = (uint64_t)q->buffer_size << 32;
	unsigned i;

	if (unlikely(r->chain > 0)) {
		n = r->chain;
		r->chain = 0;
	}
	for (i = 0; i < n; i++, walk_on(&w))
		__atomic_store_n(w.desc, empty, __ATOMIC_RELAXED);
	q->pos = (uint16_t)(q->pos + n);
	__atomic_store_n(q->own_index, (uint16_t)(q->pos + q->size), __ATOMIC_RELEASE);
}
