// SPDX-License-Identifier: Apache-2.0
// The hash that spreads packets over workers: of the innermost addresses, protocol and ports of a frame, symmetric, so
// that both directions of a session go to one worker. Fragments have only addresses and protocol, frames without IP
// their MAC addresses.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

// fabric: looks into the tunnels of this node. Returns 0 for ARP, for packets to the node itself and for those that are
// too short. Reads only the first segment.
uint32_t spread_hash(const struct rte_mbuf *m, bool fabric);
