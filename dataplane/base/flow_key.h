// SPDX-License-Identifier: Apache-2.0
// The key of a flow: five words, of which IPv4 uses the first two.
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>
#include <rte_hash_crc.h>

// A zone keeps tenants with the same addresses apart. It is the id of a VRF, or of a bridge domain with
// FLOW_ZONE_BRIDGE.
#define FLOW_ZONE_BRIDGE 0x8000

// Addresses and ports are in network byte order, zone in host order. IPv4 fills addr[0] (src4, dst4), and addr[1..3]
// are 0. IPv6: addr[0..1] are the source, addr[2..3] the destination.
struct flow_key {
	union {
		uint64_t meta;
		struct {
			uint16_t src_port,
				dst_port; // ICMP echo: the identifier twice; other ICMP: type and code, then 0; else 0
			uint16_t zone;
			uint8_t proto;
			uint8_t family; // 4 or 6
		};
	};
	union {
		uint64_t addr[4];
		struct {
			uint32_t src4, dst4;
		};
		struct {
			uint8_t src6[16], dst6[16];
		};
	};
};
static_assert(sizeof(struct flow_key) == 40, "leaves 24 bytes of a cache line to a direction's state");

static __rte_always_inline bool flow_key_equal(const struct flow_key *a, const struct flow_key *b, const bool v6)
{
	uint64_t diff = (a->meta ^ b->meta) | (a->addr[0] ^ b->addr[0]);

	if (v6)
		diff |= (a->addr[1] ^ b->addr[1]) | (a->addr[2] ^ b->addr[2]) | (a->addr[3] ^ b->addr[3]);
	return diff == 0;
}

// The key of the replies, in the same zone and without translation.
static inline struct flow_key flow_key_reverse(const struct flow_key *k)
{
	uint32_t ports = (uint32_t)k->meta;
	uint64_t meta = (k->meta ^ ports) | (uint32_t)(ports << 16 | ports >> 16);

	if (k->family == 4)
		return (struct flow_key){.meta = meta, .addr = {k->addr[0] << 32 | k->addr[0] >> 32}};
	return (struct flow_key){.meta = meta, .addr = {k->addr[2], k->addr[3], k->addr[0], k->addr[1]}};
}

// CRC32C of one word: the base of hashes over keys. Its 32 bits are in a word, as the instruction takes and leaves it.
typedef uint64_t flow_crc_fn(uint64_t crc, uint64_t word);

static __rte_always_inline uint64_t flow_crc_soft(uint64_t crc, uint64_t word)
{
	return crc32c_2words(word, (uint32_t)crc);
}

// Gives the same result as flow_crc_soft().
static __rte_always_inline uint64_t flow_crc(uint64_t crc, uint64_t word)
{
#ifdef __SSE4_2__
	return __builtin_ia32_crc32di(crc, word);
#else
	return rte_hash_crc_8byte(word, (uint32_t)crc);
#endif
}
