// SPDX-License-Identifier: Apache-2.0
// Ports: where packets enter and leave, whatever moves them (DPDK device, tap, memif, vhost-user).
//
// A kind of port is a struct port_ops. Workers call only rx() and tx(); the rest runs on the master thread. A queue's
// rx() and tx() may run at the same time on two workers, but each of them on one worker at a time (tx is locked by
// port_tx when workers share a queue). A kind whose peer may go at any moment publishes its connection by RCU and frees
// it after a grace period: rx() and tx() must cope with "no peer" by returning 0.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_spinlock.h>

#include "base/doorbell.h"
#include "base/error.h"
#include "base/field_limits.h"
#include "base/ip.h"
#include "graph/meta.h"

#define PORT_NAME (NOTATION_NAME_LONGEST + 1)
#define PORT_MAX_QUEUES LIMIT_PORT_QUEUES_MAX
#define PORT_MAX_ADDRS LIMIT_PORT_ADDRESSES_ITEMS
#define BATCH 256                                                // packets in one poll of a worker
#define PORT_L2_OVERHEAD (RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN) // of a frame, above its port's MTU: a guest may tag twice

enum port_role { PORT_FABRIC = 1, PORT_TENANT, PORT_HOST };

enum source_check { SOURCE_CHECK_NONE, SOURCE_CHECK_REVERSE_PATH, SOURCE_CHECK_STRICT };

// Who finishes a port's packets (worker/spread.h).
enum port_mode {
	PORT_RUN_TO_COMPLETION, // the worker that polled them
	PORT_HYBRID,            // dealt by a hash to all forwarding workers, or to those that are named
	PORT_AUTO,              // the first, until the workers that poll are busy
	PORT_MODES
};
#define WORKER_NONE UINT32_MAX // a queue that no worker polls
#define SPREAD_LOCAL 0xff      // the worker that polled a packet finishes it
enum spread_full { SPREAD_FULL_DROP, SPREAD_FULL_LOCAL, SPREAD_FULL_WAIT, SPREAD_FULLS };

struct port;
struct spread;
struct spread_view;

#define DEPTH_UNKNOWN UINT32_MAX

struct port_queue {
	// Who polls and who sends read this line for every batch; it changes when somebody changes the port or its workers.
	struct port *port;
	uint16_t index;
	void *priv; // of the kind
	// A queue changes hands without a gap: the master names who shall poll it, who polls it leaves off and gives it.
	uint32_t rx_worker;       // who shall poll it, WORKER_NONE = nobody. Master: rw, workers: ro
	uint32_t owner;           // who may. That worker: wo; master when it is nobody's
	bool host;                // the host-path worker polls it, whatever else is wanted. Master only
	struct spread_view *view; // NULL: all its packets stay where they were polled. Master: wo (RCU), polling worker: ro
	// Lines of those who write them.
	uint64_t rx_packets __rte_cache_aligned; // polling worker: rw, master: ro
	uint32_t depth; // packets that waited when last asked, DEPTH_UNKNOWN; polling worker: wo, master: ro
	uint16_t armed; // it is to wake its poller (worker/wait.h), 0 = it is not; polling worker: rw
	// Frames that the kind has taken from the device and given up for their length; port_rx counts them and sets it to 0. Polling worker: rw
	uint32_t too_long;
	rte_spinlock_t tx_lock __rte_cache_aligned; // workers: taken when port->shared_tx
} __rte_cache_aligned;

// What a guest or an operator asked for; owned by the port, changed only by port_set().
struct port_config {
	char name[PORT_NAME];
	enum port_role role;
	uint16_t queues;
	uint16_t mtu;
	bool disabled;
	uint16_t vlan;
	struct rte_ether_addr mac; // zero: default
	struct ip_prefix addrs[PORT_MAX_ADDRS];
	unsigned n_addrs;
	uint16_t fabric; // id of the fabric port whose traffic a host port shares, 0 = none
	uint16_t vrf;    // id, UINT16_MAX = not routed
	uint16_t bridge; // id, UINT16_MAX = not bridged
	struct ip_prefix gateways[PORT_MAX_ADDRS];
	unsigned n_gateways;
	struct rte_ether_addr guest_mac;
	struct ip_prefix guests[PORT_MAX_ADDRS];
	unsigned n_guests;
	bool proxy_arp, no_gateway_echo;
	uint32_t mss_clamp;
	bool stateful;                        // tenant: flows are kept
	uint8_t source_check;                 // enum source_check
	uint32_t flow_limit, flow_rate;       // flows at once and new ones per second, 0 = any number
	uint16_t rules[2];                    // lists (enum rule_direction), 0 = none
	uint16_t egress_meter, ingress_meter; // ids, 0 = none (policy/meter.h): of what the guest sends and receives
	uint16_t mirror;                      // id, 0 = none (policy/mirror.h): of both
	uint8_t mode;                         // enum port_mode
	uint8_t ring_full;                    // enum spread_full
	uint8_t polled_by[PORT_MAX_QUEUES];   // worker + 1, 0 = anybody
	uint32_t weights[64];                 // of workers in hybrid mode, all 0: the same for every forwarding one
	// The device, one of:
	const char *kind;            // "dpdk", "tap", "memif", "vhost"
	char devargs[256];           // dpdk
	char ifname[16], netns[108]; // tap
	char socket[108];            // memif, vhost
	uint32_t memif_id, ring_size, buffer_size;
	bool client; // memif, vhost
	char secret[24];
};

struct port_stats { // of the device
	uint64_t rx_missed, tx_errors;
};

struct port_ops {
	const char *kind;
	// Opens the device with cfg->queues queues (the kind may lower port->n_queues before it returns), sets each queue's priv,
	// port->mac (unless configured) and port->driver. A host port's MAC is set before: the kernel's interface gets it. Returns 0 or -errno with err filled; then nothing is left open.
	int (*open)(struct port *port, const struct port_config *cfg, struct error *err);
	// The port has been taken from all workers (and a grace period is over).
	void (*close)(struct port *port);
	// Workers: up to n packets. Received packets have data_len, pkt_len, nb_segs and next set, ol_flags 0 or the
	// checksum flags that the device vouches for. tx() owns the packets that it counts as sent.
	uint16_t (*rx)(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n);
	uint16_t (*tx)(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n);
	// Polling worker: packets that wait to be received, or DEPTH_UNKNOWN. May be NULL: it is never known.
	uint32_t (*depth)(struct port_queue *q);
	// Interrupts of receive queues; arm NULL: the kind has none. wakes() NULL: all of its queues have them. Master, once it is open.
	bool (*wakes)(const struct port_queue *q);
	// Polling worker. From now on, until disarm(), the descriptor that is returned becomes readable when a packet comes; packets that have
	// come before may not show. -ENOTCONN: none can come before somebody calls port_queue_changed(). Another -errno: not now.
	int (*arm)(struct port_queue *q);
	// signalled: the descriptor has become readable. Returns -EIO when it is so because of an error, which will not go by itself.
	int (*disarm)(struct port_queue *q, bool signalled);
	int (*set_mtu)(struct port *port, uint16_t mtu, struct error *err); // may be NULL
	void (*stats)(struct port *port, struct port_stats *out);           // may be NULL
	// Rules of the NIC: packets for this address go to this queue (NULL with err: it cannot), no longer. Both NULL: no rules.
	void *(*steer)(struct port *port, const struct ip_addr *addr, uint16_t queue, struct error *err);
	void (*unsteer)(struct port *port, void *rule);
	// Each counter of the driver: cb(arg, name, value). May be NULL.
	void (*xstats)(struct port *port, void (*cb)(void *arg, const char *name, uint64_t value), void *arg);
};

struct port {
	// Read by workers for every batch.
	const struct port_ops *ops;
	uint16_t id;
	uint8_t role;
	bool shared_tx; // more workers than queues: tx takes the queue's lock
	uint16_t n_queues;
	bool up;               // link and administrative state: master rw, workers ro
	struct spread *spread; // NULL: not spread. Master: wo (RCU), polling workers: ro
	uint16_t longest;      // frame that may come in: its MTU and PORT_L2_OVERHEAD. Master: wo, workers: ro
	uint8_t host_worker; // fabric: who alone sends to its host port, SPREAD_LOCAL = whoever has the packet. Master: wo, workers: ro
	struct rte_ether_addr mac;
	struct port_queue queues[PORT_MAX_QUEUES];
	// Control plane only.
	struct port_config cfg;
	uint16_t host; // fabric: id of its host port, 0 = none
	void *priv;    // of the kind
	char driver[32];
	int numa;               // SOCKET_ID_ANY where it has none
	bool busy;              // PORT_AUTO: the workers that poll it have much to do
	unsigned quiet_seconds; // PORT_AUTO: for how long they would do without help
	bool moved;             // entries of its table were moved by their load
	uint64_t weighed;       // workers that its table was dealt to, bit by id
	bool link_up, peer_connected;
	uint64_t peer_connects, peer_disconnects;
	char last_error[128];
};

// Kinds call this on the master thread when their link or peer changes.
void port_link_changed(struct port *port, bool link_up, bool peer_connected);

// A worker may wait for it.
static inline bool port_queue_wakes(const struct port_queue *q)
{
	const struct port_ops *ops = q->port->ops;

	return ops->arm && (ops->wakes == NULL || ops->wakes(q));
}

// What arm() has returned for this queue does not hold any more. Any thread.
static inline void port_queue_changed(const struct port_queue *q)
{
	doorbell_ring(__atomic_load_n(&q->owner, __ATOMIC_ACQUIRE));
}

// The pool that a device on this NUMA node takes its buffers from. Data room: port_pool_data_room() bytes.
struct rte_mempool *port_pool(int numa);

extern const struct port_ops port_dpdk_ops, port_tap_ops, port_memif_ops, port_vhost_ops;
