// SPDX-License-Identifier: Apache-2.0
// What flows are decided by while there are neither rules nor translation: everything passes as it is.
#include "policy/nat.h"
#include "policy/rules.h"

void rules_classify(uint16_t port, enum rule_direction dir, const struct flow_key *key, struct rule_verdict *out)
{
	*out = (struct rule_verdict){0};
}

void nat_destination(struct flow_key *key, struct nat_verdict *v)
{
}

void nat_source(const struct flow_key *original, struct flow_key *key, uint32_t hash, struct nat_verdict *v)
{
}

