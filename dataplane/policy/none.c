// SPDX-License-Identifier: Apache-2.0
// What flows are decided by while there is no translation: everything passes as it is.
#include "policy/nat.h"

void nat_destination(struct flow_key *key, struct nat_verdict *v)
{
}

void nat_source(const struct flow_key *original, struct flow_key *key, uint32_t hash, struct nat_verdict *v)
{
}

