// SPDX-License-Identifier: Apache-2.0
// One stream: what is sent, how far it has come, and what came back.
#pragma once

#include "flow.h"
#include "gen_port.h"
#include "head.h"

#define STREAM_NAME 64
#define STREAM_SIZES 64 // frame sizes that are used in turn

struct stream_count {
	uint64_t due, sent, no_room, late;
	uint64_t received, received_bytes, duplicated, reordered, misplaced, corrupt, wrong_header;
};

// What the sink knows of a flow. Sequence numbers below highest - 31 are too old to tell duplicates.
struct flow_seen {
	uint32_t highest;
	uint32_t window; // bit i: highest - i has come
};

// What frames have to look like when they come back.
struct expected {
	uint16_t size; // bytes that are compared; 0 = none
	uint8_t bytes[HEAD_MAX], mask[HEAD_MAX];
};

struct stream {
	// Constant while a trial runs.
	char name[STREAM_NAME];
	uint16_t index;
	struct gen_port *tx, *rx;
	const struct gen_port *usual_rx; // rx, when most of its frames have their probe where this stream has it
	int tx_index, rx_index;          // of the profile's ports
	struct layout layout;
	struct head *heads; // of the sizes that differ
	uint16_t n_turns;
	uint16_t turns[STREAM_SIZES]; // index of the head
	uint16_t copy;                // bytes of the head that are written, a multiple of 64
	uint16_t rx_probe;            // where the sink finds the probe
	uint32_t weight;
	uint32_t n_flows;
	uint32_t block; // so many flows in a row go to the same queue
	struct flow *flows;
	struct flow_plan plan;
	double new_per_second;
	struct expected *expected;
	struct flow_seen *seen;
	// gen-poll: rw.
	uint32_t at;          // next flow
	uint32_t sequence;    // of the flows from `at` on; the others' is one more
	uint32_t oldest;      // flow that ends next
	uint64_t next_number; // of the flow that takes its place
	uint64_t renewed;     // in this trial
	uint64_t behind;      // frames up to this one fell due while gen-poll did not run
	struct stream_count count;
} __rte_cache_aligned;

// Writes n frames, in the order of sending. time: as in the probe, shifted up.
void stream_build(struct stream *s, struct frame *frames, unsigned n, uint8_t trial, uint32_t time);
void stream_renew(struct stream *s, unsigned n);  // the n oldest flows end
void stream_rewind(struct stream *s, unsigned n); // the last n were not sent
void stream_skip(struct stream *s, unsigned n);   // the next n will not be sent
// How many frames may follow that go to the same queue, up to PORT_BURST.
unsigned stream_run(const struct stream *s);
unsigned stream_queue(const struct stream *s);
uint32_t stream_block(uint32_t n_flows, unsigned queues); // for stream->block
// Size of the frame that carried this flow and sequence number.
uint16_t stream_size(const struct stream *s, uint32_t flow, uint32_t sequence);
