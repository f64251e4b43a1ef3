// SPDX-License-Identifier: Apache-2.0
// Address translation of packets: a fast path for plain TCP and UDP, and a general one for everything else.
#include "flow/translate.h"

#include <netinet/in.h>
#include <string.h>

#include "base/ip6_ext.h"
#include "l3/ip_header.h"

DROP_REASON(flow_untranslatable, "The flow is translated, but the packet's headers are truncated or span buffers.");

const struct drop_reason *const flow_untranslatable = &drop_flow_untranslatable;

#define PROTO_DCCP 33
#define PROTO_UDPLITE 136

// --- Checksums: ~HC' = ~HC + ~m + m' (RFC 1624), in 32-bit steps. ---

static __rte_always_inline uint16_t translate_adjust(uint16_t sum, uint64_t delta)
{
	return (uint16_t)~ip_fold(delta + (uint16_t)~sum);
}

static __rte_always_inline uint64_t translate_write32(unaligned_uint32_t *p, uint32_t now)
{
	uint64_t delta = (uint64_t)now + (uint32_t) ~*p;

	*p = now;
	return delta;
}

static __rte_always_inline uint64_t translate_write16(unaligned_uint16_t *p, uint16_t now)
{
	uint64_t delta = (uint64_t)now + (uint16_t) ~*p;

	*p = now;
	return delta;
}

// --- Parsing. ---

struct place {
	uint8_t *ip;
	bool v6, udp, pseudo; // udp: a checksum of 0 means none. pseudo: the checksum covers the addresses
	bool later;
	uint8_t proto;
	unsigned l4; // offset
	unaligned_uint32_t *ports;
	unaligned_uint16_t *id, *sum; // NULL: not in this packet
};

static inline uint8_t *translate_at(struct rte_mbuf *m, unsigned offset)
{
	return rte_pktmbuf_mtod_offset(m, uint8_t *, offset);
}

static bool translate_locate4(struct rte_mbuf *m, unsigned l3, struct place *p)
{
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)p->ip;
	unsigned hlen;

	if (m->data_len < l3 + sizeof(*ip))
		return false;
	hlen = rte_ipv4_hdr_len(ip);
	p->later = (ip->fragment_offset & RTE_BE16(0x1fff)) != 0;
	p->proto = ip->next_proto_id;
	p->l4 = l3 + hlen;
	return hlen >= sizeof(*ip) && m->data_len >= p->l4;
}

static bool translate_locate6(struct rte_mbuf *m, unsigned l3, struct place *p)
{
	struct ip6_walk e = {.at = l3 + (unsigned)sizeof(struct rte_ipv6_hdr)};

	if (m->data_len < e.at)
		return false;
	e.proto = p->ip[6];
	if (!ip6_walk_extensions(m, m->data_len, &e) || e.routed)
		return false;
	p->l4 = e.at;
	p->proto = e.proto;
	p->later = e.later;
	return true;
}

static inline bool translate_is_icmp(const struct place *p)
{
	return p->proto == (p->v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
}

static inline bool translate_is_echo(uint8_t type, bool v6)
{
	return v6 ? type == 128 || type == 129 : type == 8 || type == 0;
}

static inline bool translate_is_error(uint8_t type, bool v6)
{
	return v6 ? type < 128 : type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}

// Offset of the checksum in the transport header. 0: the protocol has none that covers a field that changes.
static unsigned translate_sum_offset(const struct place *p)
{
	switch (p->proto) {
	case IPPROTO_TCP:
		return 16;
	case IPPROTO_UDP:
	case PROTO_UDPLITE:
	case PROTO_DCCP:
		return 6;
	case IPPROTO_ICMP:
		return p->v6 ? 0 : 2;
	case IPPROTO_ICMPV6:
		return p->v6 ? 2 : 0;
	}
	return 0;
}

// end: offset of the packet's end. quoted: an ICMP error quotes the packet, so its transport header may be cut short.
static bool locate_transport(struct rte_mbuf *m, struct place *p, bool quoted, unsigned end)
{
	unsigned last = RTE_MIN((unsigned)m->data_len, end), avail = last > p->l4 ? last - p->l4 : 0;
	unsigned sum = translate_sum_offset(p), need = 0;

	if (p->later)
		return true;
	if (translate_is_icmp(p)) {
		if (avail < 2)
			return false;
		if (translate_is_echo(*translate_at(m, p->l4), p->v6)) {
			p->id = (unaligned_uint16_t *)translate_at(m, p->l4 + 4);
			need = 6;
		} else if (!p->v6) {
			sum = 0; // no field that it covers changes
		}
		p->pseudo = p->v6;
	} else if (sum) {
		p->pseudo = true;
		p->udp = p->proto == IPPROTO_UDP;
		if (p->proto == IPPROTO_TCP || p->proto == IPPROTO_UDP) {
			p->ports = (unaligned_uint32_t *)translate_at(m, p->l4);
			need = 4;
		}
	}
	if (avail < need)
		return false;
	if (sum && avail >= sum + 2)
		p->sum = (unaligned_uint16_t *)translate_at(m, p->l4 + sum);
	else if (sum && (!quoted || end >= p->l4 + sum + 2))
		return false;
	return true;
}

static bool translate_locate(struct rte_mbuf *m, unsigned l3, uint8_t family, struct place *p)
{
	*p = (struct place){.v6 = family == 6};
	if (m->data_len <= l3)
		return false;
	p->ip = translate_at(m, l3);
	if (*p->ip >> 4 != family)
		return false;
	return p->v6 ? translate_locate6(m, l3, p) : translate_locate4(m, l3, p);
}

// --- Changes. The packet gets the reverse of the key `to`. ---

static uint64_t translate_write_address(uint8_t *p, const uint8_t *now, unsigned words)
{
	uint64_t delta = 0;
	uint32_t word;
	unsigned i;

	for (i = 0; i < words; i++) {
		memcpy(&word, now + i * 4, 4);
		delta += translate_write32((unaligned_uint32_t *)(p + i * 4), word);
	}
	return delta;
}

static uint64_t translate_write_addresses(const struct place *p, const struct flow_key *to, bool src, bool dst)
{
	uint64_t delta = 0;

	if (p->v6) {
		delta += src ? translate_write_address(p->ip + 8, to->dst6, 4) : 0;
		delta += dst ? translate_write_address(p->ip + 24, to->src6, 4) : 0;
	} else {
		delta += src ? translate_write_address(p->ip + 12, (const uint8_t *)&to->dst4, 1) : 0;
		delta += dst ? translate_write_address(p->ip + 16, (const uint8_t *)&to->src4, 1) : 0;
	}
	return delta;
}

static inline uint64_t translate_write_header_sum(const struct place *p, uint64_t delta)
{
	unaligned_uint16_t *sum = (unaligned_uint16_t *)(p->ip + 10);

	return p->v6 ? 0 : translate_write16(sum, translate_adjust(*sum, delta));
}

// Returns the sum of all differences, including those of the checksums.
static uint64_t translate_change(const struct place *p, const struct flow_key *to, bool src, bool dst)
{
	uint64_t addresses = translate_write_addresses(p, to, src, dst), transport = 0,
		 all = addresses + translate_write_header_sum(p, addresses);
	uint16_t sum;

	if (p->ports)
		transport += translate_write32(p->ports, (uint32_t)to->dst_port | (uint32_t)to->src_port << 16);
	if (p->id)
		transport += translate_write16(p->id, to->src_port);
	all += transport;
	if (p->sum == NULL || (p->udp && *p->sum == 0))
		return all;
	sum = translate_adjust(*p->sum, transport + (p->pseudo ? addresses : 0));
	return all + translate_write16(p->sum, p->udp && sum == 0 ? 0xffff : sum);
}

static bool translate_is_source(const struct place *p, const struct flow_key *k)
{
	return p->v6 ? memcmp(p->ip + 8, k->src6, 16) == 0 : memcmp(p->ip + 12, &k->src4, 4) == 0;
}

static bool translate_is_destination(const struct place *p, const struct flow_key *k)
{
	return p->v6 ? memcmp(p->ip + 24, k->dst6, 16) == 0 : memcmp(p->ip + 16, &k->dst4, 4) == 0;
}

// Offset of the packet's end according to its IP header, without padding of the link.
static unsigned translate_packet_end(const struct rte_mbuf *m, const struct place *p, unsigned l3)
{
	unsigned len = p->v6 ? 40u + rte_be_to_cpu_16(((const struct rte_ipv6_hdr *)p->ip)->payload_len)
			     : rte_be_to_cpu_16(((const struct rte_ipv4_hdr *)p->ip)->total_length);

	return RTE_MIN(m->pkt_len, l3 + len);
}

bool flow_translate_error(struct rte_mbuf *m, const struct flow *f, unsigned dir, unsigned l4)
{
	const struct flow_key *to = &f->dir[!dir].key;
	struct flow_key inside = flow_key_reverse(to);
	unsigned l3 = meta(m)->l3, end;
	struct place outer, quoted;
	unaligned_uint16_t *sum;
	uint64_t delta, addresses;

	if (!translate_locate(m, l3, to->family, &outer) || m->data_len < l4 + 8 ||
	    !translate_locate(m, l4 + 8, to->family, &quoted))
		return false;
	end = translate_packet_end(m, &outer, l3);
	if (quoted.proto != to->proto || quoted.l4 > end || !locate_transport(m, &quoted, true, end))
		return false;
	delta = translate_change(&quoted, &inside, true, true);
	addresses = translate_write_addresses(&outer, to, translate_is_source(&outer, &f->dir[dir].key), true);
	translate_write_header_sum(&outer, addresses);
	sum = (unaligned_uint16_t *)translate_at(m, l4 + 2);
	*sum = translate_adjust(*sum, outer.v6 ? delta + addresses : delta);
	return true;
}

// The general path: everything but plain TCP and UDP.
static __rte_noinline bool translate_other(struct rte_mbuf *m, const struct flow *f, unsigned dir)
{
	const struct flow_key *from = &f->dir[dir].key, *to = &f->dir[!dir].key;
	struct place p;

	if (!translate_locate(m, meta(m)->l3, to->family, &p))
		return false;
	if (p.later) {
		translate_change(&p, to, translate_is_source(&p, from), translate_is_destination(&p, from));
		return true;
	}
	if (translate_is_icmp(&p) && m->data_len > p.l4 && translate_is_error(*translate_at(m, p.l4), p.v6))
		return flow_translate_error(m, f, dir, p.l4);
	if (p.proto != to->proto || !locate_transport(m, &p, false, m->data_len))
		return false;
	translate_change(&p, to, true, true);
	return true;
}

// One's complement addition: the carry is added at the low end.
static __rte_always_inline uint64_t translate_add_carry(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? sum + 1 : sum;
}

static __rte_always_inline uint32_t translate_fold32(uint64_t sum)
{
	return (uint32_t)((sum + (sum << 32 | sum >> 32)) >> 32);
}

static __rte_always_inline uint32_t translate_fold16(uint32_t sum)
{
	return (sum + (sum << 16 | sum >> 16)) >> 16;
}

static __rte_always_inline uint64_t translate_fold17(uint64_t sum)
{
	uint32_t half = translate_fold32(sum);

	return (half & 0xffff) + (half >> 16);
}

// Replace both addresses in 64-bit words. Return the folded difference, with which the update of the transport checksum
// starts.
static __rte_always_inline uint64_t plain_addresses4(uint8_t *ip, const struct flow_key *to)
{
	unaligned_uint64_t *addresses = (unaligned_uint64_t *)(ip + 12);
	unaligned_uint16_t *sum = (unaligned_uint16_t *)(ip + 10);
	uint64_t now = to->addr[0] << 32 | to->addr[0] >> 32,
		 delta = translate_fold17(translate_add_carry(now, ~*addresses));

	*addresses = now;
	*sum = (uint16_t)~translate_fold16((uint32_t)delta + (*sum ^ 0xffff));
	return delta;
}

static __rte_always_inline uint64_t plain_addresses6(uint8_t *ip, const struct flow_key *to)
{
	unaligned_uint64_t *addresses = (unaligned_uint64_t *)(ip + 8);
	uint64_t delta = 0;
	unsigned i;

	for (i = 0; i < 4; i++) {
		delta = translate_add_carry(translate_add_carry(delta, to->addr[i ^ 2]), ~addresses[i]);
		addresses[i] = to->addr[i ^ 2];
	}
	return translate_fold17(delta);
}

static __rte_always_inline void plain_ports(uint8_t *l4, const struct flow_key *to, uint64_t delta, const bool tcp)
{
	unaligned_uint16_t *sum = (unaligned_uint16_t *)(l4 + (tcp ? 16 : 6));
	unaligned_uint32_t *ports = (unaligned_uint32_t *)l4;
	uint32_t now = (uint32_t)to->meta << 16 | (uint16_t)(to->meta >> 16);

	delta += (uint64_t)now + (uint32_t) ~*ports;
	*ports = now;
	if (!tcp && unlikely(*sum == 0))
		return;
	*sum = (uint16_t)~translate_fold16(translate_fold32(delta + (*sum ^ 0xffff)));
	if (!tcp && unlikely(*sum == 0))
		*sum = 0xffff;
}

static __rte_always_inline bool is_plain4(const uint8_t *ip, unsigned avail)
{
	const uint64_t bits = rte_cpu_to_be_64(0xff00000000003fffu), plain = rte_cpu_to_be_64(0x4500000000000000u);

	return avail >= 20 + 18 && (*(const unaligned_uint64_t *)ip & bits) == plain;
}

bool flow_translate(struct rte_mbuf *m, const struct flow *f, unsigned dir)
{
	const struct flow_key *to = &f->dir[dir ^ 1].key;
	unsigned l3 = meta(m)->l3, avail = m->data_len > l3 ? m->data_len - l3 : 0;
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, l3);
	uint32_t kind = (uint32_t)(to->meta >> 48); // family and protocol

	if (likely(kind == (4 << 8 | IPPROTO_TCP) && is_plain4(ip, avail) && ip[9] == IPPROTO_TCP))
		plain_ports(ip + 20, to, plain_addresses4(ip, to), true);
	else if (kind == (4 << 8 | IPPROTO_UDP) && is_plain4(ip, avail) && ip[9] == IPPROTO_UDP)
		plain_ports(ip + 20, to, plain_addresses4(ip, to), false);
	else if (kind == (6 << 8 | IPPROTO_TCP) && avail >= 40 + 18 && *ip >> 4 == 6 && ip[6] == IPPROTO_TCP)
		plain_ports(ip + 40, to, plain_addresses6(ip, to), true);
	else if (kind == (6 << 8 | IPPROTO_UDP) && avail >= 40 + 8 && *ip >> 4 == 6 && ip[6] == IPPROTO_UDP)
		plain_ports(ip + 40, to, plain_addresses6(ip, to), false);
	else
		return translate_other(m, f, dir);
	return true;
}
