// SPDX-License-Identifier: Apache-2.0
// Ports that use mbufs.
#include "port_mbuf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>

#include "head.h"

#define SCRATCH 65535
#define CACHE 128
#define SLACK 256 // net_af_packet needs room for a whole slot of its ring, which is larger than a frame

static struct rte_mempool *port_mbuf_pool_new(const char *kind, unsigned n, uint32_t room, int numa)
{
	static unsigned number;
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "%s%u", kind, number++);
	return rte_pktmbuf_pool_create(name, n, CACHE, 0, (uint16_t)(RTE_PKTMBUF_HEADROOM + room), numa);
}

static void port_mbuf_lay(struct rte_mempool *pool, void *arg, void *obj, unsigned i)
{
	struct rte_mbuf *m = obj;

	size_t room = m->buf_len - RTE_PKTMBUF_HEADROOM;

	memcpy((uint8_t *)m->buf_addr + RTE_PKTMBUF_HEADROOM, pattern, RTE_MIN(room, (size_t)FRAME_MAX));
}

void mbuf_port_lay(struct gen_port *p)
{
	rte_mempool_obj_iter(((struct mbuf_port *)p)->tx_pool, port_mbuf_lay, NULL);
}

int mbuf_port_init(struct mbuf_port *m, unsigned n, int numa, struct error *err)
{
	uint32_t room = m->port.cfg.room + SLACK;
	unsigned i;

	n += m->port.cfg.queues * 2 * PORT_BURST + CACHE * 2;
	m->tx_pool = port_mbuf_pool_new("gen_tx", n, room, numa);
	m->rx_pool = port_mbuf_pool_new("gen_rx", n, room, numa);
	for (i = 0; i < m->port.cfg.queues; i++)
		m->queues[i].scratch = malloc(SCRATCH);
	for (i = 0; i < m->port.cfg.queues; i++)
		if (m->queues[i].scratch == NULL || m->tx_pool == NULL || m->rx_pool == NULL)
			return error_set(err, ENOMEM, "--memory", NULL, "more memory", "is too small for port %s: %s",
					 m->port.cfg.name, rte_strerror(rte_errno));
	mbuf_port_lay(&m->port);
	return 0;
}

void mbuf_port_drop(struct mbuf_port *m)
{
	unsigned i;

	for (i = 0; i < PORT_QUEUES; i++) {
		struct mbuf_queue *q = &m->queues[i];

		rte_pktmbuf_free_bulk(q->out, q->n_out);
		rte_pktmbuf_free_bulk(q->in + q->first, q->end - q->first);
		q->n_out = q->first = q->end = 0;
	}
}

void mbuf_port_fini(struct mbuf_port *m)
{
	unsigned i;

	mbuf_port_drop(m);
	for (i = 0; i < PORT_QUEUES; i++)
		free(m->queues[i].scratch);
	rte_mempool_free(m->tx_pool);
	rte_mempool_free(m->rx_pool);
}

// The buffers after these are not known yet: any valid address will do for the prefetch.
static void fill_up(struct frame *frames, unsigned n)
{
	unsigned i;

	for (i = n; i < n + PORT_AHEAD; i++)
		frames[i].data = frames[0].data;
}

unsigned mbuf_port_reserve(struct gen_port *p, unsigned queue, struct frame *frames, unsigned n)
{
	struct mbuf_port *m = (struct mbuf_port *)p;
	struct mbuf_queue *q = &m->queues[queue];
	unsigned i;

	if (q->n_out < n && rte_pktmbuf_alloc_bulk(m->tx_pool, q->out + q->n_out, n - q->n_out) == 0)
		q->n_out = n;
	n = RTE_MIN(n, q->n_out);
	for (i = 0; i < n; i++)
		frames[i].data = rte_pktmbuf_mtod(q->out[i], uint8_t *);
	fill_up(frames, n);
	return n;
}

unsigned mbuf_port_commit(struct gen_port *p, unsigned queue, struct frame *frames, unsigned n)
{
	struct mbuf_port *m = (struct mbuf_port *)p;
	struct mbuf_queue *q = &m->queues[queue];
	unsigned i, took = 0, k;

	for (i = 0; i < n; i++)
		q->out[i]->data_len = (uint16_t)(q->out[i]->pkt_len = frames[i].length);
	do { // some drivers send at most 32 per call
		k = m->tx(m, queue, q->out + took, (uint16_t)(n - took));
		took += k;
	} while (k > 0 && took < n);
	q->n_out -= took;
	memmove(q->out, q->out + took, q->n_out * sizeof(*q->out));
	return took;
}

// Copies a frame of several segments into one buffer, and truncates it at SCRATCH bytes.
static void port_mbuf_gather(struct mbuf_queue *q, const struct rte_mbuf *m, struct frame *f)
{
	uint32_t n = 0, take;

	for (; m != NULL; m = m->next, n += take) {
		take = RTE_MIN((uint32_t)m->data_len, SCRATCH - n);
		memcpy(q->scratch + n, rte_pktmbuf_mtod(m, const uint8_t *), take);
	}
	*f = (struct frame){.data = q->scratch, .length = n};
}

unsigned mbuf_port_peek(struct gen_port *p, unsigned queue, struct frame *frames, unsigned n)
{
	struct mbuf_port *m = (struct mbuf_port *)p;
	struct mbuf_queue *q = &m->queues[queue];
	unsigned i;

	if (q->first == q->end) {
		q->first = 0;
		q->end = m->rx(m, queue, q->in, PORT_BURST);
	}
	n = RTE_MIN(n, q->end - q->first);
	for (i = 0; i < n; i++) {
		struct rte_mbuf *in = q->in[q->first + i];

		if (unlikely(in->nb_segs > 1)) {
			if (i == 0)
				port_mbuf_gather(q, in, frames);
			n = RTE_MAX(i, 1u);
			break;
		}
		frames[i] = (struct frame){.data = rte_pktmbuf_mtod(in, uint8_t *), .length = in->data_len};
	}
	fill_up(frames, n);
	return n;
}

void mbuf_port_release(struct gen_port *p, unsigned queue, unsigned n)
{
	struct mbuf_queue *q = &((struct mbuf_port *)p)->queues[queue];

	rte_pktmbuf_free_bulk(q->in + q->first, n);
	q->first += n;
}
