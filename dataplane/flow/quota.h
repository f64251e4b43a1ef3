// SPDX-License-Identifier: Apache-2.0
// What one tenant port may take of the flow table, and what is refused without asking again.
#pragma once

#include <stdint.h>

#include "flow/key.h"
#include "graph/drop.h"
#include "worker/worker.h"

struct flow_quota_state {
	uint32_t flows; // in use now
	uint32_t limit; // 0 = none
	uint32_t rate;  // new ones per second, 0 = any number
	uint64_t refused;
};

#define QUOTA_MASTER WORKER_MAX // as a worker, to return

// Workers. A new flow on account of this port: NULL, or why not.
const struct drop_reason *flow_quota_take(unsigned worker, uint16_t port);
void flow_quota_return(unsigned worker, uint16_t port); // the flow has gone

// Workers: flows that were refused a moment ago are refused again, at the cost of one lookup.
const struct drop_reason *flow_refused(unsigned worker, const struct flow_key *key, uint16_t now); // NULL: not known
void flow_refused_add(unsigned worker, const struct flow_key *key, const struct drop_reason *why, uint16_t now);

// Master.
void flow_quota_set(uint16_t port, uint32_t limit, uint32_t rate);
struct flow_quota_state flow_quota_get(uint16_t port);
