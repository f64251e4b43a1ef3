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
	// Packed: desc, avail and used are not used.
	struct vring_packed_desc *packed;
	uint16_t next; // descriptor to write
	bool wrap;     // its wrap counter
	int kick, call;
};

struct guest {
	int sock;
	unsigned pairs;
	bool packed; // rings
	uint8_t *mem;
	struct guest_ring rings[2 * GUEST_PAIRS];
	uint64_t sent, received;
};

// Connects to path, or listens there for the router (server). Returns 0 or -errno.
int guest_start(struct guest *g, const char *path, bool server, unsigned pairs);
int guest_start_packed(struct guest *g, const char *path, unsigned pairs); // with packed rings, as a client
void guest_stop(struct guest *g); // disconnects and unmaps its memory; after a start without error
// Empties its memory and lays its rings out as after the start. The device must forget its positions in them.
void guest_reset(struct guest *g);
void guest_step(struct guest *g); // sends as many frames as fit; counts received buffers and offers them again
// Writes the chain into the first descriptors of a ring, or the next ones of a packed ring, and makes it available.
// Chains in packed rings are consecutive: `next` has no meaning.
void guest_post(struct guest *g, unsigned ring, const struct vring_desc *chain, unsigned n);
bool guest_served(const struct guest *g);              // something has been taken from every transmit ring
void guest_misbehave(struct guest *g, unsigned *seed); // writes random values into the rings
