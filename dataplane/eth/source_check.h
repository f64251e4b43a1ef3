// SPDX-License-Identifier: Apache-2.0
// Whether a guest sends with an address of its own (RFC 2827, RFC 3704; for ARP and ND as well).
#pragma once

#include <rte_mbuf.h>

#include "graph/drop.h"
#include "port/registry.h"

// The frame, whole from its Ethernet header on, came in by the port that f belongs to. NULL: it may pass; else the reason.
const struct drop_reason *source_check(const struct rte_mbuf *m, const struct port_fwd *f);
