// SPDX-License-Identifier: Apache-2.0
// The checksums of TCP and UDP in unfinished packets (base/offload.h). l3 is the offset of the IP header; it, and the
// TCP or UDP header behind it, lie in the packet's first buffer.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "base/ip_sum.h"
#include "base/offload.h"

// One's complement sum of n bytes, not folded.
static inline uint64_t checksum_bytes(const uint8_t *p, unsigned n)
{
	uint64_t sum = ip_sum(p, n & ~3u);
	uint32_t last = 0;

	memcpy(&last, p + (n & ~3u), n & 3u);
	return sum + last;
}

// The same for n bytes of a packet, which has as many, from offset `at` on.
uint64_t checksum_data(const struct rte_mbuf *m, unsigned at, unsigned n);

// Sum of the pseudo header of a TCP or UDP packet with n bytes behind the IP header. `v6` is the family.
static inline uint64_t checksum_pseudo(const void *ip, bool v6, uint8_t proto, unsigned n)
{
	uint64_t sum = RTE_BE16(proto) + (uint64_t)rte_cpu_to_be_32(n);

	return sum + (v6 ? ip_sum((const uint8_t *)ip + 8, 32) : ip_sum((const uint8_t *)ip + 12, 8));
}

// Writes the checksum for a sum over pseudo header, header (its field zero) and payload. UDP sends 0xffff for 0, which
// means that there is none.
static inline void checksum_write(void *l4, bool tcp, uint64_t sum)
{
	uint16_t checksum = (uint16_t)~ip_fold(sum);

	if (tcp)
		((struct rte_tcp_hdr *)l4)->cksum = checksum;
	else
		((struct rte_udp_hdr *)l4)->dgram_cksum = checksum ? checksum : 0xffff;
}

// Computes the checksum of an unfinished packet that is not large and removes its flags.
void checksum_finish(struct rte_mbuf *m, unsigned l3);

// Writes the sum of the pseudo header of an unfinished packet into its field, as virtio leaves it. The flags stay.
void checksum_leave(struct rte_mbuf *m, unsigned l3);
