// SPDX-License-Identifier: Apache-2.0
// Encapsulations of the underlay. Each overlay/<encap>.c registers its own; no other place lists them:
//
//	static const struct encap_ops vxlan = {.name = "vxlan", .proto = IPPROTO_UDP, ...};
//	ENCAP(vxlan);
//
// The order of registration does not matter.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/field_limits.h"

struct nexthop;
struct tunnel_config;

#define ENCAP_MAX 16
#define ENCAP_RECEIVE_PLACES (ENCAP_MAX + 1)

// What a tunnel carries. An MPLS payload that does not begin with an IP header is a frame.
enum encap_inner { ENCAP_INNER_NONE, ENCAP_INNER_PACKET, ENCAP_INNER_FRAME };

struct encap_ops {
	const char *name;         // the API's ENCAP_ value in lower case, without the prefix
	bool mirrors;             // mirrors may send their copies, which are whole frames, with it
	bool mirrors_only;        // only mirrors use it, not the operator's next hops
	uint8_t proto;            // of the outer IP header: IPPROTO_UDP, or the encapsulation's own
	uint16_t udp_port;        // IPPROTO_UDP: the default
	const char *udp_setting;  // IPPROTO_UDP: the list of ports in the API's Settings
	const char *send_node[2]; // over IPv4, over IPv6
	const char *receive_node; // NULL: the router only sends it

	// Headers between the outer IP header and the payload. The compiler knows them where encap_one() is inlined.
	uint8_t header;     // bytes, at most
	bool inner_eth;     // IP packets get an Ethernet header between the two routers, frames are sent as they are
	bool inner_ttl;     // the byte in front of the payload is a TTL: that of an MPLS label (RFC 3443)
	bool sequenced;     // the sender numbers its packets (pkt_meta.arg)
	bool udp6_checksum; // default of a tunnel over IPv6: it sends a UDP checksum

	// Checks what the options of the fields (api/*.proto) do not: which ones this encapsulation needs. Errors name
	// "nexthop.tunnel.<field>". NULL: it needs none.
	int (*check)(const struct tunnel_config *t, struct error *err);
	// Writes the headers in front of nh->hdr's end (tunnel_push()), except for outer UDP and IP.
	void (*push)(struct nexthop *nh, const struct tunnel_config *t);
	// p: n bytes of a received packet behind the outer UDP header, or IP header where there is no UDP. Sets *at to
	// the offset of the inner packet. Workers call it before anything is checked.
	enum encap_inner (*inner)(const uint8_t *p, unsigned n, unsigned *at);
};

void encap_register(const struct encap_ops *ops); // before main()

#define ENCAP(sym)                                                            \
	__attribute__((constructor)) static void encap_##sym##_register(void) \
	{                                                                     \
		encap_register(&sym);                                         \
	}

// --- Receiving: workers ro, master rw. Places in fabric_input's list of edges from FABRIC_DECAP on, plus one. ---

#define ENCAP_RECEIVE_NODES "decap" // the list's name (graph/node.h)
extern uint8_t encap_by_udp[65536]; // by destination port, 0 = no tunnel
extern uint8_t encap_by_proto[256]; // by protocol of the outer IP header, 0 = no tunnel, or UDP

unsigned encap_receive_place(const struct encap_ops *ops); // its entries in these tables; 0: the router only sends it

// of: an entry of these tables.
enum encap_inner encap_inner(unsigned of, const uint8_t *p, unsigned n, unsigned *at);

// --- Sending. ---

#define ENCAP_SEND_NODES "encap" // list of edges of the nodes that send packets to next hops
unsigned encap_send_place(const struct encap_ops *ops, bool v6); // in that list
uint16_t encap_udp_port(const struct encap_ops *ops);            // destination port of sent packets

// --- Control plane: master thread only. ---

const struct encap_ops *encap_find(const char *name);              // NULL if there is none
const struct encap_ops *encap_next(const struct encap_ops *after); // by name; after NULL the first; NULL past the last
const char *encap_names(void);                                     // of next hops: "mplsogre, mplsoudp, vxlan"
// Sets the UDP ports as the setting does: n <= SETTING_LIST_MAX; packets are sent to the first one. The next hops are
// rebuilt by nexthop_poll().
void encap_set_ports(const struct encap_ops *ops, const uint32_t *ports, unsigned n);
