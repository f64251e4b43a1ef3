// SPDX-License-Identifier: Apache-2.0
// Packets whose sender left work to the router: large segments, and checksums that are not computed yet. This is what
// an mbuf in the graph says about it, between the port that it came in by and the place where it leaves.
//
// - An unfinished packet has RTE_MBUF_F_TX_TCP_CKSUM or _UDP_CKSUM, and RTE_MBUF_F_TX_IPV4 or _IPV6. The field of its
//   TCP or UDP checksum means nothing inside the graph: nodes may change addresses and ports without adjusting it, or
//   adjust it in vain. Where the packet leaves, the field gets the sum that the receiver wants, computed from the
//   addresses of that moment: the whole checksum, or that of the pseudo header alone if the receiver takes unfinished
//   packets.
// - A large segment is unfinished and has RTE_MBUF_F_TX_TCP_SEG or _UDP_SEG, too. It stands for offload_segments()
//   packets, each with tso_segsz bytes of its payload (the last one may have fewer), and a copy of its headers.
// - The flags and lengths describe the innermost headers: those of the tenant's packet. l3_len is the length of its IP
//   header, options included; an IPv6 header has no extension headers. l4_len is the length of the TCP header with its
//   options, or of the UDP header. The port that receives the packet has checked them: l3_len + l4_len bytes from the
//   IP header on lie in the first buffer, and the packet is no fragment. l2_len means nothing: headers are put in front
//   of the packet and removed from it. The IP header is at meta(m)->l3 in a routed packet, and at frame_ip() in a frame
//   (base/eth.h).
// - The IPv4 header's checksum and all lengths in the headers are complete; they describe the large segment itself.
// - RTE_MBUF_F_RX_L4_CKSUM_GOOD: a device, or a sender that is trusted, has verified the checksum.
//
// A packet is unfinished only inside the graph and at a port that takes it so. A tunnel never carries one: it is cut
// into its segments, and its checksums are computed, right before encapsulation. Limits on the size of packets (MTU)
// apply to offload_ip_size(); meters and counters of flows count offload_segments() packets and offload_ip_bytes().
//
// The exception is a whole packet (OFFLOAD_WHOLE), which only goes to a peer that has agreed to take it.
//
// Rings, copies (rte_pktmbuf_copy() of the whole packet) and spreading keep the flags.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "base/eth.h"

#define OFFLOAD_UNFINISHED RTE_MBUF_F_TX_L4_MASK // a large segment is unfinished, too
#define OFFLOAD_LARGE (RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_UDP_SEG)
#define OFFLOAD_FLAGS (OFFLOAD_UNFINISHED | OFFLOAD_LARGE | RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IPV6)
// A whole packet of a tunnel: behind the tunnel's headers it carries a large segment, with tso_segsz bytes of payload
// in each packet that it stands for, and outer_l3_len bytes from the tunnel's IP header to the segment's. Its checksum
// is not computed.
#define OFFLOAD_WHOLE RTE_MBUF_F_TX_TUNNEL_VXLAN
#define OFFLOAD_CAME_WHOLE RTE_MBUF_F_RX_LRO // beside it: set by the peer; not yet compared with the headers
#define OFFLOAD_SEGMENTS_MAX 128             // of one large segment; 64 KB in segments of a path of 576 bytes are 123

// Set by the first offload_mark() of this process. Until then, nodes do not look for marks.
extern bool offload_seen;

static inline void offload_mark(struct rte_mbuf *m, uint64_t flags)
{
	m->ol_flags |= flags;
	if (unlikely(!__atomic_load_n(&offload_seen, __ATOMIC_RELAXED)))
		__atomic_store_n(&offload_seen, true, __ATOMIC_RELAXED);
}

static inline bool offload_is_unfinished(const struct rte_mbuf *m)
{
	return (m->ol_flags & OFFLOAD_UNFINISHED) != 0;
}

static inline bool offload_is_whole(const struct rte_mbuf *m)
{
	return (m->ol_flags & OFFLOAD_WHOLE) != 0;
}

static inline bool offload_is_large(const struct rte_mbuf *m)
{
	return (m->ol_flags & OFFLOAD_LARGE) != 0;
}

// The functions below take the offset of the IP header, and return what is right for every packet.

// Bytes of the largest IP packet on the wire.
static inline uint32_t offload_ip_size(const struct rte_mbuf *m, unsigned l3)
{
	uint32_t headers = (uint32_t)m->l3_len + m->l4_len;

	return offload_is_large(m) ? headers + RTE_MIN((uint32_t)m->tso_segsz, m->pkt_len - l3 - headers)
				   : m->pkt_len - l3;
}

// Packets on the wire.
static inline uint32_t offload_segments(const struct rte_mbuf *m, unsigned l3)
{
	uint32_t headers = (uint32_t)m->l3_len + m->l4_len;

	return offload_is_large(m) ? (m->pkt_len - l3 - headers + m->tso_segsz - 1) / m->tso_segsz : 1;
}

// Bytes of all its IP packets on the wire.
static inline uint32_t offload_ip_bytes(const struct rte_mbuf *m, unsigned l3)
{
	return m->pkt_len - l3 + (offload_segments(m, l3) - 1) * ((uint32_t)m->l3_len + m->l4_len);
}

// Bytes of the largest frame on the wire; the packet is a frame.
static inline uint32_t offload_frame_size(const struct rte_mbuf *m)
{
	unsigned l3;

	if (!offload_is_large(m))
		return m->pkt_len;
	l3 = frame_ip(m);
	return l3 + offload_ip_size(m, l3);
}
