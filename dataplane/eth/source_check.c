// SPDX-License-Identifier: Apache-2.0
#include "eth/source_check.h"

#include <netinet/icmp6.h>

#include <rte_arp.h>

#include "base/eth.h"
#include "base/rcu.h"
#include "l3/nexthop.h"
#include "l3/vrf.h"

DROP_REASON(source_mac, "The guest sent with a MAC that is not its own (source_check strict of the port).");
DROP_REASON(source_address,
	    "The guest sent with an IP address that is not in its guest_addresses (source_check strict of the port).");
DROP_REASON(source_reverse_path,
	    "The route to the packet's source address does not lead to the port that it came in by (source_check reverse_path).");

// The sender's IP address; .family 0: the frame has none.
static struct ip_addr source_check_source_of(const struct rte_mbuf *m, const struct rte_ether_hdr *eth)
{
	const struct rte_arp_hdr *arp = (const struct rte_arp_hdr *)(eth + 1);
	const struct rte_ipv4_hdr *ip4 = (const struct rte_ipv4_hdr *)(eth + 1);
	const struct rte_ipv6_hdr *ip6 = (const struct rte_ipv6_hdr *)(eth + 1);
	unsigned avail = m->data_len - (unsigned)sizeof(*eth);

	switch (eth->ether_type) {
	case RTE_BE16(RTE_ETHER_TYPE_IPV4):
		return avail >= sizeof(*ip4) ? ip4_addr(ip4->src_addr) : (struct ip_addr){0};
	case RTE_BE16(RTE_ETHER_TYPE_IPV6):
		return avail >= sizeof(*ip6) ? ip6_addr(ip6->src_addr) : (struct ip_addr){0};
	case RTE_BE16(RTE_ETHER_TYPE_ARP):
		return avail >= sizeof(*arp) ? ip4_addr(arp->arp_data.arp_sip) : (struct ip_addr){0};
	default:
		return (struct ip_addr){0};
	}
}

// A guest without an address sends from the unspecified one (RFC 5227 probes, RFC 4862), and IPv6 uses link-local ones
// on each link.
static bool always_allowed(const struct ip_addr *a)
{
	return ip_is_unspecified(a) || (a->family == IPV6 && a->bytes[0] == 0xfe && (a->bytes[1] & 0xc0) == 0x80);
}

static bool source_check_own(const struct port_fwd *f, const struct ip_addr *a)
{
	unsigned i;

	for (i = 0; i < f->n_guests; i++)
		if (ip_prefix_covers(&f->guests[i], a))
			return true;
	return a->family == 0 || f->n_guests == 0 || always_allowed(a); // bridged ports may have none
}

// Whether ARP and ND claim only the guest's addresses: the sender's MAC, and the target of a neighbour advertisement.
static bool claims_own(const struct rte_mbuf *m, const struct rte_ether_hdr *eth, const struct port_fwd *f)
{
	const struct rte_arp_hdr *arp = (const struct rte_arp_hdr *)(eth + 1);
	const uint8_t *nd = (const uint8_t *)(eth + 1) + sizeof(struct rte_ipv6_hdr);
	struct ip_addr target;

	if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP))
		return m->data_len < sizeof(*eth) + sizeof(*arp) || eth_same(&arp->arp_data.arp_sha, &f->guest_mac);
	if (eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV6) || !eth_is_nd(m, sizeof(*eth)) || nd[0] != ND_NEIGHBOR_ADVERT ||
	    m->data_len < sizeof(*eth) + sizeof(struct rte_ipv6_hdr) + 24)
		return true;
	target = ip6_addr(nd + 8);
	return source_check_own(f, &target);
}

static const struct drop_reason *source_check_strict(const struct rte_mbuf *m, const struct rte_ether_hdr *eth,
						     const struct port_fwd *f, const struct ip_addr *a)
{
	if (!eth_same(&eth->src_addr, &f->guest_mac))
		return &drop_source_mac;
	if (!source_check_own(f, a))
		return &drop_source_address;
	return claims_own(m, eth, f)                             ? NULL
	       : eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP) ? &drop_source_mac
								 : &drop_source_address;
}

static const struct drop_reason *reverse_path(uint16_t port, const struct port_fwd *f, const struct ip_addr *a)
{
	const struct vrf_fibs *fibs = &vrf_fibs[f->vrf];
	const struct nexthop *nh;

	if (a->family == 0 || always_allowed(a))
		return NULL;
	nh = rcu_read(nexthop_table[fib_lookup(a->family == IPV4 ? rcu_read(fibs->fib4) : rcu_read(fibs->fib6), a)]);
	return nh && nh->kind == NH_PORT && nh->port == port ? NULL : &drop_source_reverse_path;
}

const struct drop_reason *source_check(const struct rte_mbuf *m, const struct port_fwd *f)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	struct ip_addr a = source_check_source_of(m, eth);

	return f->source_check == SOURCE_CHECK_STRICT ? source_check_strict(m, eth, f, &a) : reverse_path(m->port, f, &a);
}
