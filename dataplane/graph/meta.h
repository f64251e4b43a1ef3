// SPDX-License-Identifier: Apache-2.0
// Metadata that nodes pass on with a packet: 32 bytes in the mbuf's second cache line.
//
// Pointers are valid within one walk of the graph (base/rcu.h). m->port is always the id of the port that the packet
// came in by, 0 = made by the router.
#pragma once

#include <assert.h>
#include <stdint.h>

#include <rte_mbuf.h>

#define PORT_MAX 1024 // ids of ports are 1..PORT_MAX-1; 0 = none

struct nexthop;

enum meta_flags {
	META_TRACED = 1 << 0,      // every node's decision is recorded
	META_FROM_TUNNEL = 1 << 1, // decapsulated: outer, tos and ttl are set
	META_ANSWER = 1 << 2,      // made by the router: no TTL decrement, no ICMP error about it
	META_NEXTHOP = 1 << 3,     // nexthop is already known (label): no route lookup
	META_UNIFORM = 1 << 4,     // the tunnel's TTL and DSCP go to the inner header (RFC 3443)
	META_CLAMP = 1 << 5,       // the port that it came in by has its TCP MSS clamped
};

struct pkt_meta {
	const struct nexthop *nexthop;
	uint32_t hash; // of the (inner) flow, 0 = not computed
	uint32_t arg;  // argument of the next node: label or VNI, ICMP type/code/MTU, index of an adjacency
	uint16_t vrf;
	uint16_t bridge;
	uint16_t out_port;
	uint16_t reason; // drop reason
	uint16_t outer;  // offset of the outer IP header from buf_addr; decapsulation leaves it in place
	uint8_t flags;   // enum meta_flags
	uint8_t l3;      // offset of the IP header from the packet's start: 0, or the Ethernet header's length
	uint8_t tos;     // outer DSCP and ECN
	uint8_t ttl;     // outer TTL (MPLS: that of the label)
	uint8_t traced;  // with META_TRACED: the packet's number within the trace
	uint8_t cut;     // this is a mirror's copy that is shorter than the packet
};

#define META_OFFSET 96
static_assert(sizeof(struct pkt_meta) == 32, "fits behind the mbuf's own fields");
static_assert(META_OFFSET >= offsetof(struct rte_mbuf, dynfield1) &&
		      META_OFFSET + sizeof(struct pkt_meta) <= sizeof(struct rte_mbuf),
	      "lies in the dynamic fields");

int meta_init(void); // reserves the field with DPDK

static inline struct pkt_meta *meta(struct rte_mbuf *m)
{
	return RTE_PTR_ADD(m, META_OFFSET);
}
