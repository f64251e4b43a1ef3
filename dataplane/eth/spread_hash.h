// SPDX-License-Identifier: Apache-2.0
// What spread packets are dealt by: the innermost addresses, protocol and ports of a frame, the same in both directions, so that a
// session stays with one worker. Fragments by their addresses only. What is no IP inside: by its MAC addresses.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

// fabric: the tunnels of this node are looked into. 0: ARP, what is for the node itself, too short to say. Reads the first segment only.
uint32_t spread_hash(const struct rte_mbuf *m, bool fabric);
