// SPDX-License-Identifier: Apache-2.0
// Steered addresses: packets to them go from the fabric port straight to the host-path worker, not through a forwarding
// worker.
//
// Hardware: NIC rules put these packets into the port's last queue, which the host-path worker polls. Software: the
// host-path worker polls all queues of the port, node host_steer selects the steered packets, and node spread passes
// the others to forwarding workers, as for any queue that another role polls. A port uses one of the two.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/ip.h"
#include "base/rcu.h"
#include "port/registry.h"
#include "worker/worker.h"

#define STEER_MAX 64u // addresses per port

enum steer_mode { STEER_NONE, STEER_HARDWARE, STEER_SOFTWARE };

struct steer_count {
	uint64_t packets; // host-path worker: rw, master: ro
} __rte_cache_aligned;

// The steered addresses of a fabric port, as the host-path worker reads them: immutable, replaced as a whole.
struct steer_table {
	unsigned n;
	struct ip_addr addr[STEER_MAX]; // sorted by steer_compare()
	struct steer_count *count[STEER_MAX];
};

extern struct steer_table *steer_tables[PORT_MAX]; // by fabric port, NULL: nothing is steered. Workers: ro (RCU)

static inline int steer_compare(const struct ip_addr *a, const struct ip_addr *b)
{
	return a->family != b->family ? (int)a->family - (int)b->family
				      : memcmp(a->bytes, b->bytes, ip_bits(a->family) / 8);
}

// Returns NULL if the address is not steered.
static inline struct steer_count *steer_find(const struct steer_table *t, const struct ip_addr *a)
{
	unsigned low = 0, high = t->n, mid;
	int order;

	while (low < high) {
		mid = (low + high) / 2;
		order = steer_compare(a, &t->addr[mid]);
		if (order == 0)
			return t->count[mid];
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

// --- Control plane: master thread only. ---
struct steer {
	struct steer *next;
	struct ip_addr addr;
	uint16_t port; // fabric
	struct steer_count *count;
	void *rule; // the device's rule, NULL: none
};

// How the addresses of a port are steered.
struct steer_state {
	enum steer_mode mode;
	char why[128];                  // reason why the mode is not hardware
	struct worker *worker;          // host-path worker, NULL: none
	uint32_t queues;                // bitmap of the port's queues that it has taken over
	uint32_t home[PORT_MAX_QUEUES]; // workers that polled them before
};

struct steer *steer_add(struct port *fabric, const struct ip_addr *addr, struct error *err); // NULL with err
int steer_del(struct port *fabric, const struct ip_addr *addr, struct error *err);
struct steer *steer_next(const struct steer *s); // NULL: the first one
unsigned steer_count(uint16_t fabric);
const struct steer_state *steer_state(uint16_t fabric);
void steer_apply(void); // called after the workers of host ports have changed
