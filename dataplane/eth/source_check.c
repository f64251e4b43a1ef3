// SPDX-License-Identifier: Apache-2.0
#include "eth/source_check.h"

#include <errno.h>
#include <netinet/icmp6.h>
#include <string.h>

#include <rte_arp.h>

#include "base/eth.h"
#include "base/ip6_ext.h"
#include "base/rcu.h"
#include "l3/nexthop.h"
#include "l3/vrf.h"

#define ETHERTYPE_QINQ1 0x9100 // the tag of 802.1Q in 802.1Q before 802.1ad

DROP_REASON(source_mac, "The guest sent with a MAC that is not its own (source_check strict of the port).");
DROP_REASON(source_address,
	    "The guest sent with an IP address that is not in its guest_addresses (source_check strict of the port).");
DROP_REASON(source_unchecked,
	    "The guest sent a frame whose addresses cannot be checked: tagged with a VLAN, of 802.3, "
	    "with headers across several buffers, or neighbour discovery behind an IPv6 extension header "
	    "(source_check strict of the port).");
DROP_REASON(source_router, "The guest sent a router advertisement or a redirect, which only the gateway of its port "
			   "may send (source_check strict).");
DROP_REASON(source_reverse_path, "The route to the packet's source address does not lead to the port that it came in "
				 "by (source_check reverse_path).");

// The IP address that the frame claims to come from; .family 0: it carries none, or is too short for one.
static struct ip_addr source_check_address(const struct rte_mbuf *m, const struct rte_ether_hdr *eth)
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
static bool source_check_always_allowed(const struct ip_addr *a)
{
	return ip_is_unspecified(a) || (a->family == IPV6 && a->bytes[0] == 0xfe && (a->bytes[1] & 0xc0) == 0x80);
}

static bool source_check_own(const struct port_fwd *f, const struct ip_addr *a)
{
	unsigned i;

	for (i = 0; i < f->n_guests; i++)
		if (ip_prefix_covers(&f->guests[i], a))
			return true;
	return a->family == 0 || f->n_guests == 0 || source_check_always_allowed(a); // bridged ports may have none
}

// A frame of 802.3 whose LLC header (802.2) names no protocol with addresses that a receiver would believe: spanning
// tree, for one. SNAP carries any EtherType; 06 and 98 are IP and ARP.
static bool harmless_llc(const struct rte_mbuf *m, const struct rte_ether_hdr *eth)
{
	const uint8_t *llc = (const uint8_t *)(eth + 1);
	unsigned i;

	if (m->data_len < sizeof(*eth) + 3)
		return false;
	for (i = 0; i < 2; i++)
		if ((llc[i] & 0xfe) == 0xaa || (llc[i] & 0xfe) == 0x06 || (llc[i] & 0xfe) == 0x98)
			return false;
	return true;
}

// True if the addresses cannot be checked: receivers strip VLAN tags and 802.3 headers, which are not parsed here, and
// the headers of IP and ARP may lie outside the first buffer.
static bool source_check_unchecked(const struct rte_mbuf *m, const struct rte_ether_hdr *eth, const struct ip_addr *a)
{
	const struct rte_ipv6_hdr *ip6 = (const struct rte_ipv6_hdr *)(eth + 1);

	switch (eth->ether_type) {
	case RTE_BE16(RTE_ETHER_TYPE_IPV6):
		return a->family == 0 ||
		       (ip6->proto == IPPROTO_ICMPV6 && m->data_len < sizeof(*eth) + sizeof(*ip6) + 4);
	case RTE_BE16(RTE_ETHER_TYPE_IPV4):
	case RTE_BE16(RTE_ETHER_TYPE_ARP):
		return a->family == 0;
	case RTE_BE16(RTE_ETHER_TYPE_VLAN):
	case RTE_BE16(RTE_ETHER_TYPE_QINQ):
	case RTE_BE16(ETHERTYPE_QINQ1):
		return true;
	default:
		return rte_be_to_cpu_16(eth->ether_type) < RTE_ETHER_TYPE_IPV4 && !harmless_llc(m, eth);
	}
}

static bool is_nd_type(uint8_t type)
{
	return type >= ND_ROUTER_SOLICIT && type <= ND_REDIRECT;
}

// Whether neighbour discovery lies behind an extension header, where hosts accept it and nobody checks its claims (RFC
// 6980, CVE-2021-27853). A chain that cannot be followed to its end may hide it too (RFC 7112).
static bool hides_nd(const struct rte_mbuf *m, const struct rte_ether_hdr *eth)
{
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)(eth + 1);
	struct ip6_walk e = {.at = sizeof(*eth) + sizeof(*ip), .proto = ip->proto};
	unsigned end = e.at + rte_be_to_cpu_16(ip->payload_len); // padding behind it is not checked

	if (eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV6) || ip->proto == IPPROTO_ICMPV6)
		return false;
	end = RTE_MIN(end, m->data_len);
	if (!ip6_walk_extensions(m, end, &e))
		return true;
	if (e.proto != IPPROTO_ICMPV6 || e.later) // the first fragment was checked
		return false;
	return end <= e.at || is_nd_type(*rte_pktmbuf_mtod_offset(m, const uint8_t *, e.at));
}

static void source_check_eui64(const struct rte_ether_addr *mac,
			       uint8_t *out) // the link-local address made from it (RFC 4291, A)
{
	const uint8_t *b = mac->addr_bytes;

	memcpy(out, (const uint8_t[16]){0xfe, 0x80, [8] = b[0] ^ 2, b[1], b[2], 0xff, 0xfe, b[3], b[4], b[5]}, 16);
}

// The gateway's addresses, with the link-local one that it answers for.
static bool source_check_is_gateway(const struct port_fwd *f, const struct ip_addr *a)
{
	uint8_t local[16];
	unsigned i;

	if (a->family == IPV4) {
		for (i = 0; i < f->n_ip4; i++)
			if (ip4_be(a) == f->ip4[i])
				return true;
		return false;
	}
	for (i = 0; i < f->n_ip6; i++)
		if (memcmp(a->bytes, f->ip6[i], 16) == 0)
			return true;
	source_check_eui64(&f->mac, local);
	return a->family == IPV6 && memcmp(a->bytes, local, 16) == 0;
}

// Whether target is an address of the guest, or a link-local address that must be its own: the one that it sends from,
// or the one made from its MAC.
static bool source_check_own_target(const struct port_fwd *f, const struct ip_addr *target,
				    const struct ip_addr *source)
{
	uint8_t local[16];

	if (source_check_is_gateway(f, target))
		return false;
	if (!source_check_always_allowed(target) || f->n_guests == 0)
		return source_check_own(f, target);
	source_check_eui64(&f->guest_mac, local);
	return ip_addr_eq(target, source) || memcmp(target->bytes, local, 16) == 0;
}

// Whether ARP claims only the sender's MAC, and a neighbour advertisement only a target of the guest. Advertisements of
// routers, and redirects, are the gateway's where there is one.
static const struct drop_reason *source_check_claim(const struct rte_mbuf *m, const struct rte_ether_hdr *eth,
						    const struct port_fwd *f, const struct ip_addr *source)
{
	const struct rte_arp_hdr *arp = (const struct rte_arp_hdr *)(eth + 1);
	const uint8_t *nd = (const uint8_t *)(eth + 1) + sizeof(struct rte_ipv6_hdr);
	struct ip_addr target;

	if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP))
		return eth_same(&arp->arp_data.arp_sha, &f->guest_mac) ? NULL : &drop_source_mac;
	if (eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV6) || !eth_is_nd(m, sizeof(*eth)))
		return NULL;
	if (f->vrf != UINT16_MAX && (nd[0] == ND_ROUTER_ADVERT || nd[0] == ND_REDIRECT))
		return &drop_source_router;
	if (nd[0] != ND_NEIGHBOR_ADVERT)
		return NULL;
	if (m->data_len < sizeof(*eth) + sizeof(struct rte_ipv6_hdr) + 24)
		return &drop_source_unchecked;
	target = ip6_addr(nd + 8);
	return source_check_own_target(f, &target, source) ? NULL : &drop_source_address;
}

// Most packets: from the guest's first address, and no neighbour discovery.
static inline bool source_check_plain(const struct rte_mbuf *m, const struct rte_ether_hdr *eth,
				      const struct port_fwd *f)
{
	const struct rte_ipv4_hdr *ip4 = (const struct rte_ipv4_hdr *)(eth + 1);
	const struct rte_ipv6_hdr *ip6 = (const struct rte_ipv6_hdr *)(eth + 1);
	const unaligned_uint64_t *src = (const unaligned_uint64_t *)ip6->src_addr,
				 *guest = (const unaligned_uint64_t *)f->guest6;

	if (unlikely(!eth_same(&eth->src_addr, &f->guest_mac) || m->data_len < sizeof(*eth) + sizeof(*ip6)))
		return false;
	if (likely(eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4)))
		return ip4->src_addr == f->guest4;
	return eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV6) && src[0] == guest[0] && src[1] == guest[1] &&
	       (ip6->proto == IPPROTO_TCP || ip6->proto == IPPROTO_UDP);
}

static const struct drop_reason *source_check_strict(const struct rte_mbuf *m, const struct rte_ether_hdr *eth,
						     const struct port_fwd *f, const struct ip_addr *a)
{
	if (!eth_same(&eth->src_addr, &f->guest_mac))
		return &drop_source_mac;
	if (source_check_unchecked(m, eth, a))
		return &drop_source_unchecked;
	if (!source_check_own(f, a) || source_check_is_gateway(f, a))
		return &drop_source_address;
	if (hides_nd(m, eth))
		return &drop_source_unchecked;
	return source_check_claim(m, eth, f, a);
}

static const struct drop_reason *source_check_reverse_path(uint16_t port, const struct port_fwd *f,
							   const struct ip_addr *a)
{
	const struct vrf_fibs *fibs = &vrf_fibs[f->vrf];
	const struct nexthop *nh;

	if (a->family == 0 || source_check_always_allowed(a))
		return NULL;
	nh = rcu_read(nexthop_table[fib_lookup(a->family == IPV4 ? rcu_read(fibs->fib4) : rcu_read(fibs->fib6), a)]);
	return nh && nh->kind == NH_PORT && nh->port == port ? NULL : &drop_source_reverse_path;
}

static __rte_noinline const struct drop_reason *source_check_any(const struct rte_mbuf *m,
								 const struct rte_ether_hdr *eth,
								 const struct port_fwd *f)
{
	struct ip_addr a = source_check_address(m, eth);

	return f->source_check == SOURCE_CHECK_STRICT ? source_check_strict(m, eth, f, &a)
						      : source_check_reverse_path(m->port, f, &a);
}

const struct drop_reason *source_check(const struct rte_mbuf *m, const struct port_fwd *f)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);

	if (likely(f->source_check == SOURCE_CHECK_STRICT && source_check_plain(m, eth, f)))
		return NULL;
	return source_check_any(m, eth, f);
}

bool source_check_claims_gateway(const struct rte_mbuf *m, const struct port_fwd *f)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const uint8_t *nd = (const uint8_t *)(eth + 1) + sizeof(struct rte_ipv6_hdr);
	struct ip_addr a;

	if (eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_ARP) &&
	    (eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV6) || !eth_is_nd(m, sizeof(*eth))))
		return false;
	a = source_check_address(m, eth);
	if (source_check_is_gateway(f, &a))
		return true;
	if (a.family != IPV6 || nd[0] != ND_NEIGHBOR_ADVERT ||
	    m->data_len < sizeof(*eth) + sizeof(struct rte_ipv6_hdr) + 24)
		return false;
	a = ip6_addr(nd + 8);
	return source_check_is_gateway(f, &a);
}

// --- Ports. ---

PORT_SETTINGS(source_check_config)

enum source_check source_check_in_effect(const struct port_config *cfg)
{
	enum source_check check = source_check_config(cfg)->check;

	if (check != SOURCE_CHECK_DEFAULT)
		return check;
	return cfg->n_guests && !rte_is_zero_ether_addr(&cfg->guest_mac) ? SOURCE_CHECK_STRICT : SOURCE_CHECK_NONE;
}

static int source_check_port(const struct port *old, const struct port_config *cfg, struct error *err)
{
	enum source_check check = source_check_in_effect(cfg);

	if (check == SOURCE_CHECK_NONE)
		return 0;
	if (cfg->role != PORT_TENANT)
		return error_set(err, EINVAL, "port.source_check",
				 check == SOURCE_CHECK_STRICT ? "strict" : "reverse_path", "role tenant",
				 "only a tenant port has a guest to check");
	if (check == SOURCE_CHECK_REVERSE_PATH && cfg->vrf == UINT16_MAX)
		return error_set(err, EINVAL, "port.source_check", "reverse_path", "a VRF, or strict",
				 "looks up a route, which needs a VRF");
	if (check == SOURCE_CHECK_STRICT && rte_is_zero_ether_addr(&cfg->guest_mac))
		return error_set(err, EINVAL, "port.source_check", "strict", "guest_mac",
				 "compares with the guest's MAC, which is not set");
	return 0;
}

static bool source_check_has_gateway(const struct port_config *c, const struct ip_addr *a)
{
	unsigned i;

	for (i = 0; i < c->n_gateways; i++)
		if (ip_addr_eq(&c->gateways[i].addr, a))
			return true;
	return false;
}

static void source_check_forward(const struct port_config *cfg, struct port_fwd *out)
{
	unsigned i;

	out->source_check = (uint8_t)source_check_in_effect(cfg);
	for (i = cfg->n_guests; i-- > 0;) { // the first one stays
		const struct ip_addr *a = &cfg->guests[i].addr;

		if (cfg->guests[i].len != ip_bits(a->family) || source_check_has_gateway(cfg, a))
			continue;
		if (a->family == IPV4)
			out->guest4 = ip4_be(a);
		else
			memcpy(out->guest6, a->bytes, sizeof(out->guest6));
	}
}

static struct port_listener source_check_listener = {.check = source_check_port, .forward = source_check_forward};

RTE_INIT(source_check_init)
{
	port_listen(&source_check_listener);
}
