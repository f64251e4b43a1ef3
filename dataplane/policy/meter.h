// SPDX-License-Identifier: Apache-2.0
// Meters: rate limits (RFC 2697, one rate, color blind). Whoever names a meter shares its rate, whatever worker its packets are on: a meter
// is one bucket behind a lock of its own. Tokens are bytes of IP packets, or packets.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_meter.h>
#include <rte_spinlock.h>

#include "base/error.h"
#include "base/field_limits.h"

#define METER_NAME (NOTATION_NAME_LONGEST + 1)
#define METER_MAX (1u << 16) // ids 1..METER_MAX-1; 0 = none

struct meter_config { // one of the rates is not 0
	char name[METER_NAME];
	uint64_t bit_rate, burst_bytes;
	uint64_t packet_rate, burst_packets; // bursts of 0: what fits the rate
};

struct meter_count {
	uint64_t packets, bytes;
};

struct meter {
	// Workers: rw, under the lock; master: too.
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

// Workers: whether a packet of so many bytes is within the rate. tsc: now, give or take a batch. 0, or a meter that has gone: it is.
bool meter_pass(uint16_t id, uint32_t bytes, uint64_t tsc);

// --- Control plane: master thread only. ---
void meter_init(void);                                                                      // follows the ports
struct meter *meter_get(uint16_t id);                                                       // NULL
struct meter *meter_find(const char *name);                                                 // NULL
struct meter *meter_find_err(const char *name, const char *field, struct error *err);       // NULL with -ENOENT
struct meter *meter_next(const struct meter *m);                                            // by id; NULL: the first one
struct meter *meter_add(const struct meter_config *cfg, struct error *err);                 // NULL with err
int meter_set(struct meter *m, const struct meter_config *cfg, struct error *err);          // counters go on, at once
int meter_del(const char *name, struct error *err);                                         // -EBUSY while it is named
void meter_count(struct meter *m, struct meter_count *passed, struct meter_count *dropped); // so far
// Who names a meter holds it. 0 is ignored. Flows learn of it by flow_zone_changed().
void meter_ref(uint16_t id);
void meter_unref(uint16_t id);
