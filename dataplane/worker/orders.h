// SPDX-License-Identifier: Apache-2.0
// What the master asks of a worker besides packets: one word that the worker looks at in each loop. Private to worker/ and debug/.
#pragma once

#include <stdint.h>

struct worker;

enum order {
	ORDER_MEASURE = 1, // how full its queues are; done once
	ORDER_FAULT = 2,   // calls worker.fault in each loop
};

void worker_obey(struct worker *w); // worker

// Master.
void worker_set_fault(struct worker *w, void (*fault)(struct worker *w)); // what debug/ does to each loop; NULL: nothing any more
void worker_measure(struct worker *w);                                    // asks for new depths
