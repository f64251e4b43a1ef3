// SPDX-License-Identifier: Apache-2.0
// The underlay's view of this node: its own addresses. What routing adds to ports.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/ip.h"
#include "base/rcu.h"
#include "port/port.h"

#define UNDERLAY_ADDRS 64
struct underlay_addrs { // immutable, replaced as a whole
	unsigned n4, n6;
	uint32_t ip4[UNDERLAY_ADDRS]; // network byte order
	uint8_t ip6[UNDERLAY_ADDRS][16];
};

extern struct underlay_addrs *underlay_addrs; // workers: ro (RCU)

static inline bool underlay_is_local4(uint32_t be)
{
	const struct underlay_addrs *u = rcu_read(underlay_addrs);
	unsigned i;

	for (i = 0; i < u->n4; i++)
		if (u->ip4[i] == be)
			return true;
	return false;
}

static inline bool underlay_is_local6(const uint8_t *a)
{
	const struct underlay_addrs *u = rcu_read(underlay_addrs);
	unsigned i;

	for (i = 0; i < u->n6; i++)
		if (memcmp(u->ip6[i], a, 16) == 0)
			return true;
	return false;
}

struct routed_config {        // of a port (PORT_SETTINGS()); also in port_fwd, as mss, gateway_echo and unresolved_rate
	uint32_t mss_clamp;   // TCP MSS clamp: 0 = none, MSS_AUTO (l3/mss.h) = computed from the tunnel's MTU
	bool no_gateway_echo; // tenant: the gateway does not answer ICMP echo
	uint16_t unresolved_rate; // packets/s of the guest to neighbours without a known MAC; 0 = the most
};
const struct routed_config *routed_config(const struct port_config *cfg);
struct routed_config *routed_config_edit(struct port_config *cfg);

// Follows the ports: own addresses, and the routes that come with a port (local, connected, guest).
int underlay_init(struct error *err);
