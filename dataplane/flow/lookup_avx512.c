// SPDX-License-Identifier: Apache-2.0
// AVX-512 lookup: a comparison yields the bitmap of slots directly, in a mask register.
#include <immintrin.h>

#include "flow/lookup_private.h"

static __rte_always_inline void lookup_avx512_match(const struct flow_bucket *const *bucket, const uint16_t *sig,
						    uint8_t *slots, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		slots[i] = _mm_cmpeq_epi16_mask(_mm_load_si128((const __m128i *)bucket[i]->sig),
						_mm_set1_epi16((short)sig[i]));
}

static bool lookup_avx512_supported(void)
{
	return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

static void lookup_avx512_lookup4(const struct flow_table *t, const struct flow_key *keys, flow_entry_t *out,
				  unsigned n)
{
	flow_search(t, keys, out, n, false, lookup_avx512_match);
}

static void lookup_avx512_lookup6(const struct flow_table *t, const struct flow_key *keys, flow_entry_t *out,
				  unsigned n)
{
	flow_search(t, keys, out, n, true, lookup_avx512_match);
}

const struct flow_lookup flow_lookup_avx512 = {"avx512", lookup_avx512_supported, lookup_avx512_lookup4,
					       lookup_avx512_lookup6};
