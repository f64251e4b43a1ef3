// SPDX-License-Identifier: Apache-2.0
// What the files of the rules share.
#pragma once

#include <rte_acl.h>

#include "policy/rules.h"
#include "port/port.h"

#define RULES_LINEAR 64 // up to so many entries of a family are walked, which is faster than rte_acl (tests/perf/rules_bench)
#define RULES_BESIDE 8  // entries that may stand beside what is compiled
#define RULES_SHADOW_MAX 16384 // lists of more rules are not searched for shadowed ones
#define RULE_SLOTS (1u << 18)  // counters of all lists' rules and defaults; 0 = none

enum { RULE_ALLOW = 1, RULE_LOG = 2 }; // rule_match.flags

// One entry: a rule with one source and one destination prefix. Immutable once workers may see it. IPv4 uses the first 32 bytes only.
struct rule_match {
	uint64_t addr0, mask0; // words of flow_key.addr
	uint16_t ports[2][2];  // first, and how many more; host byte order
	uint8_t proto, proto_mask;
	uint8_t flags;
	uint8_t spare;
	uint32_t id;
	uint64_t addr[3], mask[3]; // IPv6: flow_key.addr[1..3]
	uint32_t slot;
	uint16_t meter, mirror;
};

// The rules of a list at one moment, compiled. Immutable, shared by the sets that began with it.
struct rules_base {
	uint64_t seq;               // the list's when it was taken
	unsigned refs;              // master
	uint32_t n[2];              // IPv4, IPv6
	struct rule_match *m[2];    // in the order of ids
	struct rte_acl_ctx *acl[2]; // NULL: so few that they are walked
};

// What workers read of a list: a base, and what has changed since. Immutable, replaced as a whole (RCU).
struct rules_set {
	bool allow; // the default
	uint32_t slot;
	struct rules_base *base; // NULL: none
	uint64_t *dead[2];       // a bit for each entry of the base that no longer holds; NULL: all hold
	uint32_t n[2];
	struct rule_match *m[2]; // rules that the base does not have, in the order of ids
};

extern struct rules_set *rules_sets[PORT_MAX][2]; // master: rw, workers: ro (RCU). NULL: everything is allowed

// rules_match.c: entries.
uint32_t rule_entries(const struct rule *r, unsigned f); // f: 0 = IPv4, 1 = IPv6
uint32_t rule_expand(const struct rule *r, unsigned f, struct rule_match *out);
bool rules_lookup(const struct rules_set *s, const struct flow_key *key, struct rule_verdict *out); // false: the default

// rules_set.c: sets and bases.
struct rules_set *rules_set_make(const struct rule_list *l, const struct rule *rules, size_t n, bool allow,
				 struct rules_base *base);
void rules_set_free(struct rules_set *s);
bool rules_set_stale(const struct rules_set *s); // compiling would make it faster
int rules_compile_start(void);
void rules_compile_stop(void);
void rules_compile_poll(void);

// rules_shadow.c
void rules_shadow(struct rule *rules, size_t n, uint64_t since, const uint32_t *gone, size_t n_gone);

// rules_hits.c
int rule_slots_init(void);
void rule_slots_fini(void);
uint32_t rule_slot_get(void); // 0: none left
void rule_slot_put(uint32_t slot);
unsigned rule_slots_left(void);

// rules_port.c
void rules_port_init(void);
void rules_publish(struct rule_list *l, struct rules_set *set, uint32_t *slots, size_t n_slots,
		   bool tell); // slots: put when it is safe
