// SPDX-License-Identifier: Apache-2.0
// Meters: rate limits (RFC 2697, one rate, colour-blind). All ports and rules that name a meter share its rate, on all
// workers: a meter is one token bucket with its own lock. Tokens are bytes of IP packets, or packets.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_meter.h>
#include <rte_spinlock.h>

#include "base/error.h"
#include "base/field_limits.h"
#include "base/referrer.h"

#define METER_NAME (NOTATION_NAME_LONGEST + 1)
#define METER_MAX (1u << 16) // ids 1..METER_MAX-1; 0 = none

struct meter_config { // exactly one of the rates is not 0
	char name[METER_NAME];
	uint64_t bit_rate, burst_bytes;
	uint64_t packet_rate, burst_packets; // burst 0: a default that fits the rate
};

struct meters_config {            // of a port (PORT_SETTINGS()); also in port_fwd
	uint16_t egress, ingress; // ids, 0 = none: for what the guest sends and receives
};
struct port_config;
const struct meters_config *meters_config(const struct port_config *cfg);
struct meters_config *meters_config_edit(struct port_config *cfg);

struct meter_count {
	uint64_t packets, bytes;
};

struct meter {
	// Workers and master: rw, under the lock.
	rte_spinlock_t lock;
	bool by_packet;
	struct rte_meter_srtcm bucket;
	struct rte_meter_srtcm_profile profile;
	struct meter_count passed, dropped;
	// Master only.
	struct meter_config cfg;
	uint64_t burst; // in effect
	uint32_t refs;  // ports and rules that name it
	uint16_t id;
} __rte_cache_aligned;

extern struct meter *meter_table[METER_MAX]; // workers: ro (RCU)

// Workers. Returns true if packets of so many bytes together are within the rate; id 0 and removed meters always pass.
// Several packets are one large segment, which passes if one of them would. tsc: now, to within a batch.
bool meter_pass(uint16_t id, uint32_t packets, uint32_t bytes, uint64_t tsc);

// --- Control plane: master thread only. ---
void meter_init(void);                                                                // registers a port listener
struct meter *meter_get(uint16_t id);                                                 // NULL
struct meter *meter_find(const char *name);                                           // NULL
struct meter *meter_find_err(const char *name, const char *field, struct error *err); // NULL with -ENOENT
struct meter *meter_next(const struct meter *m);                                      // by id; NULL: the first one
struct meter *meter_add(const struct meter_config *cfg, struct error *err);           // NULL with err
// Takes effect immediately and keeps the counters.
int meter_set(struct meter *m, const struct meter_config *cfg, struct error *err);
int meter_del(const char *name, struct error *err);                                         // -EBUSY while referenced
void meter_count(struct meter *m, struct meter_count *passed, struct meter_count *dropped); // since it was added
// Ports and rules hold a reference to the meters that they name. Id 0 is ignored. The caller must invalidate the flows
// that this affects (flow_zone_changed()).
void meter_ref(uint16_t id);
void meter_unref(uint16_t id);
void meter_refer(struct referrer *r); // of a module that holds references
