// SPDX-License-Identifier: Apache-2.0
// For the tests of l2/: ports, tunnels, a clock, and frames as input nodes hand them on. Stands in for port/ and l3/.
#pragma once

#include <rte_mbuf.h>

#include "l2/mac.h"
#include "l3/nexthop.h"
#include "port/registry.h"

#define FABRIC 9                  // port that tunnels' frames come in by
#define HERE ((const char *)NULL) // a frame from a local port
#define GATEWAY "00:00:5e:00:01:01"
#define ALL "ff:ff:ff:ff:ff:ff"
#define IP 0x0800
#define IP6 0x86dd
#define ARP 0x0806

int fixture_setup(void **state); // group: EAL, the table
int fixture_teardown(void **state);
// For each test: no bridges, ports "p1" to "p8" in none, tunnels 101 to 108 to 192.0.2.1 to .8 (VXLAN)
int fixture_reset(void **state);

// bridge, vrf: UINT16_MAX = none. Returns NULL and fills fixture_error if the configuration is refused.
struct port *fixture_join(uint16_t port, uint16_t bridge, uint16_t vrf);
extern struct error fixture_error;
void fixture_leave(uint16_t port); // it is removed
void fixture_link(uint16_t port, bool up);
void fixture_wait(unsigned seconds); // bridge_tick() and bridge_poll() as the master's loop does
void fixture_tunnel(uint32_t id, enum nexthop_kind kind, const char *remote, uint16_t mtu, const char *encap);
uint32_t fixture_refs(uint32_t nexthop);
const char *fixture_user(uint32_t nexthop); // what an error says of a tunnel that l2/ holds; NULL: nothing
struct bridge *fixture_bridge(const char *name, unsigned n_flood); // floods to the first tunnels

// 60 bytes, or len; remote: address of the tunnel's other end.
struct rte_mbuf *fixture_frame(uint16_t bridge, uint16_t port, const char *remote, const char *dst, const char *src,
			       uint16_t type);
struct rte_mbuf *fixture_frame_len(struct rte_mbuf *m, unsigned len);
void fixture_learn(uint16_t bridge, uint16_t port, const char *remote,
		   const char *mac); // bridge_input has seen a frame, the master learns
bool fixture_find(uint16_t bridge, const char *mac, struct mac_entry *out);
struct rte_ether_addr fixture_mac(const char *text);
struct ip_addr fixture_addr(const char *text);
uint64_t fixture_drops(uint16_t port, const char *reason);

// Frames that the master sent: the last ones, in a ring.
#define FIXTURE_SENT 64
struct fixture_sent {
	uint16_t port;
	unsigned len;
	uint8_t bytes[128];
};
extern struct fixture_sent fixture_sent[FIXTURE_SENT];
extern unsigned fixture_n_sent; // since the start
