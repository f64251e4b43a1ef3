// SPDX-License-Identifier: Apache-2.0
// Portable lookup: loads and compares the signatures one by one. For other CPUs, and for the thread sanitizer, which
// needs atomic loads.
#include "flow/lookup_private.h"

static __rte_always_inline void lookup_plain_match(const struct flow_bucket *const *bucket, const uint16_t *sig,
						   uint8_t *slots, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		slots[i] = (uint8_t)flow_match_plain(bucket[i], sig[i]);
}

static bool lookup_plain_supported(void)
{
	return true;
}

static void lookup_plain_lookup4(const struct flow_table *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	flow_search(t, keys, out, n, false, lookup_plain_match);
}

static void lookup_plain_lookup6(const struct flow_table *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	flow_search(t, keys, out, n, true, lookup_plain_match);
}

const struct flow_lookup flow_lookup_plain = {"plain", lookup_plain_supported, lookup_plain_lookup4,
					      lookup_plain_lookup6};
