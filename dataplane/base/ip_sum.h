// SPDX-License-Identifier: Apache-2.0
// One's complement sums of the checksums of IP, TCP and UDP (RFC 1071), for nodes.
#pragma once

#include <stdint.h>

#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_ip.h>

static inline uint16_t ip_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

// One's complement sum of n bytes (a multiple of 4), not folded.
static inline uint64_t ip_sum(const void *data, unsigned n)
{
	const unaligned_uint32_t *p = data;
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < n / 4; i++)
		sum += p[i];
	return sum;
}

static inline void ip4_checksum_set(struct rte_ipv4_hdr *ip)
{
	ip->hdr_checksum = 0;
	ip->hdr_checksum = (uint16_t)~ip_fold(ip_sum(ip, rte_ipv4_hdr_len(ip)));
}
