// SPDX-License-Identifier: Apache-2.0
// Mirrors: targets for copies of packets, either a port of this node or a collector behind the underlay. The flow nodes
// copy the packets of ports and rules that name a mirror (mirror_copy()), and mirror_output sends the copies. Copies
// never enter the flow nodes again, so mirrors cannot loop.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "base/error.h"
#include "base/field_limits.h"
#include "base/referrer.h"
#include "l3/nexthop.h"
#include "worker/worker.h"

#define MIRROR_NAME (NOTATION_NAME_LONGEST + 1)
#define MIRROR_MAX 1024u // ids 1..MIRROR_MAX-1; 0 = none

enum mirror_target { MIRROR_PORT, MIRROR_TUNNEL };
enum mirror_direction { MIRROR_BOTH, MIRROR_EGRESS, MIRROR_INGRESS }; // EGRESS: sent by the guest, INGRESS: sent to it

struct mirror_config {
	char name[MIRROR_NAME];
	enum mirror_target target;
	uint16_t port;               // MIRROR_PORT
	struct tunnel_config tunnel; // MIRROR_TUNNEL
	enum mirror_direction direction;
	uint32_t snap; // bytes kept of a frame, 0 = all
};

struct mirroring_config { // of a port (PORT_SETTINGS()); also in port_fwd
	uint16_t mirror;  // id, 0 = none: for both directions
};
const struct mirroring_config *mirroring_config(const struct port_config *cfg);
struct mirroring_config *mirroring_config_edit(struct port_config *cfg);

struct mirror_count {
	uint64_t packets, bytes, lost;
} __rte_cache_aligned;

// The form that workers read: immutable, replaced as a whole.
struct mirror_fwd {
	bool egress, ingress;
	uint8_t target;   // enum mirror_target
	uint16_t port;    // MIRROR_PORT
	uint32_t nexthop; // MIRROR_TUNNEL
	uint32_t snap;    // UINT32_MAX = all
	struct rte_mempool *pool;
	struct mirror_count *count; // by worker: each rw its own
	uint32_t *sequence;         // workers: rw, atomic
};

struct mirror {
	struct mirror_config cfg;
	uint16_t id;
	uint32_t refs;    // ports and rules that name it
	uint32_t nexthop; // 0 = none
	uint32_t sequence;
	struct mirror_count count[WORKER_MAX];
};

extern struct mirror_fwd *mirror_table[MIRROR_MAX]; // workers: ro (RCU)

// Workers. Copies the IP packet at meta(m)->l3, with this Ethernet header in front (its type is filled in), for
// mirror_output. Returns NULL if the mirror does not take this direction, or without a free buffer, which is counted as
// a drop.
struct rte_mbuf *mirror_copy(uint16_t id, enum mirror_direction dir, struct rte_mbuf *m, const void *eth);

// --- Control plane: master thread only. ---
void mirror_init(void);                                                                 // registers a port listener
struct mirror *mirror_get(uint16_t id);                                                 // NULL
struct mirror *mirror_find_err(const char *name, const char *field, struct error *err); // NULL with -ENOENT
struct mirror *mirror_add(const struct mirror_config *cfg, struct error *err);          // NULL with err
int mirror_set(struct mirror *m, const struct mirror_config *cfg, struct error *err);
int mirror_del(const char *name, struct error *err);      // -EBUSY while referenced
struct mirror_count mirror_count(const struct mirror *m); // sum over all workers
// Ports and rules hold a reference to the mirrors that they name. Id 0 is ignored. The caller must invalidate the
// flows that this affects (flow_zone_changed()).
void mirror_ref(uint16_t id);
void mirror_unref(uint16_t id);
void mirror_refer(struct referrer *r); // of a module that holds references
