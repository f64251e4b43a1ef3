// SPDX-License-Identifier: Apache-2.0
// Later fragments have no ports: they take the flow of the first fragment of their packet. The state is per worker,
// because all fragments of a packet reach the same worker.
#pragma once

#include "flow/packet.h"

#define FRAGMENT_SECONDS 30 // RFC 8200, section 4.5: 60 at most

void flow_fragment_add(unsigned worker, const struct flow_packet *p, flow_entry_t e, uint16_t now);
flow_entry_t flow_fragment_find(unsigned worker, const struct flow_packet *p, uint16_t now); // 0: not seen
