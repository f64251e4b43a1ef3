// SPDX-License-Identifier: Apache-2.0
// Flows of bridge domains. bridge_input looks up where a frame goes; the flow only says whether it may go there, and is
// stale once its frames come or go elsewhere.
//
// Frames reach flow4_bridge and flow6_bridge with l3 at the IP header, vrf the zone of the bridge domain, arg the way,
// and the target: out_port with nexthop NULL, or nexthop, the tunnel. They leave as whole frames (l3 is 0).
#pragma once

#include "flow/flow.h"
#include "l3/nexthop.h"

// The way of a packet through a bridge domain in one word: the port by which it came in, 0 = a tunnel, and its target
// as the MAC table has it.
#define FLOW_WAY_NONE 0u              // no packet has it
#define FLOW_TARGET_TUNNEL (1u << 21) // of a next hop's id
#define FLOW_TARGET_UNKNOWN PORT_MAX  // the MAC table does not have it: the frame is flooded. Also as out_port
#define FLOW_TARGET_MASK ((1u << 22) - 1)
static_assert(PORT_MAX <= 1 << 10 && NEXTHOP_MAX <= FLOW_TARGET_TUNNEL, "a way fits into one word");

static inline uint32_t flow_way(uint16_t in, uint32_t target)
{
	return (uint32_t)in << 22 | target;
}

static inline uint16_t flow_way_in(uint32_t way)
{
	return (uint16_t)(way >> 22);
}

static inline uint32_t flow_way_target(uint32_t way)
{
	return way & FLOW_TARGET_MASK;
}

// The port that a target is; 0: it is a tunnel, or unknown.
static inline uint16_t flow_target_port(uint32_t target)
{
	return target < FLOW_TARGET_UNKNOWN ? (uint16_t)target : 0;
}

static inline uint32_t flow_target_of(const struct pkt_meta *md)
{
	return md->nexthop ? FLOW_TARGET_TUNNEL | md->nexthop->id : md->out_port;
}

static inline uint32_t flow_way_of(const struct rte_mbuf *m, const struct pkt_meta *md)
{
	return flow_way(md->flags & META_FROM_TUNNEL ? 0 : m->port, flow_target_of(md));
}

static inline bool flow_zone_is_bridge(uint16_t zone)
{
	return zone & FLOW_ZONE_BRIDGE;
}

// What bridge_flood still has to decide about a frame of a domain that keeps flows (its argument).
enum flow_flood {
	FLOW_FLOOD_ALL,       // both the sender's and the receivers' rules
	FLOW_FLOOD_RECEIVERS, // a flow has the verdict of the sender's rules
	FLOW_FLOOD_TUNNELS,   // a flow has the verdict, and the receiver is behind a tunnel
};

// --- Frames without a flow: those to several or unknown receivers, and all that do not carry IP. ---

struct flow_frame {
	enum { FLOW_FRAME_PASSES, FLOW_FRAME_IP, FLOW_FRAME_OTHER } kind;
	bool asks_dhcp;                   // a client's message: DHCP servers get it whatever the rules say
	const struct drop_reason *egress; // what the sender's rules say; NULL: allowed
	struct flow_key key;              // FLOW_FRAME_IP
};

// ARP and neighbour discovery pass: source checks are for them. Other frames without IP have the verdict of the lists'
// defaults. flood: FLOW_FLOOD_ALL, or the egress rules are not asked.
void flow_frame_decide(const struct rte_mbuf *m, uint16_t sender, enum flow_flood flood, struct flow_frame *f);
// The reason why this receiver must not get the frame, or NULL. receiver: a port, 0 = a tunnel.
const struct drop_reason *flow_frame_denied(const struct flow_frame *f, uint16_t receiver);

// Source checks alone decide about neighbour discovery and about DHCP: to a receiver that may be a server, and from a
// sender that may be one. sender, receiver: ports, 0 = behind a tunnel.
bool flow_key_is_nd(const struct flow_key *k);
bool flow_key_asks_dhcp(const struct flow_key *k);
bool flow_key_answers_dhcp(const struct flow_key *k);
bool flow_may_serve_dhcp(uint16_t port);
