// SPDX-License-Identifier: Apache-2.0
// SSE 4.2 lookup: compares all signatures of a bucket at once. Every x86 CPU that DPDK supports can run it.
#include "flow/lookup_private.h"

static __rte_always_inline void lookup_sse42_match(const struct flow_bucket *const *bucket, const uint16_t *sig,
						   uint8_t *slots, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		slots[i] = (uint8_t)flow_match(bucket[i], sig[i]);
}

static bool lookup_sse42_supported(void)
{
	return __builtin_cpu_supports("sse4.2");
}

static void lookup_sse42_lookup4(const struct flow_table *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	flow_search(t, keys, out, n, false, lookup_sse42_match);
}

static void lookup_sse42_lookup6(const struct flow_table *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	flow_search(t, keys, out, n, true, lookup_sse42_match);
}

const struct flow_lookup flow_lookup_sse42 = {"sse42", lookup_sse42_supported, lookup_sse42_lookup4,
					      lookup_sse42_lookup6};
