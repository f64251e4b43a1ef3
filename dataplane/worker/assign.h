// SPDX-License-Identifier: Apache-2.0
// Private to worker/: which worker polls which queue, and how queues and packets move between workers.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct worker;

// Called before the worker with this id starts. False: timed out.
bool worker_set_growing(uint32_t newcomer);
// After a worker was added or removed: assigns unpolled queues, and updates tables and shared transmit queues.
void worker_set_changed(void);

bool worker_replaceable(const struct worker *w);                 // others could do its work
void worker_handover(struct worker *w);                          // begins to move all of its work to other workers
bool worker_is_free(const struct worker *w);                     // the handover is complete
void worker_retarget(const struct worker *w);                    // workers whose target it is get another target
int worker_may_wait(const struct worker *w, struct error *err);  // all its queues give interrupts
int worker_may_leave(const struct worker *w, struct error *err); // others may poll its queues
void worker_orphan_queues(const struct worker *w);               // unassigns the queues of a worker that has ended
struct worker *worker_least_loaded(const struct worker *except); // of the forwarding workers; NULL: none
void worker_tidy(void);                                          // drops queues that others poll from lists

// Waits until done() is true. False: timed out.
bool worker_settle(bool (*done)(const void *arg), const void *arg, unsigned ms);
