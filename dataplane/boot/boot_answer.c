// SPDX-License-Identifier: Apache-2.0
// Requests that boot_input has passed to the master thread, and the frames of their answers. An answer goes to the port
// that the request came in by, whatever its addresses are, and passes no other node than port_tx.
#include <string.h>

#include "base/ip_sum.h"
#include "boot/boot_private.h"
#include "neighbor/answer.h"
#include "neighbor/frame.h"

DROP_REASON(boot_late,
	    "What a guest asked for when it booted reached the control plane after its port had been removed "
	    "or had been told not to answer.");

void boot_send4(const struct port *p, const struct rte_ether_addr *mac, rte_be32_t src, rte_be32_t dst,
		const void *message, unsigned len)
{
	static const struct rte_ether_addr all = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
	unsigned udp_len = (unsigned)sizeof(struct rte_udp_hdr) + len;
	struct rte_ipv4_hdr *ip;
	struct rte_udp_hdr *udp;
	struct rte_mbuf *m = frame_new(p, dst == UINT32_MAX ? &all : mac, RTE_ETHER_TYPE_IPV4,
				       (unsigned)sizeof(*ip) + udp_len, (void **)&ip);

	if (m == NULL)
		return; // the guest asks again
	udp = (struct rte_udp_hdr *)(ip + 1);
	*ip = (struct rte_ipv4_hdr){.version_ihl = RTE_IPV4_VHL_DEF,
				    .total_length = rte_cpu_to_be_16((uint16_t)(sizeof(*ip) + udp_len)),
				    .time_to_live = 64,
				    .next_proto_id = IPPROTO_UDP,
				    .src_addr = src,
				    .dst_addr = dst};
	ip4_checksum_set(ip);
	*udp = (struct rte_udp_hdr){.src_port = RTE_BE16(DHCP4_SERVER_PORT),
				    .dst_port = RTE_BE16(DHCP4_CLIENT_PORT),
				    .dgram_len = rte_cpu_to_be_16((uint16_t)udp_len)};
	memcpy(udp + 1, message, len);
	udp->dgram_cksum = rte_ipv4_udptcp_cksum(ip, udp);
	frame_send(p, m);
}

void boot_send6(const struct port *p, const struct rte_ether_addr *mac, const uint8_t dst[16], const void *message,
		unsigned len)
{
	unsigned udp_len = (unsigned)sizeof(struct rte_udp_hdr) + len;
	struct rte_ipv6_hdr *ip;
	struct rte_udp_hdr *udp;
	struct rte_mbuf *m = frame_new(p, mac, RTE_ETHER_TYPE_IPV6, (unsigned)sizeof(*ip) + udp_len, (void **)&ip);

	if (m == NULL)
		return; // the guest asks again
	udp = (struct rte_udp_hdr *)(ip + 1);
	*ip = (struct rte_ipv6_hdr){.vtc_flow = RTE_BE32(6u << 28),
				    .payload_len = rte_cpu_to_be_16((uint16_t)udp_len),
				    .proto = IPPROTO_UDP,
				    .hop_limits = 64};
	answer_link_local(&port_fwds[p->id]->mac, ip->src_addr);
	memcpy(ip->dst_addr, dst, sizeof(ip->dst_addr));
	*udp = (struct rte_udp_hdr){.src_port = RTE_BE16(DHCP6_SERVER_PORT),
				    .dst_port = RTE_BE16(DHCP6_CLIENT_PORT),
				    .dgram_len = rte_cpu_to_be_16((uint16_t)udp_len)};
	memcpy(udp + 1, message, len);
	udp->dgram_cksum = rte_ipv6_udptcp_cksum(ip, udp);
	frame_send(p, m);
}

static const struct drop_reason *boot_answer6(const struct port *p, struct rte_mbuf *m)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv6_hdr *, meta(m)->l3);
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(ip + 1);

	if (ip->proto == IPPROTO_UDP && boot_config(&p->cfg)->dhcp6)
		return dhcp6_receive(p, &eth->src_addr, ip->src_addr, (const uint8_t *)(udp + 1),
				     rte_be_to_cpu_16(udp->dgram_len) - (unsigned)sizeof(*udp));
	if (ip->proto == IPPROTO_UDP || !boot_config(&p->cfg)->advert)
		return &drop_boot_late;
	advert_receive(p, m);
	return NULL;
}

static const struct drop_reason *boot_answer(struct rte_mbuf *m)
{
	const struct port *p = port_get(m->port);
	const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, meta(m)->l3);
	const struct rte_udp_hdr *udp = RTE_PTR_ADD(ip, rte_ipv4_hdr_len(ip));

	if (p != NULL && ip->version_ihl >> 4 == 6)
		return boot_answer6(p, m);
	if (p == NULL || !boot_config(&p->cfg)->dhcp4)
		return &drop_boot_late;
	return dhcp4_receive(p, (const uint8_t *)(udp + 1), rte_be_to_cpu_16(udp->dgram_len) - (unsigned)sizeof(*udp));
}

void boot_receive(struct rte_mbuf *m)
{
	const struct drop_reason *refused = boot_answer(m);

	if (refused) {
		drop_as(m, refused);
		drop_packets(&m, 1);
	} else {
		rte_pktmbuf_free(m);
	}
}
