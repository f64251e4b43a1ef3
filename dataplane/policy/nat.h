// SPDX-License-Identifier: Apache-2.0
// Address translation (NAT): the rules of a VRF say which flows get another source or destination. Rules are evaluated
// once per flow (flow/decide.h); each packet is then rewritten to the reverse of the other direction's key
// (flow/translate.h).
//
// A rule has an inside, hosts of its VRF, and an outside, addresses of its external VRF (by default the same one):
//   floating     one address inside <-> one outside; both directions
//   source       hosts of a prefix leave with an address of a pool and a port of its range
//   destination  a service outside, its backends inside
// If several rules match, the lowest id wins. One hash table finds rules by VRF, side and address (or prefix, with one
// lookup for each prefix length that the VRF's rules use), so a lookup costs the same with one rule and with thousands.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/field_limits.h"
#include "base/flow_key.h"
#include "base/ip.h"
#include "base/rcu.h"
#include "l3/vrf.h"

// --- Workers and master (RCU). ---

struct nat_verdict {
	uint32_t rule;  // id, 0 = no translation. Of a service: policy/service.h
	uint32_t also;  // id of the rule for the source if `rule` is the one for the destination (hairpin), else 0
	uint32_t ports; // size of the range of source ports, 0 = the port is kept
	uint16_t first; // first port of the range, host byte order
	bool refused;   // the service has no endpoint that takes new flows
	uint32_t row;   // of the service's table
	uint32_t was;   // nat_keeps(): rule of the flow, set by the caller
};

struct nat_zone;
extern struct nat_zone *nat_zones[VRF_MAX]; // NULL: a VRF that never had rules. Workers: ro (RCU)

// False: the two functions below leave the flows of this zone as they are.
static inline bool nat_is_in(uint16_t zone)
{
	return zone < VRF_MAX && rcu_read(nat_zones[zone]) != NULL;
}

// Both functions take the key as translated so far, change it in place, and set *v (zeroed by the caller) if a rule
// matches.
//
// Called before the route lookup: translates the destination and sets the zone in which to look up the route. The
// backend depends on the key alone.
void nat_destination(struct flow_key *key, struct nat_verdict *v);
// Called after the route lookup: translates the source. The rule is the one that matches `original`, the packet as
// sent. A host's outside address depends only on its inside address. hash selects which of the v->ports ports goes into
// the key (for ICMP echo as identifier, in both fields). If v->ports is 0 and the reverse key exists in the flow table,
// the address is in use towards that peer and nothing else can be tried.
void nat_source(const struct flow_key *original, struct flow_key *key, uint32_t hash, struct nat_verdict *v);

// Re-evaluates an existing flow, translated from *original to *out, against the current rules. Backend, address and
// port are kept as long as a rule still allows them; a service allows all endpoints that it had. Returns false if the
// flow must end. *v (zeroed by the caller but for v->was) is the new verdict: v->rule is 0 if no rule matches, and may
// differ from the flow's rule even when the result is true.
bool nat_keeps(const struct flow_key *original, const struct flow_key *out, struct nat_verdict *v);

// Counts a new flow for the rules of this verdict. Any thread.
void nat_flow_made(const struct nat_verdict *v);

// The rule of a flow that was translated from *original to *out by an endpoint of a service; 0: there is none.
// Master.
uint32_t nat_endpoint_of(const struct flow_key *original, const struct flow_key *out);

// --- Master. ---

#define NAT_RULES_MAX (LIMIT_NAT_RULE_ID_MAX + 1u)
#define NAT_POOL_MAX 65536

enum nat_kind { NAT_FLOATING, NAT_SOURCE, NAT_DESTINATION, NAT_SERVICE }; // NAT_SERVICE: of policy/service.h alone

struct nat_backend {
	struct ip_addr addr;
	uint16_t port;   // host byte order, 0: keep the port
	uint32_t weight; // 1 to 256; 0 means 1
};

struct nat_config {
	uint32_t id;
	uint16_t vrf, external; // ids
	enum nat_kind kind;
	struct ip_prefix inside;            // floating: one address; source: the hosts; destination: unused
	struct ip_addr outside, last;       // source: first and last address of the pool; else only outside
	uint16_t first_port, last_port;     // source: range of the pool; destination: first_port of the service, 0: all
	const struct nat_backend *backends; // copied
	unsigned n_backends;
	struct ip_prefix to;            // family 0: any
	const struct ip_prefix *except; // copied
	unsigned n_except;
	uint8_t protocol;                     // 0: any; ICMP means ICMPv6 for IPv6
	uint16_t to_first_port, to_last_port; // host byte order; 0: any
};

// Fill defaults into *cfg. On error nothing has changed: -EINVAL, -ERANGE, -EEXIST, -ENOENT, -ENOMEM with err.
int nat_add(struct nat_config *cfg, struct error *err);
int nat_set(struct nat_config *cfg, struct error *err); // replaces the rule with this id
int nat_del(uint32_t id, struct error *err);
const struct nat_config *nat_get(uint32_t id); // NULL
uint32_t nat_next(uint32_t after);             // the next id in use, 0 = none
uint64_t nat_flows(uint32_t id);               // flows created by the rule
unsigned nat_count(void);

// Callbacks for other modules. Each may be NULL.
struct nat_listener {
	int (*begin)(struct error *err); // before a rule is added; -errno with err refuses it
	void (*changed)(uint16_t vrf);   // after a change that may affect the VRF's flows
	struct nat_listener *next;
};
void nat_listen(struct nat_listener *l);
bool nat_used(uint16_t vrf); // some rule has its inside or outside there, so packets of the VRF need a flow lookup
