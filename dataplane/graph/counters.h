// SPDX-License-Identifier: Apache-2.0
// Counters of one worker. Only that worker writes them; readers sum over workers and may be a few packets behind.
// Sums never go back: what a worker has counted stays when it ends.
#pragma once

#include <stdint.h>

#include "graph/drop.h"
#include "graph/meta.h"

struct port_counters {
	uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes;
	uint64_t tx_refused; // packets refused because the port's queue was full
};

struct counters {
	struct port_counters port[PORT_MAX];
	uint64_t drops[PORT_MAX][DROP_MAX]; // indexed by the port that the packet came in by
};

extern __thread struct counters *counters; // the calling thread's

// Master thread only.
struct counters *counters_create(int numa); // NULL: no memory
void counters_release(struct counters *c);  // after its thread has ended: adds its counts to the caller's
void counters_port_reset(uint16_t port);    // before a port's id is used again

// Sums over all threads.
void counters_port(uint16_t port, struct port_counters *out);
uint64_t counters_drops(uint16_t port, uint16_t reason);
