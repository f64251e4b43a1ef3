// SPDX-License-Identifier: Apache-2.0
// A packet socket of the kernel (packet(7)) on an interface, with virtio-net headers. Private to packet.c and
// packet_io.c.
//
// Unlike DPDK's af_packet driver it gives the kernel the datagrams of a tunnel that follow each other as one large
// datagram, which the interface or the kernel cuts again, and takes such datagrams. So the kernel handles dozens of
// packets at once.
#pragma once

#include <linux/if_packet.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/offload.h"
#include "port/dpdk.h"
#include "port/pause.h"
#include "port/vnet.h"

#define PACKET_READS 16        // frames in one system call
#define PACKET_REST UINT16_MAX // bytes of a large frame beyond its first buffer
static_assert(VNET_LONGEST - PORT_POOL_ROOM <= PACKET_REST, "the longest frame fits");

struct packet_read { // where one frame goes
	struct virtio_net_hdr header;
	struct iovec iov[3]; // header, first buffer, rest
	char control[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	struct rte_mbuf *m; // the first buffer; NULL: there is none yet
};

struct packet_queue {
	int fd;
	int wake_fd; // readable while fd is
	struct rte_mempool *pool;
	// Receiving worker: rw, master: ro.
	struct pause pause;
	uint16_t most; // frames in the next read: fewer when they are large
	struct packet_read reads[PACKET_READS];
	struct mmsghdr messages[PACKET_READS];
	uint8_t *rest; // PACKET_REST bytes for each read
	struct rte_mbuf_ext_shared_info shared[PACKET_READS];
	uint16_t held_from, held_to;
	struct rte_mbuf *held[PACKET_READS * OFFLOAD_SEGMENTS_MAX]; // packets that were cut and have to wait
	uint64_t no_buffer, rx_errors;
	// Sending worker: rw, master: ro.
	bool apart __rte_cache_aligned; // the kernel takes no large datagrams
	uint64_t tx_errors;
} __rte_cache_aligned;

struct packet {
	struct dpdk netdev; // the interface, as beneath DPDK's driver; it has no device
	uint64_t missed;    // frames for which the socket had no room
	uint16_t n_queues;
	struct packet_queue queues[];
};

bool packet_is_wanted(const struct port_config *cfg); // by the device's arguments
extern const struct port_ops port_packet_ops;         // a port of kind "dpdk" has them instead of DPDK's

uint16_t packet_rx(struct port_queue *pq, struct rte_mbuf **pkts, uint16_t n);
uint16_t packet_tx(struct port_queue *pq, struct rte_mbuf **pkts, uint16_t n);
void packet_io_free(struct packet_queue *q);
