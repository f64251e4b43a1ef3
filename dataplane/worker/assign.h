// SPDX-License-Identifier: Apache-2.0
// Private to worker/: who polls which queue.
#pragma once

#include <stdint.h>

struct worker;

void worker_handover(struct worker *w);     // gives its queues to the others
void worker_set_growing(uint32_t newcomer); // before the worker with this id starts
void worker_set_changed(void);              // workers came or went: unpolled queues, shared transmit queues
