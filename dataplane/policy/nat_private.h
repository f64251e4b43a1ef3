// SPDX-License-Identifier: Apache-2.0
// Internal interface of address translation: rules as workers read them, and the table that finds them.
#pragma once

#include <sys/queue.h>

#include "policy/nat.h"

// An address as words in network byte order; IPv4 is in the lower half of the first word.
struct nat_words {
	uint64_t w[2];
};

struct nat_net {
	struct nat_words addr, mask;
};

struct nat_target {
	struct nat_words addr;
	uint32_t seed; // differs between backends
	uint16_t port; // network byte order, 0 = keep the port
	uint16_t weight;
};

struct nat_rule { // immutable, replaced as a whole
	uint32_t id;
	uint8_t kind, family, proto; // proto 0: any
	bool has_to;
	uint16_t vrf, external;
	uint16_t lo, hi;          // range of destination ports, host byte order; hi 0: any
	struct nat_words inside;  // floating: the address; source: the prefix
	struct nat_words outside; // floating, destination: the address; source: the pool's first
	uint32_t n_pool, n_ports; // source
	uint16_t first_port;      // source
	uint16_t n_except, n_targets;
	struct nat_net to;
	struct nat_net *except; // points into the same allocation, as do targets and the pointers of cfg
	struct nat_target *targets;
	struct service *service;   // NAT_SERVICE
	LIST_ENTRY(nat_rule) pool; // source rules. Master: rw
	struct nat_config cfg;     // as configured
};

enum nat_side { NAT_INSIDE, NAT_OUTSIDE }; // a rule's inside matches a flow's source, its outside a flow's destination

struct nat_zone {            // a VRF that has, or once had, rules. Master: rw, workers: ro
	uint64_t lens[2][3]; // bitmap of the prefix lengths of inside, by family
	uint32_t outside;    // rules with an outside here
	uint32_t leads;      // rules that lead from here to another VRF
	uint32_t rules;      // insides here plus outsides here. Master only
	uint32_t n[2][129];  // rules per family and length. Master only
};

static inline struct nat_words nat_words(const struct ip_addr *a)
{
	struct nat_words w = {{0, 0}};

	memcpy(&w, a->bytes, ip_bytes(a->family));
	return w;
}

static inline struct nat_words nat_mask(uint8_t family, unsigned len)
{
	struct nat_words m = {{0, 0}};

	if (family == IPV4) {
		m.w[0] = len ? rte_cpu_to_be_32(UINT32_MAX << (32 - len)) : 0;
	} else {
		m.w[0] = len ? rte_cpu_to_be_64(UINT64_MAX << (len < 64 ? 64 - len : 0)) : 0;
		m.w[1] = len > 64 ? rte_cpu_to_be_64(UINT64_MAX << (128 - len)) : 0;
	}
	return m;
}

bool nat_has_ports(uint8_t proto); // IP protocol: TCP, UDP, SCTP

static inline bool nat_words_equal(const struct nat_words *a, const struct nat_words *b)
{
	return ((a->w[0] ^ b->w[0]) | (a->w[1] ^ b->w[1])) == 0;
}

// --- The table. ---

struct nat_node {
	struct nat_node *next;
	struct nat_words addr; // host bits 0
	uint32_t where;        // VRF, side, family and length: NAT_WHERE
	const struct nat_rule *rule;
};

#define NAT_WHERE(zone, side, family, len) \
	((uint32_t)(zone) | (uint32_t)(side) << 16 | ((family) == 6 ? 1u << 17 : 0) | (uint32_t)(len) << 18)

struct nat_table {
	uint32_t mask;
	struct nat_node *bucket[];
};
extern struct nat_table *nat_table; // workers: ro (RCU), NULL before the first rule

static inline uint32_t nat_hash(uint32_t where, const struct nat_words *a)
{
	uint32_t h = flow_crc(flow_crc(flow_crc(0x5ca1ab1e, where), a->w[0]), a->w[1]);

	h ^= h >> 16;
	return h * 0x7feb352d;
}

static inline const struct nat_node *nat_chain(uint32_t where, const struct nat_words *a)
{
	const struct nat_table *t = rcu_read(nat_table);

	return t ? rcu_read(t->bucket[nat_hash(where, a) >> 8 & t->mask]) : NULL;
}

// Master. Insertion returns 0, or -ENOMEM and changes nothing.
int nat_table_insert(uint32_t where, const struct nat_words *addr, const struct nat_rule *rule);
void nat_table_remove(uint32_t where, const struct nat_words *addr, const struct nat_rule *rule);

// Returns address i of a pool, counted from 0.
struct nat_words nat_pool_address(const struct nat_words *first, uint8_t family, uint32_t i);

// --- Rules. ---
struct nat_rule *nat_compile(const struct nat_config *cfg); // NULL: no memory
uint32_t nat_pool_size(const struct nat_config *c);         // 0: last is before first, UINT32_MAX: more than 2^24
int nat_check(struct nat_config *cfg, struct error *err);   // without regard to other rules; fills defaults

// Refuse a rule, with -EEXIST and err, whose outside addresses are in use. The outside address of a floating rule is
// exclusive. Pools may share addresses with pools and with services, as the flow table keeps their flows apart. Guests
// and gateways could not be reached at a translated address.
int nat_conflict_rules(const struct nat_config *c, struct error *err);
int nat_conflict_ports(const struct nat_config *c, struct error *err);

// --- Changes (nat.c): what rules and services share. ---
int nat_begin(struct error *err);                // before a rule is added; -errno with err refuses it
int nat_publish(struct nat_rule *r);             // to workers; -ENOMEM
void nat_withdraw(struct nat_rule *r);           // frees it after a grace period
void nat_tell(const uint16_t *vrfs, unsigned n); // that their rules have changed

LIST_HEAD(nat_pools, nat_rule);
extern struct nat_pools nat_pools; // source rules
