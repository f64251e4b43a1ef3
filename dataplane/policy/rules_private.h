// SPDX-License-Identifier: Apache-2.0
// Internal interface between the files of the rules.
#pragma once

#include <rte_acl.h>

#include "policy/rules.h"
#include "port/port.h"

#define RULES_LINEAR 64        // up to this many entries, a linear search beats rte_acl (tests/perf/rules_bench)
#define RULES_BESIDE 8         // more uncompiled entries than this beside a base make the set stale
#define RULES_SHADOW_MAX 16384 // longer lists are not searched for shadowed rules
#define RULE_SLOTS (1u << 18)  // counters for the rules and defaults of all lists; 0 = none

enum { RULE_ALLOW = 1, RULE_LOG = 2 }; // rule_match.flags

// One entry: a rule with one source and one destination prefix. Immutable once published. IPv4 needs only the first 32
// bytes.
struct rule_match {
	uint64_t addr0, mask0; // words of flow_key.addr
	uint16_t ports[2][2];  // first, and last - first; host byte order
	uint8_t proto, proto_mask;
	uint8_t flags;
	uint8_t padding;
	uint32_t id;
	uint64_t addr[3], mask[3]; // IPv6: flow_key.addr[1..3]
	uint32_t slot;
	struct rule_extras extras;
};

// A compiled snapshot of a list. Immutable, shared by the sets that build on it.
struct rules_base {
	uint64_t seq;               // rule_list.seq at the time of the snapshot
	unsigned refs;              // master
	uint32_t n[2];              // IPv4, IPv6
	struct rule_match *m[2];    // in the order of ids
	struct rte_acl_ctx *acl[2]; // NULL: few entries, searched linearly
};

// The form of a list that workers read: a base, and the changes since. Immutable, replaced as a whole (RCU).
struct rules_set {
	bool allow; // the default
	uint32_t slot;
	struct rules_base *base; // NULL: none
	uint64_t *dead[2];       // bitmap of the base's entries that were removed or replaced; NULL: none
	uint32_t n[2];
	struct rule_match *m[2]; // entries that the base does not have, in the order of ids
};

extern struct rules_set *rules_sets[PORT_MAX][2]; // master: rw, workers: ro (RCU). NULL: everything is allowed

// rules_match.c: entries.
uint32_t rule_entries(const struct rule *r, unsigned f); // f: 0 = IPv4, 1 = IPv6
uint32_t rule_expand(const struct rule *r, unsigned f, struct rule_match *out);
// Returns false if no rule matches: the default action applies.
bool rules_lookup(const struct rules_set *s, const struct flow_key *key, struct rule_verdict *out);

// rules_set.c: sets and bases.
struct rules_set *rules_set_make(const struct rule_list *l, const struct rule *rules, size_t n, bool allow,
				 struct rules_base *base);
void rules_set_free(struct rules_set *s);
bool rules_set_stale(const struct rules_set *s); // should be compiled again
int rules_compile_start(void);
void rules_compile_stop(void);
void rules_compile_poll(void);

// rules_shadow.c: sets rule.shadowed_by. since: rules with a higher seq are new. gone: ids of deleted and replaced
// rules, sorted.
void rules_shadow(struct rule *rules, size_t n, uint64_t since, const uint32_t *gone, size_t n_gone);

// rules_hits.c
int rule_slots_init(void);
void rule_slots_fini(void);
uint32_t rule_slot_get(void); // 0: none left
void rule_slot_put(uint32_t slot);
// The same for many, whose array it frees. The counters of all workers are cleared by rule_slots_poll().
void rule_slots_put(uint32_t *slot, size_t n);
unsigned rule_slots_left(void);
unsigned rule_slots_leaving(void); // of them: to be cleared
#define RULE_SLOTS_TURN 1024       // that one rule_slots_poll() clears
void rule_slots_poll(void);        // allocates the counters of workers and clears them, some at a time
uint64_t *rules_hits_counter(unsigned worker, uint32_t slot);

// rules_port.c
void rules_port_init(void);
// Publishes a set for all ports of the list. Frees slots[] and the old set after a grace period. tell: call the
// listeners.
void rules_publish(struct rule_list *l, struct rules_set *set, uint32_t *slots, size_t n_slots, bool tell);
