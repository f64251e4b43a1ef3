// SPDX-License-Identifier: Apache-2.0
// Rules (security groups): what a tenant port may send and receive. Lists of rules are named, ordered, and attached to ports, one list per
// direction. The first rule that matches decides; else the list's default. Flows ask once (flow/decide.h), so replies pass.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "flow/key.h"

enum rule_direction { RULES_EGRESS, RULES_INGRESS }; // sent by the guest, sent to the guest

struct rule_verdict {
	bool denied, log;
	uint32_t rule;   // id within the list, 0 = the default, or no list
	uint16_t meter;  // 0 = none
	uint16_t mirror; // 0 = none
};

// Workers and master (RCU). The verdict on the first packet of a flow, as the guest sends or would receive it.
void rules_classify(uint16_t port, enum rule_direction dir, const struct flow_key *key, struct rule_verdict *out);
