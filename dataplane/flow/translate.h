// SPDX-License-Identifier: Apache-2.0
// Rewrites the packets of translated flows (NAT). A packet of direction dir gets the reverse of dir[!dir].key: its
// addresses, its ports, and every checksum that covers them. Checksums are updated incrementally (RFC 1624), so a wrong
// checksum stays wrong.
//
// meta(m)->l3 is the offset of the IP header. Every field that is rewritten must be in the packet's first segment; if
// one is not, or if a first fragment ends before its checksum, the functions change nothing and return false: the
// caller drops the packet.
// - TCP, UDP: both ports. A UDP checksum of zero stays zero.
// - ICMP echo: the identifier. Other ICMP, and all protocols that are not named here: addresses only.
// - SCTP: addresses only, as its CRC does not cover them; translation rules never change its ports.
// - UDP-Lite, DCCP: addresses and checksum; their ports do not change either.
// - Later fragments: the addresses that belong to the flow.
// - IPv6 extension headers are skipped. A routing header with segments left is refused (false).
// Packets arrive with complete checksums: no port type offers checksum offload to its peer.
#pragma once

#include <stdbool.h>

#include <rte_mbuf.h>

#include "flow/flow.h"
#include "graph/drop.h"

extern const struct drop_reason *const flow_untranslatable; // the drop reason when these functions return false

// Rewrites a packet of direction dir. ICMP errors are passed to flow_translate_error().
bool flow_translate(struct rte_mbuf *m, const struct flow *f, unsigned dir);

// Rewrites an ICMP error of direction dir (ICMP header at offset l4) about a packet of the other direction. The
// destination is always translated; the source only if it is the flow's own address (a router in between keeps its
// address). The quoted packet becomes what its sender, the receiver of the error, had sent. RFC 5508, section 4.
bool flow_translate_error(struct rte_mbuf *m, const struct flow *f, unsigned dir, unsigned l4);
