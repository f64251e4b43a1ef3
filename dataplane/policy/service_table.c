// SPDX-License-Identifier: Apache-2.0
// Tables of services: they are built beside the one that workers read, and replace it as a whole.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/service_private.h"

#define AT_ONCE 100000  // rows that a request looks at, in less than a millisecond
#define AT_A_TIME 20000 // rows that the master's turn looks at

static bool unfinished; // some service's table is being built
static bool held;       // changes do not begin tables

// The rows as they were built. Those of an endpoint that was removed or drained meanwhile are shared among all others.
static void service_fill_rows(const struct service *s, struct service_table *t)
{
	const uint16_t *built = maglev_table(s->building);
	uint16_t now[LIMIT_SERVICE_MAX_ENDPOINTS_MAX], target = 0;
	uint32_t i, turn = 0;

	memset(now, 0xff, sizeof(now)); // MAGLEV_NONE
	for (i = 0; i < s->n_endpoints; i++) {
		const struct endpoint *e = s->endpoints[i];

		if (e->cfg.weight > 0 && e->built != MAGLEV_NONE)
			now[e->built] = target;
		target += e->cfg.weight > 0;
	}
	for (i = 0; i < t->rows; i++)
		// analyzer: core.DivideZero: without targets no table is made
		t->row[i] = now[built[i]] != MAGLEV_NONE ? now[built[i]] : (uint16_t)(turn++ % t->n_targets);
}

static struct service_table *service_table_of(const struct service *s)
{
	unsigned n = service_serving(s), i;
	struct service_table *t = malloc(sizeof(*t) + n * sizeof(t->target[0]) + s->rows * sizeof(t->row[0]));

	if (t == NULL)
		return NULL;
	*t = (struct service_table){.rows = s->rows, .target = (struct service_target *)(t + 1)};
	t->row = (uint16_t *)(t->target + n);
	for (i = 0; i < s->n_endpoints; i++) {
		const struct endpoint *e = s->endpoints[i];

		if (e->cfg.weight > 0)
			t->target[t->n_targets++] =
				(struct service_target){nat_words(&e->cfg.addr), e->id, rte_cpu_to_be_16(e->cfg.port)};
	}
	service_fill_rows(s, t);
	return t;
}

static void service_count_rows(struct service *s, const struct service_table *t)
{
	uint32_t i, n[LIMIT_SERVICE_MAX_ENDPOINTS_MAX] = {0}, at = 0;

	for (i = 0; t && i < t->rows; i++)
		n[t->row[i]]++;
	for (i = 0; i < s->n_endpoints; i++)
		s->endpoints[i]->rows = s->endpoints[i]->cfg.weight > 0 ? n[at++] : 0;
}

void service_publish(struct service *s, struct service_table *t)
{
	struct service_table *old = s->table;

	service_count_rows(s, t);
	rcu_publish(s->table, t);
	if (old)
		rcu_defer(free, old);
	endpoint_let_go(s);
	maglev_free(s->building);
	s->building = NULL;
}

// Begins a table for the endpoints as they are now.
static bool service_begin(struct service *s)
{
	struct maglev_endpoint e[LIMIT_SERVICE_MAX_ENDPOINTS_MAX];
	uint16_t n = 0;
	unsigned i;

	for (i = 0; i < s->n_endpoints; i++) {
		const struct endpoint_config *c = &s->endpoints[i]->cfg;
		struct nat_words addr = nat_words(&c->addr);

		s->endpoints[i]->built = c->weight > 0 ? n : MAGLEV_NONE;
		if (c->weight > 0)
			e[n++] = (struct maglev_endpoint){{addr.w[0], addr.w[1], c->port}, c->weight};
	}
	s->building = maglev_begin(e, n, s->rows);
	s->dirty = s->building == NULL;
	return s->building != NULL;
}

// Publishes the table once it is complete, even if the endpoints have changed meanwhile: changes that come faster than
// a table is built do not keep it from the workers. Without memory the next turn tries again, and false is returned.
static bool service_work(struct service *s, uint32_t most)
{
	struct service_table *t;

	if (s->building == NULL && !service_begin(s))
		return false;
	if (!maglev_step(s->building, most))
		return true;
	t = service_table_of(s);
	if (t)
		service_publish(s, t);
	return t != NULL;
}

bool service_is_stale(const struct service *s)
{
	return s->dirty || s->building;
}

// Builds the table for the endpoints as they are now. A long one is finished by service_poll().
int service_changed(struct service *s, struct error *err)
{
	bool was = s->dirty;

	if (service_serving(s) == 0) {
		service_publish(s, NULL);
		s->dirty = false;
		return 0;
	}
	s->dirty = true;
	unfinished = true;
	if (held || s->building)
		return 0;
	if (service_begin(s)) {
		service_work(s, AT_ONCE);
		return 0;
	}
	s->dirty = was;
	return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for the table of service '%s'", s->cfg.name);
}

// One share of one service: all have their turns.
void service_poll(void)
{
	static uint16_t at;
	struct service *s;
	unsigned i;

	for (i = 0; i < SERVICE_MAX && unfinished && !held; i++) {
		at = (uint16_t)((at + 1) % SERVICE_MAX);
		s = service_get(at);
		if (s && service_is_stale(s)) {
			service_work(s, AT_A_TIME);
			return;
		}
	}
	unfinished = held && unfinished;
}

void service_hold(bool hold)
{
	held = hold;
}

void service_finish(void (*between)(void))
{
	struct service *s;

	for (s = service_next(0); s; s = service_next(s->id))
		while (service_is_stale(s) && service_work(s, AT_A_TIME))
			between();
}
