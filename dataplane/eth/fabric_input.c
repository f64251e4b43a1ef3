// SPDX-License-Identifier: Apache-2.0
// fabric_input: packets from the underlay. Tunnels for this node go to their decapsulation, the rest to the kernel
// where there is a host port, else to the local answers. Reads: port.  Writes: l3, outer, tos, ttl.  Next: by protocol.
#include <netinet/in.h>

#include <rte_udp.h>

#include "base/eth.h"
#include "base/rcu.h"
#include "flow/packet.h"
#include "graph/node.h"
#include "l3/encap.h"
#include "l3/ip_header.h"
#include "l3/path_mtu.h"
#include "l3/tunnel_end.h"
#include "l3/underlay.h"
#include "port/registry.h"

enum { LOCAL = 1, ARP, ND, HOST, DECAP };

DROP_REASON(fabric_truncated, "The frame from the underlay ends before its headers do.");
DROP_REASON(fabric_vlan, "The frame's VLAN tag is not the one of the fabric port.");
DROP_REASON(fabric_not_local_mac,
	    "The frame was for another station: the underlay's switch floods, or the port is promiscuous.");
DROP_REASON(fabric_unknown_type, "The frame from the underlay carries neither IPv4, IPv6 nor ARP.");
DROP_REASON(fabric_not_local,
	    "The destination address is not one of this node's: a fabric port does not route for others.");
DROP_REASON(fabric_bad_header, "The outer IP header is malformed: version, length or checksum.");
DROP_REASON(fabric_martian_source,
	    "The outer source address cannot be a host's, or it is one of this node's own: a loop, or forged.");
DROP_REASON(fabric_fragment,
	    "The outer packet is a fragment: the underlay's MTU is too small for what the other end sends. "
	    "Tunnels are not reassembled.");
DROP_REASON(fabric_udp_port,
	    "A UDP packet for this node went to a port that no tunnel uses. See `corelane settings show`.");
DROP_REASON(fabric_protocol, "A packet for this node has a protocol that the node does not answer.");
DROP_REASON(fabric_udp6_zero, "A tunnel packet over IPv6 has no UDP checksum, and no tunnel to its source goes without "
			      "one (RFC 6936). Let the sender compute it, see `corelane nexthop add --help`, or "
			      "accept such packets from anyone: `corelane settings set --accept-udp6-zero`.");
DROP_REASON(fabric_bad_udp, "The outer UDP header's length does not fit its packet.");

// Removes the link's padding: the packet ends where its IP and UDP headers say.
static inline void fabric_input_trim(struct rte_mbuf *m, unsigned want)
{
	if (m->nb_segs == 1 && m->pkt_len > want) {
		m->pkt_len = want;
		m->data_len = (uint16_t)want;
	}
}

// The router has no use for the packet: a host port gets it, else it is dropped.
static inline edge_t fabric_not_mine(struct rte_mbuf *m, const struct port_fwd *f, const struct drop_reason *reason)
{
	return f->host ? HOST : drop_as(m, reason);
}

// v6: RFC 6935 and RFC 6936 accept packets without a checksum only from tunnel ends that are known to send them.
static __rte_always_inline edge_t fabric_udp_edge(struct rte_mbuf *m, struct pkt_meta *md, const struct port_fwd *f,
						  unsigned l4, const bool v6)
{
	const struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(m, const struct rte_udp_hdr *, l4);
	unsigned encap, len;

	if (unlikely(m->data_len < l4 + sizeof(*udp)))
		return drop(m, fabric_truncated);
	len = rte_be_to_cpu_16(udp->dgram_len);
	if (unlikely(len < sizeof(*udp) || len > m->pkt_len - l4))
		return drop(m, fabric_bad_udp);
	encap = encap_by_udp[rte_be_to_cpu_16(udp->dst_port)];
	if (unlikely(encap == 0))
		return fabric_not_mine(m, f, &drop_fabric_udp_port);
	if (v6 && unlikely(udp->dgram_cksum == 0) &&
	    !tunnel_end_may_send_zero((const struct rte_ipv6_hdr *)RTE_PTR_ADD(m->buf_addr, md->outer), encap))
		return drop(m, fabric_udp6_zero);
	fabric_input_trim(m, l4 + len);
	md->l3 = (uint8_t)(l4 + sizeof(*udp));
	return (edge_t)(DECAP - 1 + encap);
}

// Only a first fragment shows the ports of a UDP tunnel; the kernel gets the others, too, and discards what it cannot
// reassemble.
static inline edge_t fabric_input_fragment(struct rte_mbuf *m, const struct port_fwd *f, uint8_t proto, bool first,
					   unsigned l4)
{
	const struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(m, const struct rte_udp_hdr *, l4);

	if (encap_by_proto[proto] || (first && proto == IPPROTO_UDP && m->data_len >= l4 + sizeof(*udp) &&
				      encap_by_udp[rte_be_to_cpu_16(udp->dst_port)]))
		return drop(m, fabric_fragment);
	return fabric_not_mine(m, f, &drop_fabric_fragment);
}

static inline edge_t fabric_input_fragment6(struct rte_mbuf *m, const struct port_fwd *f, unsigned at)
{
	const struct rte_ipv6_fragment_ext *ext = rte_pktmbuf_mtod_offset(m, const struct rte_ipv6_fragment_ext *, at);

	if (m->data_len < at + sizeof(*ext))
		return drop(m, fabric_truncated);
	return fabric_input_fragment(m, f, ext->next_header, !(ext->frag_data & RTE_BE16(0xfff8)),
				     at + (unsigned)sizeof(*ext));
}

// An ICMP message belongs to who sent the packet that it is about: beside a host port, the router has sent those of its
// tunnels, and the kernel all others.
static __rte_noinline bool fabric_icmp_is_mine(const struct rte_mbuf *m, const struct port_fwd *f, unsigned l3,
					       unsigned l4, bool v6)
{
	return f->host == 0 || (m->data_len > l4 && icmp_is_error(*rte_pktmbuf_mtod_offset(m, uint8_t *, l4), v6) &&
				path_mtu_quotes_tunnel(m, l3, l4, v6));
}

static __rte_always_inline edge_t fabric_by_protocol(struct rte_mbuf *m, struct pkt_meta *md, const struct port_fwd *f,
						     uint8_t proto, unsigned l3, unsigned l4, const bool v6)
{
	md->outer = (uint16_t)(m->data_off + l3);
	if (likely(proto == IPPROTO_UDP))
		return fabric_udp_edge(m, md, f, l4, v6);
	if (encap_by_proto[proto]) {
		md->l3 = (uint8_t)l4;
		return (edge_t)(DECAP - 1 + encap_by_proto[proto]);
	}
	if ((proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6) && fabric_icmp_is_mine(m, f, l3, l4, v6)) {
		md->l3 = (uint8_t)l3;
		return LOCAL;
	}
	return fabric_not_mine(m, f, &drop_fabric_protocol);
}

static inline edge_t fabric_ip4(struct rte_mbuf *m, struct pkt_meta *md, const struct port_fwd *f, unsigned l3)
{
	const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, l3);
	unsigned hlen, len;

	if (unlikely(m->data_len < l3 + sizeof(*ip)))
		return drop(m, fabric_truncated);
	hlen = ip4_header_len(ip, m->data_len - l3);
	len = rte_be_to_cpu_16(ip->total_length);
	if (unlikely(hlen == 0 || len < hlen || l3 + len > m->pkt_len || !ip4_checksum_ok_of(ip, hlen)))
		return drop(m, fabric_bad_header);
	if (unlikely(!underlay_is_local4(ip->dst_addr)))
		return fabric_not_mine(m, f, &drop_fabric_not_local);
	if (unlikely(ip4_martian_source(ip->src_addr) || underlay_is_local4(ip->src_addr)))
		return drop(m, fabric_martian_source);
	if (unlikely(ip->fragment_offset & RTE_BE16(0x3fff)))
		return fabric_input_fragment(m, f, ip->next_proto_id, !(ip->fragment_offset & RTE_BE16(0x1fff)),
					     l3 + hlen);
	fabric_input_trim(m, l3 + len);
	md->tos = ip->type_of_service;
	md->ttl = ip->time_to_live;
	return fabric_by_protocol(m, md, f, ip->next_proto_id, l3, l3 + hlen, false);
}

static inline edge_t fabric_ip6(struct rte_mbuf *m, struct pkt_meta *md, const struct port_fwd *f, unsigned l3)
{
	const struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv6_hdr *, l3);
	unsigned len;

	if (unlikely(m->data_len < l3 + sizeof(*ip)))
		return drop(m, fabric_truncated);
	len = rte_be_to_cpu_16(ip->payload_len) + (unsigned)sizeof(*ip);
	if (unlikely((*(const uint8_t *)ip >> 4) != 6 || len > m->pkt_len - l3))
		return drop(m, fabric_bad_header);
	if (ip->proto == IPPROTO_ICMPV6 && eth_is_nd(m, l3)) {
		md->l3 = (uint8_t)l3;
		return ND;
	}
	if (unlikely(!underlay_is_local6(ip->dst_addr)))
		return fabric_not_mine(m, f, &drop_fabric_not_local);
	if (unlikely(ip6_is_multicast(ip->src_addr) || ip6_unspecified_or_loopback(ip->src_addr) ||
		     underlay_is_local6(ip->src_addr)))
		return drop(m, fabric_martian_source);
	if (unlikely(ip->proto == IPPROTO_FRAGMENT))
		return fabric_input_fragment6(m, f, l3 + (unsigned)sizeof(*ip));
	fabric_input_trim(m, l3 + len);
	md->tos = ip_tos((const uint8_t *)ip);
	md->ttl = ip->hop_limits;
	return fabric_by_protocol(m, md, f, ip->proto, l3, l3 + (unsigned)sizeof(*ip), true);
}

static inline edge_t fabric_one(struct rte_mbuf *m)
{
	const struct port_fwd *f = rcu_read(port_fwds[m->port]);
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	struct pkt_meta *md = meta(m);
	unsigned l3 = sizeof(*eth);
	rte_be16_t type;

	if (unlikely(f == NULL || m->data_len < sizeof(*eth) + sizeof(struct rte_vlan_hdr)))
		return drop(m, fabric_truncated);
	md->vrf = 0;
	md->bridge = UINT16_MAX;
	type = eth->ether_type;
	if (unlikely(type == RTE_BE16(RTE_ETHER_TYPE_VLAN))) {
		const struct rte_vlan_hdr *vlan = (const struct rte_vlan_hdr *)(eth + 1);

		if ((vlan->vlan_tci & RTE_BE16(0xfff)) != f->vlan_be)
			return drop(m, fabric_vlan);
		type = vlan->eth_proto;
		l3 += (unsigned)sizeof(*vlan);
	} else if (unlikely(f->vlan_be)) {
		return drop(m, fabric_vlan);
	}
	if (unlikely(eth_word(&eth->dst_addr) != eth_word(&f->mac) && !rte_is_multicast_ether_addr(&eth->dst_addr)))
		return drop(m, fabric_not_local_mac);
	if (likely(type == RTE_BE16(RTE_ETHER_TYPE_IPV4)))
		return fabric_ip4(m, md, f, l3);
	if (type == RTE_BE16(RTE_ETHER_TYPE_IPV6))
		return fabric_ip6(m, md, f, l3);
	if (type == RTE_BE16(RTE_ETHER_TYPE_ARP)) {
		md->l3 = (uint8_t)l3;
		return ARP;
	}
	return fabric_not_mine(m, f, &drop_fabric_unknown_type);
}

NODE_EACH(fabric_input, fabric_one, [LOCAL] = "ip_local", [ARP] = "arp_input", [ND] = "nd_input",
	  [HOST] = "host_output", [DECAP] = NODE_LIST(ENCAP_RECEIVE_NODES));
