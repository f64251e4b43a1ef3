// SPDX-License-Identifier: Apache-2.0
// Flows: sessions of two directions. What is to be done with their packets is decided once, when the first one comes (flow_create), and
// again after a change of what it was decided by (generations).
//
// A flow is three cache lines: one for each direction, which is all that an established packet touches, and one for the rest. Direction 0
// is that of the first packet. Translated packets are rewritten to the reverse of the other direction's key.
#pragma once

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_cycles.h>

#include "base/error.h"
#include "base/rcu.h"
#include "flow/key.h"
#include "flow/table.h"
#include "l3/vrf.h"

#define FLOW_CAPACITY_MIN 1024u
#define FLOW_CAPACITY_MAX (32u << 20)
#define FLOW_CAPACITY_DEFAULT (512u << 10)

enum flow_dir_flags {
	FLOW_DENY = 1 << 0,   // drop, for flow.reason
	FLOW_NAT = 1 << 1,    // rewrite to the reverse of the other direction's key
	FLOW_WATCH = 1 << 2,  // every packet goes to flow_create: TCP before it is established
	FLOW_MIRROR = 1 << 3, // its rules or its ports have mirrors
	FLOW_ROUTED = 1 << 4, // nexthop holds; else bridged: only the verdict counts
	FLOW_TCP = 1 << 5,    // SYN, FIN and RST go to flow_create
	FLOW_FIXED = 1 << 6,  // the next hop is the label's or VNI's, not a route's
	FLOW_METER = 1 << 7,  // its rules or its ports have meters
};

struct flow_dir {
	struct flow_key key;
	uint32_t nexthop; // id, a group's member
	uint16_t gen;     // flow_zones[].gen at which this was decided; any other: flow_create decides anew
	uint16_t seen;    // flow_now() of the last packet: all workers rw, a race costs nothing
	uint8_t flags;    // enum flow_dir_flags
	uint8_t owner;    // worker that counts here, without atomics; others count in flow.others
	uint16_t hi;      // of packets, beyond 32 bits
	uint32_t packets; // owner: rw, others ro
	uint64_t bytes;   // of IP packets; owner: rw, others ro
} __rte_aligned(64);
static_assert(sizeof(struct flow_dir) == 64, "one cache line");

enum flow_state {
	FLOW_FREE,
	FLOW_LIVE,
	FLOW_ENDING, // somebody takes it out of the table
	FLOW_ENDED,  // out of the table; the owner of its chunk will see it
	FLOW_DYING,  // in its grace period, or not used since
};
enum flow_tcp { TCP_NONE, TCP_SYN_SENT, TCP_SYN_RECV, TCP_ESTABLISHED, TCP_FIN_WAIT, TCP_CLOSING, TCP_CLOSED, TCP_STATES };

struct flow {
	struct flow_dir dir[2];
	uint8_t state; // enum flow_state: who makes it, who ends it, the owner of its chunk
	uint8_t tcp;   // enum flow_tcp
	uint8_t fin;   // a bit for each direction that has sent FIN
	uint8_t spare;
	uint16_t reason;    // drop reason while denied
	uint16_t port[2];   // ids: where direction 0 comes in and goes out to; 0 = a tunnel
	uint16_t owner;     // port whose quota it counts against
	uint16_t meter[2];  // of those rules, for both directions together; the ports' own lie with the ports (port_fwd)
	uint16_t mirror[2]; // of those rules
	uint32_t rule[2];   // ids of the rules that decided: of the sender's port and of the receiver's; 0 = the default
	uint32_t nat;       // id of the rule that translates, 0 = none
	uint32_t created;   // flow_now()
	uint32_t unused;
	uint32_t other_packets[2]; // counted by workers that are not dir[].owner, atomic
	uint64_t other_bytes[2];
} __rte_aligned(64);
static_assert(sizeof(struct flow) == 192, "three cache lines");

extern struct flow *flows; // workers: ro, set once; 0 is no flow
extern struct flow_table *flow_table;

static inline struct flow *flow_of(flow_entry_t e)
{
	return &flows[e >> 1];
}

static inline struct flow_dir *flow_entry_dir(flow_entry_t e)
{
	return (struct flow_dir *)((uint8_t *)flows + (uint64_t)(e >> 1) * sizeof(struct flow) + (e & 1) * sizeof(struct flow_dir));
}

static inline const struct flow_key *flow_entry_key(flow_entry_t e)
{
	return &flow_entry_dir(e)->key;
}

static inline flow_entry_t flow_entry(const struct flow *f, unsigned dir)
{
	return (flow_entry_t)((f - flows) << 1 | dir);
}

// What workers need to know of a VRF or bridge domain.
struct flow_zone {
	uint16_t gen;  // never 0; a flow of another generation is decided anew
	bool stateful; // some of its ports keep flows: packets go through flow_lookup
};
extern struct flow_zone flow_zones[1 << 16]; // master: rw, workers: ro

// Seconds since the process began, 16 bits of it matter to flows.
extern uint64_t flow_tsc_start, flow_tsc_hz;
static inline uint32_t flow_seconds(uint64_t tsc)
{
	return (uint32_t)((tsc - flow_tsc_start) / flow_tsc_hz);
}

static inline uint32_t flow_now(void)
{
	return flow_seconds(rte_rdtsc());
}

// --- Start. The address range is for FLOW_CAPACITY_MAX flows; memory for `capacity` is taken by flow_start(). ---
int flow_init(uint32_t capacity);                            // -ENOMEM
int flow_start(struct error *err);                           // the first port keeps flows; again: nothing
void flow_fini(void);                                        // no reader is online
int flow_set_capacity(uint32_t capacity, struct error *err); // grows while packets flow; never shrinks
uint32_t flow_capacity(void);
uint32_t flow_count(void);      // in use, those in their grace period included
uint32_t flow_used_range(void); // flows from this number on have never been used

// --- Workers, by their id. ---
struct flow *flow_alloc(unsigned worker);              // NULL: none left. All zero, but for state: FLOW_FREE
void flow_alloc_prefetch(unsigned worker, unsigned n); // so many are about to be taken
void flow_put_back(unsigned worker, struct flow *f);   // nobody else has seen it

// --- Ends of flows. ---
void flow_poll(void);                         // master, from its loop, each millisecond
bool flow_age_unfinished(unsigned worker);    // that worker: there is more to do soon
void flow_age(unsigned worker, uint64_t tsc); // each worker, between two walks of its graph: a slice of its own flows
uint32_t flow_idle(const struct flow *f, unsigned dir, uint16_t now); // seconds since the direction's last packet
// Out of the table now, reused after a grace period. Workers, and the master while it is a reader (RCU_MASTER).
void flow_end(struct flow *f);

// --- Zones. ---
void flow_zone_init(void);
void flow_zone_changed(uint16_t zone); // what its flows were decided by has changed, or is just changing
void flow_all_changed(void);
void flow_changes_take_effect(
	void); // packets from here on are decided by what is now: with the end of each request, and each millisecond
