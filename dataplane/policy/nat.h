// SPDX-License-Identifier: Apache-2.0
// Address translation: rules of a VRF say which flows get another source or destination. Flows ask once (flow/decide.h); each packet is
// then rewritten to the reverse of the other direction's key (flow/translate.h).
//
// A rule has an inside, hosts of its VRF, and an outside, addresses of its external VRF (by default the same one):
//   floating     one address inside <-> one outside; both directions
//   source       hosts of a prefix leave by a pool's address and a port of its range
//   destination  a service outside, and its backends inside
// Where several rules match, the lowest id counts. Rules are found in one hash table by VRF, side and address (or prefix, once for each
// length that the VRF's rules have), so a lookup costs the same with one rule and with thousands.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/flow_key.h"
#include "base/ip.h"

// --- Workers and master (RCU). ---

struct nat_verdict {
	uint32_t rule;  // id, 0 = nothing is translated
	uint32_t also;  // id of the rule that changed the source where `rule` changed the destination (hairpin), else 0
	uint32_t ports; // how many source ports may be tried: 0 = the port stays
	uint16_t first; // the first of them, host byte order
};

// Both are given a key that says what the packet is by then, change it in place, and set *v (zeroed by the caller) where a rule matches.
// Before the route is looked up: a new destination, and the zone in which the way there is to be looked up. The choice of a backend
// depends on the key alone.
void nat_destination(struct flow_key *key, struct nat_verdict *v);
// After it: a new source for what leaves; the rule is that of `original`, the packet as sent. A host's outside address depends on its own
// alone. hash: the first port, of v->ports, that is put into the key (for ICMP echo as its identifier, in both fields). With v->ports == 0
// a reverse key that is taken already means that the address is in use towards that peer: there is nothing else to try.
void nat_source(const struct flow_key *original, struct flow_key *key, uint32_t hash, struct nat_verdict *v);

// Would the rules of now let a flow go on that became *out of *original? They choose anew among backends, addresses and ports only where
// they have to. *v: as the rules say it now. False: it has to end. In that case, and where nothing is translated, *v has rule 0 or another.
bool nat_keeps(const struct flow_key *original, const struct flow_key *out, struct nat_verdict *v);

// A flow was made by this verdict: counts it. Any thread.
void nat_flow_made(const struct nat_verdict *v);

// --- Master. ---

#define NAT_RULES_MAX (1u << 20) // ids are below
#define NAT_BACKENDS_MAX 64
#define NAT_EXCEPT_MAX 16
#define NAT_POOL_MAX 65536u
#define NAT_FIRST_PORT 1024 // of a pool, by default

enum nat_kind { NAT_FLOATING, NAT_SOURCE, NAT_DESTINATION };

struct nat_backend {
	struct ip_addr addr;
	uint16_t port;   // host byte order, 0: as sent
	uint32_t weight; // 0: 1
};

struct nat_config {
	uint32_t id;
	uint16_t vrf, external; // ids
	enum nat_kind kind;
	struct ip_prefix inside;            // floating: one address; source: the hosts. Not of a destination
	struct ip_addr outside, last;       // floating: outside; source: the pool, both included; destination: outside
	uint16_t first_port, last_port;     // source: the pool's; destination: the service's is first_port, 0: all
	const struct nat_backend *backends; // copied
	unsigned n_backends;
	struct ip_prefix to;            // family 0: any
	const struct ip_prefix *except; // copied
	unsigned n_except;
	uint8_t protocol;                     // 0: any; ICMP means that of the family
	uint16_t to_first_port, to_last_port; // host byte order; 0: any
};

// Fill defaults into *cfg. -EINVAL, -ERANGE, -EEXIST, -ENOENT, -ENOMEM with err; then nothing has changed.
int nat_add(struct nat_config *cfg, struct error *err);
int nat_set(struct nat_config *cfg, struct error *err); // the rule of this id becomes this one
int nat_del(uint32_t id, struct error *err);
const struct nat_config *nat_get(uint32_t id); // NULL
uint32_t nat_next(uint32_t after);             // the next id in use, 0 = none
uint64_t nat_flows(uint32_t id);               // made by it
unsigned nat_count(void);

// Other modules follow the rules; NULL: this one does not care.
struct nat_listener {
	int (*begin)(struct error *err); // a rule is to be added; -errno with err refuses it
	void (*changed)(uint16_t vrf);   // its flows may now be translated otherwise; the change has taken effect
	struct nat_listener *next;
};
void nat_listen(struct nat_listener *l);
bool nat_used(uint16_t vrf); // rules have their inside or outside there: packets of the VRF must be asked for their flows
