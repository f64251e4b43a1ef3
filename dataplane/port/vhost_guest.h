// SPDX-License-Identifier: Apache-2.0
// A guest for tests: just enough of a virtio-net driver and of the vhost-user protocol to move packets within
// milliseconds of its start, and to misbehave. It needs no DPDK, so that it can be forked and killed fast.
#pragma once

#include <linux/virtio_ring.h>
#include <stdbool.h>
#include <stdint.h>

#define GUEST_PAIRS 4
#define GUEST_RING 64
#define GUEST_HEADER 12            // struct virtio_net_hdr_mrg_rxbuf
#define GUEST_SPACE (128ull << 20) // bytes of memory behind the rings, never written to

struct guest_ring {
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	uint8_t *buffers;
	uint16_t seen; // of the used ring
	int kick, call;
};

struct guest {
	int sock;
	unsigned pairs;
	uint8_t *mem;
	int mem_fd;
	struct guest_ring rings[2 * GUEST_PAIRS];
	uint64_t sent, received;
};

// Connects to path, or listens there for the router (server). Returns 0 or -errno.
int guest_start(struct guest *g, const char *path, bool server, unsigned pairs);
int guest_start_large(struct guest *g, const char *path);                 // sends and takes large segments
int guest_start_untold(struct guest *g, const char *path, uint32_t ring); // does not say how long this ring is
// Lays ring i out anew, empty, with `size` descriptors, in its memory from `at` on. Returns 0, or -EPIPE if the router
// has ended the connection.
int guest_move_ring(struct guest *g, uint32_t i, uint32_t size, uint64_t at);
uint64_t guest_features(struct guest *g); // that the router offers, 0 = it has ended the connection
void guest_stop(struct guest *g);         // disconnects and unmaps its memory; after a start without error
// Empties its memory and lays its rings out as after the start. The device must forget its positions in them.
void guest_reset(struct guest *g);
void guest_set_call(struct guest *g, unsigned ring, int fd); // what the router notifies this ring by
void guest_shrink_memory(struct guest *g); // behind the router's back. Its memory must not be touched any more
int guest_resend_memory(struct guest *g);  // tells the router of its memory again. Returns 0 or -errno
void guest_step(struct guest *g);          // sends as many frames as fit; counts received buffers and offers them again
// Writes the chain into the first descriptors of a ring, and adds it to the ring of available ones.
void guest_post(struct guest *g, unsigned ring, const struct vring_desc *chain, unsigned n);
bool guest_served(const struct guest *g);              // something has been taken from every transmit ring
void guest_misbehave(struct guest *g, unsigned *seed); // writes random values into the rings
