// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the generator: builders of headers, and a frame parser that is independent of the generator.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "generator.pb-c.h"
#include "head.h"

// A header as a client of the API describes it.
struct test_header {
	uint8_t bytes[HEADER_MAX];
	uint16_t n, inner, entropy;
	struct length_field lengths[8];
	unsigned n_lengths;
	uint16_t ip4[4];
	unsigned n_ip4;
};

void header_ether(struct test_header *h, uint16_t type);
void header_ip(struct test_header *h, bool ipv6, uint8_t proto); // becomes the inner one
void header_udp(struct test_header *h, uint16_t destination, uint16_t sum);
void header_tcp_syn(struct test_header *h);
void header_vxlan(struct test_header *h, uint32_t vni);
void header_gre(struct test_header *h);
void header_mpls(struct test_header *h, uint32_t label);
struct test_header header_plain(bool ipv6, uint16_t sum); // a UDP packet in Ethernet
struct test_header header_in_vxlan(bool ipv6, uint16_t sum);

// Returns NULL if all lengths and checksums of the outer and inner headers are right, else the name of a wrong one.
const char *frame_wrong(const uint8_t *frame, uint32_t n);

// Messages; each is valid for the following 15 calls.
Corelane__V1__GeneratorStream *message_stream(const struct test_header *h, uint32_t size);
Corelane__V1__GeneratorPort *message_port(const char *name, const char *socket);
