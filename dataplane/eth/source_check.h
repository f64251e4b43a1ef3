// SPDX-License-Identifier: Apache-2.0
// Checks that a guest sends with addresses of its own (RFC 2827, RFC 3704), in ARP and ND as well.
#pragma once

#include <rte_mbuf.h>

#include "graph/drop.h"
#include "port/registry.h"

// As in api/port.proto. DEFAULT is strict if the guest's MAC and addresses are given, else none.
enum source_check { SOURCE_CHECK_DEFAULT, SOURCE_CHECK_REVERSE_PATH, SOURCE_CHECK_STRICT, SOURCE_CHECK_NONE };

struct source_check_config { // of a port (PORT_SETTINGS()); also in port_fwd
	uint8_t check;       // enum source_check
	bool allow_router, allow_dhcp_server;
};
const struct source_check_config *source_check_config(const struct port_config *cfg);
struct source_check_config *source_check_config_edit(struct port_config *cfg);
enum source_check source_check_in_effect(const struct port_config *cfg); // never DEFAULT

// m begins with the Ethernet header and came in by the port that f belongs to. Returns NULL, or the reason to drop it.
const struct drop_reason *source_check(const struct rte_mbuf *m, const struct port_fwd *f);
// Whether the frame tells its receiver, in ARP or neighbour discovery, that the port's gateway is the sender.
bool source_check_claims_gateway(const struct rte_mbuf *m, const struct port_fwd *f);
