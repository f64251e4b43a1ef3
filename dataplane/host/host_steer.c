// SPDX-License-Identifier: Apache-2.0
// host_steer: packets that the host-path worker polls from a fabric port. It keeps packets to steered addresses that
// are not tunnel packets, ARP, ND and multicast; the others go to the forwarding workers.
// Reads: port.  Next: fabric_input, spread.
#include <netinet/in.h>

#include <rte_udp.h>

#include "base/eth.h"
#include "base/rcu.h"
#include "graph/node.h"
#include "host/steer.h"
#include "l3/encap.h"
#include "l3/ip_header.h"

enum { INPUT = 1, REST };

// Returns the offset of the IP header; *type is the Ethernet type behind the tag, if there is one.
static inline unsigned network_header(const struct rte_mbuf *m, rte_be16_t *type)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_vlan_hdr *vlan = (const struct rte_vlan_hdr *)(eth + 1);

	*type = eth->ether_type;
	if (*type != RTE_BE16(RTE_ETHER_TYPE_VLAN))
		return sizeof(*eth);
	*type = vlan->eth_proto;
	return sizeof(*eth) + sizeof(*vlan);
}

// Whether fabric_input takes the packet for a tunnel packet. ports: offset of the UDP header, 0 = the packet has none.
static inline bool host_steer_is_tunnel(const struct rte_mbuf *m, uint8_t proto, unsigned ports)
{
	const struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(m, const struct rte_udp_hdr *, ports);

	if (proto != IPPROTO_UDP || ports == 0)
		return encap_by_proto[proto];
	return m->data_len < ports + sizeof(*udp) || encap_by_udp[rte_be_to_cpu_16(udp->dst_port)];
}

static inline struct steer_count *host_steer_steered4(const struct rte_mbuf *m, const struct steer_table *t,
						      unsigned l3)
{
	const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, l3);
	bool later = ip->fragment_offset & RTE_BE16(0x1fff);
	struct ip_addr dst;

	if (m->data_len < l3 + sizeof(*ip) ||
	    host_steer_is_tunnel(m, ip->next_proto_id, later ? 0 : l3 + rte_ipv4_hdr_len(ip)))
		return NULL;
	dst = ip4_addr(ip->dst_addr);
	return steer_find(t, &dst);
}

static inline struct steer_count *host_steer_steered6(const struct rte_mbuf *m, const struct steer_table *t,
						      unsigned l3)
{
	const struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv6_hdr *, l3);
	struct ip_addr dst;

	if (m->data_len < l3 + sizeof(*ip) || host_steer_is_tunnel(m, ip->proto, l3 + (unsigned)sizeof(*ip)))
		return NULL;
	dst = ip6_addr(ip->dst_addr);
	return steer_find(t, &dst);
}

static inline edge_t steer_one(struct rte_mbuf *m)
{
	const struct steer_table *t = rcu_read(steer_tables[m->port % PORT_MAX]);
	struct steer_count *count = NULL;
	rte_be16_t type;
	unsigned l3;

	if (t == NULL || m->data_len < sizeof(struct rte_ether_hdr) + sizeof(struct rte_vlan_hdr))
		// A short frame goes to fabric_input, which drops it. No table: the operator assigned the queue.
		return t ? INPUT : REST;
	l3 = network_header(m, &type);
	if (type == RTE_BE16(RTE_ETHER_TYPE_ARP) ||
	    rte_is_multicast_ether_addr(rte_pktmbuf_mtod(m, const struct rte_ether_addr *)))
		return INPUT;
	if (type == RTE_BE16(RTE_ETHER_TYPE_IPV4))
		count = host_steer_steered4(m, t, l3);
	else if (type == RTE_BE16(RTE_ETHER_TYPE_IPV6))
		count = host_steer_steered6(m, t, l3);
	else
		return REST;
	if (count == NULL)
		return type == RTE_BE16(RTE_ETHER_TYPE_IPV6) && eth_is_nd(m, l3) ? INPUT : REST;
	count->packets++;
	return INPUT;
}

static uint16_t host_steer(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, steer_one);
}

NODE(host_steer, host_steer, [INPUT] = "fabric_input", [REST] = "spread");
