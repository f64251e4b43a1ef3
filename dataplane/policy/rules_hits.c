// SPDX-License-Identifier: Apache-2.0
// Hits: a counter for each rule and worker. A rule's slot survives all changes of its list.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "policy/rules_private.h"
#include "worker/worker.h"

#define PAGE_SLOTS (4096 / sizeof(uint64_t))
#define TURN_PAGES 16 // that one rule_slots_poll() touches: about 10 us

static uint64_t *hits;   // [WORKER_MAX][RULE_SLOTS]; each worker: rw its own row, master: ro
static uint32_t *unused; // stack of free slots that were in use before
static uint32_t n_unused, next;
static uint32_t touched[WORKER_MAX]; // first slot of each worker whose page may not be there yet

int rule_slots_init(void)
{
	size_t size = (size_t)WORKER_MAX * RULE_SLOTS * sizeof(*hits);

	hits = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	unused = malloc(RULE_SLOTS * sizeof(*unused));
	n_unused = 0;
	next = 1;
	memset(touched, 0, sizeof(touched));
	return hits == MAP_FAILED || unused == NULL ? -ENOMEM : 0;
}

void rule_slots_fini(void)
{
	munmap(hits, (size_t)WORKER_MAX * RULE_SLOTS * sizeof(*hits));
	free(unused);
	unused = NULL;
}

uint64_t *rules_hits_counter(unsigned worker, uint32_t slot)
{
	return &hits[(size_t)worker * RULE_SLOTS + slot];
}

// Takes the page fault, so that the worker does not when it counts. The worker may count meanwhile.
static void rules_hits_touch(unsigned worker)
{
	__atomic_fetch_add(rules_hits_counter(worker, touched[worker]), 0, __ATOMIC_RELAXED);
	touched[worker] += PAGE_SLOTS;
}

void rule_slots_poll(void)
{
	unsigned left = TURN_PAGES;
	struct worker *w;

	for (w = worker_next(NULL); w; w = worker_next(w))
		for (; left > 0 && touched[w->id] < next; left--)
			rules_hits_touch(w->id);
}

uint32_t rule_slot_get(void)
{
	if (n_unused > 0)
		return unused[--n_unused];
	if (next == RULE_SLOTS)
		return 0;
	return next++;
}

void rule_slot_put(uint32_t slot)
{
	unsigned w;

	if (slot == 0)
		return;
	for (w = 0; w < WORKER_MAX; w++)
		if (*rules_hits_counter(w, slot) != 0)
			*rules_hits_counter(w, slot) = 0;
	unused[n_unused++] = slot;
}

unsigned rule_slots_left(void)
{
	return n_unused + RULE_SLOTS - next;
}

void rules_hit(const struct rule_verdict *v)
{
	uint64_t *c;

	if (v->slot == 0)
		return;
	c = rules_hits_counter(this_worker->id, v->slot);
	__atomic_store_n(c, *c + 1, __ATOMIC_RELAXED);
}

uint64_t rule_hits(uint32_t slot)
{
	uint64_t sum = 0;
	unsigned w;

	for (w = 0; w < WORKER_MAX; w++)
		sum += __atomic_load_n(rules_hits_counter(w, slot), __ATOMIC_RELAXED);
	return sum;
}
