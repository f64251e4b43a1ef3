// SPDX-License-Identifier: Apache-2.0
// The workers' side of a vhost-user port. Bursts of librte_vhost end at 32 packets.
#include "port/vhost.h"

#include <errno.h>

#include <rte_vhost.h>

#include "base/wake_fd.h"

// Where the library will read its next packet. The library has dropped one when this moves although no packet came,
// and, where each packet is one entry of the ring, when it moves too far. It drops at most one packet in a burst.
static inline uint16_t vhost_io_position(int vid, uint16_t vring)
{
	uint16_t avail = 0, used;

	rte_vhost_get_vring_base(vid, vring, &avail, &used);
	return avail;
}

static inline bool dropped_one(const struct vhost_queue *q, uint16_t moved, uint16_t got)
{
	return got == 0 ? moved != 0 : !__atomic_load_n(&q->packed, __ATOMIC_RELAXED) && moved == got + 1;
}

static inline uint32_t vhost_io_length(struct rte_mbuf *const *pkts, uint16_t n)
{
	uint32_t sum = 0;
	uint16_t i;

	for (i = 0; i < n; i++)
		sum += pkts[i]->pkt_len;
	return sum;
}

// With packed rings the library takes a buffer for each packet that it is asked for, however few packets there are.
// bytes: increases by the packets' lengths, and ends the poll.
static inline uint16_t vhost_io_dequeue(struct port_queue *pq, int vid, uint16_t vring, struct rte_mbuf **pkts,
					uint16_t n, uint32_t *bytes)
{
	struct vhost_queue *q = pq->priv;
	uint16_t got = 0, k, want, before;
	uint32_t length;

	do {
		before = vhost_io_position(vid, vring);
		want = RTE_MIN((uint16_t)(n - got), q->burst);
		vhost_pool_allow(want);
		k = rte_vhost_dequeue_burst(vid, vring, q->pool, pkts + got, want);
		if (k < want && dropped_one(q, (uint16_t)(vhost_io_position(vid, vring) - before), k))
			port_refused_too_long(pq->port);
		length = vhost_io_length(pkts + got, k);
		q->burst = length > PORT_TURN_BYTES ? VHOST_SHORT_BURST : VHOST_BURST;
		*bytes += length;
		got = (uint16_t)(got + k);
	} while (k == want && got < n && *bytes < PORT_TURN_BYTES);
	return got;
}

uint16_t vhost_rx(struct port_queue *pq, struct rte_mbuf **pkts, uint16_t n)
{
	struct vhost_queue *q = pq->priv;
	uint32_t w = __atomic_load_n(&q->rx, __ATOMIC_ACQUIRE);
	uint16_t pairs = VRING_LOW(w), got = 0, tries, p;
	uint32_t bytes = 0;

	if (w == VRING_NONE)
		return 0;
	// Goes on where the last poll ended, so that a busy pair does not starve the next one.
	for (tries = pq->index, p = q->next_pair; tries < pairs && got < n && bytes < PORT_TURN_BYTES;
	     tries = (uint16_t)(tries + q->stride)) {
		if (p >= pairs)
			p = pq->index;
		got = (uint16_t)(got + vhost_io_dequeue(pq, VRING_VID(w), (uint16_t)(2 * p + 1), pkts + got,
							(uint16_t)(n - got), &bytes));
		p = (uint16_t)(p + q->stride);
	}
	q->next_pair = p;
	return got;
}

uint16_t vhost_tx(struct port_queue *pq, struct rte_mbuf **pkts, uint16_t n)
{
	struct vhost_queue *q = pq->priv;
	uint32_t w = __atomic_load_n(&q->tx, __ATOMIC_ACQUIRE);
	uint16_t sent = 0, k, want;

	if (w == VRING_NONE)
		return 0;
	do {
		want = RTE_MIN((uint16_t)(n - sent), VHOST_BURST);
		k = rte_vhost_enqueue_burst(VRING_VID(w), VRING_LOW(w), pkts + sent, want);
		sent = (uint16_t)(sent + k);
	} while (k == want && sent < n);
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
	if (q->wake_fd < 0 || __atomic_load_n(&q->no_kick, __ATOMIC_ACQUIRE))
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
