// SPDX-License-Identifier: Apache-2.0
// Zero-copy access to the rings of a memif client, which owns the shared memory: frames are built and read in place.
#pragma once

#include "gen_port.h"
#include "port/memif/memif_ring.h"

#define PLACE_MAX_FRAME MEMIF_MAX_FRAME

struct place_tx {
	struct memif_queue *q;
	uint16_t taken;    // the peer's index as last read
	uint16_t fetched;  // slots before this one have been prefetched
	bool unsure;       // the peer may have gone to sleep before it saw the last frames
	uint32_t *lengths; // lengths in the descriptors, so that an unchanged one is not written again
} __rte_cache_aligned;

struct place_rx {
	struct memif_queue *q;
	uint16_t filled; // the peer's index as last read
	uint16_t fetched;
	uint16_t chain; // number of descriptors of the chained frame that peek copied to scratch, 0 = none
	uint8_t *scratch;
} __rte_cache_aligned;

int place_tx_init(struct place_tx *t, struct memif_queue *q); // fills the buffers with the pattern. -ENOMEM
int place_rx_init(struct place_rx *r, struct memif_queue *q);
void place_tx_fini(struct place_tx *t);
void place_rx_fini(struct place_rx *r);
void place_lay(struct place_tx *t); // fills the buffers with the pattern again

void place_touch_tx(struct place_tx *t);
void place_touch_rx(struct place_rx *r);
void place_look(struct place_rx *r, unsigned probe);
unsigned place_reserve(struct place_tx *t, struct frame *frames, unsigned n, unsigned head);
unsigned place_commit(struct place_tx *t, const struct frame *frames, unsigned n);
unsigned place_peek(struct place_rx *r, struct frame *frames, unsigned n, unsigned probe);
void place_release(struct place_rx *r, unsigned n);
