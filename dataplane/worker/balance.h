// SPDX-License-Identifier: Apache-2.0
// Decides which queues and table entries should move to other workers, by their loads. Does no I/O.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "worker/worker.h"

#define BALANCE_GAIN 0.10 // share of the most loaded worker's load that a change must gain

struct balance_worker {
	bool eligible; // may get items
	int numa;
	double load; // packets/s; without its items before balance(), with them after
};

struct balance_item {    // moves as a whole
	uint32_t worker; // its worker; balance() changes it
	double load;     // packets/s
};

// Moves items between workers of the same NUMA node, or of all nodes with cross_numa, until no move lowers the load of
// the most loaded worker of a node. *before and *after are the load of the most loaded worker. Returns the number of
// items that moved: 0 if the gain is less than BALANCE_GAIN.
unsigned balance(struct balance_worker workers[WORKER_MAX], struct balance_item *items, unsigned n, bool cross_numa,
		 double *before, double *after);
