// SPDX-License-Identifier: Apache-2.0
// TCP connections as a router in the middle sees them (RFC 9293, section 3.3.2; RFC 5382 for how long they live).
#pragma once

#include <stdint.h>

#include "flow/flow.h"

// A packet of direction dir has come. Returns the new state.
uint8_t flow_tcp_next(struct flow *f, unsigned dir, uint8_t flags);
// Seconds after the last packet of either direction at which the flow ends.
uint32_t flow_timeout(const struct flow *f);

struct flow_timeouts { // seconds
	uint16_t tcp[TCP_STATES];
	uint16_t udp, udp_answered, icmp, other, denied;
};
extern struct flow_timeouts flow_timeouts; // master rw
extern bool flow_tcp_strict;               // a connection must begin with SYN; master rw
#define FLOW_TIMEOUT_MAX 43200             // "last seen" has 16 bits of seconds
