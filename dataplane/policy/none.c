// SPDX-License-Identifier: Apache-2.0
// What flows are decided by while there are no rules: everything passes.
#include "policy/rules.h"

void rules_classify(uint16_t port, enum rule_direction dir, const struct flow_key *key, struct rule_verdict *out)
{
	*out = (struct rule_verdict){0};
}
