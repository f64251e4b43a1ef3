// SPDX-License-Identifier: Apache-2.0
// The workers' side of a vhost-user port. Bursts of librte_vhost end at 32 packets.
#include "port/vhost.h"

#include <errno.h>

#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

#include <rte_cycles.h>
#include <rte_vhost.h>

#include "base/clock.h"
#include "base/offload.h"
#include "base/wake_fd.h"
#include "port/vnet.h"

// Where the library will read its next packet. The library has dropped one when this moves by more than the packets
// that came. It drops at most one packet in a burst.
static inline uint16_t vhost_io_position(int vid, uint16_t vring)
{
	uint16_t avail = 0, used;

	rte_vhost_get_vring_base(vid, vring, &avail, &used);
	return avail;
}

static inline uint32_t vhost_io_length(struct rte_mbuf *const *pkts, uint16_t n)
{
	uint32_t sum = 0;
	uint16_t i;

	for (i = 0; i < n; i++)
		sum += pkts[i]->pkt_len;
	return sum;
}

// Drops the frames whose marks lie. Returns how many are left.
static __rte_noinline uint16_t vhost_io_read_marks(const struct port *port, struct rte_mbuf **pkts, uint16_t n)
{
	const struct drop_reason *lie;
	uint16_t i, kept = 0;

	for (i = 0; i < n; i++) {
		lie = vnet_read_marks(pkts[i]);
		if (likely(lie == NULL))
			pkts[kept++] = pkts[i];
		else
			port_refused(port, pkts[i], lie);
	}
	return kept;
}

// The most packets of the next burst: about PORT_TURN_BYTES where frames are long. cost: bytes of this one.
static inline uint16_t vhost_io_next_burst(uint16_t burst, uint16_t segs, uint32_t cost)
{
	if (segs == 1)
		return cost > PORT_TURN_BYTES ? VHOST_SHORT_BURST : VHOST_BURST;
	if (cost > PORT_TURN_BYTES)
		return (uint16_t)RTE_MAX(burst * PORT_TURN_BYTES / cost, 1u);
	return RTE_MIN((uint16_t)(burst * 2), VHOST_BURST);
}

static inline bool vhost_io_rests(struct vhost_debt *d)
{
	return unlikely(d->paid_at != 0) && vhost_debt_is_due(d, clock_now(), rte_get_tsc_hz());
}

// A worker's struct rseq points to a section until the kernel gives the CPU to others (worker/recorder.h).
static inline bool vhost_turn_watched(void)
{
#if __has_include(<sys/rseq.h>)
	const struct rseq *r = (const void *)((char *)__builtin_thread_pointer() + __rseq_offset);

	return __rseq_size > 0 && *(const volatile uint64_t *)&r->rseq_cs != 0;
#else
	return false;
#endif
}

// A poll of a queue, or a burst to it.
struct vhost_turn {
	uint64_t begin, now; // TSC
	uint32_t bytes;      // that were copied
	bool watched;        // so far the worker has had its CPU
};

static inline struct vhost_turn vhost_turn_begin(void)
{
	uint64_t now = rte_rdtsc();

	return (struct vhost_turn){.begin = now, .now = now, .watched = vhost_turn_watched()};
}

static inline bool vhost_turn_lasts(const struct vhost_turn *t)
{
	return t->bytes < PORT_TURN_BYTES && t->now - t->begin < VHOST_TURN_US * (rte_get_tsc_hz() / 1000000);
}

// A call of the library has moved these frames.
static inline void vhost_turn_took(struct vhost_turn *t, struct vhost_debt *d, uint16_t frames, uint32_t bytes)
{
	uint64_t now = rte_rdtsc();

	if (unlikely(vhost_debt_excess(now - t->now, frames, bytes, rte_get_tsc_hz()) > 0) &&
	    (!t->watched || vhost_turn_watched()))
		vhost_debt_add(d, now, vhost_debt_excess(now - t->now, frames, bytes, rte_get_tsc_hz()));
	t->bytes += bytes;
	t->now = now;
}

// Before a call of the library: where it notifies the guest.
static inline void vhost_io_call(const struct vhost_queue *q, uint16_t vring, uint64_t *lost)
{
	vhost_call = (struct vhost_call){.fd = &q->calls->fds[vring], .lost = lost};
}

static inline uint16_t vhost_io_dequeue(struct port_queue *pq, int vid, uint16_t vring, struct rte_mbuf **pkts,
					uint16_t n, struct vhost_turn *turn)
{
	struct vhost_queue *q = pq->priv;
	uint16_t segs = __atomic_load_n(&q->segs, __ATOMIC_RELAXED), got = 0, k, want, before, kept;
	uint32_t length;
	unsigned lost;

	vhost_io_call(q, vring, &q->rx_calls_lost);
	do {
		before = vhost_io_position(vid, vring);
		want = vhost_debt_burst(&q->rx_debt, q->burst);
		want = RTE_MIN((uint16_t)(n - got), want);
		vhost_pool_allow(want, want * (segs - 1u));
		k = rte_vhost_dequeue_burst(vid, vring, q->pool, pkts + got, want);
		lost = 0;
		// A frame that announces the guest after a migration (RARP) is made by the library, and moves nothing.
		if (k < want && (int16_t)(vhost_io_position(vid, vring) - before - k) > 0) {
			port_refused_too_long(pq->port);
			lost = vhost_pool_taken() * PORT_POOL_ROOM; // was copied in vain
		}
		if (unlikely(vhost_pool_lacks()))
			port_no_buffer(pq->port);
		length = RTE_MAX(vhost_io_length(pkts + got, k), lost);
		vhost_turn_took(turn, &q->rx_debt, k, length);
		q->burst = vhost_io_next_burst(q->burst, segs, length);
		kept = k;
		if (__atomic_load_n(&q->marked, __ATOMIC_RELAXED))
			kept = vhost_io_read_marks(pq->port, pkts + got, k);
		got = (uint16_t)(got + kept);
	} while (k == want && got < n && vhost_turn_lasts(turn));
	return got;
}

uint16_t vhost_rx(struct port_queue *pq, struct rte_mbuf **pkts, uint16_t n)
{
	struct vhost_queue *q = pq->priv;
	uint32_t w = __atomic_load_n(&q->rx, __ATOMIC_ACQUIRE);
	uint16_t pairs = VRING_LOW(w), got = 0, tries, p;
	struct vhost_turn turn;

	if (w == VRING_NONE || vhost_io_rests(&q->rx_debt))
		return 0;
	turn = vhost_turn_begin();
	// Goes on where the last poll ended, so that a busy pair does not starve the next one.
	for (tries = pq->index, p = q->next_pair; tries < pairs && got < n && vhost_turn_lasts(&turn);
	     tries = (uint16_t)(tries + q->stride)) {
		if (p >= pairs)
			p = pq->index;
		got = (uint16_t)(got + vhost_io_dequeue(pq, VRING_VID(w), (uint16_t)(2 * p + 1), pkts + got,
							(uint16_t)(n - got), &turn));
		p = (uint16_t)(p + q->stride);
	}
	q->next_pair = p;
	return got;
}

static void vhost_io_write_marks(struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i;

	for (i = 0; i < n; i++)
		if (offload_is_unfinished(pkts[i]))
			vnet_write_marks(pkts[i]);
}

uint16_t vhost_tx(struct port_queue *pq, struct rte_mbuf **pkts, uint16_t n)
{
	struct vhost_queue *q = pq->priv;
	uint32_t w = __atomic_load_n(&q->tx, __ATOMIC_ACQUIRE);
	uint16_t sent = 0, k, want;
	struct vhost_turn turn;

	if (w == VRING_NONE || vhost_io_rests(&q->tx_debt))
		return 0;
	turn = vhost_turn_begin();
	if (unlikely(__atomic_load_n(&offload_seen, __ATOMIC_RELAXED)))
		vhost_io_write_marks(pkts, n);
	vhost_io_call(q, VRING_LOW(w), &q->tx_calls_lost);
	do {
		want = vhost_debt_burst(&q->tx_debt, __atomic_load_n(&q->sends, __ATOMIC_RELAXED));
		want = RTE_MIN((uint16_t)(n - sent), want);
		k = rte_vhost_enqueue_burst(VRING_VID(w), VRING_LOW(w), pkts + sent, want);
		vhost_turn_took(&turn, &q->tx_debt, k, vhost_io_length(pkts + sent, k));
		sent = (uint16_t)(sent + k);
	} while (k == want && sent < n && !vhost_io_rests(&q->tx_debt));
	q->tx_full += n - sent;
	rte_pktmbuf_free_bulk(pkts, sent); // they were copied
	return sent;
}

uint32_t vhost_depth(struct port_queue *pq)
{
	const struct vhost_queue *q = pq->priv;
	uint32_t w = __atomic_load_n(&q->rx, __ATOMIC_ACQUIRE), n = 0, p;

	if (w == VRING_NONE)
		return 0;
	for (p = pq->index; p < VRING_LOW(w); p += q->stride)
		n += rte_vhost_rx_queue_count(VRING_VID(w), (uint16_t)(2 * p + 1));
	return n;
}

// w names one device, and the library checks that its vrings are still there. A new device starts with a state of its
// own.
static int vhost_io_notify(const struct vhost_queue *q, uint16_t index, uint32_t w, int enable)
{
	uint16_t p;
	int ret = 0;

	for (p = index; p < VRING_LOW(w) && ret == 0; p = (uint16_t)(p + q->stride))
		ret = rte_vhost_enable_guest_notification(VRING_VID(w), (uint16_t)(2 * p + 1), enable);
	return ret < 0 ? -EIO : 0;
}

int vhost_arm(struct port_queue *pq)
{
	struct vhost_queue *q = pq->priv;
	uint32_t w = __atomic_load_n(&q->rx, __ATOMIC_ACQUIRE);

	if (w == VRING_NONE)
		return -ENOTCONN;
	if (q->wake_fd < 0 || vhost_io_rests(&q->rx_debt) || __atomic_load_n(&q->no_kick, __ATOMIC_ACQUIRE))
		return -ENOTSUP;
	return vhost_io_notify(q, pq->index, w, 1) < 0 ? -EIO : q->wake_fd;
}

int vhost_disarm(struct port_queue *pq, bool signalled)
{
	struct vhost_queue *q = pq->priv;
	uint32_t w = __atomic_load_n(&q->rx, __ATOMIC_ACQUIRE);

	if (w != VRING_NONE)
		vhost_io_notify(q, pq->index, w, 0);
	return signalled ? wake_fd_rest(q->wake_fd) : 0;
}
