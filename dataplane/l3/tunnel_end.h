// SPDX-License-Identifier: Apache-2.0
// The remote ends of tunnels by address. Workers look up the sources of packets that they receive. The master looks up
// the destination of a packet that an ICMP error is about, to find the tunnels that may have sent it.
//
// RFC 6935 and RFC 6936: a UDP checksum of zero over IPv6 is accepted only from ends that are configured for it: those
// to which some next hop of the same encapsulation sends zero.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_ip.h>

#include "base/ip.h"
#include "l3/encap.h"

struct tunnel_config;

struct tunnel_end {
	struct tunnel_end *next; // in its bucket. Master: rw, workers: ro (RCU), as the members below
	struct ip_addr addr;
	uint32_t nexthops;                   // of the operator that lead here; those of mirrors do not count
	uint32_t zero[ENCAP_RECEIVE_PLACES]; // of these: without a UDP checksum over IPv6, by encap_receive_place()
	struct tunnel_way *ways;             // master only
};

// The tunnels to one end with the same encapsulation and `local`, which send from the same address with the same MTU.
// Master only.
struct tunnel_way {
	struct tunnel_way *next;
	struct tunnel_end *end;
	const struct encap_ops *encap;
	struct ip_addr local;
	uint32_t refs;
	struct ip_addr source; // what tunnel_build() found last; family 0: unresolved
	uint16_t mtu;          // of outer packets
};

extern bool accept_udp6_zero; // setting: from any source. Master: rw, workers: ro

struct tunnel_end *tunnel_end_find(const struct ip_addr *addr); // any thread; NULL: no tunnel leads there
bool tunnel_end_sends(const struct ip_addr *addr); // any thread: whether it is the end of a tunnel that is no mirror's

// Workers: whether a packet of the encapsulation with this place may have no UDP checksum. ip: its outer header.
bool tunnel_end_may_send_zero(const struct rte_ipv6_hdr *ip, unsigned place);

// Master thread: each next hop holds the way that it takes. NULL: no memory. nexthop: its id, which tells the next hops
// of mirrors from others: mirrors do not make an address a tunnel end, because a collector sends nothing back.
struct tunnel_way *tunnel_way_hold(uint32_t nexthop, const struct tunnel_config *t);
void tunnel_way_put(struct tunnel_way *w, uint32_t nexthop, const struct tunnel_config *t);
