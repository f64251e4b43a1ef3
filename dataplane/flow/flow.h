// SPDX-License-Identifier: Apache-2.0
// Flows: sessions of two directions. flow_create decides once, at the first packet, what happens to a flow's packets,
// and again when the flow is stale: a route, rule, port or translation that the decision may depend on has changed
// since (generations).
//
// A flow takes three cache lines: one for each direction, the only one that an established packet touches, and one for
// the rest. Direction 0 is the direction of the first packet. Translation rewrites a packet to the reverse of the other
// direction's key.
#pragma once

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_cycles.h>

#include "base/error.h"
#include "base/field_limits.h"
#include "base/rcu.h"
#include "flow/key.h"
#include "flow/table.h"
#include "l3/vrf.h"
#include "policy/rules.h"

#define FLOW_CAPACITY_MIN ((uint32_t)LIMIT_FLOW_RESIZE_REQUEST_CAPACITY_MIN)
#define FLOW_CAPACITY_MAX ((uint32_t)LIMIT_FLOW_RESIZE_REQUEST_CAPACITY_MAX)
#define FLOW_CAPACITY_DEFAULT 524288 // of --flows

enum flow_dir_flags {
	FLOW_DENY = 1 << 0,   // drop for flow.reason
	FLOW_NAT = 1 << 1,    // rewrite to the reverse of the other direction's key
	FLOW_WATCH = 1 << 2,  // every packet goes to flow_create: TCP that is not established
	FLOW_MIRROR = 1 << 3, // its rules or its ports have mirrors
	FLOW_TCP = 1 << 5,    // SYN, FIN and RST go to flow_create
	FLOW_FIXED = 1 << 6,  // the next hop comes from the packet's label or VNI, not from a route
	FLOW_METER = 1 << 7,  // its rules or its ports have meters
};

#define FLOW_UNOWNED UINT8_MAX // owner of a direction that no worker has seen since a restart

struct flow_dir {
	struct flow_key key;
	uint32_t nexthop; // id, never of a group; in a bridge domain the way of its packets (bridged.h)
	uint16_t gen;     // flow_zones[].gen of the decision; if it differs, the flow is stale
	uint16_t seen;    // flow_now() of the last packet: all workers rw, races are harmless
	uint8_t flags;    // enum flow_dir_flags
	uint8_t owner;    // worker that counts here without atomics; others count in flow.other_packets and other_bytes
	uint16_t hi;      // upper 16 bits of the packet count
	uint32_t packets; // owner: rw, others ro
	uint64_t bytes;   // of IP packets; owner: rw, others ro
} __rte_aligned(64);
static_assert(sizeof(struct flow_dir) == 64, "one cache line");

enum flow_state {
	FLOW_FREE,
	FLOW_LIVE,
	FLOW_ENDING, // a thread is removing it from the table
	FLOW_ENDED,  // removed from the table; the owner of its chunk has yet to bury it
	FLOW_DYING,  // in its grace period, or free and not reused yet
};
enum flow_tcp {
	TCP_NONE,
	TCP_SYN_SENT,
	TCP_SYN_RECV,
	TCP_ESTABLISHED,
	TCP_FIN_WAIT,
	TCP_CLOSING,
	TCP_CLOSED,
	TCP_STATES
};

struct flow {
	struct flow_dir dir[2];
	// enum flow_state. Written by the flow's creator, then by the thread that ends it, then by its chunk's owner.
	uint8_t state;
	uint8_t tcp;      // enum flow_tcp
	uint8_t fin;      // a bit for each direction that has sent FIN
	bool born_denied; // charged to the port's cap of denied flows; constant from creation on
	uint16_t reason;  // drop reason while denied
	uint16_t port[2]; // ids of the ports by which direction 0 enters and leaves; 0 = a tunnel
	uint16_t owner;   // port that the flow is charged to (quota)
	// Of rule[]. Each meter is for both directions. What the ports name is in port_fwd.
	struct rule_extras extras[2];
	uint32_t rule[2];     // ids of the deciding rules of the sender's and of the receiver's port; 0 = the default
	uint32_t nat;         // id of the translation rule, 0 = none
	uint32_t created;     // flow_now()
	uint8_t lock;         // held while a worker decides about the flow or follows its TCP state (flow_lock.h)
	uint8_t after_end[2]; // TCP_CLOSING, TCP_CLOSED: packets of each direction since then
	uint8_t unused;
	uint32_t other_packets[2]; // counted by workers that are not dir[].owner, atomic
	uint64_t other_bytes[2];
} __rte_aligned(64);
static_assert(sizeof(struct flow) == 192, "three cache lines");

static inline uint64_t flow_packets(const struct flow *f, unsigned dir)
{
	return ((uint64_t)f->dir[dir].hi << 32 | f->dir[dir].packets) +
	       __atomic_load_n(&f->other_packets[dir], __ATOMIC_RELAXED);
}

static inline uint64_t flow_bytes(const struct flow *f, unsigned dir)
{
	return f->dir[dir].bytes + __atomic_load_n(&f->other_bytes[dir], __ATOMIC_RELAXED);
}

extern struct flow *flows; // workers: ro, set once; number 0 is not a flow
extern struct flow_table *flow_table;

static inline struct flow *flow_of(flow_entry_t e)
{
	return &flows[e >> 1];
}

static inline struct flow_dir *flow_entry_dir(flow_entry_t e)
{
	return (struct flow_dir *)((uint8_t *)flows + (uint64_t)(e >> 1) * sizeof(struct flow) +
				   (e & 1) * sizeof(struct flow_dir));
}

static inline const struct flow_key *flow_entry_key(flow_entry_t e)
{
	return &flow_entry_dir(e)->key;
}

static inline flow_entry_t flow_entry(const struct flow *f, unsigned dir)
{
	return (flow_entry_t)((f - flows) << 1 | dir);
}

// What workers read about a VRF or bridge domain.
struct flow_zone {
	uint16_t gen; // never 0; a flow of another generation is stale
	// Some of its ports keep flows: packets go through flow_lookup. The master sets this, lets a grace period pass
	// and then adds the port (port_guard()), so that a worker that reads false without any ordering cannot find the
	// port with the same packet.
	bool stateful;
};
extern struct flow_zone flow_zones[1 << 16]; // master: rw, workers: ro

static inline uint16_t flow_zone_gen(uint16_t zone)
{
	return __atomic_load_n(&flow_zones[zone].gen, __ATOMIC_RELAXED);
}

// Seconds since the process started; flows keep the lower 16 bits.
extern uint64_t flow_tsc_start, flow_tsc_hz;
static inline uint32_t flow_seconds(uint64_t tsc)
{
	return (uint32_t)((tsc - flow_tsc_start) / flow_tsc_hz);
}

static inline uint32_t flow_now(void)
{
	return flow_seconds(rte_rdtsc());
}

// --- Start. flow_init() reserves addresses for FLOW_CAPACITY_MAX flows. flow_start() takes memory for the first ones,
// flow_grow_step() for the others, up to the capacity. ---
int flow_init(uint32_t capacity);  // -ENOMEM
int flow_start(struct error *err); // when the first port keeps flows; idempotent
void flow_fini(void);              // no reader may be online
// Master, each millisecond: takes memory for more flows, and moves this many buckets of the table to a larger one.
// Returns whether something is left to do.
bool flow_grow_step(unsigned buckets);
bool flow_growing(void);                                     // the table does not have room for all flows yet
int flow_set_capacity(uint32_t capacity, struct error *err); // grows while packets flow; never shrinks
uint32_t flow_capacity(void);
uint32_t flow_count(void);      // flows in use, including those in their grace period
uint32_t flow_used_range(void); // flows with this number or a higher one have never been used

// --- Allocation. Called by the worker with this id. ---
struct flow *flow_alloc(unsigned worker);              // NULL: none left. All zero; state is FLOW_FREE
void flow_alloc_prefetch(unsigned worker, unsigned n); // n allocations are about to follow
void flow_unalloc(unsigned worker, struct flow *f);    // undoes flow_alloc(); the flow was never published

// --- Ends of flows. ---
void flow_poll(void);                         // master, each millisecond
bool flow_age_unfinished(unsigned worker);    // called by that worker; true: flow_age() has more work soon
void flow_age(unsigned worker, uint64_t tsc); // each worker, between two graph walks: ages a slice of its own flows
uint32_t flow_idle(const struct flow *f, unsigned dir, uint16_t now); // seconds since the direction's last packet
// Removes a flow from the table; its memory is reused after a grace period. Callers: workers, and the master while it
// is a reader (RCU_MASTER).
void flow_end(struct flow *f);

// --- Zones. ---
void flow_zone_init(void);
void flow_zone_changed(uint16_t zone); // its flows become stale at the next flow_changes_take_effect()
void flow_all_changed(void);           // the same for all stateful zones
// Starts a new generation in each changed zone. Called after every API request and every millisecond.
void flow_changes_take_effect(void);
