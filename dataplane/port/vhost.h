// SPDX-License-Identifier: Apache-2.0
// A vhost-user port, on librte_vhost itself: DPDK's net_vhost device would count against RTE_MAX_ETHPORTS, which is 32
// in Debian's build, and there are hundreds of guests. Private to the files vhost*.c.
//
// Three kinds of threads meet here:
//  - librte_vhost's "vhost-events" talks to the peers and calls back. The callbacks change the words below and kick the
//    master. The thread is created by rte_ctrl_thread_create(), so it runs on EAL's control CPUs, never on a worker's.
//  - workers read one word per queue: which connection and vring to use. Before the library unmaps a guest's memory,
//    destroy_device() clears these words and waits for a grace period.
//  - the master opens and closes, reconnects as a client, and tells the rest of the router about peers.
// Guest memory is hostile. librte_vhost checks every descriptor that it follows. This module bounds frames: each has to
// fit one packet buffer (RTE_VHOST_USER_LINEARBUF_SUPPORT), and a burst gets no more buffers than it has packets
// (vhost_pool.c).
#pragma once

#include <pthread.h>

#include "port/port_kinds.h"

// Words that workers read. The upper half is the connection's id. The lower half of tx is the vring; that of rx is the
// number of the guest's vring pairs: queue q polls the pairs q, q + n_queues, ..., so a guest may have more pairs than
// the port has queues.
#define VRING_NONE UINT32_MAX
#define VRING(vid, low) ((uint32_t)(vid) << 16 | (low))
#define VRING_VID(v) ((int)((v) >> 16))
#define VRING_LOW(v) ((uint16_t)(v))

#define VHOST_BURST 32      // packets that librte_vhost dequeues at once
#define VHOST_SHORT_BURST 8 // after a burst of more than PORT_TURN_BYTES

struct vhost_queue {
	uint32_t rx, tx; // callbacks: wo, workers: ro
	bool packed;     // the guest's rings are of the packed kind; callbacks: wo, workers: ro
	bool no_kick;    // one of its vrings has no usable kick eventfd; callbacks: wo, workers: ro
	int wake_fd;     // readable when the guest has kicked one of its vrings
	uint16_t stride; // the port's queues
	struct rte_mempool *pool;
	uint16_t next_pair __rte_cache_aligned; // receiving worker: rw
	uint16_t burst;                         // most packets of the next burst; receiving worker: rw
	uint64_t tx_full __rte_cache_aligned;   // sending worker: rw, master: ro
} __rte_cache_aligned;

struct vhost {
	struct port *port;
	struct port_watch *watch;
	struct vhost *next; // in the list of all open ports; under vhost_lock
	char path[108];
	bool client;
	uint16_t n_queues;
	// Under vhost_lock.
	int vid;           // the device that is used, -1 = none
	unsigned connects; // how often there was a new one
	bool connected;    // the socket, which is before the device
	// Master only.
	bool registered; // with librte_vhost
	bool up;
	unsigned told;            // connects that were reported to the port
	pthread_mutex_t starting; // held while the library makes a connection on the master thread
	struct vhost_queue queues[];
};

// vhost_conn.c
struct rte_vhost_device_ops;
extern const struct rte_vhost_device_ops vhost_callbacks;
extern pthread_mutex_t vhost_lock;
int vhost_link(struct vhost *v); // -EEXIST: the path is in use
void vhost_unlink(struct vhost *v);

// vhost_io.c
uint16_t vhost_rx(struct port_queue *pq, struct rte_mbuf **pkts, uint16_t n);
uint16_t vhost_tx(struct port_queue *pq, struct rte_mbuf **pkts, uint16_t n);
uint32_t vhost_depth(struct port_queue *pq);
int vhost_arm(struct port_queue *pq);
int vhost_disarm(struct port_queue *pq, bool signalled);

// vhost_pool.c
struct rte_mempool *vhost_pool(void); // for rte_vhost_dequeue_burst() alone; NULL: no memory. Master thread
void vhost_pool_allow(unsigned n);    // limits the calling thread to n buffers until its next call
