// SPDX-License-Identifier: Apache-2.0
// Services: flows to the address and port of a service go to one of its endpoints. A service is a translation rule
// (policy/nat.h) that comes after all rules of the node with its address. The first packet of a flow chooses a row of
// the service's table (policy/maglev.h) by a keyed hash; a flow that exists is never asked again because an endpoint
// was added, changed or removed.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/field_limits.h"
#include "base/flow_key.h"
#include "base/ip.h"

#define SERVICE_MAX 16384   // services, and 1
#define ENDPOINT_MAX 131072 // endpoints of all services, and 1
#define SERVICE_NAME (NOTATION_NAME_LONGEST + 1)

// The rule of a flow (flow.nat, nat_verdict.rule) is the number of a NAT rule, or one of these.
#define NAT_OF_SERVICE (1u << 30)  // | service: no endpoint was serving
#define NAT_OF_ENDPOINT (1u << 31) // | endpoint

enum service_scheduler { SERVICE_MAGLEV, SERVICE_SOURCE }; // as in api/service.proto

struct service_config {
	char name[SERVICE_NAME];
	uint16_t vrf, external; // ids
	struct ip_addr addr;
	uint8_t protocol; // 0: any
	uint16_t port;    // host byte order, 0: all
	enum service_scheduler scheduler;
	uint16_t max_endpoints;
	bool reject;           // without endpoints, the sender is told
	uint8_t client_prefix; // SERVICE_SOURCE: bits of the client's address that choose, 0: all
};

struct endpoint_config {
	struct ip_addr addr;
	uint16_t port;   // host byte order, 0: the port is not changed
	uint16_t weight; // 0: no new flows
};

struct service_traffic { // by direction: from clients, to clients
	uint64_t packets[2], bytes[2];
};

struct service_totals {
	uint64_t flows, active;
	struct service_traffic traffic; // of flows that have ended; what lists them adds those that exist
};

struct service;
struct endpoint {
	uint32_t id;
	struct service *service;
	struct endpoint_config cfg;
	uint32_t rows;                // in the table
	uint16_t built;               // its index in the table that is being built, or MAGLEV_NONE
	struct service_totals folded; // once it is removed: what its service has taken over already
	struct endpoint *next;        // once it is removed: service->removed
};

struct service {
	uint16_t id;
	struct service_config cfg;
	struct endpoint **endpoints; // sorted by address and port
	unsigned n_endpoints;
	struct endpoint *removed;    // the table may still name them
	uint32_t rows;               // of its table
	struct service_table *table; // workers: ro (RCU). NULL: no endpoint is serving
	struct maglev *building;     // NULL: none is being built
	bool dirty;                  // a change came after the beginning of the last table
	struct service_totals gone;  // of endpoints that were removed
	struct service_traffic late; // of their flows that ended afterwards. Workers: atomic
	uint64_t refused;            // workers: atomic
	struct nat_rule *rule;
};

// --- Master. Changes return 0, or -errno with err and change nothing. ---
struct service *service_add(const struct service_config *cfg, struct error *err); // NULL
// Changes scheduler, reject and client_prefix.
int service_set(struct service *s, const struct service_config *cfg, struct error *err);
int service_del(const char *name, struct error *err);
struct service *service_find(const char *name);
struct service *service_find_err(const char *name, const char *field, struct error *err);
struct service *service_get(uint16_t id);
struct service *service_next(uint16_t after); // NULL: no more
void service_totals(const struct service *s, struct service_totals *out);
unsigned service_serving(const struct service *s); // endpoints that new flows go to
bool service_is_stale(const struct service *s);    // a change of the endpoints is not in the table yet

struct endpoint *endpoint_add(struct service *s, const struct endpoint_config *cfg, struct error *err); // NULL
struct endpoint *endpoint_find_err(struct service *s, const struct ip_addr *addr, uint16_t port, struct error *err);
int endpoint_set(struct endpoint *e, uint16_t weight, struct error *err);
void endpoint_del(struct endpoint *e);
struct endpoint *endpoint_next(uint32_t after); // NULL: no more
void endpoint_totals(uint32_t id, struct service_totals *out);

void service_poll(void); // each millisecond: builds tables that take longer than the request that changed them
// While a start repeats all changes, each of them only marks its service: no table is built that the next one replaces.
void service_hold(bool hold);
// Builds all tables that are not current. Calls between() after each share of a turn.
void service_finish(void (*between)(void));

// --- Any thread. ---

static inline bool nat_is_endpoint(uint32_t rule)
{
	return (rule & NAT_OF_ENDPOINT) != 0;
}

uint16_t service_of_rule(uint32_t rule); // the service of a flow's rule, 0: none
void service_flow_made(uint32_t rule);
bool service_flow_refused(uint32_t rule); // returns whether the sender is told
void service_flow_ended(uint32_t rule, const uint64_t packets[2], const uint64_t bytes[2]);
