// SPDX-License-Identifier: Apache-2.0
// Decides what a flow may do and where its packets go, from the tables as they are now. Changes nothing and counts nothing: workers ask it for
// new flows and for those whose generation is over, and `corelane flow explain` for packets that do not exist.
#pragma once

#include "flow/flow.h"
#include "l3/nexthop.h"
#include "policy/nat.h"
#include "policy/rules.h"

struct flow_question {
	struct flow_key key;         // of the first direction, as sent
	uint16_t port;               // tenant port that it comes in by, 0 = from a tunnel
	const struct nexthop *via;   // of the label or VNI, NULL: a route decides
	uint32_t hash;               // chooses among the members of groups
	const struct flow_key *keep; // a translated flow that is there: as it leaves; NULL: none, or not translated
};

struct flow_answer {
	bool stateful;                  // false: nobody wants flows here, or not this one any more; the packet takes its route
	const struct drop_reason *deny; // NULL: it may pass
	uint32_t nexthop;               // a group's member; FIB_NONE: no route
	uint16_t out_port;              // tenant port that it leaves by, 0 = none
	uint16_t owner;                 // port whose quota it counts against, 0 = nobody's
	struct flow_key out;            // as it leaves
	struct nat_verdict nat;
	struct rule_verdict egress, ingress; // of the sender's port and the receiver's
};

void flow_decide(const struct flow_question *q, struct flow_answer *a);
// The way to key.dst in its zone. Returns FIB_NONE: none; *nh: NULL when it has gone.
uint32_t flow_route(const struct flow_key *key, uint32_t hash, const struct nexthop **nh);
uint32_t flow_spread_hash(const struct flow_key *key); // what chooses among a group's members
