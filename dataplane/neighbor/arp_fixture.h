// SPDX-License-Identifier: Apache-2.0
// Fixture for the tests of neighbor/: two ports, a clock, and the packets that the master thread sent. It replaces
// port/ and worker/, and registers a listener as l3/ does.
#pragma once

#include <rte_mbuf.h>

#include "base/ip.h"
#include "port/registry.h"

#define FABRIC 1 // 192.0.2.1/24, 2001:db8::1/64; VLAN 0
#define TENANT 2 // gateway 10.0.0.1/24, fd00::1/64; guest 10.0.0.2 may have a fixed MAC
#define FIXTURE_MAX_SENT 2048

extern struct rte_mbuf *fixture_sent[FIXTURE_MAX_SENT]; // packets passed to worker_inject()
extern unsigned fixture_n_sent;
extern unsigned fixture_changes;              // calls of the listener's changed()
extern uint64_t fixture_punts, fixture_taken; // packets punted by workers, packets taken by the master
extern bool fixture_rebuilding;               // returned by the listener's rebuilding()
extern bool fixture_enough;                   // the control plane takes no more requests: punt_take()

int fixture_setup(void **state); // group: EAL, ports
int fixture_teardown(void **state);
int fixture_reset(void **state); // test: initial ports, no neighbours, nothing sent

void fixture_wait(unsigned ms);       // advances the clock, with neighbor_poll() every 100 ms
void fixture_publish(struct port *p); // applies a changed configuration
void fixture_remove(uint16_t port);   // calls the listener, then removes the port
void fixture_link(struct port *p, bool up);
void fixture_route(const char *prefix, uint16_t port); // the only route of VRF 7. NULL: none
void fixture_punt(unsigned kind, struct rte_mbuf *m);
struct rte_mbuf *fixture_take(void);        // the oldest sent packet, NULL: none. The caller frees it
void fixture_forget(void);                  // frees all sent packets
uint64_t fixture_drops(const char *reason); // since the last reset

struct ip_addr fixture_addr(const char *text);
struct rte_ether_addr fixture_mac(const char *text);

uint32_t fixture_hold(uint16_t port, const char *addr); // must succeed
struct neighbor *fixture_find(uint16_t port, const char *addr);
void fixture_learn(uint16_t port, const char *addr, const char *mac, bool create, bool confirmed);

struct rte_mbuf *fixture_packet(const char *dst, uint8_t tag); // IPv4 without link-layer header; tag is its payload
unsigned fixture_count_requests(void);                         // ARP requests among the sent packets; frees all of them

// A frame as input nodes pass it on: port, bridge and l3 are set.
struct rte_mbuf *fixture_frame(uint16_t port, const void *data, size_t len, unsigned l3);
struct rte_mbuf *fixture_arp(uint16_t port, unsigned op, const char *smac, const char *sip, const char *tmac,
			     const char *tip);
struct rte_mbuf *fixture_nd(uint16_t port, unsigned type, uint32_t flags, const char *smac, const char *src,
			    const char *dst, const char *target,
			    const char *option_mac); // NULL: without the option
void fixture_checksum(struct rte_mbuf *m);           // recomputes it after the ND packet was changed
