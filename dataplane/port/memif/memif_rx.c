// SPDX-License-Identifier: Apache-2.0
// Shared memory to mbufs.
#include "port/memif/memif_burst.h"

static __rte_always_inline void prefetch_read_frame(const uint8_t *p, uint32_t length)
{
	uint32_t at;

	__builtin_prefetch(p);
	for (at = 64; unlikely(at < length) && at < PREFETCH_LINES * 64; at += 64)
		__builtin_prefetch(p + at);
}

// Copies 64 bytes even when n is smaller: both sides have room for that many.
static __rte_always_inline void copy_in(uint8_t *dst, const uint8_t *src, uint32_t n)
{
	if (likely(n <= 64))
		copy64(dst, src);
	else
		copy_exact(dst, src, n);
}

static __rte_always_inline void mbuf_fill(const struct memif_queue *q, struct rte_mbuf *m, uint32_t length)
{
	const uint64_t fields[] = {(uint64_t)length << 32, length}; // packet_type, pkt_len; data_len, vlan_tci, hash

	memcpy((char *)m + offsetof(struct rte_mbuf, data_off), &q->mbuf_init, sizeof(q->mbuf_init));
	m->ol_flags = 0;
	memcpy((char *)m + offsetof(struct rte_mbuf, packet_type), fields, sizeof(fields));
}

// Up to n <= RUN usual frames from pos on into pkts[]; returns how many came before the first unusual one. bytes:
// increases by their lengths.
static __rte_always_inline uint16_t rx_run(struct memif_queue *q, struct rte_mbuf **pkts, uint16_t pos, uint16_t n,
					   bool own, uint32_t *bytes)
{
	const uint8_t *src[RUN];
	uint32_t length[RUN];
	uint16_t i, found;

	for (i = 0; i < n; i++) {
		struct snapshot s = desc_read(q, pos + i, own);

		length[i] = desc_length(s);
		src[i] = desc_data(q, pos + i, s, RTE_MAX(length[i], 64u), own);
		if (unlikely((s.head & (MEMIF_DESC_NEXT | MEMIF_DESC_WHOLE)) || src[i] == NULL || length[i] > q->room ||
			     length[i] == 0))
			break;
		prefetch_read_frame(src[i], length[i]);
		prefetch_write(pkts[i]);
		prefetch_write_frame((uint8_t *)pkts[i] + q->data_at, length[i]);
	}
	found = i;
	for (i = 0; i < found; i++) {
		*bytes += length[i];
		copy_in((uint8_t *)pkts[i] + q->data_at, src[i], length[i]);
		mbuf_fill(q, pkts[i], length[i]);
	}
	return found;
}

// Appends data to the frame that starts at m and ends at *last.
static int mbuf_append(struct memif_queue *q, struct rte_mbuf *m, struct rte_mbuf **last, const uint8_t *src,
		       uint32_t n)
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

// Makes m look like a fresh mbuf.
static void mbuf_strip(struct rte_mbuf *m)
{
	if (m->next != NULL)
		rte_pktmbuf_free(m->next);
	m->next = NULL;
	m->nb_segs = 1;
}

static void memif_no_mbuf(struct memif_queue *q)
{
	q->count->no_mbuf++;
	q->no_mbuf = true;
}

// What the peer says of its frame; nothing is taken from it before it has been compared with the headers.
static void rx_whole(const struct memif_queue *q, struct rte_mbuf *m, bool own)
{
	uint32_t mark;

	if (!(desc_read(q, q->pos, own).head & MEMIF_DESC_WHOLE))
		return;
	mark = __atomic_load_n(desc_metadata(q, q->pos), __ATOMIC_RELAXED);
	offload_mark(m, OFFLOAD_WHOLE | OFFLOAD_CAME_WHOLE);
	m->tx_offload = 0;
	m->tso_segsz = (uint16_t)mark;
	m->outer_l3_len = mark >> 16 & 0x1ff;
}

// Any frame. Returns how many descriptors it took (with m->pkt_len 0 for an empty one, or one that is too long, whose
// rest is not copied), 0 = not now, -1 = the peer lies.
static __rte_noinline int rx_frame(struct memif_queue *q, struct rte_mbuf *m, uint16_t avail, bool own)
{
	struct rte_mbuf *last = m;
	uint64_t length = 0;
	struct snapshot s;
	const uint8_t *src;
	int used = 0;

	mbuf_fill(q, m, 0);
	if (q->whole)
		rx_whole(q, m, own);
	do {
		if (used == RTE_MIN(avail, MEMIF_MAX_CHAIN)) { // the last descriptor has not arrived, or never will
			mbuf_strip(m);
			return avail >= RTE_MIN(q->size, (uint32_t)MEMIF_MAX_CHAIN) ? memif_lie(q, MEMIF_FAULT_CHAIN)
										    : 0;
		}
		s = desc_read(q, q->pos + used, own);
		src = desc_data(q, q->pos + used, s, desc_length(s), own);
		length += desc_length(s);
		if (src == NULL || length > MEMIF_MAX_FRAME) {
			mbuf_strip(m);
			return src == NULL ? memif_lie_bounds(q, s.head >> 16, own) : memif_lie(q, MEMIF_FAULT_CHAIN);
		}
		if (length <= q->longest && mbuf_append(q, m, &last, src, desc_length(s)) < 0) {
			mbuf_strip(m);
			memif_no_mbuf(q);
			return 0;
		}
		used++;
	} while (s.head & MEMIF_DESC_NEXT);
	if (length > q->longest) {
		mbuf_strip(m);
		m->pkt_len = 0;
		q->too_long++;
	} else if (length == 0) {
		q->count->empty++;
	}
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
	uint16_t first = q->pos, done = 0, taken;
	uint32_t bytes = 0;
	uint16_t avail = __atomic_load_n(q->peer_index, __ATOMIC_ACQUIRE) - first;

	if (avail == 0 || unlikely(q->fault))
		return 0;
	if (unlikely(avail > q->size)) {
		memif_lie(q, MEMIF_FAULT_INDEX);
		return 0;
	}
	taken = n = RTE_MIN(n, avail);
	if (unlikely(rte_mempool_get_bulk(q->pool, (void **)pkts, n) < 0)) {
		memif_no_mbuf(q);
		return 0;
	}
	while (done < n && avail > 0 && bytes < MEMIF_TURN_BYTES) {
		uint16_t want = run_length(n - done, avail);
		uint16_t got = rx_run(q, pkts + done, q->pos, want, own, &bytes);
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
		bytes += pkts[done]->pkt_len;
		if (pkts[done]->pkt_len > 0)
			done++;
		else
			n--; // frames that give no packet count, too: their number in a poll is bounded
	}
	if (unlikely(done < taken))
		rte_mempool_put_bulk(q->pool, (void **)pkts + done, taken - done);
	rx_release(q, first, own);
	q->count->frames += done;
	return done;
}

uint16_t memif_rx(struct memif_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	return q->buffers != NULL ? rx_burst(q, pkts, n, true) : rx_burst(q, pkts, n, false);
}
