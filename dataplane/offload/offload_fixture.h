// SPDX-License-Identifier: Apache-2.0
// Packets for tests of large segments, built byte by byte, with checksums by DPDK's functions.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#define OFFLOAD_LONGEST 65535u

struct offload_packet { // from 10.0.0.2 or fd00::2 to .3
	bool v6, udp;
	unsigned tags;          // VLAN tags of the frame
	unsigned options;       // bytes behind the TCP header, a multiple of 4
	unsigned payload, size; // size: of a segment; 0 = not large
	uint8_t tcp_flags, tos;
	uint16_t id, sport, window;
	uint32_t seq, ack; // seq: the payload's place in its stream, which decides about its bytes; of UDP, too
	unsigned buffer;   // bytes in each buffer but the first; 0 = as many as fit
};

// A frame. A large segment has the flags of base/offload.h, and a checksum without meaning.
struct rte_mbuf *offload_make(const struct offload_packet *p);
unsigned offload_headers(const struct offload_packet *p); // bytes of all headers
struct offload_packet offload_random(unsigned longest);   // payload up to this; the same ones in each run
struct offload_packet offload_part(const struct offload_packet *p, unsigned i); // segment i of a large one
unsigned offload_parts(const struct offload_packet *p);
bool offload_equal(const struct rte_mbuf *a, const struct rte_mbuf *b); // prints the first difference
uint32_t offload_rand(uint32_t below);
