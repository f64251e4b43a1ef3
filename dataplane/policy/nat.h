// SPDX-License-Identifier: Apache-2.0
// Address translation: rules of a VRF say which flows get another source or destination. Flows ask once (flow/decide.h); each packet is
// then rewritten to the reverse of the other direction's key.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/ip.h"
#include "flow/key.h"

struct nat_verdict {
	uint32_t rule;  // id, 0 = nothing is translated
	uint32_t ports; // how many source ports may be tried: 0 = the port stays
	uint16_t first; // the first of them, host byte order
};

// Workers and master (RCU). Before the route is looked up: a new destination (and zone, where the rule leads to another VRF).
// Both change *key in place and set v where a rule matches.
void nat_destination(struct flow_key *key, struct nat_verdict *v);
// After it: a new source for what leaves. hash: chooses the pool's address and the first port tried.
void nat_source(const struct flow_key *original, struct flow_key *key, uint32_t hash, struct nat_verdict *v);
