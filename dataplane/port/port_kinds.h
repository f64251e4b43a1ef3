// SPDX-License-Identifier: Apache-2.0
// Shared by the kinds of port. Other modules use only the pool's functions (main/, stats).
#pragma once

#include "port/port.h"

// The packet pools: one per NUMA node, made on first use.
#define PORT_POOL_HUGE (64 * 1024)    // buffers per pool with hugepages
#define PORT_POOL_NO_HUGE (16 * 1024) // and without
#define PORT_POOL_MIN 1024            // of --mbufs
#define PORT_POOL_MAX (1 << 24)
#define PORT_POOL_ROOM 2048 // bytes of one buffer, without headroom: the least and the default
#define PORT_POOL_ROOM_MAX 16384

// Sets the sizes of the pools, 0 = default, and creates the pool that most ports use: that takes up to 100 ms, and the
// master must not be away for so long later. -ENOMEM: no memory for it. Master thread, before the first port.
int port_pool_init(unsigned n_mbufs, unsigned data_room);
void port_pool_fini(void);          // after the last port is closed
unsigned port_pool_data_room(void); // with headroom
// Notes that each queue of the port's device keeps so many buffers of the port's pool, in descriptors for example.
// -ENOBUFS with err: devices would keep more than three quarters of the pool. Master thread, once numa is known.
int port_pool_keep(struct port *port, unsigned queues, unsigned each, struct error *err);
void port_pool_release(struct port *port);

// Interfaces of taps stay when the process ends, with their addresses and routes; a tap port that is added adopts an
// unused tap of its name. Deleting a port removes its interface, unless the process ends (PORT_TAPS_LEAVE).
enum port_taps { PORT_TAPS_END, PORT_TAPS_OUTLIVE, PORT_TAPS_LEAVE };
extern enum port_taps port_taps; // master thread

// Wakes the master for a port: fn(arg) runs on the master thread every interval (0 = only after kicks), and soon after
// each port_watch_kick().
struct port_watch;
// Returns NULL if descriptors or memory are exhausted.
struct port_watch *port_watch_new(unsigned interval_ms, void (*fn)(void *arg), void *arg);
void port_watch_kick(struct port_watch *w); // any thread but workers (makes a system call)
void port_watch_free(struct port_watch *w); // w may be NULL. Master thread, after the last kick
