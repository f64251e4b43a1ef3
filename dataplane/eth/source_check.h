// SPDX-License-Identifier: Apache-2.0
// Checks that a guest sends with addresses of its own (RFC 2827, RFC 3704), in ARP and ND as well.
#pragma once

#include <rte_mbuf.h>

#include "graph/drop.h"
#include "port/registry.h"

// m begins with the Ethernet header and came in by the port that f belongs to. Returns NULL, or the reason to drop it.
const struct drop_reason *source_check(const struct rte_mbuf *m, const struct port_fwd *f);
