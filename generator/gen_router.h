// SPDX-License-Identifier: Apache-2.0
// A router for tests of whole trials: two memif servers in this process, and a thread that forwards frames between them
// as the test decides.
#pragma once

#include <rte_mbuf.h>

#include "gen_testlib.h"
#include "profile.h"
#include "trial.h"

// Decides about a frame received on side 0 (port a) or 1 (port b). Returns the side that sends it, usually the other
// one, or -1 to drop it. *copies: number of extra copies. *hold: send it after the next frame of that side.
typedef int (*router_fn)(int side, struct rte_mbuf *m, unsigned *copies, bool *hold);

int router_setup(void **state); // setup of a test group: EAL, the loop, gen-poll
int router_teardown(void **state);
const char *router_socket(int side);

void router_listen(void); // starts the servers
// Starts the servers and configures ports a and b, connected to them, with these streams.
void router_connect(unsigned queues, unsigned n_streams, Corelane__V1__GeneratorStream **streams);
int router_disconnect(void **state);                            // teardown of a test
void router_drop(int side);                                     // stops this server
void router_configure(const Corelane__V1__GeneratorProfile *p); // any profile, without the router
void router_pump(unsigned ms);                                  // the control thread's loop

// Runs a trial while the router forwards as fn says. The result is valid until the next trial.
const struct trial *router_run(const struct trial_plan *plan, router_fn fn);
struct trial_plan router_plan(uint64_t packets); // as fast as possible, all frames verified
uint64_t router_ms(double ms);                   // TSC cycles
