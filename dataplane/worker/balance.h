// SPDX-License-Identifier: Apache-2.0
// Which queues and which entries of tables should go to other workers. Pure: from loads to moves.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define BALANCE_GAIN 0.10 // of the most loaded worker's load: less is not worth a change

struct balance_worker {
	bool eligible; // gets packets to finish
	int numa;
	double load; // packets/s; of what no item carries when balance() begins, of all when it ends
};

struct balance_item {    // goes as a whole
	uint32_t worker; // whose it is; balance() changes it
	double load;     // packets/s
};

// Moves items between workers of one NUMA node, or of all with cross_numa, until no move makes the most loaded of a node less loaded.
// Returns the number of items that have another worker now, with *before and *after, the load of the most loaded worker. When the gain is
// less than BALANCE_GAIN nothing is moved.
unsigned balance(struct balance_worker workers[64], struct balance_item *items, unsigned n, bool cross_numa, double *before,
		 double *after);
