// SPDX-License-Identifier: Apache-2.0
// AVX2 lookup: compares the signatures of two buckets at once.
#include <immintrin.h>

#include "flow/lookup_private.h"

static __rte_always_inline __m256i lookup_avx2_pair(__m128i low, __m128i high)
{
	return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

static __rte_always_inline __m128i lookup_avx2_signatures(const struct flow_bucket *b)
{
	return _mm_load_si128((const __m128i *)b->sig);
}

static __rte_always_inline void lookup_avx2_match(const struct flow_bucket *const *bucket, const uint16_t *sig,
						  uint8_t *slots, unsigned n)
{
	unsigned i;

	for (i = 0; i + 1 < n; i += 2) {
		__m256i wanted = lookup_avx2_pair(_mm_set1_epi16((short)sig[i]), _mm_set1_epi16((short)sig[i + 1]));
		__m256i equal = _mm256_cmpeq_epi16(
			lookup_avx2_pair(lookup_avx2_signatures(bucket[i]), lookup_avx2_signatures(bucket[i + 1])),
			wanted);
		unsigned bits = (unsigned)_mm256_movemask_epi8(_mm256_packs_epi16(equal, _mm256_setzero_si256()));

		slots[i] = (uint8_t)bits;
		slots[i + 1] = (uint8_t)(bits >> 16);
	}
	if (i < n)
		slots[i] = (uint8_t)flow_match(bucket[i], sig[i]);
}

static bool lookup_avx2_supported(void)
{
	return __builtin_cpu_supports("avx2");
}

static void lookup_avx2_lookup4(const struct flow_table *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	flow_search(t, keys, out, n, false, lookup_avx2_match);
}

static void lookup_avx2_lookup6(const struct flow_table *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	flow_search(t, keys, out, n, true, lookup_avx2_match);
}

const struct flow_lookup flow_lookup_avx2 = {"avx2", lookup_avx2_supported, lookup_avx2_lookup4, lookup_avx2_lookup6};
