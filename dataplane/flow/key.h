// SPDX-License-Identifier: Apache-2.0
// Hashes of flow keys.
#pragma once

#include <rte_hash_crc.h>

#include "base/flow_key.h"

// CRC32C is linear: an attacker who knows two keys with the same hash can derive many more, whatever the seed. So each
// word is first multiplied by a secret odd number, and the second half of the hash is the CRC of the same words with
// their bytes reversed.
struct flow_secret {
	uint64_t add[5], mul[5];
	uint32_t seed[2];
};
extern struct flow_secret flow_secret;                  // workers: ro, set once by flow_secret_init()
void flow_secret_init(const struct flow_secret *fixed); // NULL: random, from the kernel

static inline uint64_t flow_mix(uint64_t word, unsigned i)
{
	word = (word + flow_secret.add[i]) * flow_secret.mul[i];
	return word ^ word >> 32;
}

// Returns 64 bits: the upper half selects the bucket, the lowest 16 bits are the signature. Callers pass `v6` and `crc`
// as constants.
static __rte_always_inline uint64_t flow_hash_by(const struct flow_key *k, const bool v6, flow_crc_fn *const crc)
{
	uint64_t word = flow_mix(k->meta, 0);
	uint64_t a = crc(flow_secret.seed[0], word), b = crc(flow_secret.seed[1], __builtin_bswap64(word));
	unsigned i;

	for (i = 0; i < (v6 ? 4 : 1); i++) {
		word = flow_mix(k->addr[i], i + 1);
		a = crc(a, word);
		b = crc(b, __builtin_bswap64(word));
	}
	return a << 32 | b;
}

static __rte_always_inline uint64_t flow_hash(const struct flow_key *k, const bool v6)
{
	return flow_hash_by(k, v6, flow_crc);
}

// Hashes a key of either family.
static inline uint64_t flow_key_hash(const struct flow_key *k)
{
	return k->family == 6 ? flow_hash(k, true) : flow_hash(k, false);
}
