// SPDX-License-Identifier: Apache-2.0
// A kernel network interface whose other side is this port (tun(4)). Private to tap.c and tap_io.c.
#pragma once

#include <linux/if.h>

#include "port/port_kinds.h"

#define TAP_SPARE 64 // empty buffers that a queue keeps
static_assert(TAP_SPARE > (LIMIT_PORT_MTU_MAX + PORT_L2_OVERHEAD) / PORT_POOL_ROOM + 1, "one frame always fits");

struct tap_queue {
	int fd;
	int wake_fd; // readable while fd is
	struct rte_mempool *pool;
	uint16_t room; // bytes of a frame in each buffer
	uint16_t segs; // buffers for the largest frame; master: rw, receiving worker: ro
	// Receiving worker: rw, master: ro.
	uint64_t next_poll; // TSC
	uint32_t pause;     // TSC cycles, grows while the queue is empty
	uint16_t n_spare;
	struct rte_mbuf *spare[TAP_SPARE];
	uint64_t truncated, no_buffer;
	// Sending worker: rw, master: ro.
	uint64_t tx_errors __rte_cache_aligned;
} __rte_cache_aligned;

struct tap {
	struct port *port;
	struct port_watch *watch;
	char ifname[IFNAMSIZ]; // when it was created; it may have been renamed since
	bool gone;             // the interface was deleted
	unsigned tries;        // to recreate it
	bool up;
	uint16_t n_queues;
	struct tap_queue queues[];
};

uint16_t tap_rx(struct port_queue *pq, struct rte_mbuf **pkts, uint16_t n);
int tap_arm(struct port_queue *pq);
int tap_disarm(struct port_queue *pq, bool signalled);
uint16_t tap_tx(struct port_queue *pq, struct rte_mbuf **pkts, uint16_t n);
