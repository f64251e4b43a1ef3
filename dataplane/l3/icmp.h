// SPDX-License-Identifier: Apache-2.0
// ICMP errors, and resets of TCP: a node sets what happened with icmp_want() and passes the packet to "icmp_error".
#pragma once

#include "graph/drop.h"
#include "graph/meta.h"

enum icmp_what {
	ICMP_WHAT_TTL, // time exceeded in transit
	ICMP_WHAT_NO_ROUTE,
	ICMP_WHAT_HOST, // address unreachable
	ICMP_WHAT_PROHIBITED,
	ICMP_WHAT_TOO_BIG, // mtu is the next hop's
	ICMP_WHAT_PORT,
	ICMP_WHAT_PROTOCOL,
	ICMP_WHAT_RESET, // of TCP alone: a reset instead of an ICMP error
};

extern uint32_t icmp_errors_per_second; // of each worker

// Marks the packet (IP header at meta->l3) as dropped for this reason. Its sender gets an ICMP error, or a reset,
// unless RFC 1812, RFC 4443 or RFC 9293 forbid it.
static inline void icmp_want(struct rte_mbuf *m, enum icmp_what what, uint16_t mtu, const struct drop_reason *reason)
{
	meta(m)->arg = (uint32_t)what << 16 | mtu;
	meta(m)->reason = reason->id;
}
