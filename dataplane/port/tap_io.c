// SPDX-License-Identifier: Apache-2.0
// The workers' side of a tap port: one read() or writev() per frame; tun(4) has no batches.
#include "port/tap.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/offload.h"
#include "base/system_calls.h"
#include "base/wake_fd.h"

#define TAP_SEND_MAX 255 // buffers of one frame

__thread uint64_t pause_turn;

// Makes a chain of the next spare buffers, which hold len bytes.
static struct rte_mbuf *tap_take_frame(struct tap_queue *q, uint32_t len)
{
	struct rte_mbuf *head = q->spare[q->used++], *m = head;

	head->pkt_len = len;
	for (; len > q->room; len -= q->room) {
		m->data_len = q->room;
		m->next = q->spare[q->used++];
		m = m->next;
		head->nb_segs++;
	}
	m->data_len = (uint16_t)len;
	return head;
}

// The buffers of a large frame are prepared once, and serve many short ones.
static __rte_noinline bool tap_io_refill(struct tap_queue *q, uint16_t segs)
{
	uint16_t left = TAP_SPARE - q->used, i;

	memmove(q->spare, q->spare + q->used, left * sizeof(q->spare[0]));
	if (rte_pktmbuf_alloc_bulk(q->pool, q->spare + left, q->used) == 0) {
		q->used = 0;
	} else {
		memmove(q->spare + q->used, q->spare, left * sizeof(q->spare[0]));
		if (left < segs)
			return false;
	}
	for (i = q->used; i < TAP_SPARE; i++)
		q->iov[1 + i] = (struct iovec){.iov_base = rte_pktmbuf_mtod(q->spare[i], void *), .iov_len = q->room};
	return true;
}

// Returns the frame's length, 0 or less if there is none.
static ssize_t tap_io_read_frame(struct tap_queue *q, uint16_t segs)
{
	ssize_t len;

	if (!q->vnet)
		return segs == 1 ? read(q->fd, rte_pktmbuf_mtod(q->spare[q->used], void *), q->room)
				 : readv(q->fd, q->iov + 1 + q->used, segs);
	q->iov[q->used] = (struct iovec){.iov_base = &q->header, .iov_len = sizeof(q->header)};
	len = readv(q->fd, q->iov + q->used, 1 + segs);
	return len - (ssize_t)sizeof(q->header);
}

// Drops a frame whose header lies, and counts it.
static bool tap_io_marked(struct tap_queue *q, const struct port *port, struct rte_mbuf *m)
{
	const struct drop_reason *lie = NULL;

	if (q->header.flags | q->header.gso_type)
		lie = vnet_read(m, &q->header);
	if (unlikely(lie != NULL))
		port_refused(port, m, lie);
	return lie == NULL;
}

uint16_t tap_rx(struct port_queue *pq, struct rte_mbuf **pkts, uint16_t n)
{
	struct tap_queue *q = pq->priv;
	uint16_t segs = __atomic_load_n(&q->segs, __ATOMIC_RELAXED), got = 0, tries;
	ssize_t len, bytes = 0;

	if (pause_lasts(&q->pause))
		return 0;
	for (tries = 0; tries < n && bytes < PORT_TURN_BYTES; tries++, bytes += len) {
		if (unlikely(q->used + segs > TAP_SPARE) && !tap_io_refill(q, segs)) {
			q->no_buffer++;
			port_no_buffer(pq->port);
			break;
		}
		system_calls++;
		len = tap_io_read_frame(q, segs);
		if (len <= 0) // empty, or the interface has gone, which the master notices
			break;
		if (unlikely(len == (ssize_t)q->room * segs)) { // and probably more: longer than the port's MTU allows
			q->truncated++;
			continue;
		}
		pkts[got] = tap_take_frame(q, (uint32_t)len);
		got += !q->vnet || likely(tap_io_marked(q, pq->port, pkts[got]));
	}
	pause_after(&q->pause, got);
	return got;
}

// Ends the pause: the next poll reads, whatever the last ones found.
int tap_arm(struct port_queue *pq)
{
	struct tap_queue *q = pq->priv;

	q->pause.cycles = 0;
	return q->wake_fd;
}

int tap_disarm(struct port_queue *pq, bool signalled)
{
	const struct tap_queue *q = pq->priv;

	return signalled ? wake_fd_rest(q->wake_fd) : 0;
}

// A chain's buffers; h NULL: the frame has no virtio-net header.
static ssize_t tap_write_chain(const struct tap_queue *q, const struct rte_mbuf *m, struct virtio_net_hdr *h)
{
	struct iovec iov[TAP_SEND_MAX + 1];
	int n = 0;

	if (unlikely(m->nb_segs > TAP_SEND_MAX)) {
		errno = EMSGSIZE;
		return -1;
	}
	if (h != NULL)
		iov[n++] = (struct iovec){.iov_base = h, .iov_len = sizeof(*h)};
	for (; m != NULL; m = m->next, n++)
		iov[n] = (struct iovec){.iov_base = rte_pktmbuf_mtod(m, void *), .iov_len = m->data_len};
	return writev(q->fd, iov, n);
}

static ssize_t tap_write_frame(const struct tap_queue *q, struct rte_mbuf *m)
{
	struct virtio_net_hdr h = {0};

	if (q->vnet) {
		if (offload_is_unfinished(m))
			vnet_write(m, &h);
		return tap_write_chain(q, m, &h);
	}
	if (likely(m->nb_segs == 1))
		return write(q->fd, rte_pktmbuf_mtod(m, const void *), m->data_len);
	return tap_write_chain(q, m, NULL);
}

uint16_t tap_tx(struct port_queue *pq, struct rte_mbuf **pkts, uint16_t n)
{
	struct tap_queue *q = pq->priv;
	uint16_t i;

	for (i = 0; i < n; i++) {
		system_calls++;
		if (likely(tap_write_frame(q, pkts[i]) >= 0))
			continue;
		if (errno == EAGAIN || errno == EIO || errno == EBADFD) // full, down, gone
			break;
		q->tx_errors++; // the frame itself was refused
	}
	rte_pktmbuf_free_bulk(pkts, i);
	return i;
}
