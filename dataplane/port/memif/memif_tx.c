// SPDX-License-Identifier: Apache-2.0
// Mbufs to shared memory.
#include "base/event_signal.h"
#include "port/memif/memif_burst.h"

// Up to n <= RUN usual frames to the descriptors from pos on; returns how many came before the first unusual one.
static __rte_always_inline uint16_t tx_run(struct memif_queue *q, struct rte_mbuf **pkts, uint16_t pos, uint16_t n,
					   bool own)
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
// now, -1 = the peer lies. An attempt without room leaves descriptors of full length, which is still right. A whole
// packet that was meant for the last peer has no room with one that does not know them.
static __rte_noinline int tx_frame(struct memif_queue *q, const struct rte_mbuf *m, uint16_t avail, bool own)
{
	uint16_t whole = offload_is_whole(m) ? MEMIF_DESC_WHOLE : 0;
	uint32_t filled = 0, room = 0, from = 0;
	struct snapshot s = {0};
	uint8_t *dst = NULL;
	int used = 0;

	if (whole && !q->whole)
		return 0;
	if (whole && avail > 0)
		__atomic_store_n(desc_metadata(q, q->pos), m->tso_segsz | (uint32_t)m->outer_l3_len << 16,
				 __ATOMIC_RELAXED);
	while (m != NULL) {
		uint32_t take = RTE_MIN(m->data_len - from, room - filled);

		if (m->data_len == from) {
			m = m->next;
			from = 0;
		} else if (take == 0) {
			if (used == avail)
				return 0;
			if (used > 0)
				desc_write(q, q->pos + used - 1,
					   desc_head(s, filled, (uint16_t)(MEMIF_DESC_NEXT | (used == 1 ? whole : 0))));
			s = desc_read(q, q->pos + used, own);
			room = own ? q->buffer_size : desc_length(s);
			dst = desc_data(q, q->pos + used, s, room, own);
			if (dst == NULL || room == 0)
				return dst == NULL ? memif_lie_bounds(q, s.head >> 16, own)
						   : memif_lie(q, MEMIF_FAULT_BUFFER);
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
		desc_write(q, q->pos + used - 1, desc_head(s, filled, used == 1 ? whole : 0));
	return used;
}

// Mbufs with no other reference return to their pool in one call.
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

// Wakes a peer that sleeps on its ring's eventfd.
void memif_kick(struct memif_queue *q)
{
	q->count->kicks++;
	if (event_signal(q->kick_fd) < 0)
		q->count->kicks_lost++;
}

// The peer sleeps unless its ring is marked as polled. The flag must not be read before the peer can see the new index.
static __rte_always_inline void memif_tx_kick(struct memif_queue *q)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (likely(__atomic_load_n(&q->ring->flags, __ATOMIC_RELAXED) & MEMIF_RING_MASK_INT))
		return;
	memif_kick(q);
}

static __rte_always_inline uint16_t tx_burst(struct memif_queue *q, struct rte_mbuf **pkts, uint16_t n, bool own)
{
	// For the client this is minus the number of descriptors that the peer has not consumed, modulo 2^16.
	uint16_t ahead = __atomic_load_n(q->peer_index, __ATOMIC_ACQUIRE) - q->pos;
	uint16_t avail = own ? q->size + ahead : ahead;
	uint16_t done = 0;

	if (avail == 0 || n == 0 || unlikely(q->fault))
		return 0;
	if (unlikely(avail > q->size)) {
		memif_lie(q, MEMIF_FAULT_INDEX);
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
	memif_tx_kick(q);
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
