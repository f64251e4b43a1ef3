// SPDX-License-Identifier: Apache-2.0
// A service as workers read it.
#pragma once

#include "base/siphash.h"
#include "policy/maglev.h"
#include "policy/nat_private.h"
#include "policy/service.h"

struct service_target {
	struct nat_words addr;
	uint32_t id;   // of the endpoint
	uint16_t port; // network byte order, 0 = keep the port
};

struct service_table { // immutable, replaced as a whole
	uint32_t rows, n_targets;
	struct service_target *target; // points into the same allocation, as does row
	uint16_t *row;                 // [rows]: index of a target
};

extern struct siphash_key *service_key; // workers: ro (RCU)

static inline void service_count(uint64_t *counter, uint64_t by)
{
	__atomic_add_fetch(counter, by, __ATOMIC_RELAXED);
}

void service_traffic_load(struct service_traffic *to, const struct service_traffic *from);
void service_traffic_add(struct service_traffic *sum, const struct service_traffic *t);
void service_totals_add(struct service_totals *sum, const struct service_totals *t);

// Master. After a change of the endpoints: begins the table of those that there are now, which service_poll() finishes
// if it is long. Returns 0, or -ENOMEM with err.
int service_changed(struct service *s, struct error *err);
// Master. Workers read this table from now on. NULL: no endpoint is serving.
void service_publish(struct service *s, struct service_table *t);
// Master. No table names the removed endpoints any more: their ids may be reused once workers do not read the old one.
void endpoint_let_go(struct service *s);
// Master. The service is gone. Flows of its removed endpoints, which may outlive it for a while, are not those of the
// next service with its id.
void endpoint_disown(uint16_t service);
// Master. The address is of the service's family.
struct endpoint *endpoint_at(const struct service *s, const struct ip_addr *addr, uint16_t port); // NULL: none
struct endpoint *endpoint_with(const struct service *s, const struct ip_addr *addr); // of any port, NULL: none

// The row of a flow: the same on all nodes that have the key. prefix: bits of the client's address that SERVICE_SOURCE
// looks at, 0: all.
static inline uint32_t service_row(const struct flow_key *k, enum service_scheduler scheduler, unsigned prefix,
				   uint32_t rows)
{
	uint64_t words[5] = {k->addr[0], k->addr[1], k->addr[2], k->addr[3],
			     (uint64_t)k->src_port | (uint64_t)k->dst_port << 16 | (uint64_t)k->proto << 32 |
				     (uint64_t)k->family << 40};

	if (k->family == 4) { // each address is its bytes, and zeros after them
		words[0] = k->src4;
		words[2] = k->dst4;
		words[1] = words[3] = 0;
	}
	if (scheduler == SERVICE_SOURCE) {
		struct nat_words mask = nat_mask(k->family, prefix ? prefix : ip_bits(k->family));

		words[0] &= mask.w[0];
		words[1] &= mask.w[1];
		words[2] = words[3] = words[4] = 0;
	}
	return maglev_row(siphash(rcu_read(service_key), words, 5), rows);
}
