// SPDX-License-Identifier: Apache-2.0
// Packet capture: workers copy matching packets into the ring of a session, and the master empties it.
//
// A session is bounded in three ways: packets per second, the length of its ring, and the packet pool. A copy that
// exceeds one of them is counted in `missed`; the packet itself is forwarded in any case.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <pcap/pcap.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "base/error.h"

enum capture_point { CAPTURE_RX, CAPTURE_TX, CAPTURE_DROP };

#define CAPTURE_SESSIONS 8
#define CAPTURE_RING 4096

struct capture {
	// Master: wo, workers: ro.
	uint32_t points; // bits of enum capture_point
	uint16_t port;   // 0 = all
	uint16_t reason; // only drops of this reason; 0 = all
	uint32_t snaplen;
	uint32_t rate;             // packets per second
	struct bpf_program filter; // bf_insns NULL: everything
	struct rte_ring *ring;     // of mbufs that begin with struct captured
	// Master only: called some time after capture_stop(), when no worker uses the session any more.
	void (*gone)(struct capture *c);
	// All: rw.
	int64_t tokens;
	uint64_t missed;
};

struct captured { // at the start of the copy's data
	uint64_t tsc;
	uint32_t length, kept;
	uint16_t port, reason, worker;
	uint16_t segment_size; // 0 unless the packet is a large segment (base/offload.h)
	uint8_t point;
	bool unfinished;
};

extern bool capture_active; // master: rw, workers: ro

// Offers packets to the sessions. port: the one that they leave by, used for CAPTURE_TX only.
void capture_batch(enum capture_point point, uint16_t port, struct rte_mbuf **pkts, unsigned n);

// Master thread only.

// An empty text matches all packets: bf_insns is NULL.
int filter_compile(const char *text, const char *field, struct bpf_program *out, struct error *err);
int capture_start(struct capture *c, struct error *err); // sets ring and tokens; c is used until gone()
void capture_stop(struct capture *c);
void capture_refill(unsigned ms); // adds the tokens of this many milliseconds
