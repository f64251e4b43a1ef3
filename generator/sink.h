// SPDX-License-Identifier: Apache-2.0
// What came back: whose frame it is, whether it is whole, new, in order, and what the router should have made of it.
#pragma once

#include "clock.h"
#include "histogram.h"
#include "stream.h"

#define SINK_KEPT 256   // bytes of a frame that is shown
#define SINK_FIRST 1000 // frames of a trial that are looked at closely
#define SINK_SAMPLE 64  // then one in so many
#define SINK_OFFSETS 64 // different places of probes

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
	bool latency, timing;           // timing: of the frames at hand, too
	uint32_t age;                   // that a frame may have, clock units
	uint16_t offsets[SINK_OFFSETS]; // all places where a probe may be
	unsigned n_offsets;
	// gen-poll: rw.
	uint64_t frames;                  // all that came
	uint64_t foreign, stale, corrupt; // corrupt: of no known stream
	uint64_t checked, not_timed;
	struct kept_frame wrong, strange;
	struct histogram histogram;
};

void sink_start(struct sink *k, struct stream *streams, unsigned n, uint8_t trial);
// stamp: the clock when the frames were seen.
void sink_take(struct sink *k, const struct gen_port *port, const struct frame *frames, unsigned n, uint32_t stamp);

// --- between the files of the sink ---

// A frame whose probe is not where the port's frames have it, or damaged.
void sink_odd(struct sink *k, const struct gen_port *port, const struct frame *f, uint32_t stamp);
// Looks at header, length and payload.
void sink_check(struct sink *k, struct stream *s, const struct frame *f, struct probe p);
void sink_keep(struct kept_frame *kept, const struct frame *f, const struct stream *s);
// New, late or double? Counts.
void sink_count(struct sink *k, struct stream *s, const struct frame *f, struct probe p, uint32_t stamp);
