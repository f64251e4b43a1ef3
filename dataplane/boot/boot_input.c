// SPDX-License-Identifier: Apache-2.0
// boot_input: checks what a guest asks for when it boots, and passes it to the master thread.
// Reads: port, l3.  Writes: out_port.  Next: punt.
#include "base/ip_sum.h"
#include "base/offload.h"
#include "base/rcu.h"
#include "boot/boot.h"
#include "boot/dhcp4_message.h"
#include "boot/dhcp6_message.h"
#include "graph/node.h"
#include "worker/punt.h"

enum { PUNT = 1 };

DROP_REASON(boot_malformed,
	    "The guest sent a DHCP message that is a fragment, is truncated, lies in several buffers, or "
	    "has a wrong checksum or fixed fields of another protocol; or a router solicitation that is damaged or has "
	    "passed a router.");
DROP_REASON(boot_wrong_mac,
	    "The guest sent a DHCP message or a router solicitation for another MAC than the frame's or the port's "
	    "guest_mac: it may ask only for itself.");
DROP_REASON(boot_relayed,
	    "The guest sent a DHCP message as a relay (giaddr is set, or a relay message of DHCPv6). The port "
	    "answers only the guest.");

// The message lies wholly in the first buffer. NULL: it does not, or is damaged.
static inline const struct dhcp4_header *boot_input_message(const struct rte_mbuf *m, unsigned l3)
{
	const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, l3);
	unsigned hlen = rte_ipv4_hdr_len(ip), total = rte_be_to_cpu_16(ip->total_length), udp_len;
	const struct rte_udp_hdr *udp;

	if (ip->version_ihl >> 4 != 4 || hlen < sizeof(*ip) || m->data_len < l3 + total ||
	    (ip->fragment_offset & RTE_BE16(RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK)) ||
	    total < hlen + sizeof(*udp) + sizeof(struct dhcp4_header) || ip_fold(ip_sum(ip, hlen)) != 0xffff)
		return NULL;
	udp = rte_pktmbuf_mtod_offset(m, const struct rte_udp_hdr *, l3 + hlen);
	udp_len = rte_be_to_cpu_16(udp->dgram_len);
	if (udp_len < sizeof(*udp) + sizeof(struct dhcp4_header) || udp_len > total - hlen)
		return NULL;
	if (udp->dgram_cksum != 0 && !offload_is_unfinished(m) && rte_ipv4_udptcp_cksum_verify(ip, udp) != 0)
		return NULL;
	return (const struct dhcp4_header *)(udp + 1);
}

static inline bool boot_input_is_guest(const struct rte_mbuf *m, const struct port_fwd *f,
				       const struct rte_ether_addr *mac)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);

	return eth_same(mac, &eth->src_addr) && (rte_is_zero_ether_addr(&f->guest_mac) || eth_same(mac, &f->guest_mac));
}

// A DHCPv6 message that lies wholly in the first buffer and comes from the guest's link-local address.
static inline bool boot_input_message6(const struct rte_mbuf *m, unsigned l3)
{
	const struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv6_hdr *, l3);
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(ip + 1);
	unsigned len = rte_be_to_cpu_16(ip->payload_len), udp_len;

	if (*(const uint8_t *)ip >> 4 != 6 || m->data_len < l3 + sizeof(*ip) + len ||
	    len < sizeof(*udp) + sizeof(struct dhcp6_header) || ip->src_addr[0] != 0xfe ||
	    (ip->src_addr[1] & 0xc0) != 0x80)
		return false;
	udp_len = rte_be_to_cpu_16(udp->dgram_len);
	if (udp_len < sizeof(*udp) + sizeof(struct dhcp6_header) || udp_len > len)
		return false;
	return offload_is_unfinished(m) || (udp->dgram_cksum != 0 && rte_ipv6_udptcp_cksum_verify(ip, udp) == 0);
}

static inline edge_t boot_input_dhcp6(struct rte_mbuf *m, const struct port_fwd *f)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	uint8_t type;

	if (!boot_input_message6(m, meta(m)->l3))
		return drop(m, boot_malformed);
	if (!boot_input_is_guest(m, f, &eth->src_addr))
		return drop(m, boot_wrong_mac);
	type = *rte_pktmbuf_mtod_offset(m, const uint8_t *,
					meta(m)->l3 + sizeof(struct rte_ipv6_hdr) + sizeof(struct rte_udp_hdr));
	if (type == DHCP6_RELAY_FORWARD || type == DHCP6_RELAY_REPLY)
		return drop(m, boot_relayed);
	punt_mark(m, PUNT_BOOT);
	return PUNT;
}

static inline edge_t boot_input_6(struct rte_mbuf *m, const struct port_fwd *f)
{
	const struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv6_hdr *, meta(m)->l3);
	struct nd_packet p;

	if (ip->proto == IPPROTO_UDP)
		return boot_input_dhcp6(m, f);
	if (!nd_parse(m, &p))
		return drop(m, boot_malformed);
	if (!boot_input_is_guest(m, f, p.mac ? p.mac : &p.eth->src_addr))
		return drop(m, boot_wrong_mac);
	punt_mark(m, PUNT_BOOT);
	return PUNT;
}

static inline edge_t boot_input_one(struct rte_mbuf *m)
{
	const struct port_fwd *f = rcu_read(port_fwds[m->port % PORT_MAX]);
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct dhcp4_header *h;

	if (f == NULL)
		return drop(m, boot_malformed);
	if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV6))
		return boot_input_6(m, f);
	h = boot_input_message(m, meta(m)->l3);
	if (h == NULL || !dhcp4_is_request(h))
		return drop(m, boot_malformed);
	if (!boot_input_is_guest(m, f, &h->mac))
		return drop(m, boot_wrong_mac);
	if (h->relay != 0)
		return drop(m, boot_relayed);
	punt_mark(m, PUNT_BOOT);
	return PUNT;
}

static uint16_t boot_input(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, boot_input_one);
}

NODE(boot_input, boot_input, [PUNT] = "punt");
