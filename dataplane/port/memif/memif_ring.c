// SPDX-License-Identifier: Apache-2.0
// The packet path of memif: rings of shared memory <-> mbufs. Each frame is copied once.
//
// The usual frame (one descriptor, one mbuf) goes through a run of up to RUN frames: first all descriptors are read,
// checked and their data prefetched, then all are copied, so that the misses on lines that the peer's core wrote
// overlap. Whatever is not usual stops the run and takes the slow function.
#include "port/memif/memif_ring.h"

#include <string.h>
#include <unistd.h>

#include <rte_branch_prediction.h>
#include <rte_mempool.h>

#define RUN 32

static __rte_always_inline void prefetch_write(const void *p)
{
#ifdef __x86_64__ // the builtin does not emit it for the baseline that DPDK is built for
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

#define PREFETCH_LINES 4 // of a frame; what follows is up to the hardware

static __rte_always_inline void prefetch_read_frame(const uint8_t *p, uint32_t length)
{
	uint32_t at;

	__builtin_prefetch(p);
	for (at = 64; unlikely(at < length) && at < PREFETCH_LINES * 64; at += 64)
		__builtin_prefetch(p + at);
}

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

// Copies not one byte more than n: what lies behind a frame in an mbuf is none of the peer's business.
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

// Reads and writes up to 64 bytes where that many are there on both sides.
static __rte_always_inline void copy_in(uint8_t *dst, const uint8_t *src, uint32_t n)
{
	if (likely(n <= 64))
		copy64(dst, src);
	else
		copy_exact(dst, src, n);
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
	uint64_t *word = (uint64_t *)&q->ring->desc[pos & (q->size - 1)]; // clang takes the packed type's alignment otherwise

	__atomic_store_n(word, head, __ATOMIC_RELAXED);
}

static __rte_always_inline uint32_t desc_length(struct snapshot s)
{
	return s.head >> 32;
}

static __rte_always_inline uint64_t desc_head(struct snapshot s, uint32_t length, uint16_t flags)
{
	return (uint64_t)length << 32 | (s.head & 0xffff0000u) | flags;
}

// Where the buffer of a slot is, when at least n bytes of it are inside what we may touch; NULL otherwise. The owner of
// the memory knows its buffers and takes only the length from the ring.
static __rte_always_inline uint8_t *desc_data(const struct memif_queue *q, uint16_t pos, struct snapshot s, uint32_t n, bool own)
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

static __rte_noinline int lie(struct memif_queue *q, enum memif_fault fault)
{
	__atomic_store_n(&q->fault, fault, __ATOMIC_RELAXED);
	return -1;
}

static int lie_bounds(struct memif_queue *q, struct snapshot s, bool own)
{
	uint16_t region = s.head >> 16;

	return lie(q, !own && (region >= MEMIF_MAX_REGIONS || q->regions[region].addr == NULL) ? MEMIF_FAULT_REGION : MEMIF_FAULT_BOUNDS);
}

static __rte_always_inline void mbuf_fill(const struct memif_queue *q, struct rte_mbuf *m, uint32_t length)
{
	const uint64_t fields[] = {(uint64_t)length << 32, length}; // packet_type, pkt_len; data_len, vlan_tci, hash

	memcpy((char *)m + offsetof(struct rte_mbuf, data_off), &q->mbuf_init, sizeof(q->mbuf_init));
	m->ol_flags = 0;
	memcpy((char *)m + offsetof(struct rte_mbuf, packet_type), fields, sizeof(fields));
}

static __rte_always_inline uint16_t run_length(uint16_t wanted, uint16_t avail)
{
	uint16_t n = RTE_MIN(wanted, avail);

	return RTE_MIN(n, RUN);
}

// Up to n <= RUN usual frames from pos on into pkts[]; returns how many came before the first unusual one.
static __rte_always_inline uint16_t rx_run(struct memif_queue *q, struct rte_mbuf **pkts, uint16_t pos, uint16_t n, bool own)
{
	const uint8_t *src[RUN];
	uint32_t length[RUN];
	uint16_t i, found;

	for (i = 0; i < n; i++) {
		struct snapshot s = desc_read(q, pos + i, own);

		length[i] = desc_length(s);
		src[i] = desc_data(q, pos + i, s, RTE_MAX(length[i], 64u), own);
		if (unlikely((s.head & MEMIF_DESC_NEXT) || src[i] == NULL || length[i] > q->room || length[i] == 0))
			break;
		prefetch_read_frame(src[i], length[i]);
		prefetch_write(pkts[i]);
		prefetch_write_frame((uint8_t *)pkts[i] + q->data_at, length[i]);
	}
	found = i;
	for (i = 0; i < found; i++) {
		copy_in((uint8_t *)pkts[i] + q->data_at, src[i], length[i]);
		mbuf_fill(q, pkts[i], length[i]);
	}
	return found;
}

// Appends data to the frame that starts at m and ends at *last.
static int mbuf_append(struct memif_queue *q, struct rte_mbuf *m, struct rte_mbuf **last, const uint8_t *src, uint32_t n)
{
	while (n > 0) {
		uint16_t take = RTE_MIN(n, (uint32_t)(q->room - (*last)->data_len));

		if (take == 0) {
			struct rte_mbuf *more = rte_mbuf_raw_alloc(q->pool);

			if (more == NULL)
				return -1;
			mbuf_fill(q, more, 0);
			more->next = NULL;
			(*last)->next = more;
			*last = more;
			m->nb_segs++;
			continue;
		}
		memcpy((uint8_t *)*last + q->data_at + (*last)->data_len, src, take);
		(*last)->data_len += take;
		m->pkt_len += take;
		src += take;
		n -= take;
	}
	return 0;
}

// Back to what a fresh mbuf looks like.
static void mbuf_strip(struct rte_mbuf *m)
{
	if (m->next != NULL)
		rte_pktmbuf_free(m->next);
	m->next = NULL;
	m->nb_segs = 1;
}

// Any frame. Returns how many descriptors it took (with m->pkt_len 0 for an empty one), 0 = not now, -1 = a lie.
static __rte_noinline int rx_frame(struct memif_queue *q, struct rte_mbuf *m, uint16_t avail, bool own)
{
	struct rte_mbuf *last = m;
	struct snapshot s;
	const uint8_t *src;
	int used = 0;

	mbuf_fill(q, m, 0);
	do {
		if (used == avail) { // not complete yet, unless it can never be
			mbuf_strip(m);
			return avail == q->size ? lie(q, MEMIF_FAULT_CHAIN) : 0;
		}
		s = desc_read(q, q->pos + used, own);
		src = desc_data(q, q->pos + used, s, desc_length(s), own);
		if (src == NULL || m->pkt_len + (uint64_t)desc_length(s) > MEMIF_MAX_FRAME) {
			mbuf_strip(m);
			return src == NULL ? lie_bounds(q, s, own) : lie(q, MEMIF_FAULT_CHAIN);
		}
		if (mbuf_append(q, m, &last, src, desc_length(s)) < 0) {
			mbuf_strip(m);
			q->count->no_mbuf++;
			return 0;
		}
		used++;
	} while (s.head & MEMIF_DESC_NEXT);
	return used;
}

static __rte_always_inline void rx_release(struct memif_queue *q, uint16_t first, bool own)
{
	uint16_t pos;

	if (own)
		for (pos = first; pos != q->pos; pos++)
			desc_write(q, pos, (uint64_t)q->buffer_size << 32);
	__atomic_store_n(q->own_index, own ? q->pos + q->size : q->pos, __ATOMIC_RELEASE);
}

static __rte_always_inline uint16_t rx_burst(struct memif_queue *q, struct rte_mbuf **pkts, uint16_t n, bool own)
{
	uint16_t first = q->pos, done = 0;
	uint16_t avail = __atomic_load_n(q->peer_index, __ATOMIC_ACQUIRE) - first;

	if (avail == 0 || unlikely(q->fault))
		return 0;
	if (unlikely(avail > q->size)) {
		lie(q, MEMIF_FAULT_INDEX);
		return 0;
	}
	n = RTE_MIN(n, avail);
	if (unlikely(rte_mempool_get_bulk(q->pool, (void **)pkts, n) < 0)) {
		q->count->no_mbuf++;
		return 0;
	}
	while (done < n && avail > 0) {
		uint16_t want = run_length(n - done, avail);
		uint16_t got = rx_run(q, pkts + done, q->pos, want, own);
		int used;

		q->pos += got;
		avail -= got;
		done += got;
		if (likely(got == want))
			continue;
		used = rx_frame(q, pkts[done], avail, own);
		if (used <= 0)
			break;
		q->pos += used;
		avail -= used;
		if (pkts[done]->pkt_len > 0)
			done++;
		else
			q->count->empty++;
	}
	if (unlikely(done < n))
		rte_mempool_put_bulk(q->pool, (void **)pkts + done, n - done);
	rx_release(q, first, own);
	q->count->frames += done;
	return done;
}

uint16_t memif_rx(struct memif_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	return q->buffers != NULL ? rx_burst(q, pkts, n, true) : rx_burst(q, pkts, n, false);
}

// Up to n <= RUN usual frames to the descriptors from pos on; returns how many came before the first unusual one.
static __rte_always_inline uint16_t tx_run(struct memif_queue *q, struct rte_mbuf **pkts, uint16_t pos, uint16_t n, bool own)
{
	uint8_t *dst[RUN];
	uint64_t head[RUN];
	uint16_t i, found;

	for (i = 0; i < n; i++) {
		struct snapshot s = {0};
		uint32_t length = pkts[i]->data_len;

		if (!own)
			s = desc_read(q, pos + i, own);
		dst[i] = desc_data(q, pos + i, s, length, own);
		if (unlikely(dst[i] == NULL || pkts[i]->nb_segs != 1 || (!own && desc_length(s) < length)))
			break;
		head[i] = desc_head(s, length, 0);
		prefetch_write_frame(dst[i], length);
	}
	found = i;
	for (i = 0; i < found; i++) {
		copy_exact(dst[i], rte_pktmbuf_mtod(pkts[i], uint8_t *), pkts[i]->data_len);
		desc_write(q, pos + i, head[i]);
	}
	return found;
}

// Any frame: spreads the mbufs of m over as many buffers as they need. Returns the number of descriptors, 0 = no room
// now, -1 = a lie. Descriptors of an attempt without room are left filled to the brim, so their lengths still hold.
static __rte_noinline int tx_frame(struct memif_queue *q, const struct rte_mbuf *m, uint16_t avail, bool own)
{
	uint32_t filled = 0, room = 0, from = 0;
	struct snapshot s = {0};
	uint8_t *dst = NULL;
	int used = 0;

	while (m != NULL) {
		uint32_t take = RTE_MIN(m->data_len - from, room - filled);

		if (m->data_len == from) {
			m = m->next;
			from = 0;
		} else if (take == 0) {
			if (used == avail)
				return 0;
			if (used > 0)
				desc_write(q, q->pos + used - 1, desc_head(s, filled, MEMIF_DESC_NEXT));
			s = desc_read(q, q->pos + used, own);
			room = own ? q->buffer_size : desc_length(s);
			dst = desc_data(q, q->pos + used, s, room, own);
			if (dst == NULL || room == 0)
				return dst == NULL ? lie_bounds(q, s, own) : lie(q, MEMIF_FAULT_BUFFER);
			if (own)
				s.head = 0;
			filled = 0;
			used++;
		} else {
			memcpy(dst + filled, rte_pktmbuf_mtod_offset(m, const uint8_t *, from), take);
			filled += take;
			from += take;
		}
	}
	if (used > 0)
		desc_write(q, q->pos + used - 1, desc_head(s, filled, 0));
	return used;
}

// Frames that nobody else holds go back to their pool in one piece.
static __rte_always_inline void free_sent(struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mempool *pool = pkts[0]->pool;
	bool plain = true;
	uint16_t i;

	for (i = 0; i < n; i++) {
		const struct rte_mbuf *m = pkts[i];

		plain &= m->pool == pool && m->nb_segs == 1 && m->refcnt == 1 &&
			 !(m->ol_flags & (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL));
	}
	if (likely(plain))
		rte_mempool_put_bulk(pool, (void **)pkts, n);
	else
		rte_pktmbuf_free_bulk(pkts, n);
}

// The peer sleeps unless it said that it polls. Its flag must not be read before it can see the new index.
static __rte_always_inline void kick(struct memif_queue *q)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (likely(__atomic_load_n(&q->ring->flags, __ATOMIC_RELAXED) & MEMIF_RING_MASK_INT))
		return;
	memif_kick(q);
}

static __rte_always_inline uint16_t tx_burst(struct memif_queue *q, struct rte_mbuf **pkts, uint16_t n, bool own)
{
	uint16_t ahead = __atomic_load_n(q->peer_index, __ATOMIC_ACQUIRE) - q->pos; // client: minus what is not taken yet
	uint16_t avail = own ? q->size + ahead : ahead;
	uint16_t done = 0;

	if (avail == 0 || n == 0 || unlikely(q->fault))
		return 0;
	if (unlikely(avail > q->size)) {
		lie(q, MEMIF_FAULT_INDEX);
		return 0;
	}
	while (done < n && avail > 0) {
		uint16_t want = run_length(n - done, avail);
		uint16_t got = tx_run(q, pkts + done, q->pos, want, own);
		int used;

		q->pos += got;
		avail -= got;
		done += got;
		if (likely(got == want))
			continue;
		used = tx_frame(q, pkts[done], avail, own);
		if (used <= 0)
			break;
		q->pos += used;
		avail -= used;
		done++;
	}
	if (unlikely(done == 0))
		return 0;
	__atomic_store_n(q->own_index, q->pos, __ATOMIC_RELEASE);
	kick(q);
	free_sent(pkts, done);
	q->count->frames += done;
	return done;
}

uint16_t memif_tx(struct memif_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t sent;

	if (unlikely(q->shared))
		rte_spinlock_lock(&q->lock);
	sent = q->buffers != NULL ? tx_burst(q, pkts, n, true) : tx_burst(q, pkts, n, false);
	if (unlikely(q->shared))
		rte_spinlock_unlock(&q->lock);
	return sent;
}
