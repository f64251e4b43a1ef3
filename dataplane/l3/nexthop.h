// SPDX-License-Identifier: Apache-2.0
// Next hops: what happens to a packet after the lookup.
//
// The control plane keeps the configuration (struct nexthop_config); workers see an immutable struct nexthop that is
// built from it and from the state of the underlay, and replaced as a whole when either changes.
#pragma once

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/field_limits.h"
#include "base/ip.h"
#include "base/referrer.h"
#include "l3/encap.h"
#include "graph/node.h"
#include "port/port.h"

#define NEXTHOP_API_MAX (LIMIT_NEXTHOP_ID_MAX + 1u) // ids given by the operator lie below
#define NEXTHOP_MAX (NEXTHOP_API_MAX * 2)           // ids above are the router's own
#define GROUP_MAX_MEMBERS LIMIT_GROUP_NEXTHOP_MEMBERS_ITEMS
#define GROUP_BUCKETS 256
#define TUNNEL_MAX_PATHS 16
#define TUNNEL_HDR_MAX 80 // IPv6 40 + UDP 8 + VXLAN 8 + Ethernet 14, rounded to 16

enum nexthop_kind { NH_DISCARD, NH_REJECT, NH_LOCAL, NH_PORT, NH_GLEAN, NH_TUNNEL, NH_GROUP };

// Edges of every node that passes packets on by their next hop. A node's own edges lie between NH_EDGES and
// NH_EDGE_ENCAP.
enum nexthop_edge {
	NH_EDGE_DROP = EDGE_DROP,
	NH_EDGE_LOCAL,
	NH_EDGE_ICMP_ERROR,
	NH_EDGE_PORT, // from here on the packet is forwarded
	NH_EDGE_HOLD,
	NH_EDGES,
	NH_EDGE_ENCAP = 16 // the first of the encapsulations that are registered
};
#define NH_NEXT                                                                                         \
	[NH_EDGE_LOCAL] = "ip_local", [NH_EDGE_PORT] = "port_output", [NH_EDGE_HOLD] = "neighbor_hold", \
	[NH_EDGE_ICMP_ERROR] = "icmp_error", [NH_EDGE_ENCAP] = NODE_LIST(ENCAP_SEND_NODES)

// What a worker sees. Immutable once published.
struct nexthop {
	uint32_t id;
	uint8_t kind;    // enum nexthop_kind
	uint8_t edge;    // enum nexthop_edge
	uint16_t mtu;    // largest IP packet that may be handed to it
	uint16_t mss;    // NH_PORT: TCP MSS clamp of the port, 0 = none
	uint8_t hdr_len; // NH_TUNNEL: bytes in front of the payload, without the underlay's Ethernet header
	uint8_t n_paths; // NH_TUNNEL: power of two
	union {
		struct {              // NH_PORT, NH_GLEAN
			uint32_t adj; // index, NH_PORT
			uint16_t port;
		};
		struct {                                 // NH_TUNNEL
			uint32_t path[TUNNEL_MAX_PATHS]; // indices of adjacencies
			uint32_t ip_sum;                 // outer IPv4: checksum of the constant fields, not folded
			uint32_t pseudo_sum;             // outer IPv6: UDP pseudo header without the length
			bool uniform, fixed_dscp, udp6_checksum, sequenced;
			uint8_t tos;       // with fixed_dscp: DSCP << 2
			uint8_t ttl;       // outer, pipe mode
			uint8_t inner_eth; // bytes of the inner Ethernet header (14 if the encapsulation has one)
			alignas(16) uint8_t hdr[TUNNEL_HDR_MAX]; // the last hdr_len bytes count
		};
		struct {                                // NH_GROUP
			uint32_t bucket[GROUP_BUCKETS]; // member ids, FIB_NONE where no member works
		};
	};
} __rte_cache_aligned;

extern struct nexthop *nexthop_table[NEXTHOP_MAX]; // workers: ro (RCU)

// --- Control plane: master thread only. ---

struct group_member {
	uint32_t nexthop;
	uint32_t weight;
};

enum udp6_checksum { UDP6_CHECKSUM_DEFAULT, UDP6_CHECKSUM_ON, UDP6_CHECKSUM_OFF }; // default: the encapsulation's

struct tunnel_config {
	const struct encap_ops *encap;
	struct ip_addr local, remote;     // local.family 0: chosen from the port that the underlay route leaves by
	uint32_t label, vni, session;     // session: ERSPAN's
	struct rte_ether_addr router_mac; // zero: the virtual router's
	bool uniform, fixed_dscp, gre_has_key;
	uint8_t udp6_checksum; // enum udp6_checksum
	uint8_t dscp, ttl;
	uint32_t gre_key;
};

struct nexthop_config {
	uint32_t id;
	uint8_t owner; // base/owner.h
	enum nexthop_kind kind;
	union {
		struct {
			uint16_t id;
			struct ip_addr addr;
			struct rte_ether_addr mac;
		} port; // NH_PORT, NH_GLEAN
		struct tunnel_config tunnel;
		struct {
			struct group_member member[GROUP_MAX_MEMBERS];
			unsigned n;
		} group;
	};
};

struct nexthop_entry { // control plane's view of one next hop
	struct nexthop_config cfg;
	uint32_t refs; // routes, groups, and what the modules of nexthop_refer() hold
	bool resolved;
	bool leaving;           // nexthop_del_all() is about to delete it
	uint32_t adj;           // NH_PORT: held adjacency, UINT32_MAX = none
	struct ip_addr source;  // NH_TUNNEL: outer source in use
	struct tunnel_way *way; // NH_TUNNEL: held
	uint16_t overhead;
};

int nexthop_init(void);                   // adds the router's own: NH_ID_*
#define NH_ID_LOCAL (NEXTHOP_API_MAX + 1) // the router's own addresses
#define NH_ID_REJECT (NEXTHOP_API_MAX + 2)
#define NH_ID_DISCARD (NEXTHOP_API_MAX + 3)

struct nexthop_listener {
	// A next hop has another kind, port or member, or was deleted. Not called when only its header changes.
	void (*changed)(void);
	struct nexthop_listener *next;
};
void nexthop_listen(struct nexthop_listener *l);
void nexthop_refer(struct referrer *r); // of a module that holds references

int nexthop_add(const struct nexthop_config *cfg, bool replace, struct error *err);
int nexthop_del(uint32_t id, struct error *err); // -EBUSY while it is referred to
// All of them, groups before their members, or none: err->index is the place of the one that is refused.
int nexthop_del_all(const uint32_t *ids, size_t n, struct error *err);
uint32_t nexthop_alloc(void);                       // a free id of the router's range, 0 = none left
struct nexthop_entry *nexthop_get(uint32_t id);     // NULL if there is none
struct nexthop_entry *nexthop_next(uint32_t after); // by id; after = 0: the first
unsigned nexthop_count(void);                       // the operator's
void nexthop_ref(uint32_t id);
void nexthop_unref(uint32_t id);
int nexthop_usable(uint32_t id, const char *field, struct error *err); // exists? else -ENOENT with err
// May routes of this family lead there? IPv4 through an IPv6 neighbour is usual (RFC 8950), the reverse is a mistake.
int nexthop_carries(uint32_t id, uint8_t family, const char *field, struct error *err);

// The underlay changed (route, neighbour's port, address): the next polls rebuild tunnels and groups, each a bounded
// number.
void nexthop_underlay_changed(void);
void nexthop_poll(void);             // from the master's loop
bool nexthop_rebuilding(void);       // some are still to be rebuilt
void nexthop_follow_neighbors(void); // proxy.c: routes and next hops listen to the neighbour table

// Builders, one file per kind.
struct nexthop *nexthop_build(struct nexthop_entry *e); // NULL: no memory
void tunnel_build(struct nexthop_entry *e, struct nexthop *nh);
void group_build(struct nexthop_entry *e, struct nexthop *nh, const struct nexthop *old);
int tunnel_check(struct tunnel_config *t, struct error *err); // fills defaults
