// SPDX-License-Identifier: Apache-2.0
// Prepared first bytes of frames, one head for each size of a stream, with all lengths, and with checksums over
// everything that does not depend on the flow. The fields of the flow are filled in when a frame is sent (stream.c).
//
// Behind the probe, frames carry a pattern that depends only on the offset in the frame. So buffers are filled with it
// once, and sending rewrites only the head.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include "base/error.h"
#include "base/field_limits.h"
#include "probe.h"

#define HEADER_MAX LIMIT_GENERATOR_STREAM_HEADER_MAX
#define HEAD_MAX 256 // header and probe
#define FRAME_MAX LIMIT_GENERATOR_STREAM_SIZES_MAX

extern uint8_t pattern[FRAME_MAX + HEAD_MAX];
void pattern_init(void);

struct length_field { // 16 bits, big-endian: size - minus
	uint16_t offset, minus;
};

// Offsets of fields in the header; 0 = the header does not have the field.
struct layout {
	uint16_t size;        // of the header; the probe follows
	uint16_t inner;       // innermost IP header
	uint16_t source;      // low 32 bits of its source address
	uint16_t destination; // low 32 bits, with the ports behind them
	uint16_t ip_sum;      // checksum of the innermost IPv4 header
	uint16_t udp_sum;     // checksum of the innermost UDP header
	uint16_t entropy;     // outer UDP source port
	uint16_t mac;         // last 4 bytes of the source MAC, which are the source's
	uint16_t outer_udp;
	uint16_t outer_sum; // checksum of the outer UDP header
	bool ipv6, outer_ipv6;
	bool fixed; // the header has no fields of a flow; they are written to where the probe overwrites them
};

struct head {
	uint8_t bytes[HEAD_MAX];
	uint16_t size;                       // of the frame
	uint16_t ip_sum, udp_sum, outer_sum; // sums without the fields of the flow and the probe
} __rte_cache_aligned;

// A header of any protocol, in which no flow is written.
int layout_fixed(struct layout *l, size_t n, uint32_t entropy, struct error *err);
int layout_parse(struct layout *l, const uint8_t *header, size_t n, uint32_t inner, uint32_t entropy,
		 struct error *err);
int layout_source_macs(struct layout *l, struct error *err); // the source MAC follows the source address
// The caller has checked that lengths and ip4 (offsets of IPv4 headers that get a checksum) are within the header.
void head_build(struct head *h, const struct layout *l, const uint8_t *header, uint16_t size,
		const struct length_field *lengths, unsigned n_lengths, const uint16_t *ip4, unsigned n_ip4);
