// SPDX-License-Identifier: Apache-2.0
// TCP state as a router in the middle sees it (RFC 9293, section 3.3.2), and the timeouts of flows (RFC 5382).
#pragma once

#include <stdint.h>

#include "flow/flow.h"

// Returns the state after a packet of direction dir with these TCP flags; updates f->fin.
uint8_t flow_tcp_next(struct flow *f, unsigned dir, uint8_t flags);
// Seconds without a packet in either direction after which the flow expires.
uint32_t flow_timeout(const struct flow *f);

struct flow_timeouts { // seconds; the limits of the API fit the 16 bits of flow_dir.seen
	uint16_t tcp[TCP_STATES];
	uint16_t udp, udp_answered, icmp, other, denied;
};
extern struct flow_timeouts flow_timeouts; // master rw
extern bool flow_tcp_strict;               // the first packet of a connection must be a SYN; master rw
