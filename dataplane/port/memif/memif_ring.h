// SPDX-License-Identifier: Apache-2.0
// One connection's shared memory and its rings: what workers poll. Independent of ports and sockets.
//
// Everything in the regions may be changed by the peer at any time, whatever its role. Each index and descriptor is
// read once, checked against what was mapped, and then used from the copy. A peer that lies makes its queue faulty: the
// queue is stalled until the control side, which looks at memif_shm_fault() from a timer, disconnects the peer.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>
#include <rte_mbuf.h>
#include <rte_spinlock.h>

#include "port/memif/memif.h"

#define MEMIF_MAX_RINGS 16 // in each direction
#define MEMIF_MAX_REGIONS 64
#define MEMIF_MAX_FRAME 65535
#define MEMIF_TURN_BYTES 65536 // copied in one poll, then it ends
#define MEMIF_MAX_CHAIN 128    // descriptors of one frame: the longest of a port has 76 in the smallest buffers

enum memif_fault {
	MEMIF_FAULT_NONE,
	MEMIF_FAULT_INDEX,  // head or tail beyond the ring
	MEMIF_FAULT_REGION, // a descriptor names an unknown region
	MEMIF_FAULT_BOUNDS, // a descriptor leaves its region
	MEMIF_FAULT_CHAIN,  // frame of more than MEMIF_MAX_CHAIN descriptors or MEMIF_MAX_FRAME bytes
	MEMIF_FAULT_BUFFER, // an offered buffer has no room
	MEMIF_FAULT_MEMORY, // the memory behind a region has gone
};

struct memif_region {
	uint8_t *addr;
	uint64_t size;   // what descriptors may use
	uint64_t mapped; // to unmap
	int guard;       // of base/memory_guard.h
};

// Counters of a queue outlive connections, so the port owns them.
struct memif_counters {
	uint64_t frames;
	uint64_t kicks; // wake-ups of a peer that does not poll, one system call each
	uint64_t kicks_lost;
	uint64_t no_mbuf; // polls that found packets but no buffer
	uint64_t empty;   // frames without a byte, dropped
};

struct memif_queue {
	struct memif_ring *ring;
	uint16_t *peer_index; // in the ring: written by the peer
	uint16_t *own_index;  // in the ring: written by us
	struct memif_counters *count;
	const struct memif_region *regions;  // MEMIF_MAX_REGIONS; unused ones have no bytes
	uint8_t *buffers;                    // client: slot i's buffer is at i * buffer_stride; server: NULL
	uint32_t buffer_size, buffer_stride; // client
	uint32_t size;                       // descriptors, power of two
	uint16_t pos;                        // next slot; worker: rw
	uint16_t room;                       // rx: data bytes of an mbuf
	uint16_t data_at;                    // rx: their distance from the mbuf
	uint16_t longest;                    // rx: frames above this and above `room` are dropped; worker: rw
	uint32_t too_long;                   // rx: frames dropped for their length; worker: rw
	bool whole;                          // the peer knows MEMIF_DESC_WHOLE
	bool no_mbuf;                        // rx: no buffer was free; worker: rw
	bool shared;                         // tx: several port queues send here
	uint8_t fault;                       // enum memif_fault; worker: w, master: r
	int kick_fd;
	int wake_fd;              // rx: readable when the peer has kicked (base/wake_fd.h); -1 = there is none
	uint64_t mbuf_init;       // rx: rearm_data of a received mbuf
	struct rte_mempool *pool; // rx
	rte_spinlock_t lock;      // tx, when shared
} __rte_cache_aligned;

// Freed once no worker can use it any more.
struct memif_shm {
	struct memif_queue rx[MEMIF_MAX_RINGS], tx[MEMIF_MAX_RINGS];
	uint16_t n_rx, n_tx;
	uint16_t n_regions;
	bool whole; // both ends want MEMIF_WHOLE
	struct memif_region regions[MEMIF_MAX_REGIONS];
	int region_fd; // client: to pass on; -1 otherwise
};

struct memif_shm *memif_shm_new(void);
void memif_shm_free(struct memif_shm *shm);

// Client: one region with n rings in each direction, its rings initialised.
int memif_shm_build(struct memif_shm *shm, uint16_t n_c2s, uint16_t n_s2c, uint8_t log2_ring, uint32_t buffer_size);
void memif_shm_offer(struct memif_shm *shm); // client, when the server is ready: all buffers of the rx rings
// Where ring i lies in region 0 of such a client.
uint32_t memif_ring_offset(uint16_t i, uint8_t log2_ring);
// Bytes of that region: more than UINT32_MAX cannot be addressed.
uint64_t memif_shm_size(uint32_t n_rings, uint8_t log2_ring, uint32_t buffer_size);

// Server: maps the next region of the peer's memory; fd may be closed afterwards. -EPERM: the memory is not safe to
// share.
int memif_shm_add_region(struct memif_shm *shm, int fd, uint64_t size);
// Server: the next ring of a direction; owns kick_fd when it returns 0. rx: the peer sends on it.
int memif_shm_add_ring(struct memif_shm *shm, bool rx, uint16_t region, uint32_t offset, uint8_t log2_size,
		       int kick_fd);

int memif_region_map(struct memif_region *r, int fd, uint64_t size);
int memif_region_create(struct memif_region *r, uint64_t size); // returns the memfd or -errno
void memif_region_unmap(struct memif_region *r);
bool memif_region_lost(const struct memif_region *r);

void memif_queue_watch(struct memif_queue *q); // rx: needed before it can be armed
// Before workers get the rings: the pool of received packets, and the counters.
void memif_queue_attach_rx(struct memif_queue *q, struct rte_mempool *pool, uint16_t mbuf_port,
			   struct memif_counters *count);
void memif_queue_attach_tx(struct memif_queue *q, struct memif_counters *count, bool shared); // shared: takes a lock

enum memif_fault memif_shm_fault(const struct memif_shm *shm);
const char *memif_fault_text(enum memif_fault fault);

// Workers. One thread per queue and direction at a time.
uint16_t memif_rx(struct memif_queue *q, struct rte_mbuf **pkts, uint16_t n);
uint16_t memif_tx(struct memif_queue *q, struct rte_mbuf **pkts, uint16_t n); // frees what it sent
void memif_kick(struct memif_queue *q);                                       // after event_signal_init()
// Asks the peer to kick when it has sent. Returns the descriptor that becomes readable, -ENOTCONN for a faulty queue,
// or -ENOTSUP.
int memif_rx_arm(struct memif_queue *q);
int memif_rx_disarm(struct memif_queue *q, bool signalled);
