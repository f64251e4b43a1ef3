// SPDX-License-Identifier: Apache-2.0
// Ports: where packets enter and leave. A DPDK device, tap, memif or vhost-user moves them.
//
// A kind of port is a struct port_ops. Workers call only rx() and tx(); the rest runs on the master thread. A queue's
// rx() and tx() may run at the same time on two workers, but each of them on one worker at a time (tx is locked by
// port_tx when workers share a queue). A kind whose peer may disconnect at any moment publishes its connection by RCU
// and frees it after a grace period; rx() and tx() return 0 while there is no peer.
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
#include "graph/drop.h"

#define PORT_NAME (NOTATION_NAME_LONGEST + 1)
#define PORT_MAX_QUEUES LIMIT_PORT_QUEUES_MAX
#define PORT_MAX_ADDRS LIMIT_PORT_ADDRESSES_ITEMS
#define BATCH 256             // packets in one poll of a worker
#define PORT_TURN_BYTES 65536 // that are copied in one poll, then it ends: about the time of a batch of short frames
#define PORT_L2_OVERHEAD (RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN) // of a frame, beyond the MTU: a guest may tag twice

enum port_role { PORT_FABRIC = 1, PORT_TENANT, PORT_HOST };

// The first node of a port's packets: that of its role, or the one that finds their sub-port.
enum port_input { PORT_INPUT_TRUNK = PORT_HOST + 1 };

// What a tenant port offers to its guest, where its kind can.
enum port_offload { PORT_OFFLOAD_ALL, PORT_OFFLOAD_CHECKSUM, PORT_OFFLOAD_NONE };

// Unfinished packets (base/offload.h) that a port's peer takes as they are.
enum port_takes {
	PORT_TAKES_CHECKSUM = 1 << 0, // that are not large
	PORT_TAKES_TCP4 = 1 << 1,     // large segments
	PORT_TAKES_TCP6 = 1 << 2,
	PORT_TAKES_ECN = 1 << 3, // also with CWR
	PORT_TAKES_UDP4 = 1 << 4,
	PORT_TAKES_UDP6 = 1 << 5,
	PORT_TAKES_WHOLE = 1 << 6, // large segments in tunnels (offload/whole.h)
};

// What is done to packets before a port's tx().
enum port_tx_flags {
	PORT_TX_SHARED = 1 << 0, // more workers than queues: the queue's lock is taken
	PORT_TX_TRUNK =
		1 << 1, // it has sub-ports: frames with a tag are dropped, because tags are those of its sub-ports
};

#define WORKER_NONE UINT32_MAX // a queue that no worker polls
#define SPREAD_LOCAL 0xff      // the worker that polled a packet finishes it

struct port;
struct spread_view;

#define DEPTH_UNKNOWN UINT32_MAX
#define PORT_SETTINGS_SIZE 2048

struct port_queue {
	// The poller and the senders read this line for every batch; it changes only with the port or its workers.
	struct port *port;
	uint16_t index;
	void *priv; // the kind's
	// Handover: the master writes the new poller to rx_worker; the current owner stops polling and then stores the
	// new poller in `owner`.
	uint32_t rx_worker;       // the worker that should poll it, or WORKER_NONE. Master: rw, workers: ro
	uint32_t owner;           // the only worker that may poll it, or WORKER_NONE. That worker: wo, else master
	bool host;                // the host-path worker polls it, whatever polled_by says. Master only
	struct spread_view *view; // NULL: its poller finishes all its packets. Master: wo (RCU), polling worker: ro
	// Each on a cache line of its writer.
	uint64_t rx_packets __rte_cache_aligned; // polling worker: rw, master: ro
	uint32_t depth; // packets that waited when last read, or DEPTH_UNKNOWN; polling worker: wo, master: ro
	uint16_t armed; // not 0: it wakes its poller (worker/wait.h); polling worker: rw
	uint16_t most;  // largest burst, 0 = BATCH (worker/burst.h); polling worker: rw
	rte_spinlock_t tx_lock __rte_cache_aligned; // workers: taken with PORT_TX_SHARED
} __rte_cache_aligned;

// The configuration that was asked for through the API; only port_set() changes it.
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
	uint16_t fabric; // host port: id of its fabric port, 0 = none
	uint16_t vrf;    // id, UINT16_MAX = not routed
	uint16_t bridge; // id, UINT16_MAX = not bridged
	struct ip_prefix gateways[PORT_MAX_ADDRS];
	unsigned n_gateways;
	struct rte_ether_addr guest_mac;
	struct ip_prefix guests[PORT_MAX_ADDRS];
	unsigned n_guests;
	bool stateful; // tenant: flows are kept
	enum port_offload offload;
	// The device, one of:
	const char *kind;                                // "dpdk", "tap", "memif", "vhost", "subport"
	char devargs[LIMIT_DPDK_DEVICE_DEVARGS_MAX + 1]; // dpdk
	char ifname[NOTATION_INTERFACE_LONGEST + 1];     // tap
	char netns[LIMIT_TAP_DEVICE_NETNS_MAX + 1];      // tap
	char socket[NOTATION_PATH_LONGEST + 1];          // memif, vhost
	uint32_t memif_id, ring_size, buffer_size;
	uint16_t parent, tag, outer_tag; // subport: id of a port, and 802.1Q tags; outer_tag 0: there is none
	bool whole_segments;             // memif
	bool client;                     // memif, vhost
	char socket_owner[PORT_NAME], socket_group[PORT_NAME], socket_mode[8]; // servers; empty: default
	char secret[NOTATION_SECRET_LONGEST + 1];
	uint8_t settings[PORT_SETTINGS_SIZE] __rte_aligned(8); // see PORT_SETTINGS()
};

// Other modules keep their settings of a port in the port's configuration, so that these are checked and applied
// together with the others. They are zero in a new configuration. PORT_SETTINGS(NAME) in a file of the module reserves
// bytes for a struct NAME and defines the two functions that find it, which the module's header declares.
#define PORT_SETTINGS(name)                                              \
	static uint16_t name##_at;                                       \
	RTE_INIT(name##_reserve)                                         \
	{                                                                \
		name##_at = port_settings_reserve(sizeof(struct name));  \
	}                                                                \
	const struct name *name(const struct port_config *cfg)           \
	{                                                                \
		return (const struct name *)(cfg->settings + name##_at); \
	}                                                                \
	struct name *name##_edit(struct port_config *cfg)                \
	{                                                                \
		return (struct name *)(cfg->settings + name##_at);       \
	}

uint16_t port_settings_reserve(size_t size); // returns the offset in settings[]; aborts when they are full

struct port_stats { // of the device
	uint64_t rx_missed, tx_errors;
};

struct port_ops {
	const char *kind;
	// Opens the device with cfg->queues queues (the kind may lower port->n_queues before it returns), sets each
	// queue's priv, port->mac (unless configured) and port->driver. A host port's MAC is set before open(), which
	// gives it to the kernel's interface. Returns 0, or -errno with err filled and nothing left open.
	int (*open)(struct port *port, const struct port_config *cfg, struct error *err);
	// Called after a grace period: no worker uses the port any more.
	void (*close)(struct port *port);
	// Workers: up to n packets; a kind that copies them ends at PORT_TURN_BYTES, so that long frames do not take
	// the time of other ports. Received packets have data_len, pkt_len, nb_segs and next set, ol_flags 0 or the
	// checksum flags that the device vouches for, or the marks of base/offload.h. tx() gets only unfinished packets
	// that port->takes has, and owns those that it counts as sent.
	// rx NULL: its packets come in by another port.
	uint16_t (*rx)(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n);
	uint16_t (*tx)(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n);
	uint16_t rx_least; // packets: rx() may return none when it is asked for fewer; 0 = it never does
	// Polling worker: packets that wait to be received, or DEPTH_UNKNOWN. NULL: it is never known.
	uint32_t (*depth)(struct port_queue *q);
	// Receive interrupts. arm NULL: the kind has none. wakes(): whether this queue has them (NULL: all have);
	// master, once it is open.
	bool (*wakes)(const struct port_queue *q);
	// Polling worker. Until disarm(), the descriptor that is returned becomes readable when a packet arrives;
	// packets that arrived before may not signal it. -ENOTCONN: no packet can arrive before port_queue_changed() is
	// called. Another -errno: not now.
	int (*arm)(struct port_queue *q);
	// signalled: the descriptor has become readable. Returns -EIO when a permanent error has made it readable.
	int (*disarm)(struct port_queue *q, bool signalled);
	int (*set_mtu)(struct port *port, uint16_t mtu, struct error *err); // may be NULL
	void (*stats)(struct port *port, struct port_stats *out);           // may be NULL
	// Rules of the NIC. steer() sends packets for this address to this queue and returns the rule, or NULL with
	// err; unsteer() removes it. Both NULL: the kind has no rules.
	void *(*steer)(struct port *port, const struct ip_addr *addr, uint16_t queue, struct error *err);
	void (*unsteer)(struct port *port, void *rule);
	// Calls cb(arg, name, value) for each counter of the driver. May be NULL.
	void (*xstats)(struct port *port, void (*cb)(void *arg, const char *name, uint64_t value), void *arg);
};

struct port {
	// Workers read these for every batch.
	const struct port_ops *ops;
	uint16_t id;
	uint8_t role;
	uint8_t tx_flags; // enum port_tx_flags. Master: wo, workers: ro
	uint8_t input;    // enum port_input. Master: wo, workers: ro
	uint16_t n_queues;
	bool up;             // link and administrative state: master rw, workers ro
	uint16_t longest;    // frame to receive: MTU + PORT_L2_OVERHEAD, 0: disabled. Master: wo, workers: ro
	uint8_t rx_flags;    // enum meta_flags of received packets. Master: wo, workers: ro
	uint16_t takes;      // enum port_takes. A kind, before a peer is visible to workers: wo, workers: ro
	uint8_t host_worker; // fabric: the only sender to its host port, SPREAD_LOCAL = any. Master: wo, workers: ro
	struct rte_ether_addr mac;
	struct port_queue queues[PORT_MAX_QUEUES];
	// Control plane only.
	struct port_config cfg;
	uint8_t owner; // base/owner.h
	uint16_t host; // fabric: id of its host port, 0 = none
	void *priv;    // the kind's
	char driver[32];
	int numa;      // SOCKET_ID_ANY: it has none
	unsigned kept; // buffers of the pool that its device keeps (port_pool_keep())
	bool link_up, peer_connected;
	uint64_t peer_connects, peer_disconnects;
	char last_error[128];
};

// The queues that workers poll.
static inline unsigned port_polled_queues(const struct port *p)
{
	return p->ops->rx ? p->n_queues : 0;
}

static inline void port_set_tx_flag(struct port *p, uint8_t flag, bool on)
{
	__atomic_store_n(&p->tx_flags, on ? p->tx_flags | flag : p->tx_flags & ~flag, __ATOMIC_RELAXED);
}

// Kinds call this on the master thread when their link or peer changes.
void port_link_changed(struct port *port, bool link_up, bool peer_connected);

// A kind calls this on the polling worker when it has dropped a frame for its length. Counts it.
void port_refused_too_long(const struct port *port);

// The same for a frame that it has received and gives up for this reason. Frees it.
void port_refused(const struct port *port, struct rte_mbuf *m, const struct drop_reason *why);

// A kind calls this on the master thread when the peer of a port has taken memory away that both share, and was
// disconnected for that; losses: how often. Reports the first, and then each time that there were twice as many as
// told.
void port_memory_lost(struct port *port, unsigned losses, unsigned *told);

// A kind calls this on the polling worker when it found no free buffer for what may wait. Counts the poll.
void port_no_buffer(const struct port *port);
void port_buffers_poll(void); // master, once a second: reports that ports find no buffers, and that they do again

// Whether a worker may sleep until this queue wakes it.
static inline bool port_queue_wakes(const struct port_queue *q)
{
	const struct port_ops *ops = q->port->ops;

	return ops->arm && (ops->wakes == NULL || ops->wakes(q));
}

// Wakes the queue's owner, because what arm() has returned is stale. Any thread.
static inline void port_queue_changed(const struct port_queue *q)
{
	doorbell_ring(__atomic_load_n(&q->owner, __ATOMIC_ACQUIRE));
}

// The pool that a device on this NUMA node takes its buffers from. Data room: port_pool_data_room() bytes.
struct rte_mempool *port_pool(int numa);

#define BUFFERS_ENOUGH UINT32_MAX
// How many buffers one tenant port may hold while its packets wait: as many as are free, without a reserve of an eighth
// for the fabric. So N ports that take all they can get have an equal share each, and leave another one to the next
// port. BUFFERS_ENOUGH while half of them are free: no port can hold more than that. Any thread.
uint32_t port_pool_share(int numa);                      // of the pool of this node
uint32_t port_pool_share_least(void);                    // of all pools
void port_pool_usage(unsigned *total, unsigned *in_use); // over all pools

static inline uint32_t port_share_of(uint32_t buffers, uint32_t free)
{
	if (free >= buffers / 2)
		return BUFFERS_ENOUGH;
	return free > buffers / 8 ? free - buffers / 8 : 0;
}

extern const struct port_ops port_dpdk_ops, port_tap_ops, port_memif_ops, port_vhost_ops, port_subport_ops;
