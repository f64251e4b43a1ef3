// SPDX-License-Identifier: Apache-2.0
// The flows (5-tuples) of a stream: numbered, and as records in the form in which frames carry them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Network byte order, in the order of an IP and a UDP header.
struct flow {
	uint32_t source, destination; // low 32 bits of the addresses
	uint16_t source_port, destination_port;
	uint16_t address_sum; // ones' complement sum of the words of both addresses above
	uint16_t entropy;     // source port of the outer UDP header
};

_Static_assert(sizeof(struct flow) == 16, "the sender walks an array of these");

// The values of flow i are the digits of i in mixed radix: source port, destination port, source, destination (or
// destination i % n_list).
struct flow_plan {
	uint32_t source, destination; // of flow 0; host byte order
	uint16_t source_port, destination_port;
	uint32_t source_ports, destination_ports, sources, destinations; // numbers of values; never 0
	uint32_t step;                                                   // distance of two destinations
	uint32_t n_list;
	uint32_t *list; // destination addresses, replacing destination, destinations and step; owned
};

uint64_t flow_plan_size(const struct flow_plan *p); // number of different flows
struct flow flow_make(const struct flow_plan *p, uint64_t number);
void flow_fill(const struct flow_plan *p, struct flow *flows, uint32_t n, bool shuffle); // flows 0..n-1

// Zeroed pages for arrays of up to 16 million flows, transparent huge pages if possible. NULL: no memory.
void *pages_alloc(size_t size);
void pages_free(void *p, size_t size);
