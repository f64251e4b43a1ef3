// SPDX-License-Identifier: Apache-2.0
#include "eth/source_check.h"

#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <string.h>

#include <rte_arp.h>
#include <rte_udp.h>

#include "base/eth.h"
#include "base/ip6_ext.h"
#include "base/rcu.h"
#include "l3/nexthop.h"
#include "l3/vrf.h"

#define ETHERTYPE_QINQ1 0x9100 // the tag of 802.1Q in 802.1Q before 802.1ad

DROP_REASON(source_mac,
	    "The guest sent a frame, an ARP or ND message or a DHCPv4 request with a MAC that is not its own "
	    "(source_check strict of the port).");
DROP_REASON(source_address,
	    "The guest sent with an IP address that is not in its guest_addresses (source_check strict of the port).");
DROP_REASON(
	source_unchecked,
	"The guest sent what source_check strict cannot check: a frame with a VLAN tag or of 802.3 with SNAP, headers "
	"that span several buffers, a DHCPv4 request or an option of neighbour discovery that is cut short, or "
	"neighbour discovery behind an IPv6 extension header.");
DROP_REASON(source_router, "The guest sent a router advertisement or a redirect (RFC 6105), but its port has no router "
			   "behind it. If it has one: `corelane port set NAME --allow-router`.");
DROP_REASON(source_dhcp_server,
	    "The guest sent a message of a DHCP server or relay (RFC 7610), but its port has none behind it. If it has "
	    "one: `corelane port set NAME --allow-dhcp-server`.");
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
	return a->family == 0 || f->n_guests == 0 || source_check_always_allowed(a); // only the MAC may be known
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

// Finds the transport header of a packet, and where the packet or its first buffer ends. Returns false if the chain of
// headers cannot be followed to it. Bytes behind the payload of an IPv6 packet do not count, because a later fragment
// may have other headers there. In IPv4, ports and types are in the fragment at offset 0 or nowhere.
static bool source_check_transport(const struct rte_mbuf *m, const struct rte_ether_hdr *eth, struct ip6_walk *e,
				   unsigned *end)
{
	const struct rte_ipv4_hdr *ip4 = (const struct rte_ipv4_hdr *)(eth + 1);
	const struct rte_ipv6_hdr *ip6 = (const struct rte_ipv6_hdr *)(eth + 1);

	if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4)) {
		e->at = (unsigned)sizeof(*eth) + (ip4->version_ihl & 15) * 4u;
		e->proto = ip4->next_proto_id;
		e->later = (ip4->fragment_offset & RTE_BE16(RTE_IPV4_HDR_OFFSET_MASK)) != 0;
		*end = m->data_len;
		return e->at >= sizeof(*eth) + sizeof(*ip4);
	}
	e->at = (unsigned)(sizeof(*eth) + sizeof(*ip6));
	e->proto = ip6->proto;
	*end = RTE_MIN(e->at + rte_be_to_cpu_16(ip6->payload_len), (unsigned)m->data_len);
	return ip6_walk_extensions(m, *end, e);
}

// Whether the ports are those of a message to a DHCP client (RFC 2131, RFC 8415), or of one between servers and relays.
// Clients accept an answer from any port, so the destination counts as well.
static inline bool source_check_dhcp_ports(const unaligned_uint16_t *ports, bool v6)
{
	return v6 ? ports[0] == RTE_BE16(547) || ports[1] == RTE_BE16(546)
		  : ports[0] == RTE_BE16(67) || ports[1] == RTE_BE16(68);
}

// The same, or one to a server. Fast: true for some other packets, too.
static inline bool source_check_near_dhcp(const unaligned_uint16_t *ports, bool v6)
{
	return v6 ? source_check_dhcp_ports(ports, v6)
		  : ports[0] == RTE_BE16(67) || (ports[1] & RTE_BE16(0xfff8)) == RTE_BE16(64);
}

struct bootp { // what of a DHCP message says who sends it (RFC 2131, section 2)
	uint8_t op, htype, hlen, hops;
	unaligned_uint32_t xid;
	unaligned_uint16_t secs, flags;
	unaligned_uint32_t client, yours, server, relay;
	struct rte_ether_addr mac;
};
#define BOOTP_REQUEST 1

// Servers give the address of the MAC in the message to its sender, and take it back from it.
static const struct drop_reason *source_check_dhcp(const struct rte_mbuf *m, unsigned at, const struct port_fwd *f,
						   bool v6)
{
	const unaligned_uint16_t *ports = rte_pktmbuf_mtod_offset(m, const unaligned_uint16_t *, at);
	const struct bootp *b = (const struct bootp *)((const uint8_t *)ports + sizeof(struct rte_udp_hdr));

	if (f->allow_dhcp_server)
		return NULL;
	if (source_check_dhcp_ports(ports, v6))
		return &drop_source_dhcp_server;
	if (v6 || ports[1] != RTE_BE16(67))
		return NULL;
	if (m->data_len < at + sizeof(struct rte_udp_hdr) + sizeof(*b))
		return &drop_source_unchecked;
	if (b->op != BOOTP_REQUEST || b->relay != 0)
		return &drop_source_dhcp_server;
	return eth_same(&b->mac, &f->guest_mac) ? NULL : &drop_source_mac;
}

// Checks messages by which hosts find their router or their addresses (RFC 6105, RFC 7113, RFC 7610). A packet whose
// first fragment does not show its transport header is dropped (RFC 7112); later fragments are useless without the
// first. Hosts accept neighbour discovery behind an extension header, where nobody checks its claims, so it is dropped
// (RFC 6980, CVE-2021-27853).
static const struct drop_reason *source_check_services(const struct rte_mbuf *m, const struct rte_ether_hdr *eth,
						       const struct port_fwd *f)
{
	bool v6 = eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV6);
	struct ip6_walk e = {};
	const uint8_t *l4;
	unsigned end;

	if (!v6 && eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV4))
		return NULL;
	if (!source_check_transport(m, eth, &e, &end))
		return &drop_source_unchecked;
	if (e.later)
		return NULL;
	if ((e.proto == IPPROTO_UDP && end < e.at + 4) ||
	    ((e.proto == IPPROTO_ICMP || e.proto == IPPROTO_ICMPV6) && end <= e.at))
		return &drop_source_unchecked;
	l4 = rte_pktmbuf_mtod_offset(m, const uint8_t *, e.at);
	switch (e.proto) {
	case IPPROTO_UDP:
		return source_check_dhcp(m, e.at, f, v6);
	case IPPROTO_ICMP:
		return !v6 && (l4[0] == ICMP_REDIRECT || l4[0] == ICMP_ROUTERADVERT) && !f->allow_router
			       ? &drop_source_router
			       : NULL;
	case IPPROTO_ICMPV6:
		return v6 && e.at > sizeof(*eth) + sizeof(struct rte_ipv6_hdr) && is_nd_type(l4[0])
			       ? &drop_source_unchecked
			       : NULL;
	default:
		return NULL;
	}
}

// Makes the link-local address of a MAC address (RFC 4291, appendix A).
static void source_check_eui64(const struct rte_ether_addr *mac, uint8_t *out)
{
	const uint8_t *b = mac->addr_bytes;

	memcpy(out, (const uint8_t[16]){0xfe, 0x80, [8] = b[0] ^ 2, b[1], b[2], 0xff, 0xfe, b[3], b[4], b[5]}, 16);
}

// Whether an address is one of the gateway, its link-local one included.
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

// Whether the link-layer addresses in the options of a solicitation or neighbour advertisement are the guest's MAC.
static const struct drop_reason *source_check_nd_options(const struct rte_mbuf *m, unsigned at,
							 const struct port_fwd *f)
{
	const uint8_t *o;

	for (; at + 2 <= m->data_len; at += o[1] * 8u) {
		o = rte_pktmbuf_mtod_offset(m, const uint8_t *, at);
		if (o[1] == 0 || at + o[1] * 8u > m->data_len)
			return &drop_source_unchecked;
		if ((o[0] == ND_OPT_SOURCE_LINKADDR || o[0] == ND_OPT_TARGET_LINKADDR) &&
		    !eth_same((const struct rte_ether_addr *)(o + 2), &f->guest_mac))
			return &drop_source_mac;
	}
	return m->nb_segs > 1 ? &drop_source_unchecked : NULL; // more options may be in the next buffer
}

// Whether ARP claims only the sender's MAC, and neighbour discovery only that and a target of the guest.
static const struct drop_reason *source_check_claim(const struct rte_mbuf *m, const struct rte_ether_hdr *eth,
						    const struct port_fwd *f, const struct ip_addr *source)
{
	const struct rte_arp_hdr *arp = (const struct rte_arp_hdr *)(eth + 1);
	unsigned at = (unsigned)(sizeof(*eth) + sizeof(struct rte_ipv6_hdr));
	const uint8_t *nd = (const uint8_t *)eth + at;
	struct ip_addr target;

	if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP))
		return eth_same(&arp->arp_data.arp_sha, &f->guest_mac) ? NULL : &drop_source_mac;
	if (eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV6) || !eth_is_nd(m, sizeof(*eth)))
		return NULL;
	if ((nd[0] == ND_ROUTER_ADVERT || nd[0] == ND_REDIRECT) && !f->allow_router)
		return &drop_source_router;
	if (nd[0] == ND_ROUTER_SOLICIT)
		return source_check_nd_options(m, at + 8, f);
	if (nd[0] != ND_NEIGHBOR_SOLICIT && nd[0] != ND_NEIGHBOR_ADVERT)
		return NULL;
	if (m->data_len < at + 24)
		return &drop_source_unchecked;
	target = ip6_addr(nd + 8);
	if (nd[0] == ND_NEIGHBOR_ADVERT && !source_check_own_target(f, &target, source))
		return &drop_source_address;
	return source_check_nd_options(m, at + 24, f);
}

// The two bytes behind the source MAC, in the word that begins with it.
#define TYPE_IN_WORD(type) ((uint64_t)(type) << (RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN ? 48 : 0))
#define TYPES_DIFFER TYPE_IN_WORD(RTE_BE16(RTE_ETHER_TYPE_IPV4) ^ RTE_BE16(RTE_ETHER_TYPE_IPV6))

// Accepts most packets in few instructions: those from the guest's first address that have no port of DHCP and are,
// in IPv4, neither ICMP nor with options, and in IPv6 TCP or UDP without extension headers.
static inline bool source_check_plain(const struct rte_mbuf *m, const struct rte_ether_hdr *eth,
				      const struct port_fwd *f)
{
	const struct rte_ipv4_hdr *ip4 = (const struct rte_ipv4_hdr *)(eth + 1);
	const struct rte_ipv6_hdr *ip6 = (const struct rte_ipv6_hdr *)(eth + 1);
	const unaligned_uint64_t *src = (const unaligned_uint64_t *)ip6->src_addr,
				 *guest = (const unaligned_uint64_t *)f->guest6;
	uint64_t sender = *(const unaligned_uint64_t *)&eth->src_addr ^ f->guest_ip4; // and the type

	if (unlikely(m->data_len < sizeof(*eth) + sizeof(*ip6)))
		return false;
	if (likely(sender == 0))
		return ip4->src_addr == f->guest4 && ip4->version_ihl == RTE_IPV4_VHL_DEF &&
		       ip4->next_proto_id != IPPROTO_ICMP &&
		       !source_check_near_dhcp((const unaligned_uint16_t *)(ip4 + 1), false);
	return sender == TYPES_DIFFER && src[0] == guest[0] && src[1] == guest[1] &&
	       m->data_len >= sizeof(*eth) + sizeof(*ip6) + 4 &&
	       (ip6->proto == IPPROTO_TCP || ip6->proto == IPPROTO_UDP) &&
	       !source_check_near_dhcp((const unaligned_uint16_t *)(ip6 + 1), true);
}

static const struct drop_reason *source_check_strict(const struct rte_mbuf *m, const struct rte_ether_hdr *eth,
						     const struct port_fwd *f, const struct ip_addr *a)
{
	const struct drop_reason *why;

	if (!eth_same(&eth->src_addr, &f->guest_mac))
		return &drop_source_mac;
	if (source_check_unchecked(m, eth, a))
		return &drop_source_unchecked;
	if (!source_check_own(f, a) || source_check_is_gateway(f, a))
		return &drop_source_address;
	why = source_check_services(m, eth, f);
	return why ? why : source_check_claim(m, eth, f, a);
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
	memcpy(&out->guest_ip4, &cfg->guest_mac, sizeof(cfg->guest_mac));
	if (out->guest_ip4)
		out->guest_ip4 |= TYPE_IN_WORD(RTE_BE16(RTE_ETHER_TYPE_IPV4));
	out->allow_router = source_check_config(cfg)->allow_router;
	out->allow_dhcp_server = source_check_config(cfg)->allow_dhcp_server;
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
