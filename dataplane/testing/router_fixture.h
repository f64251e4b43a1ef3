// SPDX-License-Identifier: Apache-2.0
// Tests of nodes together with all modules: the router as main starts it, but without threads and with ports that keep
// the packets that they are given. In meson.build such a test has no 'libs'.
//
// Frames are written in hex, with blanks where they help and ".." for each byte that does not matter:
//	assert_bytes(m, "02000000000f 0200000000f0 0800 45 00 .... c0a80001");
#pragma once

#include <rte_mbuf.h>

#include "graph/node_test.h"
#include "l2/bridge.h"
#include "l3/nexthop.h"
#include "l3/vrf.h"
#include "port/registry.h"

// Ports, in this order. Fabric ports have an MTU of 1500, the MACs 02:00:00:00:f0:01 and :02, and a host .2 with
// 02:00:00:00:0f:01 or :02.
enum {
	FABRIC0 = 1, // 192.0.2.1/24, 2001:db8:0::1/64
	FABRIC1,     // 198.51.100.1/24, 2001:db8:1::1/64, VLAN 100
	RED0,        // VRF red, gateway 10.0.0.1/24 and fd00::1/64, guest 10.0.0.2 and fd00::2, 02:00:00:00:00:03
	RED1,        // the same gateways, guest 10.0.0.3 and fd00::3, 02:00:00:00:00:04
	BLUE0,       // VRF blue, all else as RED0
	LAN0,        // bridge "lan" only
	LAN1,
	IRB0, // bridge "irb" and VRF red, gateway 10.0.1.1/24 and fd00:1::1/64
	PORTS_END
};
#define RED 1 // VRFs
#define BLUE 2
#define LAN 1 // bridges
#define IRB 2
#define GATEWAY "00:00:5e:00:01:01"
#define ROUTER "02:00:00:00:aa:01" // this router in routed VXLAN

// Next hops to the hosts on the fabric's links; routes of the underlay: 203.0.113.0/24 and 2001:db8:f::/48 by VIA0,
// 203.0.114.0/24 by VIA1.
#define VIA0 1
#define VIA1 2
#define FREE_ID 100 // next hops of tests

int router_setup(void **state); // group
int router_teardown(void **state);

// --- Configuration. These functions panic when a change is refused. ---
void router_nexthop(const struct nexthop_config *cfg);
void router_tunnel(uint32_t id, const char *encap, const char *remote, uint32_t label_or_vni);
void router_route(const char *vrf, const char *prefix, uint32_t nexthop);
void router_unroute(const char *vrf, const char *prefix);
struct port_config router_config(uint16_t port); // the current one
void router_set(uint16_t port, const struct port_config *cfg);
void router_poll(void); // does the work of the master's loop
struct ip_addr router_addr(const char *text);
struct rte_ether_addr router_mac(const char *text);

// --- Packets. ---
struct rte_mbuf *router_hex(const char *hex); // metadata as port_rx leaves it, without VRF and bridge

struct packet {                // zeroes: UDP from port 1000 to 2000, TTL 64, 26 bytes behind the IP header
	const char *src, *dst; // their family is the packet's
	uint8_t proto, ttl, tos;
	uint16_t id, frag; // IPv4
	uint16_t sport, dport;
	unsigned payload;
};
struct rte_mbuf *router_packet(uint16_t vrf, const struct packet *p); // begins with its IP header: l3 is 0
struct rte_mbuf *router_frame(uint16_t port, const char *dst, const char *src, const struct packet *p); // as received
void router_checksum4(struct rte_mbuf *m, unsigned at); // recomputes the checksum of the IPv4 header at this offset

bool router_equal(struct rte_mbuf *m, const char *hex); // prints the differences
#define assert_bytes(m, hex) assert_true(router_equal(m, hex))
uint16_t router_sum(const void *data, unsigned len, uint32_t start); // RFC 1071, big-endian words, one by one
// True if the checksum of the transport header behind the IP header at this offset is correct.
bool router_l4_ok(struct rte_mbuf *m, unsigned at);

// --- Ports. A test frees the packets that it takes from router_sent, and router_forget() the others. ---
struct router_sent {
	uint16_t port, queue;
	struct rte_mbuf *m;
};
extern struct router_sent router_sent[NODE_TEST_MAX];
extern unsigned router_n_sent;
void router_forget(void);
extern uint16_t router_mtu; // the last MTU that a tap was given
extern uint16_t (*router_rx)(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n); // NULL: no packets arrive
// NULL: all packets are kept in router_sent.
extern uint16_t (*router_tx)(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n);

// Interrupts of all ports. NULL: the ports have none.
extern int (*router_arm)(struct port_queue *q);
extern int (*router_disarm)(struct port_queue *q, bool signalled);

// Rules of the NIC, for fabric ports. NULL: the NIC has none.
extern void *(*router_steer)(struct port *p, const struct ip_addr *addr, uint16_t queue, struct error *err);
extern void (*router_unsteer)(struct port *p, void *rule);

struct worker;
struct worker *router_worker(void); // the worker of the calling thread; polls nothing yet

uint64_t router_drops(uint16_t port, const char *reason);
