// SPDX-License-Identifier: Apache-2.0
// What the kinds of port share among themselves. Not for other modules, except the pool's functions (main/, stats).
#pragma once

#include "port/port.h"

// The packet pools: one per NUMA node, made on first use.
#define PORT_POOL_HUGE (64 * 1024)    // buffers per pool with hugepages
#define PORT_POOL_NO_HUGE (16 * 1024) // and without
#define PORT_POOL_ROOM 2048           // bytes of one buffer, without headroom

// Sizes of pools to come; 0 = default. Master thread, before the first port.
int port_pool_init(unsigned n_mbufs, unsigned data_room, struct error *err);
void port_pool_fini(void);                               // all ports are closed
unsigned port_pool_data_room(void);                      // with headroom
void port_pool_usage(unsigned *total, unsigned *in_use); // over all pools

// Wakes the master for a port: fn(arg) runs on the master thread every interval (0 = never by itself), and soon after each
// port_watch_kick().
struct port_watch;
struct port_watch *port_watch_new(unsigned interval_ms, void (*fn)(void *arg), void *arg); // NULL: out of descriptors or memory
void port_watch_kick(struct port_watch *w); // any thread but workers (makes a system call)
void port_watch_free(struct port_watch *w); // NULL is fine; master thread, nobody kicks any more
