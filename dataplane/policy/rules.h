// SPDX-License-Identifier: Apache-2.0
// Rules (security groups): what a tenant port may send and receive. Lists of rules have a name and an order and are
// attached to ports, one list per direction. The first matching rule decides, else the list's default. Rules are
// evaluated once per flow (flow/decide.h), so replies pass.
//
// A change is in effect when its function returns: workers match the changed rules one by one. The thread svc-rules
// then compiles a long list (rte_acl), which takes seconds for ten thousand rules.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/field_limits.h"
#include "base/flow_key.h"
#include "base/ip.h"
#include "base/referrer.h"

#define RULE_NAME (NOTATION_NAME_LONGEST + 1)
#define RULE_LISTS_MAX 4096      // ids 1..RULE_LISTS_MAX-1; 0 = none
#define RULE_LIST_RULES 65536    // in one list
#define RULE_LIST_ENTRIES 131072 // in one list and family; a rule has one per pair of source and destination prefix
#define RULE_LIST_ENTRIES_VALID "up to " RTE_STR(RULE_LIST_ENTRIES) " entries in a list once groups are spelled out"
#define ADDRESS_GROUPS_MAX 4096 // ids 1..ADDRESS_GROUPS_MAX-1; 0 = none
#define RULE_TEXT 512

enum rule_direction { RULES_EGRESS, RULES_INGRESS }; // sent by the guest, sent to the guest

struct port_config;

struct rules_config {      // of a port (PORT_SETTINGS())
	uint16_t lists[2]; // ids, by enum rule_direction; 0 = none
};
const struct rules_config *rules_config(const struct port_config *cfg);
struct rules_config *rules_config_edit(struct port_config *cfg);

// What a rule names for the flows that match. The compiled rule, the verdict and the flow carry it whole.
struct rule_extras {
	uint16_t meter;  // limits the flows that the rule allows, 0 = none
	uint16_t mirror; // copies the flows, 0 = none
};

struct rule_verdict {
	bool denied, log;
	uint32_t rule; // id within the list, 0 = the default, or no list
	struct rule_extras extras;
	uint32_t slot; // counter of hits, 0 = no list
};

// Workers and master (RCU). The verdict on the first packet of a flow, as the guest sends or would receive it. An ICMP
// echo reply counts as an echo request, because flow keys do not tell them apart.
void rules_classify(uint16_t port, enum rule_direction dir, const struct flow_key *key, struct rule_verdict *out);
// The verdict on a packet that is not IP: no rule matches it, so it is the default of the list.
void rules_default(uint16_t port, enum rule_direction dir, struct rule_verdict *out);
void rules_hit(const struct rule_verdict *v); // workers: counts a flow for the rule or default that decided

// Callbacks for other modules. Master.
struct rules_listener {
	void (*changed)(uint16_t port); // after each change of the port's rules
	struct rules_listener *next;
};
void rules_listen(struct rules_listener *l);

// --- Control plane: master thread only. ---

struct rule {
	uint32_t id;
	bool allow, log;
	int16_t proto;                 // -1 = any
	struct ip_prefix src, dst;     // family 0 = any
	uint16_t src_group, dst_group; // instead of a prefix, 0 = none
	struct rule_extras extras;
	uint16_t ports[2][2]; // source and destination: first and last, host byte order; ICMP: type and code
	// Filled by rules_add().
	uint32_t slot;        // counter of hits
	uint32_t shadowed_by; // id of an earlier rule that matches everything this one matches, 0 = none
	uint64_t seq;         // rule_list.seq of its last change
};

struct rules_set;

struct rule_list { // only rules_*() and rule_list_*() change it
	char name[RULE_NAME];
	uint16_t id;
	bool allow;
	unsigned refs; // attachments
	struct rule *rules;
	size_t n;
	uint64_t seq;        // number of the last change
	uint32_t entries[2]; // IPv4, IPv6
	uint32_t slot;       // counter of hits of the default
	struct rules_set *set;
	bool wanted, running; // needs compiling; is being compiled
	char last_error[128];
};

int rules_init(struct error *err);
void rules_fini(void); // no reader may be online
void rules_poll(void); // from the master's loop: publishes what svc-rules has compiled, and gives it the next list

struct rule_list *rule_list_add(const char *name, bool allow, struct error *err);
int rule_list_set(struct rule_list *l, bool allow);     // -ENOMEM
int rule_list_del(const char *name, struct error *err); // -EBUSY while a port uses it
struct rule_list *rule_list_get(uint16_t id);           // NULL
struct rule_list *rule_list_find_err(const char *name, const char *field, struct error *err);
struct rule_list *rule_list_next(const struct rule_list *l); // NULL: the first one
const char *rule_list_name(uint16_t id);                     // "" for 0
uint16_t rule_list_id(const struct rule_list *l);

// Adds n rules, in any order: all of them or none. err->index is the rule that was refused. On success r[] holds the
// rules as they are in the list. replace: rules with an id that exists are replaced, else -EEXIST.
int rules_add(struct rule_list *l, struct rule *r, size_t n, bool replace, struct error *err);
// The checks of rules_add() without the change.
int rules_check(const struct rule_list *l, struct rule *r, size_t n, bool replace, struct error *err);
int rules_del(struct rule_list *l, const uint32_t *ids, size_t n, struct error *err);
const struct rule *rules_next(const struct rule_list *l, uint32_t after); // next higher id; NULL: none
const struct rule *rules_get(const struct rule_list *l, uint32_t id);     // NULL
uint64_t rule_hits(uint32_t slot);

struct address_group {
	char name[RULE_NAME];
	uint16_t id;
	uint32_t rules;   // number of rules that name it
	uint32_t holders; // labels and VNIs that accept packets from it (address_set.h)
	size_t n;
	struct ip_prefix *prefixes;
};

void address_group_refer(struct referrer *r); // of a module that holds references (address_set.h)
struct address_group *address_group_add(const char *name, const struct ip_prefix *p, size_t n, struct error *err);
int address_group_set(struct address_group *g, const struct ip_prefix *p, size_t n, struct error *err);
int address_group_del(const char *name, struct error *err); // -EBUSY while something names it
struct address_group *address_group_get(uint16_t id);       // NULL
struct address_group *address_group_find_err(const char *name, const char *field, struct error *err);
struct address_group *address_group_next(const struct address_group *g); // NULL: the first one

// Formats the rule as arguments of `corelane rule add LIST`: "100 allow --protocol tcp --destination-ports 80".
const char *rule_text(const struct rule *r, char buf[RULE_TEXT]);
int rule_protocol_parse(const char *text, const char *field, int16_t *out, struct error *err); // "" and "any": -1
const char *rule_protocol_name(int16_t proto, char buf[16]);                                   // -1: ""
const char *rule_range_text(const uint16_t range[2], uint16_t most, char buf[16]);             // full range: ""
