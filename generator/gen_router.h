// SPDX-License-Identifier: Apache-2.0
// A router for tests of whole trials: two memif servers in this process, and a thread that carries frames between them
// as the test wants.
#pragma once

#include <rte_mbuf.h>

#include "gen_testlib.h"
#include "profile.h"
#include "trial.h"

// What becomes of a frame that came in at side 0 (port a) or 1 (port b): the side that it goes out of, usually the other one,
// or -1: nowhere. *copies: how many more of it. *hold: it goes out after the next frame that goes out there.
typedef int (*router_fn)(int side, struct rte_mbuf *m, unsigned *copies, bool *hold);

int router_setup(void **state); // of a test group: EAL, the loop, gen-poll
int router_teardown(void **state);
const char *router_socket(int side);

void router_listen(void); // the servers
// And a profile of ports a and b with these streams, connected to the router.
void router_connect(unsigned queues, unsigned n_streams, Corelane__V1__GeneratorStream **streams);
int router_disconnect(void **state);                            // whatever there is; the teardown of a test
void router_drop(int side);                                     // this server ends
void router_configure(const Corelane__V1__GeneratorProfile *p); // any profile, without the router
void router_pump(unsigned ms);                                  // the control thread's loop

// Runs a trial while the router does as fn says. The result is valid until the next one.
const struct trial *router_run(const struct trial_plan *plan, router_fn fn);
struct trial_plan router_plan(uint64_t packets); // as fast as possible, all frames verified
uint64_t router_ms(double ms);                   // TSC cycles
