// SPDX-License-Identifier: Apache-2.0
#include "eth/spread_hash.h"

#include <netinet/in.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "l3/encap.h"
#include "l3/ip_header.h"

#define SEED 0x5ca1ab1e

struct bytes { // what is left of the first segment
	const uint8_t *p;
	unsigned n;
};

static inline bool spread_hash_skip(struct bytes *b, unsigned n)
{
	if (unlikely(b->n < n))
		return false;
	b->p += n;
	b->n -= n;
	return true;
}

// Symmetric steps: a and b may change places.
static inline uint32_t spread_hash_pair32(uint32_t hash, uint32_t a, uint32_t b)
{
	return hash_step(hash, (uint64_t)(a ^ b) << 32 | (uint32_t)(a + b));
}

static inline uint32_t spread_hash_pair64(uint32_t hash, uint64_t a, uint64_t b)
{
	return hash_step(hash_step(hash, a ^ b), a + b);
}

static inline uint32_t spread_hash_ports(uint32_t hash, uint8_t proto, struct bytes l4)
{
	uint32_t both = 0;

	if (has_ports(proto) && l4.n >= 4)
		both = *(const unaligned_uint32_t *)l4.p;
	return hash_finish(hash_step(spread_hash_pair32(hash, both >> 16, both & 0xffff), proto));
}

static uint32_t inner_ip4(struct bytes b)
{
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)b.p;
	uint32_t hash;

	if (unlikely(b.n < sizeof(*ip)))
		return 0;
	hash = spread_hash_pair32(SEED, ip->src_addr, ip->dst_addr);
	if (unlikely((ip->fragment_offset & RTE_BE16(0x3fff)) || !spread_hash_skip(&b, rte_ipv4_hdr_len(ip))))
		return hash_finish(hash_step(hash, ip->next_proto_id));
	return spread_hash_ports(hash, ip->next_proto_id, b);
}

static uint32_t inner_ip6(struct bytes b)
{
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)b.p;
	const unaligned_uint64_t *q = (const unaligned_uint64_t *)ip->src_addr;
	uint32_t hash;

	if (unlikely(!spread_hash_skip(&b, sizeof(*ip))))
		return 0;
	hash = spread_hash_pair64(spread_hash_pair64(SEED, q[0], q[2]), q[1], q[3]);
	return spread_hash_ports(hash, ip->proto, b);
}

static uint32_t by_macs(struct bytes b)
{
	const unaligned_uint32_t *d = (const unaligned_uint32_t *)b.p, *s = (const unaligned_uint32_t *)(b.p + 6);

	if (unlikely(b.n < 12))
		return 0;
	return hash_finish(spread_hash_pair32(spread_hash_pair32(SEED, d[0], s[0]),
					      *(const unaligned_uint16_t *)(b.p + 4),
					      *(const unaligned_uint16_t *)(b.p + 10)));
}

// Skips an Ethernet header and at most one VLAN tag. Returns the EtherType, 0 when the frame is too short.
static inline rte_be16_t spread_hash_ethernet(struct bytes *b)
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)b->p;
	rte_be16_t type;

	if (unlikely(!spread_hash_skip(b, sizeof(*eth))))
		return 0;
	type = eth->ether_type;
	if (unlikely(type == RTE_BE16(RTE_ETHER_TYPE_VLAN))) {
		type = b->n >= 4 ? ((const struct rte_vlan_hdr *)b->p)->eth_proto : 0;
		spread_hash_skip(b, 4);
	}
	return type;
}

static uint32_t inner_frame(struct bytes b)
{
	struct bytes whole = b;

	switch (spread_hash_ethernet(&b)) {
	case RTE_BE16(RTE_ETHER_TYPE_IPV4):
		return inner_ip4(b);
	case RTE_BE16(RTE_ETHER_TYPE_IPV6):
		return inner_ip6(b);
	case RTE_BE16(RTE_ETHER_TYPE_ARP):
		return 0;
	default:
		return by_macs(whole);
	}
}

static uint32_t inner_packet(struct bytes b)
{
	switch (b.n ? b.p[0] >> 4 : 0) {
	case 4:
		return inner_ip4(b);
	case 6:
		return inner_ip6(b);
	default:
		return inner_frame(b);
	}
}

static uint32_t spread_hash_tunnel(struct bytes b, uint8_t proto)
{
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)b.p;
	unsigned encap = encap_by_proto[proto], at;

	if (proto == IPPROTO_UDP) {
		if (!spread_hash_skip(&b, sizeof(*udp)))
			return 0;
		encap = encap_by_udp[rte_be_to_cpu_16(udp->dst_port)];
	}
	switch (encap_inner(encap, b.p, b.n, &at)) {
	case ENCAP_INNER_PACKET:
		return spread_hash_skip(&b, at) ? inner_packet(b) : 0;
	case ENCAP_INNER_FRAME:
		return spread_hash_skip(&b, at) ? inner_frame(b) : 0;
	default:
		return 0;
	}
}

static uint32_t fabric_hash(struct bytes b)
{
	const struct rte_ipv4_hdr *ip4;
	const struct rte_ipv6_hdr *ip6;

	switch (spread_hash_ethernet(&b)) {
	case RTE_BE16(RTE_ETHER_TYPE_IPV4):
		ip4 = (const struct rte_ipv4_hdr *)b.p;
		return b.n >= sizeof(*ip4) && spread_hash_skip(&b, rte_ipv4_hdr_len(ip4))
			       ? spread_hash_tunnel(b, ip4->next_proto_id)
			       : 0;
	case RTE_BE16(RTE_ETHER_TYPE_IPV6):
		ip6 = (const struct rte_ipv6_hdr *)b.p;
		return spread_hash_skip(&b, sizeof(*ip6)) ? spread_hash_tunnel(b, ip6->proto) : 0;
	default:
		return 0;
	}
}

uint32_t spread_hash(const struct rte_mbuf *m, bool fabric)
{
	struct bytes b = {rte_pktmbuf_mtod(m, const uint8_t *), m->data_len};

	return fabric ? fabric_hash(b) : inner_frame(b);
}
