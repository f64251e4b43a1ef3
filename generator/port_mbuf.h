// SPDX-License-Identifier: Apache-2.0
// Ports that use mbufs: DPDK devices, and memif servers. The port supplies rx and tx; everything else is here.
//
// Buffers to send have a pool of their own, so that they keep the pattern with which they were filled.
#pragma once

#include <rte_mbuf.h>

#include "gen_port.h"

struct mbuf_queue {
	struct rte_mbuf *out[PORT_BURST], *in[PORT_BURST];
	unsigned n_out;      // reserved
	unsigned first, end; // in[first..end-1] have been received and not released
	uint8_t *scratch;    // copy of a frame of several segments
} __rte_cache_aligned;

struct mbuf_port {
	struct gen_port port;
	uint16_t (*rx)(struct mbuf_port *m, unsigned queue, struct rte_mbuf **pkts, uint16_t n);
	uint16_t (*tx)(struct mbuf_port *m, unsigned queue, struct rte_mbuf **pkts,
		       uint16_t n); // takes ownership of those it sends
	struct rte_mempool *tx_pool, *rx_pool;
	struct mbuf_queue queues[PORT_QUEUES];
};

// n: descriptors of all queues in one direction. numa: the device's node, or SOCKET_ID_ANY.
int mbuf_port_init(struct mbuf_port *m, unsigned n, int numa, struct error *err);
void mbuf_port_drop(struct mbuf_port *m); // frees all mbufs that the port holds
void mbuf_port_fini(struct mbuf_port *m);

unsigned mbuf_port_reserve(struct gen_port *p, unsigned queue, struct frame *frames, unsigned n);
unsigned mbuf_port_commit(struct gen_port *p, unsigned queue, struct frame *frames, unsigned n);
unsigned mbuf_port_peek(struct gen_port *p, unsigned queue, struct frame *frames, unsigned n);
void mbuf_port_release(struct gen_port *p, unsigned queue, unsigned n);
void mbuf_port_lay(struct gen_port *p);
