// SPDX-License-Identifier: Apache-2.0
// Decides from the current tables what a flow may do and where its packets go. It changes nothing and counts nothing.
// Workers call it for new flows and for stale ones, `corelane flow explain` for hypothetical packets.
#pragma once

#include "flow/flow.h"
#include "l3/fib.h"
#include "l3/nexthop.h"
#include "policy/nat.h"
#include "policy/rules.h"

extern const struct drop_reason *const flow_no_endpoint; // of a service
extern const struct drop_reason *const flow_denied[2];   // by the rules, by enum rule_direction

// The last route of a batch, for keys that the same route decides. Nothing was changed since, as long as the zone's
// generation is the same: it changes after the routes, and is read before them.
struct flow_recent {
	const struct fib *fib; // NULL: none yet
	uint16_t zone, gen;
	struct fib_recent route;
};

struct flow_question {
	struct flow_key key;         // first direction, as the sender sends it
	uint16_t port;               // ingress tenant port, 0 = from a tunnel
	const struct nexthop *via;   // next hop of the packet's label or VNI; NULL: a route decides
	uint32_t target;             // in a bridge domain: where the MAC table has the destination (bridged.h)
	const struct flow_key *keep; // translated key of an existing flow; NULL: a new flow, or not translated
	uint32_t keep_rule;          // its translation rule
	struct flow_recent *recent;  // NULL: none
	uint16_t gen;                // with recent: generation of the key's zone, read before
};

struct flow_answer {
	bool stateful;                  // false: no flow is kept, or `keep` must end; the packet is routed without one
	const struct drop_reason *deny; // NULL: allowed
	uint32_t nexthop;               // id, never of a group; FIB_NONE: no route. In a bridge domain the way
	const struct nexthop *way;      // the same, or the next hop of a packet without a flow; NULL: none
	uint16_t out_port;              // stateful tenant port that receives it, 0 = none
	uint16_t owner;                 // port that the flow is charged to (quota), 0 = none
	struct nat_verdict nat;
	struct rule_verdict egress, ingress; // verdicts of the sender's and of the receiver's port
	struct flow_key out;                 // key after translation
};

void flow_decide(const struct flow_question *q, struct flow_answer *a);
// Looks up key.dst in its zone and resolves groups to a member, which the hash of `sent` selects, the key of the packet
// as it was sent. Returns the next hop's id, FIB_NONE without a route. *nh is NULL if the next hop has been removed.
uint32_t flow_route(const struct flow_key *key, const struct flow_key *sent, const struct nexthop **nh);
uint32_t flow_spread_hash(const struct flow_key *sent);
