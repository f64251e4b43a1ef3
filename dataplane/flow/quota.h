// SPDX-License-Identifier: Apache-2.0
// Flow quotas of tenant ports, and a cache of recent refusals.
#pragma once

#include <stdint.h>

#include "flow/key.h"
#include "graph/drop.h"
#include "worker/worker.h"

struct flow_quota_state {
	uint32_t flows; // in use now
	uint32_t limit; // 0 = none
	uint32_t rate;  // new flows per second, 0 = no limit
	uint64_t refused;
};

#define QUOTA_MASTER WORKER_MAX // the master's `worker` argument of flow_quota_return()

// Workers. Charges a new flow to this port. Returns NULL, or the reason for refusing it.
const struct drop_reason *flow_quota_take(unsigned worker, uint16_t port);
void flow_quota_return(unsigned worker, uint16_t port); // the flow has ended, or was not created after all

// Workers. An ICMP error about a flow that is charged to this port; false: too many within the second.
bool flow_quota_error(uint16_t port);

// Workers. A flow that was refused within the last seconds is refused again, at the cost of one lookup.
// NULL: not refused recently.
const struct drop_reason *flow_refused(unsigned worker, const struct flow_key *key, uint16_t now);
void flow_refused_add(unsigned worker, const struct flow_key *key, const struct drop_reason *why, uint16_t now);

// Master.
void flow_quota_set(uint16_t port, uint32_t limit, uint32_t rate);
struct flow_quota_state flow_quota_get(uint16_t port);
