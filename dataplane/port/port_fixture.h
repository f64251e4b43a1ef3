// SPDX-License-Identifier: Apache-2.0
// For tests of port kinds: EAL, a loop, a worker that reports quiescent states, and a port_link_changed() that records.
#pragma once

#include "port/port_kinds.h"

void fixture_require(void);      // first in main(): skips the whole program, with the reason, when it cannot run here
int fixture_start(void **state); // group setup
int fixture_stop(void **state);

struct port_config fixture_config(const char *kind, enum port_role role, uint16_t queues);
struct port *fixture_open(const struct port_config *cfg, struct error *err); // NULL when refused
void fixture_close(struct port *port); // as port.c does it: withdrawn from the worker, grace period, close
struct port *fixture_must_open(const struct port_config *cfg);

void fixture_loop_ms(unsigned ms); // runs the master's loop
bool fixture_wait_link(struct port *port, bool up, unsigned ms);

// The worker: receives from every queue of the port, and sends everything back on the same queue when echo is set.
void fixture_poll(struct port *port, bool echo); // NULL: nothing

// Receives up to n packets within ms, on the calling thread (which is not the worker).
unsigned fixture_receive(struct port *port, uint16_t queue, struct rte_mbuf **pkts, unsigned n, unsigned ms);
struct rte_mbuf *fixture_packet(unsigned len, uint8_t fill); // Ethernet broadcast, type 0x88b5

int fixture_run(const char *fmt, ...) __attribute__((format(printf, 1, 2))); // shell command; its exit code
unsigned fixture_fds(void);
unsigned fixture_mbufs(void);
extern unsigned fixture_no_buffer;                // polls that found no free buffer
extern unsigned fixture_too_long;                 // frames that kinds have dropped for their length
extern const struct drop_reason *fixture_refused; // why the last frame was refused
