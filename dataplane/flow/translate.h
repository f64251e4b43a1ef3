// SPDX-License-Identifier: Apache-2.0
// Rewrites the packets of translated flows. A packet of direction dir becomes one of the reverse of dir[!dir].key: addresses, ports, and
// every checksum that covers them, by what changed (RFC 1624), so a checksum is as right or wrong as it was.
//
// meta(m)->l3 is the offset of the IP header. All that is rewritten must lie in the packet's first segment; if it does not, or if a first
// fragment ends before its checksum, nothing is changed and the answer is false: drop the packet.
// - TCP, UDP: both ports. A UDP checksum of zero stays zero.
// - ICMP echo: the identifier. Other ICMP, and all protocols that are not named here: addresses only.
// - SCTP: addresses only, as its CRC does not cover them; ports never change (the rules see to that). UDP-Lite, DCCP: as SCTP, with their checksums.
// - Later fragments: those addresses that are the flow's.
// - IPv6 extension headers are passed; a routing header that is still at work is not (false).
// Checksums are complete in every packet: no kind of port offers its peer to leave them to the router.
#pragma once

#include <stdbool.h>

#include <rte_mbuf.h>

#include "flow/flow.h"
#include "graph/drop.h"

extern const struct drop_reason *const flow_untranslatable; // for whom the answer is false

// ICMP errors go on to flow_translate_error().
bool flow_translate(struct rte_mbuf *m, const struct flow *f, unsigned dir);

// An ICMP error, its ICMP header at offset l4, that travels in direction dir about a packet of the other one. Its destination becomes what
// the flow calls it there, its source only where it is the flow's own (a router in between keeps its address); the packet inside becomes
// what the receiver had sent, as far as it is quoted. RFC 5508, section 4.
bool flow_translate_error(struct rte_mbuf *m, const struct flow *f, unsigned dir, unsigned l4);
