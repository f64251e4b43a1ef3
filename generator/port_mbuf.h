// SPDX-License-Identifier: Apache-2.0
// Ports that carry mbufs: DPDK's devices, and memif as server. The port brings two functions, the rest is here.
//
// Buffers to send come from a pool of their own, so that they keep the pattern that they were filled with.
#pragma once

#include <rte_mbuf.h>

#include "gen_port.h"

struct mbuf_queue {
	struct rte_mbuf *out[PORT_BURST], *in[PORT_BURST];
	unsigned n_out;      // reserved
	unsigned first, end; // of those that came
	uint8_t *scratch;    // a frame that came in pieces
} __rte_cache_aligned;

struct mbuf_port {
	struct gen_port port;
	uint16_t (*rx)(struct mbuf_port *m, unsigned queue, struct rte_mbuf **pkts, uint16_t n);
	uint16_t (*tx)(struct mbuf_port *m, unsigned queue, struct rte_mbuf **pkts, uint16_t n); // owns those that it takes
	struct rte_mempool *tx_pool, *rx_pool;
	struct mbuf_queue queues[PORT_QUEUES];
};

// n: descriptors of all queues in each direction. numa: of the device, or SOCKET_ID_ANY.
int mbuf_port_init(struct mbuf_port *m, unsigned n, int numa, struct error *err);
void mbuf_port_drop(struct mbuf_port *m); // all mbufs that the port holds
void mbuf_port_fini(struct mbuf_port *m);

unsigned mbuf_port_reserve(struct gen_port *p, unsigned queue, struct frame *frames, unsigned n);
unsigned mbuf_port_commit(struct gen_port *p, unsigned queue, struct frame *frames, unsigned n);
unsigned mbuf_port_peek(struct gen_port *p, unsigned queue, struct frame *frames, unsigned n);
void mbuf_port_release(struct gen_port *p, unsigned queue, unsigned n);
void mbuf_port_lay(struct gen_port *p);
