// SPDX-License-Identifier: Apache-2.0
// Extension headers of IPv6 (RFC 8200, section 4), in the first buffer of a packet.
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_byteorder.h>
#include <rte_mbuf.h>

#define IP6_EXT_MAX 8 // that are skipped; a packet with more is not understood

struct ip6_walk {
	unsigned at;   // offset of the header `proto`: set to the first one behind the IPv6 header
	uint8_t proto; // set to the IPv6 header's
	bool fragment; // RFC 6946: an atomic fragment is a whole packet
	bool later;    // not the first fragment: `proto` is that of the fragmented part, which is not here
	bool routed;   // the packet has further to go, and its checksum covers another destination
	uint32_t id;   // of a fragment, network byte order
};

// Moves to the transport header; ESP and unknown headers count as one. Returns false if the first `end` bytes of the
// packet, which are in its first buffer, end before that, or if there are too many headers.
static inline bool ip6_walk_extensions(const struct rte_mbuf *m, unsigned end, struct ip6_walk *e)
{
	unsigned i;

	for (i = 0; i <= IP6_EXT_MAX; i++) {
		bool is_fragment = e->proto == IPPROTO_FRAGMENT;
		const uint8_t *h;

		if (!is_fragment && e->proto != IPPROTO_HOPOPTS && e->proto != IPPROTO_ROUTING &&
		    e->proto != IPPROTO_DSTOPTS)
			return true;
		if (end < e->at + 8)
			return false;
		h = rte_pktmbuf_mtod_offset(m, const uint8_t *, e->at);
		if (is_fragment) {
			e->fragment = (*(const unaligned_uint16_t *)(h + 2) & RTE_BE16(0xfff9)) != 0;
			e->later = (*(const unaligned_uint16_t *)(h + 2) & RTE_BE16(0xfff8)) != 0;
			e->id = *(const unaligned_uint32_t *)(h + 4);
		}
		e->routed |= e->proto == IPPROTO_ROUTING && h[3] != 0;
		e->proto = h[0];
		e->at += is_fragment ? 8 : (h[1] + 1) * 8u;
		if (e->later)
			return true;
	}
	return false;
}
