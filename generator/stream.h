// SPDX-License-Identifier: Apache-2.0
// One stream: the frames that it sends, its position, and the counts of what came back.
#pragma once

#include "flow.h"
#include "gen_port.h"
#include "head.h"

#define STREAM_NAME (LIMIT_GENERATOR_STREAM_NAME_MAX + 1)
#define STREAM_SIZES LIMIT_GENERATOR_STREAM_SIZES_ITEMS // frame sizes used in turn

struct stream_count {
	uint64_t due, sent, no_room, late;
	uint64_t received, received_bytes, duplicated, reordered, misplaced, corrupt, wrong_header;
};

// The sink's state of a flow. Duplicates are detected down to sequence number highest - 31.
struct flow_seen {
	uint32_t highest;
	uint32_t window; // bit i: highest - i has been received
};

// The header that received frames must have.
struct expected {
	uint16_t size; // bytes to compare; 0 = none
	uint8_t bytes[HEAD_MAX], mask[HEAD_MAX];
};

struct stream {
	// Constant while a trial runs.
	char name[STREAM_NAME];
	uint16_t index;
	struct gen_port *tx, *rx;
	const struct gen_port *usual_rx; // rx if this stream's probes are at the offset rx->probe, else NULL
	int tx_index, rx_index;          // indices of the profile's ports
	struct layout layout;
	struct head *heads; // one for each different size
	uint16_t n_turns;
	uint16_t turns[STREAM_SIZES]; // index of the head
	uint16_t copy;                // bytes of the head that are written, a multiple of 64
	uint16_t rx_probe;            // offset of the probe in received frames
	uint32_t weight;
	uint32_t n_flows;
	uint32_t block; // number of consecutive flows that use the same queue
	struct flow *flows;
	struct flow_plan plan;
	double new_per_second;
	bool untimed; // latencies are not measured
	struct expected *expected;
	struct flow_seen *seen;
	// gen-poll: rw.
	uint32_t at;          // next flow
	uint32_t sequence;    // next sequence number of the flows from `at` on; the other flows are one ahead
	uint32_t oldest;      // flow that ends next
	uint64_t next_number; // number of the flow that replaces it
	bool silent;          // sends nothing in this trial. Control thread: w
	uint64_t renewed;     // flows replaced in this trial
	uint64_t behind;      // frames up to this one became due while gen-poll did not run
	struct stream_count count;
} __rte_cache_aligned;

// Writes the next n frames of the stream. time: clock units, for the probe.
void stream_build(struct stream *s, struct frame *frames, unsigned n, uint8_t trial, uint32_t time);
void stream_renew(struct stream *s, unsigned n);  // replaces the n oldest flows
void stream_rewind(struct stream *s, unsigned n); // takes back the last n frames, which were not sent
void stream_skip(struct stream *s, unsigned n);   // skips n frames
// Returns how many of the next frames, up to PORT_BURST, go to the same queue.
unsigned stream_run(const struct stream *s);
unsigned stream_queue(const struct stream *s);
uint32_t stream_block(uint32_t n_flows, unsigned queues); // the value for stream.block
// Size of the frame that carried this flow and sequence number.
uint16_t stream_size(const struct stream *s, uint32_t flow, uint32_t sequence);
