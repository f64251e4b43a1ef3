// SPDX-License-Identifier: Apache-2.0
// A DPDK device of any kind. Private to dpdk*.c.
#pragma once

#include <linux/if.h>

#include <rte_ethdev.h>

#include "dpdk/dpdk_device.h"
#include "port/port_kinds.h"

struct dpdk_queue {
	uint16_t device, index; // of DPDK
	bool linear;            // the device takes no chained buffers
	int wake_fd;            // readable when the device has interrupted; -1 = it gives no interrupts
	bool always_armed;      // the driver's descriptor needs no enabling
	bool sends_by_call;     // each burst that it sends is one system call (af_packet)
	uint64_t tx_errors;     // sending worker: rw, master: ro
} __rte_cache_aligned;

struct dpdk {
	struct port *port;
	struct port_watch *watch;
	struct dpdk_device dev;
	char netdev[IFNAMSIZ]; // af_packet and af_xdp: the kernel interface beneath, else empty
	int index;             // of that interface, which may have another name by now
	int ctl, old_mtu;      // socket for its ioctls; its MTU before the port was opened
	bool raised;           // it was down before the port was opened
	uint16_t frame_mtu;    // the largest that fits the frames of af_packet's ring, 0 = no limit
	bool up, callbacks;
	unsigned rules; // made by dpdk_steer()
	struct dpdk_queue queues[PORT_MAX_QUEUES];
};

// Finds or creates the device. Sets dev and netdev. Returns 0, or -errno with err filled for dpdk.devargs.
int dpdk_probe(struct dpdk *d, const struct port_config *cfg, struct error *err);
// Closes the device. A virtual device vanishes, a PCI device stays bound to its kernel driver.
void dpdk_remove(struct dpdk *d);

void *dpdk_steer(struct port *port, const struct ip_addr *addr, uint16_t queue, struct error *err);
void dpdk_unsteer(struct port *port, void *rule);

// Configures and starts the device. Sets port->n_queues, mac, driver, numa.
int dpdk_setup(struct dpdk *d, const struct port_config *cfg, struct error *err);
int dpdk_apply_mtu(struct dpdk *d, uint16_t mtu, uint16_t vlan, struct error *err); // bytes of the IP packet

// dpdk_wake.c: receive interrupts, for devices that were configured with them.
void dpdk_wake_open(struct dpdk_queue *queues, unsigned n, const struct rte_eth_dev_info *info);
void dpdk_wake_close(struct dpdk_queue *queues, unsigned n); // before the device stops
// Whether a device, a name of DPDK's, has one interrupt for everything. root: of the file system, "" or a test's.
bool dpdk_has_one_interrupt(const char *root, const char *device);
bool dpdk_wakes(const struct port_queue *pq);
int dpdk_arm(struct port_queue *pq);
int dpdk_disarm(struct port_queue *pq, bool signalled);

// The kernel interface d->netdev. take() saves its state and brings it up, release() restores the state.
int dpdk_netdev_take(struct dpdk *d, struct error *err);
void dpdk_netdev_release(struct dpdk *d);
int dpdk_netdev_set_mtu(const struct dpdk *d, uint16_t mtu, struct error *err);
bool dpdk_netdev_up(const struct dpdk *d);
