// SPDX-License-Identifier: Apache-2.0
// The list of all ports, and the modules that listen to its changes. Master thread, unless stated otherwise.
#pragma once

#include "port/port.h"

// MAC of the virtual gateway of tenants, the same on every node (RFC 5798: virtual router 1).
static const struct rte_ether_addr gateway_mac = {.addr_bytes = {0x00, 0x00, 0x5e, 0x00, 0x01, 0x01}};

// The part of a port's configuration that workers read. It never changes: a change of the port publishes a new one.
struct port_fwd {
	struct rte_ether_addr mac; // own: fabric address, or the virtual gateway's
	uint8_t role;
	uint8_t source_check; // enum source_check
	bool proxy_arp, gateway_echo, stateful;
	uint16_t vrf, bridge;  // UINT16_MAX = none
	uint16_t host, fabric; // id of a fabric port's host port; of a host port's fabric port. 0 = none
	uint16_t vlan_be;      // TCI on the wire, 0 = untagged
	uint16_t mtu;
	uint16_t mss; // TCP MSS clamp: 0 = none, 1 = computed from the tunnel's MTU
	uint16_t egress_meter, ingress_meter, mirror;
	uint8_t n_ip4, n_ip6;
	uint32_t ip4[PORT_MAX_ADDRS]; // own addresses, network byte order
	uint8_t ip6[PORT_MAX_ADDRS][16];
	struct rte_ether_addr guest_mac; // zero: any
	uint8_t n_guests;
	struct ip_prefix guests[PORT_MAX_ADDRS];
};

extern struct port *port_table[PORT_MAX];    // workers: ro (RCU)
extern struct port_fwd *port_fwds[PORT_MAX]; // workers: ro (RCU); never NULL where port_table is not

struct port *port_get(uint16_t id);           // NULL: there is none
struct port *port_find(const char *name);     // NULL: there is none
struct port *port_next(const struct port *p); // in the order of ids; p NULL: the first one. NULL: no more
unsigned port_count(void);

// A module that follows the ports. check() may refuse a configuration (old is NULL for a new port) and check_del() a
// removal (-EBUSY with err); both change nothing. The others are called after the change.
struct port_listener {
	int (*check)(const struct port *old, const struct port_config *cfg, struct error *err);
	void (*added)(struct port *port);
	void (*changed)(struct port *port, const struct port_config *old);
	int (*check_del)(const struct port *port, struct error *err);
	void (*removed)(struct port *port);
	void (*link)(struct port *port); // came up or went down
	// For the module that polls ports. check_open() may refuse, too, once the device is open and its queues are
	// known. settle() is called after added() and changed() of all listeners; if it fails for a new port, the port
	// is removed again. unused() is called after removed() of all listeners: the port must not be polled any more.
	// closed(): no worker can see it any more.
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
int port_config_check(struct port_config *cfg, struct error *err); // fills defaults
