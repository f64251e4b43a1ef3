// SPDX-License-Identifier: Apache-2.0
// Finished first bytes of frames: one for each size of a stream, with all lengths and checksums that do not depend on the
// flow. What the flow adds is patched in as the frame is sent (build.c).
//
// Behind the probe, frames carry a pattern that depends on a byte's distance from the frame's first byte. So buffers
// are filled with it once, and sending rewrites nothing but the head.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include "base/error.h"
#include "probe.h"

#define HEADER_MAX 240
#define HEAD_MAX 256 // header and probe
#define FRAME_MAX 9728u

extern uint8_t pattern[FRAME_MAX + HEAD_MAX];
void pattern_init(void);

struct length_field { // 16 bits, big-endian: size - minus
	uint16_t offset, minus;
};

// Where things are in the header; 0 = not there.
struct layout {
	uint16_t size;        // of the header; the probe follows
	uint16_t inner;       // innermost IP header
	uint16_t source;      // low 32 bits of its source address
	uint16_t destination; // low 32 bits, with the ports behind them
	uint16_t ip_sum;      // checksum of the innermost IPv4 header
	uint16_t udp_sum;     // of the innermost UDP header
	uint16_t entropy;     // outer UDP source port
	uint16_t outer_udp;
	uint16_t outer_sum; // checksum of the outer UDP header
	bool ipv6, outer_ipv6;
};

struct head {
	uint8_t bytes[HEAD_MAX];
	uint16_t size;                       // of the frame
	uint16_t ip_sum, udp_sum, outer_sum; // sums without what the flow adds
} __rte_cache_aligned;

int layout_parse(struct layout *l, const uint8_t *header, size_t n, uint32_t inner, uint32_t entropy, struct error *err);
// lengths and ip4 (offsets of IPv4 headers whose checksum is set) have been checked against the header.
void head_build(struct head *h, const struct layout *l, const uint8_t *header, uint16_t size, const struct length_field *lengths,
		unsigned n_lengths, const uint16_t *ip4, unsigned n_ip4);
