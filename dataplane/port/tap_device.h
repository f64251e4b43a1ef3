// SPDX-License-Identifier: Apache-2.0
// What ports need more rights for than forwarding does: making tap interfaces, and calls into drivers that configure
// the kernel. privilege/ replaces these functions in a daemon that has given up its rights.
#pragma once

#include "port/port.h"

struct tap_request {
	char ifname[16];
	char netns[108]; // name or path, empty: the daemon's own
	uint16_t queues, mtu;
	bool vnet;                 // frames have a virtio-net header
	bool adopt;                // an unused tap of this name is taken as it is, apart from its MTU and MAC
	struct rte_ether_addr mac; // zero: the kernel chooses
};

struct port_rights {
	// Makes the interface and brings it up. Returns 0 and a descriptor for each queue, or -errno with err filled.
	int (*tap_create)(const struct tap_request *r, int fds[PORT_MAX_QUEUES], struct error *err);
	// fd: a queue of the interface. Returns 0, or -errno with err filled.
	int (*tap_set_mtu)(int fd, uint16_t mtu, struct error *err);
	void (*driver)(bool begin); // master: before and after such calls into a driver
};
extern struct port_rights port_rights;

// The same two in the network namespace of the calling thread.
int tap_device_create(const struct tap_request *r, int fds[PORT_MAX_QUEUES], struct error *err);
int tap_device_set_mtu(int fd, uint16_t mtu, struct error *err);

// Makes the interface outlive its descriptors, or end with the last of them. Needs no rights. Returns 0 or -errno.
int tap_device_persist(int fd, bool on);

// Lets the kernel hand over unfinished checksums and, with `large`, large segments of the kinds that it has. Needs no
// rights. Returns what it takes (PORT_TAKES_*).
uint16_t tap_device_offer(int fd, bool large);

// Both return the descriptor of a network namespace, or -errno with err filled.
int tap_device_netns(int fd, struct error *err);         // the one that the interface is in
int tap_netns_open(const char *name, struct error *err); // by its name under /run/netns or its path
