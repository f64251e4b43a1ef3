// SPDX-License-Identifier: Apache-2.0
// What the master asks of a worker besides packets: one word that the worker looks at in each loop. Private to worker/.
#pragma once

#include <stdint.h>

#include "base/error.h"

#define DEBUG_DELAY_US_MAX 1000000

struct worker;

enum order {
	ORDER_MEASURE = 1, // how full its queues are; done once
	ORDER_DELAY = 2,   // in each loop
};

void worker_obey(struct worker *w); // worker

// Master. us: 0 = no delay any more. Refused unless the process was started with --allow-debug.
int worker_set_delay(struct worker *w, uint32_t us, struct error *err);
uint32_t worker_delay(const struct worker *w); // us
void worker_measure(struct worker *w);         // asks for new depths
