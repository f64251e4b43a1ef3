// SPDX-License-Identifier: Apache-2.0
// Private to neighbor/: what the files of the neighbour table share. Master thread only.
#pragma once

#include "graph/drop.h"
#include "neighbor/neighbor.h"

#define NEIGHBOR_PORT_WAITING 256 // packets that wait on one port: a guest that scans must not take all buffers
#define NEIGHBOR_ALL_WAITING 4096 // and on all ports
#define NEIGHBOR_PORT_UNHELD 1024 // entries of one port and family that no next hop holds and that are not configured
#define NEIGHBOR_ALL_UNHELD 49152 // and of all ports: the rest is left for next hops
#define NEIGHBOR_LEAVING 4096     // indices that wait for their reuse: while there are more, no entry is displaced

#define NEIGHBOR_RETRY_SECONDS 5   // until a failed neighbour that a next hop holds is retried
#define NEIGHBOR_POLL_SOLICITS 256 // in one neighbor_poll(): larger bursts overflow the workers' rings
#define NEIGHBOR_POLL_CHANGES 4096 // timers that one neighbor_poll() handles: about 4 ms

// adjacency.c. An index is reused only when no worker and no punted packet can refer to its former owner.
int adjacency_new(uint32_t *index); // unresolved; -ENOSPC, -ENOMEM
void adjacency_free(uint32_t index);
// Publishes a new adjacency if the port, the MAC or the state has changed. Returns 0 or -ENOMEM.
int adjacency_set(uint32_t index, uint16_t port, const struct rte_ether_addr *mac, bool resolved);
void adjacency_poll(void);
unsigned adjacency_leaving(void); // freed, but tunnels may still use them

// neighbor.c
void neighbor_table_init(void);
// Finds or creates it. NULL: no room. displace: if there is no room, the entry that has been idle for longest makes it.
struct neighbor *neighbor_unheld(uint16_t port, const struct ip_addr *addr, bool displace);
// mac NULL: unchanged.
void neighbor_change(struct neighbor *n, enum neighbor_state state, const struct rte_ether_addr *mac);
void neighbor_remove(struct neighbor *n);
void neighbor_orphan(struct neighbor *n);       // its port is being removed
bool neighbor_usable(const struct neighbor *n); // its adjacency is resolved

// neighbor_listener.c: calls the listeners
void neighbor_notify_changed(void);
bool neighbor_rebuilding(void);
bool neighbor_leads_elsewhere(uint16_t vrf, const struct ip_addr *target, uint16_t port);

// neighbor_timer.c
void neighbor_timer_set(const struct neighbor *n); // sets the deadline of its state
void neighbor_timer_now(const struct neighbor *n); // expires at the next poll
void neighbor_timer_stop(const struct neighbor *n);
void neighbor_solicit(struct neighbor *n);
bool neighbor_may_retry(const struct neighbor *n); // failed at least a second ago

// neighbor_wait.c
void neighbor_flush(struct neighbor *n);   // sends the waiting packets if it is usable
void neighbor_give_up(struct neighbor *n); // drops the waiting packets
void neighbor_drop(struct rte_mbuf *m, const struct drop_reason *reason);
