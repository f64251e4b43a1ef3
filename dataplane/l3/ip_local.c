// SPDX-License-Identifier: Apache-2.0
// ip_local: takes packets for the router's own addresses. It answers ICMP echo and nothing else. ICMP errors about the
// length of tunnel packets go to the master.
// Reads: l3, vrf, flags.  Writes: flags.  Next: back to the route lookup with the answer, or punt.
#include <netinet/in.h>

#include <rte_cycles.h>
#include <rte_icmp.h>

#include "base/bucket.h"
#include "base/rcu.h"
#include "graph/node.h"
#include "l3/icmp.h"
#include "l3/ip_header.h"
#include "l3/path_mtu.h"
#include "l3/vrf.h"
#include "port/registry.h"
#include "worker/punt.h"

enum { IP4 = 1, IP6, ICMP_ERROR, PUNT };

#define ICMP4_UNREACHABLE 3
#define ICMP4_PORT 3    // code
#define ICMP4_TOO_BIG 4 // code
#define ICMP6_UNREACHABLE 1
#define ICMP6_PORT 4 // code
#define ICMP6_TOO_BIG 2
#define ICMP6_ECHO_REQUEST 128
#define ICMP6_ECHO_REPLY 129

DROP_REASON(local_truncated, "A packet for the router itself ends before its headers do.");
DROP_REASON(local_no_service, "A packet for the router has a protocol or port that the router does not serve.");
DROP_REASON(local_icmp_checksum, "An ICMP message for the router has a wrong checksum.");
DROP_REASON(local_icmp_ignored,
	    "An ICMP message for the router is neither an echo request nor an error about the length of "
	    "a tunnel packet. The router ignores it.");
DROP_REASON(local_port_unreachable,
	    "A host of the underlay says that nothing listens on the UDP port to which a tunnel's packet was sent: the "
	    "tunnel's remote does not speak its encapsulation there, or uses another port (`corelane settings show`, "
	    "`corelane nexthop list`). `corelane capture` shows who says so.");
DROP_REASON(path_mtu_forged,
	    "An ICMP error of the underlay says that a packet is too big, but quotes none that this node can "
	    "have sent, or gives an MTU below 576 (IPv6: 1,280): it is forged or damaged.");
DROP_REASON(path_mtu_rate,
	    "More than 20 ICMP errors per second said that tunnel packets are too big. The others suffice.");
DROP_REASON(local_echo_off, "ICMP echo to the gateway is switched off on this port.");
DROP_REASON(local_fragment, "A fragment is for the router itself, which does not reassemble packets.");

static inline bool echo_allowed(const struct rte_mbuf *m)
{
	const struct port_fwd *f = rcu_read(port_fwds[m->port % PORT_MAX]);

	return f == NULL || f->gateway_echo;
}

// Removes what is left of the link layer and of tunnels, and marks the packet as the router's own.
static inline void ip_local_answer(struct rte_mbuf *m, struct pkt_meta *md)
{
	rte_pktmbuf_adj(m, md->l3);
	md->l3 = 0;
	md->hash = 0;
	md->bridge = UINT16_MAX;
	md->flags = (uint8_t)((md->flags & META_TRACED) | META_ANSWER);
}

// RFC 4443 3.4 requires the offset of the next header field that was not understood, in the place of an MTU.
static inline edge_t ip_local_unserved(struct rte_mbuf *m, uint8_t proto, const bool v6)
{
	if (proto == IPPROTO_UDP || proto == IPPROTO_TCP)
		icmp_want(m, ICMP_WHAT_PORT, 0, &drop_local_no_service);
	else
		icmp_want(m, ICMP_WHAT_PROTOCOL, v6 ? offsetof(struct rte_ipv6_hdr, proto) : 0, &drop_local_no_service);
	return ICMP_ERROR;
}

// A message about a packet that was sent, other than one about its length.
static inline edge_t ip_local_ignored(struct rte_mbuf *m, const struct pkt_meta *md, bool port_unreachable)
{
	if (port_unreachable && md->vrf == VRF_FABRIC && !(md->flags & META_FROM_TUNNEL))
		return drop(m, local_port_unreachable);
	return drop(m, local_icmp_ignored);
}

static __rte_noinline edge_t ip_local_too_big(struct rte_mbuf *m, struct pkt_meta *md, unsigned at, bool v6)
{
	static struct bucket budget; // of all workers: the master compares each message with all tunnels
	struct path_mtu_report r;

	if (md->vrf != VRF_FABRIC || (md->flags & META_FROM_TUNNEL))
		return drop(m, local_icmp_ignored);
	if (!path_mtu_read(m, md->l3, at, v6, &r))
		return drop(m, path_mtu_forged);
	if (!bucket_take(&budget, rte_rdtsc(), 1, PATH_MTU_RATE, PATH_MTU_RATE, rte_get_tsc_hz()))
		return drop(m, path_mtu_rate);
	punt_mark(m, PUNT_PATH_MTU);
	return PUNT;
}

static inline edge_t ip_local_echo4(struct rte_mbuf *m, struct pkt_meta *md, struct rte_ipv4_hdr *ip)
{
	unsigned hlen = rte_ipv4_hdr_len(ip), at = md->l3 + hlen, len = rte_be_to_cpu_16(ip->total_length) - hlen;
	struct rte_icmp_hdr *icmp = RTE_PTR_ADD(ip, hlen);
	rte_be32_t src = ip->src_addr;
	uint16_t raw;

	if (m->data_len < at + sizeof(*icmp) || len < sizeof(*icmp))
		return drop(m, local_truncated);
	if (ip->fragment_offset & RTE_BE16(0x3fff))
		return drop(m, local_fragment);
	if (rte_raw_cksum_mbuf(m, at, len, &raw) < 0 || raw != 0xffff)
		return drop(m, local_icmp_checksum);
	if (icmp->icmp_type == ICMP4_UNREACHABLE && icmp->icmp_code == ICMP4_TOO_BIG)
		return ip_local_too_big(m, md, at, false);
	if (icmp->icmp_type != RTE_IP_ICMP_ECHO_REQUEST)
		return ip_local_ignored(m, md, icmp->icmp_type == ICMP4_UNREACHABLE && icmp->icmp_code == ICMP4_PORT);
	if (!echo_allowed(m))
		return drop(m, local_echo_off);
	icmp->icmp_type = RTE_IP_ICMP_ECHO_REPLY;
	icmp->icmp_cksum = (uint16_t)~ip_fold((uint64_t)(uint16_t)~icmp->icmp_cksum +
					      (uint16_t)~RTE_BE16(RTE_IP_ICMP_ECHO_REQUEST << 8));
	ip->src_addr = ip->dst_addr;
	ip->dst_addr = src;
	ip->time_to_live = 64;
	ip4_checksum_set(ip);
	ip_local_answer(m, md);
	return IP4;
}

static inline edge_t ip_local_echo6(struct rte_mbuf *m, struct pkt_meta *md, struct rte_ipv6_hdr *ip)
{
	unsigned at = md->l3 + (unsigned)sizeof(*ip), len = rte_be_to_cpu_16(ip->payload_len);
	struct rte_icmp_hdr *icmp = (struct rte_icmp_hdr *)(ip + 1);
	uint8_t src[16];
	uint16_t raw;

	if (m->data_len < at + sizeof(*icmp) || len < sizeof(*icmp))
		return drop(m, local_truncated);
	if (rte_raw_cksum_mbuf(m, at, len, &raw) < 0 ||
	    ip_fold(ip_sum(ip->src_addr, 32) + ip->payload_len + RTE_BE16(IPPROTO_ICMPV6) + raw) != 0xffff)
		return drop(m, local_icmp_checksum);
	if (icmp->icmp_type == ICMP6_TOO_BIG)
		return ip_local_too_big(m, md, at, true);
	if (icmp->icmp_type != ICMP6_ECHO_REQUEST)
		return ip_local_ignored(m, md, icmp->icmp_type == ICMP6_UNREACHABLE && icmp->icmp_code == ICMP6_PORT);
	if (!echo_allowed(m))
		return drop(m, local_echo_off);
	icmp->icmp_type = ICMP6_ECHO_REPLY;
	icmp->icmp_cksum =
		(uint16_t)~ip_fold((uint64_t)(uint16_t)~icmp->icmp_cksum +
				   (uint16_t)~RTE_BE16(ICMP6_ECHO_REQUEST << 8) + RTE_BE16(ICMP6_ECHO_REPLY << 8));
	memcpy(src, ip->src_addr, 16);
	memcpy(ip->src_addr, ip->dst_addr, 16);
	memcpy(ip->dst_addr, src, 16);
	ip->hop_limits = 64;
	ip_local_answer(m, md);
	return IP6;
}

static inline edge_t local_one(struct rte_mbuf *m)
{
	struct pkt_meta *md = meta(m);
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, md->l3);

	// The input nodes have checked the IP header itself.
	if ((ip[0] >> 4) == 4) {
		struct rte_ipv4_hdr *ip4 = (struct rte_ipv4_hdr *)ip;

		return ip4->next_proto_id == IPPROTO_ICMP ? ip_local_echo4(m, md, ip4)
							  : ip_local_unserved(m, ip4->next_proto_id, false);
	}
	switch (((struct rte_ipv6_hdr *)ip)->proto) {
	case IPPROTO_ICMPV6:
		return ip_local_echo6(m, md, (struct rte_ipv6_hdr *)ip);
	case IPPROTO_FRAGMENT:
		return drop(m, local_fragment);
	default:
		return ip_local_unserved(m, ((struct rte_ipv6_hdr *)ip)->proto, true);
	}
}

static uint16_t ip_local(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, local_one);
}

NODE(ip_local, ip_local, [IP4] = "ip4_forward", [IP6] = "ip6_forward", [ICMP_ERROR] = "icmp_error", [PUNT] = "punt");
