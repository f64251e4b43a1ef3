// SPDX-License-Identifier: Apache-2.0
// What names a flow: five words, of which IPv4 uses the first two.
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_hash_crc.h>

// Zones keep tenants apart that use the same addresses: a VRF's id, or a bridge domain's with FLOW_ZONE_BRIDGE.
#define FLOW_ZONE_BRIDGE 0x8000

// Addresses and ports are in network byte order, the words in the host's. IPv4: addr[0] is source | destination << 32, the rest 0.
// IPv6: addr[0..1] the source, addr[2..3] the destination.
struct flow_key {
	union {
		uint64_t meta;
		struct {
			uint16_t src_port, dst_port; // ICMP echo: both its identifier; other ICMP: type << 8 | code and 0; else 0
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

// CRC32C is linear: whoever knows two keys of one hash knows many, whatever the seed. So the words are multiplied by secret odd numbers
// first, and the second half of the hash is the CRC of the same words turned round.
struct flow_secret {
	uint64_t add[5], mul[5];
	uint32_t seed[2];
};
extern struct flow_secret flow_secret;                  // workers: ro, set once by flow_secret_init()
void flow_secret_init(const struct flow_secret *fixed); // NULL: from the kernel's random numbers

typedef uint32_t flow_crc_fn(uint32_t crc, uint64_t word);

static __rte_always_inline uint32_t flow_crc_soft(uint32_t crc, uint64_t word)
{
	return crc32c_2words(word, crc);
}

// The same result as in software.
static __rte_always_inline uint32_t flow_crc(uint32_t crc, uint64_t word)
{
#ifdef __SSE4_2__
	return (uint32_t)__builtin_ia32_crc32di(crc, word);
#else
	return rte_hash_crc_8byte(word, crc);
#endif
}

static inline uint64_t flow_mix(uint64_t word, unsigned i)
{
	word = (word + flow_secret.add[i]) * flow_secret.mul[i];
	return word ^ word >> 32;
}

// 64 bits: the upper half chooses the bucket, the lower one is the signature. `v6` and `crc` are constants where this is called.
static __rte_always_inline uint64_t flow_hash_by(const struct flow_key *k, const bool v6, flow_crc_fn *const crc)
{
	uint64_t word = flow_mix(k->meta, 0);
	uint32_t a = crc(flow_secret.seed[0], word), b = crc(flow_secret.seed[1], __builtin_bswap64(word));
	unsigned i;

	for (i = 0; i < (v6 ? 4 : 1); i++) {
		word = flow_mix(k->addr[i], i + 1);
		a = crc(a, word);
		b = crc(b, __builtin_bswap64(word));
	}
	return (uint64_t)a << 32 | b;
}

static __rte_always_inline uint64_t flow_hash(const struct flow_key *k, const bool v6)
{
	return flow_hash_by(k, v6, flow_crc);
}

// Of either family.
static inline uint64_t flow_key_hash(const struct flow_key *k)
{
	return k->family == 6 ? flow_hash(k, true) : flow_hash(k, false);
}

static __rte_always_inline bool flow_key_equal(const struct flow_key *a, const struct flow_key *b, const bool v6)
{
	uint64_t diff = (a->meta ^ b->meta) | (a->addr[0] ^ b->addr[0]);

	if (v6)
		diff |= (a->addr[1] ^ b->addr[1]) | (a->addr[2] ^ b->addr[2]) | (a->addr[3] ^ b->addr[3]);
	return diff == 0;
}

// The key of the packets that answer, in the same zone and without translation.
static inline struct flow_key flow_key_reverse(const struct flow_key *k)
{
	struct flow_key r = *k;

	r.src_port = k->dst_port;
	r.dst_port = k->src_port;
	if (k->family == 4) {
		r.src4 = k->dst4;
		r.dst4 = k->src4;
	} else {
		r.addr[0] = k->addr[2];
		r.addr[1] = k->addr[3];
		r.addr[2] = k->addr[0];
		r.addr[3] = k->addr[1];
	}
	return r;
}
