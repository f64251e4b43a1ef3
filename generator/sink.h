// SPDX-License-Identifier: Apache-2.0
// Checks received frames: their stream, whether they are intact, new and in order, and whether the router rewrote their
// headers as expected.
#pragma once

#include "clock.h"
#include "histogram.h"
#include "stream.h"

#define SINK_KEPT 256   // bytes kept of a frame that will be shown
#define SINK_FIRST 1000 // the first frames of a trial, all of which are checked in full
#define SINK_SAMPLE 64  // after that, one in so many
#define SINK_OFFSETS 64 // different offsets of probes

enum verify { VERIFY_SAMPLE, VERIFY_ALL, VERIFY_NONE };

struct kept_frame {
	uint8_t bytes[SINK_KEPT];
	uint32_t n; // 0: none
	const struct stream *stream;
};

struct sink {
	// Set when a trial starts.
	struct stream *streams;
	unsigned n_streams;
	struct clock clock;
	uint8_t trial;
	enum verify verify;
	bool latency, timing;           // latency: the trial measures it; timing: the frames at hand count
	uint32_t age;                   // maximum age of a frame, clock units
	uint16_t offsets[SINK_OFFSETS]; // all offsets at which a probe may be
	unsigned n_offsets;
	// gen-poll: rw.
	uint64_t frames;                  // all received frames
	uint64_t foreign, stale, corrupt; // stale: of another trial; corrupt: stream unknown
	uint64_t checked, not_timed;
	struct kept_frame wrong, strange;
	struct histogram histogram;
};

void sink_start(struct sink *k, struct stream *streams, unsigned n, uint8_t trial);
// stamp: the time at which the frames were received, clock units.
void sink_take(struct sink *k, const struct gen_port *port, const struct frame *frames, unsigned n, uint32_t stamp);

// --- Internal interface between the files of the sink. ---

// Handles a frame with a damaged probe, or with a probe that is not at the port's usual offset.
void sink_odd(struct sink *k, const struct gen_port *port, const struct frame *f, uint32_t stamp);
// Checks header, length and payload.
void sink_check(struct sink *k, struct stream *s, const struct frame *f, struct probe p);
void sink_keep(struct kept_frame *kept, const struct frame *f, const struct stream *s);
// Counts the frame as received, reordered or duplicated.
void sink_count(struct sink *k, struct stream *s, const struct frame *f, struct probe p, uint32_t stamp);
