// SPDX-License-Identifier: Apache-2.0
// Flow quotas of tenant ports, their shares of the table, and a cache of recent refusals.
//
// While the table has room, a port may have any number of flows up to its limit. Once FLOW_PRESSURE_PERCENT of the
// table are in use, the ports with the most flows get no new ones, and their oldest flows end first (ager.c). The
// level above which a port has too many is the max-min fair one: the highest at which min(flows, level) of all ports
// fits into FLOW_WEIGH_PERCENT of the table. So ports that need little always find room, whoever fills the table.
// Denied flows, which cost their sender nothing, have a cap of their own.
#pragma once

#include <stdint.h>

#include "flow/key.h"
#include "graph/drop.h"
#include "worker/worker.h"

struct port_config;

struct flow_quota_config { // of a port (PORT_SETTINGS())
	uint32_t limit;    // flows at once, 0 = no limit
	uint32_t rate;     // new flows per second, 0 = no limit
};

struct flow_quota_state {
	uint32_t flows; // in use now
	uint32_t limit; // 0 = none
	uint32_t rate;  // new flows per second, 0 = no limit
	uint64_t refused;
};

#define FLOW_PRESSURE_PERCENT 85
#define FLOW_WEIGH_PERCENT 80 // from this fill level on, the fair level is computed
#define FLOW_DENIED_SHARE 64  // a port may have the capacity divided by this in denied flows, but at least:
#define FLOW_DENIED_MIN 64

#define QUOTA_MASTER WORKER_MAX // the master's `worker` argument of flow_quota_return()

// Workers. Charges a new flow to this port. Returns NULL, or the reason for refusing it.
const struct drop_reason *flow_quota_take(unsigned worker, uint16_t port);
// Master, while this worker does not run. Charges a flow that was accepted before a restart.
void flow_quota_carried(unsigned worker, uint16_t port);
// The flow has ended, or was not created after all.
void flow_quota_return(unsigned worker, uint16_t port);
// Workers. Charges a flow that is created denied, beside flow_quota_take(); false: the port has too many of them.
bool flow_quota_take_denied(unsigned worker, uint16_t port);
void flow_quota_return_denied(unsigned worker, uint16_t port);
bool flow_quota_over_share(uint16_t port); // the port had more flows than the fair level lately. Any thread
bool flow_quota_over_level(uint16_t port); // the same, counted now

// Workers. An ICMP error about a flow, sent by this port, or received by it from a tunnel; false: too many within the
// second.
bool flow_quota_error(uint16_t port, bool received);

// Workers. A flow that was refused within the last seconds, by its owner's quota or by rules, is refused again at the
// cost of one lookup, as long as the reason lasts. NULL: not refused recently, or the reason has ended.
const struct drop_reason *flow_refused(unsigned worker, const struct flow_key *key, uint16_t now);
void flow_refused_add(unsigned worker, const struct flow_key *key, uint16_t owner, const struct drop_reason *why,
		      uint16_t now);

// Share of flows in use, in percent. Master: wo, workers: ro.
extern uint32_t flow_used_percent;
static inline uint32_t flow_pressure(void)
{
	return __atomic_load_n(&flow_used_percent, __ATOMIC_RELAXED);
}

// Master.
const struct flow_quota_config *flow_quota_config(const struct port_config *cfg);
struct flow_quota_config *flow_quota_config_edit(struct port_config *cfg);
void flow_quota_weigh(void); // computes the fair level; every few milliseconds
void flow_quota_set(uint16_t port, uint32_t limit, uint32_t rate);
struct flow_quota_state flow_quota_get(uint16_t port);
