// SPDX-License-Identifier: Apache-2.0
// Lookups in the flow table, by the fastest variant that the CPU supports.
#include <errno.h>
#include <string.h>

#include "flow/lookup_private.h"

const struct flow_key flow_key_none = {.meta = UINT64_MAX};

#if defined(__x86_64__) && !defined(WITH_TSAN)
const struct flow_lookup *const flow_lookups[] = {&flow_lookup_avx512, &flow_lookup_avx2, &flow_lookup_sse42,
						  &flow_lookup_plain, NULL};
const struct flow_lookup *flow_lookup = &flow_lookup_sse42;
#else
const struct flow_lookup *const flow_lookups[] = {&flow_lookup_plain, NULL};
const struct flow_lookup *flow_lookup = &flow_lookup_plain;
#endif

int flow_lookup_use(const char *name)
{
	unsigned i;

	for (i = 0; flow_lookups[i]; i++) {
		if (name && strcmp(name, flow_lookups[i]->name) != 0)
			continue;
		if (flow_lookups[i]->supported()) {
			flow_lookup = flow_lookups[i];
			return 0;
		}
		if (name)
			return -ENOTSUP;
	}
	return -ENOENT;
}

RTE_INIT(choose)
{
	flow_lookup_use(NULL);
}

void flow_table_lookup4(const struct flow_table *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	flow_lookup->v4(t, keys, out, n);
}

void flow_table_lookup6(const struct flow_table *t, const struct flow_key *keys, flow_entry_t *out, unsigned n)
{
	flow_lookup->v6(t, keys, out, n);
}

flow_entry_t flow_table_find(const struct flow_table *t, const struct flow_key *key)
{
	flow_entry_t e;

	if (key->family == 6)
		flow_table_lookup6(t, key, &e, 1);
	else
		flow_table_lookup4(t, key, &e, 1);
	return e;
}
