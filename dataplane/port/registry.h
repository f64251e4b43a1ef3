// SPDX-License-Identifier: Apache-2.0
// The list of all ports, and the modules that listen to its changes. Master thread, unless stated otherwise.
#pragma once

#include "port/port.h"

// MAC of the virtual gateway of tenants, the same on every node (RFC 5798: virtual router 1).
static const struct rte_ether_addr gateway_mac = {.addr_bytes = {0x00, 0x00, 0x5e, 0x00, 0x01, 0x01}};

// The part of a port's configuration that workers read. It never changes: a change of the port publishes a new one.
// The listener of another module fills in the module's members, which its header describes.
struct port_fwd {
	struct rte_ether_addr mac; // own: fabric address, or the virtual gateway's
	uint8_t role;
	uint8_t input;        // enum port_input
	uint8_t source_check; // enum source_check, never DEFAULT
	uint8_t boot;         // enum boot_service: what the guest's requests are answered for
	bool allow_router, allow_dhcp_server;
	bool proxy_arp, gateway_echo, stateful;
	uint8_t ring_full;
	uint16_t vrf, bridge;  // UINT16_MAX = none
	uint16_t host, fabric; // id of a fabric port's host port; of a host port's fabric port. 0 = none
	uint16_t vlan_be;      // TCI on the wire, 0 = untagged
	uint16_t mtu;
	uint16_t mss;
	uint16_t unresolved_rate; // packets/s to neighbours without a known MAC
	uint16_t egress_meter, ingress_meter, mirror;
	uint8_t n_ip4, n_ip6;
	uint32_t ip4[PORT_MAX_ADDRS]; // own addresses, network byte order
	uint8_t ip6[PORT_MAX_ADDRS][16];
	struct rte_ether_addr guest_mac; // zero: any
	uint64_t guest_ip4;              // its MAC, and the type of IPv4, as in the header of its frames; MAC zero: 0
	uint32_t guest4;                 // the guest's first address that is no prefix and no gateway; zero: none
	uint8_t guest6[16];
	uint32_t boot_server4; // as which DHCPv4 is answered, network byte order; zero: none
	uint8_t n_guests;
	struct ip_prefix guests[PORT_MAX_ADDRS];
};

extern bool port_buffers_lacked;             // since the master last looked. Workers: wo, master: rw
extern struct port *port_table[PORT_MAX];    // workers: ro (RCU)
extern struct port_fwd *port_fwds[PORT_MAX]; // workers: ro (RCU); never NULL where port_table is not

// The sub-ports of a port by their tags: ids of ports, 0 = there is none. Master: wo, workers: ro.
#define TAGS 4096
struct trunk {
	uint16_t once[TAGS];   // by the 802.1Q tag
	uint16_t *twice[TAGS]; // by the 802.1ad tag, then by the 802.1Q tag within; NULL: none (RCU)
};
extern struct trunk *port_trunks[PORT_MAX]; // workers: ro (RCU); NULL: the port has no sub-ports

struct port *port_get(uint16_t id);           // NULL: there is none
struct port *port_find(const char *name);     // NULL: there is none
struct port *port_next(const struct port *p); // in the order of ids; p NULL: the first one. NULL: no more
unsigned port_count(void);

extern const struct drop_reason *const frame_too_long;

// A module that follows the ports. check() may refuse a configuration (old is NULL for a new port) and check_del() a
// removal (-EBUSY with err); both change nothing.
//
// The calls for a port, each to all listeners before the next one:
//	added:   check, check_open, guard, (all workers have seen what guard says), forward, added, settle
//	changed: check, check_open, guard, (seen), forward, changed, (seen), unguard, settle
//	removed: check_del, unused, removed, (seen), closed
// The port is not polled before settle() and after unused(), and routes lead to it from added() to removed(). So
// every packet of a port is subject to what guard() has installed.
struct port_listener {
	// Puts in place what packets must meet (rules, flows) once the port has the configuration `next`, beside what
	// it needs now. Returns true if a worker may be in the midst of a packet that has missed it. unguard(): removes
	// what the port had for `old` and does not need any more.
	bool (*guard)(struct port *port, const struct port_config *next);
	void (*unguard)(struct port *port, const struct port_config *old);
	int (*check)(const struct port *old, const struct port_config *cfg, struct error *err);
	void (*forward)(const struct port_config *cfg, struct port_fwd *out); // fills in the module's members
	void (*added)(struct port *port);
	void (*changed)(struct port *port, const struct port_config *old);
	int (*check_del)(const struct port *port, struct error *err);
	void (*removed)(struct port *port);
	void (*link)(struct port *port); // came up or went down
	// For the module that polls ports. check_open() may refuse, too, once the device is open and its queues are
	// known. If settle() fails for a new port, the port is removed again. closed(): no worker can see it any more;
	// also called for a port that could not be added.
	int (*check_open)(const struct port *port, const struct port_config *cfg, struct error *err);
	int (*settle)(struct port *port, struct error *err);
	void (*unused)(struct port *port);
	void (*closed)(struct port *port);
	struct port_listener *next;
};
void port_listen(struct port_listener *l);

// Zeroes in cfg stand for defaults (port_config_check()). Returns NULL with err filled when it is refused; then nothing
// has changed.
struct port *port_add(const struct port_config *cfg, struct error *err);
int port_set(struct port *port, const struct port_config *cfg, struct error *err); // all of cfg except the device
int port_del(const char *name, struct error *err);
void port_del_all(void);
// Sends what the kernel gets of this fabric port's traffic to a host port, 0 = to none.
int port_set_host(struct port *fabric, uint16_t host, struct error *err);
int port_set_input(struct port *port, uint8_t input, struct error *err); // enum port_input
// A sub-port of this port, the first one behind `last` in the order of ids (NULL: of all). NULL: no more.
struct port *port_next_sub(const struct port *parent, const struct port *last);
int port_config_check(struct port_config *cfg, struct error *err); // fills defaults
const struct port_ops *port_kind_find(const char *kind);           // NULL: there is no such kind
// Restricts the kinds of new ports: "tap,vhost". Before the first port. Returns 0, or -EINVAL with err.
int port_allow_kinds(const char *list, struct error *err);
bool port_kind_allowed(const char *kind);
