// SPDX-License-Identifier: Apache-2.0
// The rings of a memif client, whose memory is ours: frames are built and read where they are, without a copy.
#pragma once

#include "gen_port.h"
#include "port/memif/memif_ring.h"

#define PLACE_MAX_FRAME MEMIF_MAX_FRAME

struct place_tx {
	struct memif_queue *q;
	uint16_t taken;    // the peer's index when it was last read
	uint16_t fetched;  // slots before this one are on their way into our cache
	bool unsure;       // the peer may have gone to sleep without seeing the last frames
	uint32_t *lengths; // what the descriptors say: those that do not change are not written
} __rte_cache_aligned;

struct place_rx {
	struct memif_queue *q;
	uint16_t filled; // the peer's index when it was last read
	uint16_t fetched;
	uint16_t chain; // descriptors of the frame that peek copied to scratch, as it came in pieces
	uint8_t *scratch;
} __rte_cache_aligned;

int place_tx_init(struct place_tx *t, struct memif_queue *q); // fills the buffers with the pattern. -ENOMEM
int place_rx_init(struct place_rx *r, struct memif_queue *q);
void place_tx_fini(struct place_tx *t);
void place_rx_fini(struct place_rx *r);
void place_lay(struct place_tx *t); // the pattern, again

void place_touch_tx(struct place_tx *t);
void place_touch_rx(struct place_rx *r);
void place_look(struct place_rx *r, unsigned probe);
unsigned place_reserve(struct place_tx *t, struct frame *frames, unsigned n, unsigned head);
unsigned place_commit(struct place_tx *t, const struct frame *frames, unsigned n);
unsigned place_peek(struct place_rx *r, struct frame *frames, unsigned n, unsigned probe);
void place_release(struct place_rx *r, unsigned n);
