// SPDX-License-Identifier: Apache-2.0
// SipHash-1-3 of whole words (Aumasson, Bernstein): a hash whose values cannot be predicted without the key. It gives
// what any other SipHash-1-3 gives for the same bytes.
#pragma once

#include <assert.h>
#include <stdint.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the words are read as little-endian bytes");

struct siphash_key {
	uint64_t k[2];
};

#define SIPHASH_ROTATE(x, n) ((x) << (n) | (x) >> (64 - (n)))

static inline void siphash_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = SIPHASH_ROTATE(v[1], 13) ^ v[0];
	v[3] = SIPHASH_ROTATE(v[3], 16) ^ v[2];
	v[0] = SIPHASH_ROTATE(v[0], 32) + v[3];
	v[2] += v[1];
	v[3] = SIPHASH_ROTATE(v[3], 21) ^ v[0];
	v[1] = SIPHASH_ROTATE(v[1], 17) ^ v[2];
	v[2] = SIPHASH_ROTATE(v[2], 32);
}

static inline uint64_t siphash(const struct siphash_key *key, const uint64_t *words, unsigned n)
{
	uint64_t v[4] = {key->k[0] ^ 0x736f6d6570736575, key->k[1] ^ 0x646f72616e646f6d, key->k[0] ^ 0x6c7967656e657261,
			 key->k[1] ^ 0x7465646279746573};
	uint64_t last = (uint64_t)n << 59; // the number of bytes, in the highest one
	unsigned i;

	for (i = 0; i <= n; i++) {
		uint64_t word = i < n ? words[i] : last;

		v[3] ^= word;
		siphash_round(v);
		v[0] ^= word;
	}
	v[2] ^= 0xff;
	for (i = 0; i < 3; i++)
		siphash_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
