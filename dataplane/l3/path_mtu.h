// SPDX-License-Identifier: Apache-2.0
// Path MTU of tunnels (RFC 1191, RFC 8201): a hop of the underlay that cannot pass on an outer packet reports its MTU
// with an ICMP error. Anyone can forge such an error, so it must quote a packet that a tunnel of this node sends now. A
// learned MTU expires after 10 minutes.
//
// ip_local checks what the message itself shows and limits the rate; the master compares it with the tunnels.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "base/ip.h"

#define PATH_MTU_SECONDS 600
#define PATH_MTU_RATE 20 // messages per second that reach the master
#define PATH_MTU_MIN4 576
#define PATH_MTU_MIN6 1280

struct path_mtu_report {
	struct ip_addr hop;                 // that sent the error
	struct ip_addr source, destination; // of the quoted packet
	uint8_t proto;
	uint16_t port; // IPPROTO_UDP: its destination port
	uint32_t mtu;
};

struct path_mtu {
	struct ip_addr hop;
	uint16_t mtu;
	uint64_t until; // TSC
};

// Reads an ICMP error "too big" whose ICMP header is at offset `at`, behind the IP header at offset l3. Returns false
// if it cannot be about a packet of this node, or its MTU is out of bounds.
bool path_mtu_read(const struct rte_mbuf *m, unsigned l3, unsigned at, bool v6, struct path_mtu_report *r);
// Whether any ICMP error at these offsets quotes a packet to the end of a tunnel, as tunnels of this node send it.
bool path_mtu_quotes_tunnel(const struct rte_mbuf *m, unsigned l3, unsigned at, bool v6);
// RFC 1191, section 7: the MTU to take for one that a hop does not say (0), by the total length of the packet that it
// quotes. 0: the packet was shorter than any.
uint32_t path_mtu_plateau(uint32_t length);

// Master thread.
void path_mtu_init(void);
const struct path_mtu *path_mtu_of(const struct ip_addr *remote); // of the path to a remote end; NULL: nothing learned
void path_mtu_poll(void);                                         // forgets what has expired; from the master's loop
extern uint64_t (*path_mtu_clock)(void);                          // tests replace it
