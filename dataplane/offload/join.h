// SPDX-License-Identifier: Apache-2.0
// Joins packets of one connection, which arrived in one batch, to large segments (base/offload.h), for a port that
// takes these. It is the reverse of segment(): only packets that segment() makes again, byte by byte, are joined.
#pragma once

#include <rte_mbuf.h>

#include "base/offload.h"

#define JOIN_BUFFERS 64      // of a joined packet
#define JOIN_UDP_SEGMENTS 64 // that Linux takes in one packet

// What is joined. The bits are those of enum port_takes (port/port.h).
enum join_kind {
	JOIN_TCP4 = 1 << 1,
	JOIN_TCP6 = 1 << 2,
	JOIN_CWR = 1 << 3, // packets of TCP with CWR, too
	JOIN_UDP4 = 1 << 4,
	JOIN_UDP6 = 1 << 5,
	JOIN_ALL = JOIN_TCP4 | JOIN_TCP6 | JOIN_CWR | JOIN_UDP4 | JOIN_UDP6
};

// pkts: n frames. Joins those of the given kinds and returns how many frames are left. Packets of one connection keep
// their order, and nothing is copied. Their checksums are verified, unless a device has done so; what is wrong is not
// joined.
unsigned join(struct rte_mbuf **pkts, unsigned n, unsigned kinds);
