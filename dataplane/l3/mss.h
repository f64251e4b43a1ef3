// SPDX-License-Identifier: Apache-2.0
// TCP MSS clamp: lowers the MSS in SYNs of a port to the port's limit, or to what the MTU of the path allows.
#pragma once

#include <netinet/in.h>

#include "base/rcu.h"
#include "l3/ip_header.h"
#include "l3/nexthop.h"
#include "port/registry.h"

#define MSS_AUTO 1 // the limit is computed from the path's MTU

void mss_clamp(struct rte_mbuf *m, unsigned l4, uint16_t limit); // limit in bytes; the TCP header begins at offset l4

static inline uint16_t mss_limit(uint16_t configured, uint16_t mtu, const bool v6)
{
	uint16_t overhead = v6 ? 60 : 40; // IP and TCP headers without options

	if (configured != MSS_AUTO)
		return configured;
	return mtu == UINT16_MAX || mtu <= overhead ? UINT16_MAX : (uint16_t)(mtu - overhead);
}

// Returns the largest IP packet that the path takes in both directions: the answer to a packet from a tunnel goes back
// through a tunnel with the same overhead.
static inline uint16_t mss_path_mtu(const struct rte_mbuf *m, const struct pkt_meta *md, const struct nexthop *nh,
				    const struct port_fwd *in)
{
	unsigned overhead;

	if (!(md->flags & META_FROM_TUNNEL) || in == NULL)
		return nh->mtu;
	overhead = m->data_off + md->l3 - (unsigned)md->outer;
	return in->mtu > overhead ? RTE_MIN(nh->mtu, (uint16_t)(in->mtu - overhead)) : nh->mtu;
}

// Applies the limits of the port that received the packet and of the port that will send it.
static inline void mss_clamp_wanted(struct rte_mbuf *m, const struct nexthop *nh, const bool v6)
{
	const struct port_fwd *in = rcu_read(port_fwds[m->port % PORT_MAX]);
	struct pkt_meta *md = meta(m);
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, md->l3);
	uint16_t in_mss = in ? in->mss : 0, limit = UINT16_MAX, mtu;
	unsigned hlen = v6 ? 40 : (ip[0] & 15) * 4u;

	if ((v6 ? ip[6] : ip[9]) != IPPROTO_TCP || (!v6 && (ip[6] & 0x1f || ip[7])))
		return;
	mtu = mss_path_mtu(m, md, nh, in);
	if (in_mss)
		limit = mss_limit(in_mss, mtu, v6);
	if (nh->mss)
		limit = RTE_MIN(limit, mss_limit(nh->mss, mtu, v6));
	mss_clamp(m, md->l3 + hlen, limit);
}
