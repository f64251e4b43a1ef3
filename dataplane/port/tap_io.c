// SPDX-License-Identifier: Apache-2.0
// The workers' side of a tap port: one read() or writev() per frame; tun(4) has no batches.
//
// An empty poll is a system call too (0.3 us, 1.3 us in a virtual machine), so an idle queue is polled less often:
// after each empty read it rests for twice as long as before, from TAP_PAUSE_MIN to TAP_PAUSE_MAX. The first packet
// after silence waits for the rest of that pause.
#include "port/tap.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "base/system_calls.h"
#include "base/wake_fd.h"

#define TAP_PAUSE_MIN_NS 1000
#define TAP_PAUSE_MAX_NS 16000

static inline uint32_t tap_cycles_of(uint32_t ns)
{
	return (uint32_t)(rte_get_tsc_hz() / 1000000 * ns / 1000);
}

// Makes a chain of the topmost spare buffers that hold len bytes.
static struct rte_mbuf *tap_take_frame(struct tap_queue *q, uint32_t len)
{
	struct rte_mbuf *head = q->spare[--q->n_spare], *m = head;

	head->pkt_len = len;
	for (; len > q->room; len -= q->room) {
		m->data_len = q->room;
		m->next = q->spare[--q->n_spare];
		m = m->next;
		head->nb_segs++;
	}
	m->data_len = (uint16_t)len;
	return head;
}

static bool tap_io_refill(struct tap_queue *q, uint16_t segs)
{
	if (likely(q->n_spare >= segs))
		return true;
	if (rte_pktmbuf_alloc_bulk(q->pool, q->spare + q->n_spare, (unsigned)(TAP_SPARE - q->n_spare)) == 0)
		q->n_spare = TAP_SPARE;
	else if (rte_pktmbuf_alloc_bulk(q->pool, q->spare + q->n_spare, (unsigned)(segs - q->n_spare)) == 0)
		q->n_spare = segs;
	return q->n_spare >= segs;
}

static ssize_t tap_io_read_frame(const struct tap_queue *q, uint16_t segs)
{
	struct iovec iov[TAP_SPARE];
	uint16_t i;

	if (segs == 1)
		return read(q->fd, rte_pktmbuf_mtod(q->spare[q->n_spare - 1], void *), q->room);
	for (i = 0; i < segs; i++) {
		iov[i].iov_base = rte_pktmbuf_mtod(q->spare[q->n_spare - 1 - i], void *);
		iov[i].iov_len = q->room;
	}
	return readv(q->fd, iov, segs);
}

static inline void tap_io_rest(struct tap_queue *q, uint16_t received)
{
	if (received > 0) {
		q->pause = 0;
		q->next_poll = 0;
		return;
	}
	q->pause = q->pause == 0 ? tap_cycles_of(TAP_PAUSE_MIN_NS)
				 : RTE_MIN(q->pause * 2, tap_cycles_of(TAP_PAUSE_MAX_NS));
	q->next_poll = rte_rdtsc() + q->pause;
}

uint16_t tap_rx(struct port_queue *pq, struct rte_mbuf **pkts, uint16_t n)
{
	struct tap_queue *q = pq->priv;
	uint16_t segs = __atomic_load_n(&q->segs, __ATOMIC_RELAXED), got = 0, tries;
	ssize_t len, bytes = 0;

	if (q->pause != 0 && rte_rdtsc() < q->next_poll)
		return 0;
	for (tries = 0; tries < n && bytes < PORT_TURN_BYTES; tries++, bytes += len) {
		if (unlikely(!tap_io_refill(q, segs))) {
			q->no_buffer++;
			break;
		}
		system_calls++;
		len = tap_io_read_frame(q, segs);
		if (len <= 0) // empty, or the interface has gone, which the master notices
			break;
		if (unlikely(len == (ssize_t)q->room * segs)) // and probably more: longer than the port's MTU allows
			q->truncated++;
		else
			pkts[got++] = tap_take_frame(q, (uint32_t)len);
	}
	tap_io_rest(q, got);
	return got;
}

// Ends the pause: the next poll reads, whatever the last ones found.
int tap_arm(struct port_queue *pq)
{
	struct tap_queue *q = pq->priv;

	q->pause = 0;
	return q->wake_fd;
}

int tap_disarm(struct port_queue *pq, bool signalled)
{
	const struct tap_queue *q = pq->priv;

	return signalled ? wake_fd_rest(q->wake_fd) : 0;
}

static ssize_t tap_write_frame(const struct tap_queue *q, const struct rte_mbuf *m)
{
	struct iovec iov[TAP_SPARE];
	int n = 0;

	if (likely(m->nb_segs == 1))
		return write(q->fd, rte_pktmbuf_mtod(m, const void *), m->data_len);
	for (; m != NULL && n < TAP_SPARE; m = m->next, n++) {
		iov[n].iov_base = rte_pktmbuf_mtod(m, void *);
		iov[n].iov_len = m->data_len;
	}
	if (m != NULL) {
		errno = EMSGSIZE;
		return -1;
	}
	return writev(q->fd, iov, n);
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
