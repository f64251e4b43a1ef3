// SPDX-License-Identifier: Apache-2.0
// Hits: a counter for each rule and worker. A rule's slot survives all changes of its list.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>

#include "policy/rules_private.h"
#include "worker/worker.h"

#define PAGE_SLOTS (4096 / sizeof(uint64_t))
#define TURN_PAGES 16 // that one rule_slots_poll() touches: about 10 us

static uint64_t *hits;   // [WORKER_MAX][RULE_SLOTS]; each worker: rw its own row, master: ro
static uint32_t *unused; // stack of free slots that were in use before
static uint32_t n_unused, next;
static uint32_t touched[WORKER_MAX]; // first slot of each worker whose page may not be there yet

struct slots { // of rules that are gone
	STAILQ_ENTRY(slots) next;
	size_t n;
	uint32_t *slot;
};
static STAILQ_HEAD(, slots) leaving = STAILQ_HEAD_INITIALIZER(leaving);
static uint32_t n_leaving;

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

static uint32_t rules_hits_leave(void)
{
	struct slots *s = STAILQ_FIRST(&leaving);
	uint32_t slot = s->slot[--s->n];

	n_leaving--;
	if (s->n == 0) {
		STAILQ_REMOVE_HEAD(&leaving, next);
		free(s->slot);
		free(s);
	}
	return slot;
}

void rule_slots_fini(void)
{
	while (n_leaving > 0)
		rules_hits_leave();
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
	unsigned left = TURN_PAGES, i;
	struct worker *w;

	for (w = worker_next(NULL); w; w = worker_next(w))
		for (; left > 0 && touched[w->id] < next; left--)
			rules_hits_touch(w->id);
	for (i = 0; i < RULE_SLOTS_TURN && n_leaving > 0; i++)
		rule_slot_put(rules_hits_leave());
}

uint32_t rule_slot_get(void)
{
	if (n_unused == 0 && n_leaving > 0)
		rule_slot_put(rules_hits_leave());
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

void rule_slots_put(uint32_t *slot, size_t n)
{
	struct slots *s = n > 0 ? malloc(sizeof(*s)) : NULL;

	if (s) {
		*s = (struct slots){.n = n, .slot = slot};
		STAILQ_INSERT_TAIL(&leaving, s, next);
		n_leaving += (uint32_t)n;
		return;
	}
	while (n > 0)
		rule_slot_put(slot[--n]);
	free(slot);
}

unsigned rule_slots_left(void)
{
	return n_unused + n_leaving + RULE_SLOTS - next;
}

unsigned rule_slots_leaving(void)
{
	return n_leaving;
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
