// SPDX-License-Identifier: Apache-2.0
// A vhost-user port, on librte_vhost itself: DPDK's net_vhost device would count against RTE_MAX_ETHPORTS, which is 32
// in Debian's build, and there are hundreds of guests. Private to the files vhost*.c.
//
// Four kinds of threads meet here:
//  - "vhost-front" talks to the front ends (vhost_front.h). It hands on what it accepts to a socket of the library's
//    that nobody else can reach, and pauses the port while a message changes what workers use.
//  - librte_vhost's "vhost-events" handles these messages and calls back. The callbacks change the words below and
//    kick the master. Both threads are created by rte_ctrl_thread_create(), so they run on EAL's control CPUs, never
//    on a worker's.
//  - workers read one word per queue: which connection and vring to use. Before the library unmaps a guest's memory,
//    destroy_device() clears these words and waits for a grace period.
//  - the master opens and closes, and tells the rest of the router about peers.
// Nobody waits with vhost_lock held. The front thread waits for nobody, the library's thread for workers, and the
// master for both.
// Guest memory is hostile. librte_vhost checks every descriptor that it follows. This module bounds frames: a burst
// gets no more buffers than its packets need at most (vhost_pool.c): those of the port's MTU, or those of 64 KB from a
// guest that may send large segments.
#pragma once

#include <pthread.h>

#include "port/port_kinds.h"
#include "port/vhost_call.h"
#include "port/vhost_debt.h"

// Words that workers read. The upper half is the connection's id. The lower half of tx is the vring; that of rx is the
// number of the guest's vring pairs: queue q polls the pairs q, q + n_queues, ..., so a guest may have more pairs than
// the port has queues.
#define VRING_NONE UINT32_MAX
#define VRING(vid, low) ((uint32_t)(vid) << 16 | (low))
#define VRING_VID(v) ((int)((v) >> 16))
#define VRING_LOW(v) ((uint16_t)(v))

#define VHOST_BURST 32                  // packets that librte_vhost dequeues at once
#define VHOST_SHORT_BURST 8             // after a burst of more than PORT_TURN_BYTES
#define VHOST_SHORTEST_RING VHOST_BURST // entries: the library notes each packet of a burst in an array of this length
#define VHOST_LONGEST_RING 1024         // entries, as many as QEMU allows
#define VHOST_TURN_US 20                // then a poll ends

struct vhost_queue {
	uint32_t rx, tx; // callbacks: wo, workers: ro
	bool marked;     // its frames may be unfinished; callbacks: wo, workers: ro
	uint16_t segs;   // buffers of its largest frame; callbacks: wo, workers: ro
	uint16_t sends;  // frames that the library may be given at once; callbacks: wo, workers: ro
	bool no_kick;    // one of its vrings has no usable kick eventfd; callbacks: wo, workers: ro
	int wake_fd;     // readable when the guest has kicked one of its vrings
	uint16_t stride; // the port's queues
	struct rte_mempool *pool;
	const struct vhost_calls *calls;        // the port's
	uint16_t next_pair __rte_cache_aligned; // receiving worker: rw
	uint16_t burst;                         // most packets of the next burst; receiving worker: rw
	struct vhost_debt rx_debt;              // receiving worker: rw
	uint64_t rx_calls_lost;                 // receiving worker: rw, master: ro
	uint64_t tx_full __rte_cache_aligned;   // sending worker: rw, master: ro
	struct vhost_debt tx_debt;              // sending worker: rw
	uint64_t tx_calls_lost;                 // sending worker: rw, master: ro
} __rte_cache_aligned;

struct vhost_refused { // messages
	unsigned n;
	uint32_t request; // of the last one
	const char *why;
};

struct vhost {
	struct port *port;
	struct port_watch *watch;
	struct vhost *next; // in the list of all open ports; under vhost_lock
	char path[108];     // of the socket of front ends
	char inside[108];   // of the library's socket
	bool client;
	enum port_offload offload;
	uint16_t n_queues;
	struct vhost_calls calls;
	// Under vhost_lock.
	int vid;                      // the device that is used, -1 = none
	bool paused;                  // workers get none of its rings
	uint16_t mtu;                 // of the port
	unsigned connects;            // how often there was a new one
	unsigned devices;             // connections that the library has not ended
	struct vhost_refused refused; // by the front thread
	struct vhost_refused refused_rings;
	bool lost;       // the guest of the front end has taken memory away
	unsigned losses; // how often that was so
	// Master only.
	bool up;
	unsigned told;               // connects that were reported to the port
	unsigned told_refused;       // messages that were reported as events
	unsigned told_refused_rings; // likewise
	unsigned told_losses;
	struct vhost_queue queues[];
};

// vhost_conn.c
struct rte_vhost_device_ops;
extern const struct rte_vhost_device_ops vhost_callbacks;
extern pthread_mutex_t vhost_lock;
int vhost_link(struct vhost *v); // -EEXIST: the path is in use
void vhost_unlink(struct vhost *v);
void vhost_conn_set_mtu(struct vhost *v, uint16_t mtu);
// For the front thread.
void vhost_conn_begin(struct vhost *v); // a front end comes
bool vhost_conn_pause(struct vhost *v); // whether workers may use its rings until a grace period has passed
void vhost_conn_resume(struct vhost *v);
bool vhost_conn_is_over(struct vhost *v); // the library has no device of the port
void vhost_conn_find_lost(void);          // looks which guests have taken memory away
bool vhost_conn_is_lost(struct vhost *v); // whether that of the front end has
void vhost_conn_refused(struct vhost *v, bool ring, uint32_t request, const char *why);

// vhost_inside.c. Master thread
int vhost_inside_add(struct vhost *v, uint64_t disabled); // features that the guest does not get. 0 or -errno
void vhost_inside_remove(struct vhost *v);

// vhost_io.c
uint16_t vhost_rx(struct port_queue *pq, struct rte_mbuf **pkts, uint16_t n);
uint16_t vhost_tx(struct port_queue *pq, struct rte_mbuf **pkts, uint16_t n);
uint32_t vhost_depth(struct port_queue *pq);
int vhost_arm(struct port_queue *pq);
int vhost_disarm(struct port_queue *pq, bool signalled);

// vhost_pool.c
struct rte_mempool *vhost_pool(void); // for rte_vhost_dequeue_burst() alone; NULL: no memory. Master thread
// Limits the calling thread to `packets` buffers, which the library takes at once, and `more` buffers for frames that
// need several, until its next call.
void vhost_pool_allow(unsigned packets, unsigned more);
unsigned vhost_pool_taken(void); // how many of `more`
bool vhost_pool_lacks(void);     // whether the packet pool had too few for the burst
