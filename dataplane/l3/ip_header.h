// SPDX-License-Identifier: Apache-2.0
// Checks, checksums and hashes of IP headers, for nodes. `v6` is a constant in every call.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_hash_crc.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "base/eth.h"
#include "base/ip_sum.h"
#include "graph/meta.h"

// The one's complement sum of all words is 0xffff when the sum is a multiple of it. (The division is a multiplication
// by the inverse: only for multiples the product stays small. The sum is not 0, because the version is not.)
static inline bool ip4_checksum_ok_of(const struct rte_ipv4_hdr *ip, unsigned hlen)
{
	const uint64_t inverse = 0xfffefffefffeffff, limit = UINT64_MAX / 0xffff;
	uint64_t sum = likely(hlen == sizeof(*ip)) ? ip_sum(ip, sizeof(*ip)) : ip_sum(ip, hlen);

	return sum * inverse <= limit;
}

static inline bool ip4_checksum_ok(const struct rte_ipv4_hdr *ip)
{
	return ip4_checksum_ok_of(ip, rte_ipv4_hdr_len(ip));
}

// RFC 1624 for a change of TTL by -1. 0xffff, the other zero, is never sent: no sender that computes the whole sum gets
// it.
static inline void ip4_decrement_ttl(struct rte_ipv4_hdr *ip)
{
	uint32_t sum = (uint32_t)ip->hdr_checksum + rte_cpu_to_be_16(0x0100);

	ip->hdr_checksum = (uint16_t)(sum + ((sum + 1) >> 16));
	ip->time_to_live--;
}

// Returns the header's length, or 0 if its version or length is wrong. avail: bytes from the header on, at least 20.
static inline unsigned ip4_header_len(const struct rte_ipv4_hdr *ip, unsigned avail)
{
	unsigned len = sizeof(*ip);

	if (unlikely(ip->version_ihl != RTE_IPV4_VHL_DEF)) {
		len = rte_ipv4_hdr_len(ip);
		if ((ip->version_ihl >> 4) != 4 || len < sizeof(*ip) || len > avail)
			return 0;
	}
	return len;
}

// 0.0.0.0/8, 127/8, 224/4 and 240/4 cannot be the source of a unicast packet.
static inline bool ip4_martian_source(rte_be32_t be)
{
	uint8_t first = ((const uint8_t *)&be)[0];

	return (uint8_t)(first - 1) >= 223 || first == 127;
}

static inline bool ip6_is_multicast(const uint8_t *a)
{
	return a[0] == 0xff;
}

static inline bool ip6_is_link_local(const uint8_t *a)
{
	return a[0] == 0xfe && (a[1] & 0xc0) == 0x80;
}

static inline bool ip6_unspecified_or_loopback(const uint8_t *a)
{
	const unaligned_uint64_t *q = (const unaligned_uint64_t *)a;

	return q[0] == 0 && (rte_be_to_cpu_64(q[1]) <= 1);
}

static inline uint32_t hash_step(uint32_t hash, uint64_t data)
{
#ifdef __SSE4_2__
	return (uint32_t)__builtin_ia32_crc32di(hash, data);
#else
	return rte_hash_crc_8byte(data, hash);
#endif
}

static inline bool has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == 132; // SCTP
}

// Mixes the bits, since CRC leaves low bits alike. Never 0, which means "not computed".
static inline uint32_t hash_finish(uint32_t hash)
{
	hash ^= hash >> 16;
	hash *= 0x7feb352d;
	hash ^= hash >> 15;
	return hash + (hash == 0); // not hash | 1: groups take the low bits
}

// Hashes the 5-tuple; of fragments only the addresses, so that all fragments of a packet take one path. avail: bytes
// from the IP header on.
static inline uint32_t ip4_hash(const struct rte_ipv4_hdr *ip, unsigned avail)
{
	unsigned len = (ip->version_ihl & 0xfu) * 4;
	uint32_t hash = hash_step(0x5ca1ab1e, ((uint64_t)ip->src_addr << 32) | ip->dst_addr);
	uint64_t tail = ip->next_proto_id;

	if (has_ports(ip->next_proto_id) && !(ip->fragment_offset & rte_cpu_to_be_16(0x3fff)) && avail >= len + 4)
		tail |= (uint64_t) * (const unaligned_uint32_t *)RTE_PTR_ADD(ip, len) << 8;
	return hash_finish(hash_step(hash, tail));
}

// The flow label is not hashed: a sender may change it in mid-connection, as Linux does after a timeout, and the key of
// a flow does not have it.
static inline uint32_t ip6_hash(const struct rte_ipv6_hdr *ip, unsigned avail)
{
	const unaligned_uint64_t *q = (const unaligned_uint64_t *)ip->src_addr;
	uint32_t hash = hash_step(hash_step(0x5ca1ab1e, q[0]), q[1]);
	uint64_t tail = ip->proto;

	hash = hash_step(hash_step(hash, q[2]), q[3]);
	if (has_ports(ip->proto) && avail >= sizeof(*ip) + 4)
		tail ^= (uint64_t) * (const unaligned_uint32_t *)(ip + 1) << 8;
	return hash_finish(hash_step(hash, tail));
}

// Hashes the header at offset l3 of the packet, by its version.
static inline uint32_t ip_hash(const struct rte_mbuf *m, unsigned l3)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, l3);
	unsigned avail = m->data_len - l3;

	if (avail >= 20 && (*ip >> 4) == 4)
		return ip4_hash((const struct rte_ipv4_hdr *)ip, avail);
	if (avail >= 40 && (*ip >> 4) == 6)
		return ip6_hash((const struct rte_ipv6_hdr *)ip, avail);
	return hash_finish(*ip);
}

// Hashes a frame's IP header, or its MAC addresses if it carries something else.
static inline uint32_t eth_hash(const struct rte_mbuf *m)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const unaligned_uint64_t *q = (const unaligned_uint64_t *)eth;

	if (eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) ||
	    eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6))
		return ip_hash(m, sizeof(*eth));
	return hash_finish(hash_step(hash_step(0x5ca1ab1e, q[0]), *(const unaligned_uint32_t *)&q[1]));
}

// The DSCP and ECN byte, of either family.
static inline uint8_t ip_tos(const uint8_t *ip)
{
	return (ip[0] >> 4) == 4 ? ip[1] : (uint8_t)(ip[0] << 4 | ip[1] >> 4);
}
