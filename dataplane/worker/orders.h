// SPDX-License-Identifier: Apache-2.0
// Orders of the master to a worker: flags in one word that the worker reads in each loop. Private to worker/ and
// debug/.
#pragma once

#include <stdint.h>

struct worker;

enum order {
	ORDER_MEASURE = 1, // measure once how full its queues are
	ORDER_FAULT = 2,   // call worker.fault in each loop
};

void worker_handle_orders(struct worker *w); // on the worker

// Master. debug/ has a worker call fault in each loop; NULL, which the worker may pass too: no longer.
void worker_set_fault(struct worker *w, void (*fault)(struct worker *w));
void worker_measure(struct worker *w); // updates the depths of its queues
