// SPDX-License-Identifier: Apache-2.0
// Each worker has a row, and the master one; a port holds the sum of its column.
#include "graph/held.h"

#include "base/field_limits.h"

#define MASTER (LIMIT_WORKER_ID_MAX + 1)

static struct held rows[MASTER + 1][PORT_MAX];
static unsigned n_workers; // rows that were used, without the master's

__thread struct held *held_row = rows[MASTER];

void held_enter(unsigned worker)
{
	held_row = rows[worker];
	if (__atomic_load_n(&n_workers, __ATOMIC_RELAXED) <= worker)
		__atomic_store_n(&n_workers, worker + 1, __ATOMIC_RELAXED); // workers are started one after the other
}

static uint32_t held_in(const struct held *h)
{
	return __atomic_load_n(&h->began, __ATOMIC_RELAXED) - __atomic_load_n(&h->ended, __ATOMIC_RELAXED);
}

uint32_t held_by(uint16_t port)
{
	unsigned i, n = __atomic_load_n(&n_workers, __ATOMIC_RELAXED);
	uint32_t sum = held_in(&rows[MASTER][port]);

	for (i = 0; i < n; i++)
		sum += held_in(&rows[i][port]);
	return (int32_t)sum > 0 ? sum : 0;
}
