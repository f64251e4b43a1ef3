// SPDX-License-Identifier: Apache-2.0
// A kernel network interface whose other side is this port (tun(4)). Private to tap.c and tap_io.c.
#pragma once

#include <linux/if.h>
#include <sys/uio.h>

#include "port/pause.h"
#include "port/port_kinds.h"
#include "port/vnet.h"

#define TAP_SPARE 64 // empty buffers that a queue keeps
static_assert(TAP_SPARE > VNET_LONGEST / PORT_POOL_ROOM + 1, "one frame always fits");

struct tap_queue {
	int fd;
	int wake_fd; // readable while fd is
	struct rte_mempool *pool;
	uint16_t room; // bytes of a frame in each buffer
	uint16_t segs; // buffers for the largest frame; master: rw, receiving worker: ro
	bool vnet;     // each frame has a virtio-net header
	// Receiving worker: rw, master: ro.
	struct pause pause;
	uint16_t used; // of the spare buffers; those behind it are empty
	struct rte_mbuf *spare[TAP_SPARE];
	struct virtio_net_hdr header;
	struct iovec iov[1 + TAP_SPARE]; // iov[1 + i] is spare[i]; the one in front of a frame's is the header
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
