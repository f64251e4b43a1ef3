// SPDX-License-Identifier: Apache-2.0
#include "worker/balance.h"

#include <stdlib.h>
#include <string.h>

#define MOVES_MAX 4096

static double balance_highest_load(const struct balance_worker workers[WORKER_MAX])
{
	double load = 0;
	unsigned i;

	for (i = 0; i < WORKER_MAX; i++)
		if (workers[i].eligible && workers[i].load > load)
			load = workers[i].load;
	return load;
}

static bool balance_reaches(const struct balance_worker *a, const struct balance_worker *b, bool cross_numa)
{
	return b->eligible && (cross_numa || a->numa == b->numa);
}

static unsigned balance_least_loaded(const struct balance_worker workers[WORKER_MAX], unsigned from, bool cross_numa)
{
	unsigned i, best = from;

	for (i = 0; i < WORKER_MAX; i++)
		if (balance_reaches(&workers[from], &workers[i], cross_numa) && workers[i].load < workers[best].load)
			best = i;
	return best;
}

// Returns the item that, moved from `from` to `to`, reduces the larger of the two loads most; NULL if none does.
static struct balance_item *balance_best_item(const struct balance_worker workers[WORKER_MAX],
					      struct balance_item *items, unsigned n, unsigned from, unsigned to)
{
	double gap = workers[from].load - workers[to].load, best_larger = workers[from].load, larger;
	struct balance_item *best = NULL;
	unsigned i;

	for (i = 0; i < n; i++) {
		if (items[i].worker != from || items[i].load <= 0 || items[i].load >= gap)
			continue;
		larger =
			items[i].load < gap / 2 ? workers[from].load - items[i].load : workers[to].load + items[i].load;
		if (larger < best_larger) {
			best_larger = larger;
			best = &items[i];
		}
	}
	return best;
}

// Moves one item away from the most loaded worker outside *done, or adds that worker to *done if no move helps. False:
// all are done.
static bool balance_step(struct balance_worker workers[WORKER_MAX], struct balance_item *items, unsigned n,
			 bool cross_numa, uint64_t *done)
{
	struct balance_item *item;
	unsigned i, from = WORKER_MAX, to;

	for (i = 0; i < WORKER_MAX; i++)
		if (workers[i].eligible && !(*done >> i & 1) &&
		    (from == WORKER_MAX || workers[i].load > workers[from].load))
			from = i;
	if (from == WORKER_MAX)
		return false;
	to = balance_least_loaded(workers, from, cross_numa);
	item = to != from ? balance_best_item(workers, items, n, from, to) : NULL;
	if (item == NULL) {
		*done |= 1ull << from;
		return true;
	}
	workers[from].load -= item->load;
	workers[to].load += item->load;
	item->worker = to;
	return true;
}

unsigned balance(struct balance_worker workers[WORKER_MAX], struct balance_item *items, unsigned n, bool cross_numa,
		 double *before, double *after)
{
	uint32_t *was = calloc(n + 1, sizeof(*was));
	uint64_t done = 0;
	unsigned i, moved = 0;

	for (i = 0; i < n; i++) {
		workers[items[i].worker].load += items[i].load;
		if (was)
			was[i] = items[i].worker;
	}
	*before = *after = balance_highest_load(workers);
	for (i = 0; was && i < MOVES_MAX && balance_step(workers, items, n, cross_numa, &done); i++)
		;
	*after = balance_highest_load(workers);
	for (i = 0; was && i < n; i++) {
		if (*after > *before * (1 - BALANCE_GAIN))
			items[i].worker = was[i];
		moved += items[i].worker != was[i];
	}
	if (moved == 0)
		*after = *before;
	free(was);
	return moved;
}
