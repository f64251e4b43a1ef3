// SPDX-License-Identifier: Apache-2.0
// Memory of the flow table.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_debug.h>

#include "base/rcu.h"
#include "flow/reserve.h"
#include "flow/table_private.h"

#define LOAD_PERCENT 90

struct flow_secret flow_secret;

void flow_secret_init(const struct flow_secret *fixed)
{
	unsigned i;

	if (fixed)
		flow_secret = *fixed;
	else if (getrandom(&flow_secret, sizeof(flow_secret), 0) != sizeof(flow_secret))
		rte_panic("getrandom() failed: no secret for the flow hash\n");
	for (i = 0; i < RTE_DIM(flow_secret.mul); i++)
		flow_secret.mul[i] |= 1;
}

struct flow_array *flow_array_reserve(uint64_t entries)
{
	uint64_t n = entries * 100 / LOAD_PERCENT / FLOW_SLOTS + 2;
	uint64_t bytes = sizeof(struct flow_array) + n * sizeof(struct flow_bucket);
	struct flow_array *a;

	if (n > UINT32_MAX / 2) {
		errno = E2BIG;
		return NULL;
	}
	a = reserve_range(bytes);
	if (a == NULL)
		return NULL;
	if (!reserve_available(bytes) || reserve_fill(a, 0, sizeof(*a)) < 0) {
		reserve_release(a, bytes);
		errno = ENOMEM;
		return NULL;
	}
	a->bytes = bytes;
	a->filled = sizeof(*a);
	a->n = (uint32_t)n;
	return a;
}

int flow_array_fill(struct flow_array *a, uint64_t bytes)
{
	uint64_t to = RTE_MIN(a->bytes, a->filled + bytes);
	int ret = reserve_fill(a, a->filled, to);

	if (ret == 0)
		a->filled = to;
	return ret;
}

bool flow_array_full(const struct flow_array *a)
{
	return a->filled == a->bytes;
}

struct flow_array *flow_array_create(uint64_t entries)
{
	struct flow_array *a = flow_array_reserve(entries);

	if (a && flow_array_fill(a, a->bytes) < 0) {
		flow_array_free(a);
		errno = ENOMEM;
		return NULL;
	}
	return a;
}

void flow_array_free(void *arg)
{
	struct flow_array *a = arg;

	if (a)
		reserve_release(a, a->bytes);
}

struct flow_view *flow_view_create(struct flow_array *now, struct flow_array *next)
{
	struct flow_view *v = malloc(sizeof(*v));

	if (v)
		*v = (struct flow_view){now, next};
	return v;
}

struct flow_table *flow_table_create(uint64_t entries)
{
	struct flow_table *t = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*t));
	struct flow_array *a = flow_array_create(entries);
	int code = a ? ENOMEM : errno;

	if (t)
		memset(t, 0, sizeof(*t));
	if (t && a)
		t->view = flow_view_create(a, NULL);
	if (t && t->view)
		return t;
	flow_array_free(a);
	free(t);
	errno = code;
	return NULL;
}

void flow_table_destroy(struct flow_table *t)
{
	if (t == NULL)
		return;
	if (t->view->next && !t->ready) { // the deferred everybody_sees() still writes to t
		rcu_synchronize();
		rcu_poll();
	}
	flow_array_free(t->view->now);
	flow_array_free(t->view->next);
	flow_array_free(t->filling);
	free(t->view);
	free(t);
}

uint64_t flow_table_used(const struct flow_table *t)
{
	uint64_t n = 0;
	unsigned i;

	for (i = 0; i <= RTE_MAX_LCORE; i++)
		n += __atomic_load_n(&t->count[i].taken, __ATOMIC_RELAXED) -
		     __atomic_load_n(&t->count[i].freed, __ATOMIC_RELAXED);
	return n;
}

uint64_t flow_table_slots(const struct flow_table *t)
{
	const struct flow_view *v = t->view;

	return (uint64_t)(v->next ? v->next : v->now)->n * FLOW_SLOTS;
}

uint64_t flow_table_memory(const struct flow_table *t)
{
	const struct flow_view *v = t->view;

	return v->now->bytes + (v->next ? v->next->bytes : 0) + (t->filling ? t->filling->bytes : 0);
}

bool flow_table_growing(const struct flow_table *t)
{
	return t->view->next != NULL || t->filling != NULL;
}
