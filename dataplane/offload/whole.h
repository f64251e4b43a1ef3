// SPDX-License-Identifier: Apache-2.0
// Large segments that travel through a tunnel as one packet (OFFLOAD_WHOLE in base/offload.h), between two routers that
// share memory. The peer sets the mark of a received packet: nothing is taken from it before these functions have
// compared it with the packet's headers.
#pragma once

#include <rte_mbuf.h>

#include "base/offload.h"

// Makes a whole packet of a large segment that is about to be encapsulated. inner: distance of its IP header from that
// of the tunnel's header.
static inline void whole_mark(struct rte_mbuf *m, unsigned inner)
{
	m->ol_flags = (m->ol_flags & ~OFFLOAD_FLAGS) | OFFLOAD_WHOLE;
	m->outer_l3_len = (uint16_t)inner & 0x1ff;
}

// After decapsulation: makes the large segment with its IP header at l3 of a whole packet. Returns false if its headers
// contradict the mark.
bool whole_open(struct rte_mbuf *m, unsigned l3);

// Cuts a whole packet, with the tunnel's IP header at l3, into packets that each have a copy of all headers. As
// segment(), but m may only be dropped after an error.
int whole_cut(struct rte_mbuf *m, unsigned l3, struct rte_mbuf *out[OFFLOAD_SEGMENTS_MAX]);
