// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of memif: EAL, a loop, ports without a registry, frames.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/event.h>

#include "port/memif/memif_conn.h"
#include "port/port.h"

extern struct rte_mempool *test_pool;
extern unsigned test_no_buffer; // polls that found no free buffer
extern unsigned test_too_long;  // frames that a port has dropped for their length

int test_setup(void **state);
int test_teardown(void **state);

const char *test_path(const char *name); // of a socket in the test's directory; valid for three more calls
struct port_config test_config(const char *name, bool client, const char *socket);
struct port *test_open(const struct port_config *cfg); // fails the test when refused
void test_close(struct port *port);

void test_pump(unsigned ms);                               // runs the loop for that long
bool test_wait(const struct port *port, bool up);          // runs the loop until the port is up or down, 3 s at most
bool test_wait_text(const char *text, const char *wanted); // until text contains wanted

struct rte_mbuf *test_frame(uint32_t length, uint32_t seed, unsigned segments);
bool test_frame_is(const struct rte_mbuf *m, uint32_t length, uint32_t seed);

// A server and a client that are connected.
struct test_pair {
	struct port *server, *client;
};

struct test_pair test_pair(const struct port_config *server, const struct port_config *client);
struct test_pair test_pair_plain(uint16_t queues, uint32_t ring, uint32_t buffer);
void test_pair_close(struct test_pair p);

uint16_t test_rx(struct port *port, uint16_t q, struct rte_mbuf **pkts, uint16_t n);
uint16_t test_tx(struct port *port, uint16_t q, struct rte_mbuf **pkts, uint16_t n);
void test_carry(struct port *from, struct port *to, uint32_t length, unsigned segments); // one frame, unchanged
void test_stream(struct port *from, struct port *to, uint16_t q, unsigned total);        // random bursts, in order

unsigned test_fds(void);
unsigned test_mbufs(void); // in use
