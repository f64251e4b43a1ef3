// SPDX-License-Identifier: Apache-2.0
// Private to worker/: who polls which queue, and who takes from whom.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct worker;

bool worker_set_growing(uint32_t newcomer);      // before the worker with this id starts
void worker_set_changed(void);                   // workers came or went: unpolled queues, tables, shared transmit queues
bool worker_replaceable(const struct worker *w); // others could do its work
void worker_handover(struct worker *w);          // begins to give all of its work to the others
bool worker_is_free(const struct worker *w);     // they have it
void worker_retarget(const struct worker *w);    // workers that hand it packets hand them to others
int worker_may_wait(const struct worker *w, struct error *err);                  // all its queues give interrupts
int worker_may_leave(const struct worker *w, struct error *err);                 // others may poll its queues
void worker_orphan_queues(const struct worker *w);                               // it has gone without handing over
struct worker *worker_least_loaded(const struct worker *except);                 // of the forwarding ones
bool worker_settle(bool (*done)(const void *arg), const void *arg, unsigned ms); // sleeps in between
void worker_tidy(void);                                                          // lists lose the queues that others poll
