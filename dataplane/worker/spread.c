// SPDX-License-Identifier: Apache-2.0
// The master's side: builds tables, rings and views from the configuration of ports and workers.
#include "worker/spread.h"

#include <errno.h>
#include <string.h>

#include <rte_malloc.h>

#include "base/doorbell.h"
#include "worker/numa.h"
#include "base/rcu.h"
#include "port/registry.h"
#include "worker/handoff.h"
#include "worker/worker.h"

uint32_t spread_epoch = 1;
struct spread_port spread_ports[PORT_MAX];

// The number of entries for each worker: its share rounded down; the rest goes to the largest remainders.
static void spread_shares(unsigned n, const uint32_t weights[WORKER_MAX], unsigned want[WORKER_MAX])
{
	uint64_t sum = 0, rest[WORKER_MAX] = {0};
	unsigned i, best, given = 0;

	for (i = 0; i < WORKER_MAX; i++)
		sum += weights[i];
	for (i = 0; i < WORKER_MAX; i++) {
		want[i] = sum ? (unsigned)((uint64_t)n * weights[i] / sum) : 0;
		rest[i] = sum ? (uint64_t)n * weights[i] % sum : 0;
		given += want[i];
	}
	for (; sum && given < n; given++) {
		for (best = i = 0; i < WORKER_MAX; i++)
			if (rest[i] > rest[best])
				best = i;
		want[best]++;
		rest[best] = 0;
	}
}

void spread_deal(uint8_t *to, unsigned n, const uint32_t weights[WORKER_MAX])
{
	unsigned want[WORKER_MAX], have[WORKER_MAX] = {0}, i, next = 0;

	spread_shares(n, weights, want);
	for (i = 0; i < n; i++) { // entries that may stay
		if (to[i] < WORKER_MAX && have[to[i]] < want[to[i]])
			have[to[i]]++;
		else
			to[i] = SPREAD_LOCAL;
	}
	for (i = 0; i < n; i++) { // the others, in turn to the workers that have too few
		unsigned tries;

		if (to[i] != SPREAD_LOCAL)
			continue;
		for (tries = 0; tries < WORKER_MAX && have[next % WORKER_MAX] >= want[next % WORKER_MAX]; tries++)
			next++;
		if (tries == WORKER_MAX)
			return; // no weights
		to[i] = (uint8_t)(next % WORKER_MAX);
		have[next++ % WORKER_MAX]++;
	}
}

void spread_deal_lost(uint8_t *to, unsigned n, const uint32_t weights[WORKER_MAX])
{
	unsigned i, next = 0, tries;

	for (i = 0; i < n; i++) {
		if (to[i] < WORKER_MAX && weights[to[i]])
			continue;
		for (tries = 0; tries < WORKER_MAX && weights[next % WORKER_MAX] == 0; tries++)
			next++;
		to[i] = tries < WORKER_MAX ? (uint8_t)(next++ % WORKER_MAX) : SPREAD_LOCAL;
	}
}

static void spread_weights(const struct port *port, uint32_t weights[WORKER_MAX])
{
	bool any = false;
	struct worker *w;

	memset(weights, 0, WORKER_MAX * sizeof(weights[0]));
	for (w = worker_next(NULL); w; w = worker_next(w))
		if (w->role == WORKER_FORWARDING && !w->leaving) {
			weights[w->id] = spread_config(&port->cfg)->weights[w->id];
			any |= weights[w->id] > 0;
		}
	for (w = worker_next(NULL); w && !any; w = worker_next(w)) // no worker is named, or none that is named exists
		weights[w->id] = w->role == WORKER_FORWARDING && !w->leaving;
}

// Entries that were moved by their load stay where they are until a worker is added.
static void spread_deal_port(struct port *port, struct spread *s)
{
	struct spread_port *sp = &spread_ports[port->id];
	uint32_t weights[WORKER_MAX];
	uint64_t weighed = 0;
	unsigned i;

	spread_weights(port, weights);
	for (i = 0; i < WORKER_MAX; i++)
		weighed |= weights[i] ? 1ull << i : 0;
	sp->moved = sp->moved && (weighed & ~sp->weighed) == 0;
	sp->weighed = weighed;
	if (sp->moved)
		spread_deal_lost(s->to, SPREAD_ENTRIES, weights);
	else
		spread_deal(s->to, SPREAD_ENTRIES, weights);
}

int spread_move(struct port *port, unsigned entry, uint8_t to, struct error *err)
{
	struct spread_port *sp = &spread_ports[port->id];
	struct spread *s = rte_malloc("spread", sizeof(*s), 0), *old = sp->table;

	if (s == NULL || old == NULL) {
		rte_free(s);
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory to move entries of port %s", port->cfg.name);
	}
	*s = *old;
	s->to[entry] = to;
	sp->moved = true;
	rcu_publish(sp->table, s);
	rcu_defer(rte_free, old);
	return 0;
}

static int spread_make_table(struct port *port, struct error *err)
{
	struct spread_port *sp = &spread_ports[port->id];
	struct spread *old = sp->table, *s = NULL;
	unsigned mode = spread_config(&port->cfg)->mode;

	if (mode == PORT_HYBRID || (mode == PORT_AUTO && sp->busy)) {
		s = rte_malloc("spread", sizeof(*s), 0);
		if (s == NULL)
			return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory to spread port %s", port->cfg.name);
		if (old)
			*s = *old;
		else
			memset(s->to, SPREAD_LOCAL, sizeof(s->to));
		spread_deal_port(port, s);
	}
	rcu_publish(sp->table, s);
	rcu_defer(rte_free, old);
	return 0;
}

static int spread_make_view(struct port_queue *q, struct error *err)
{
	struct spread_view *v =
		rte_zmalloc_socket("spread_view", sizeof(*v), RTE_CACHE_LINE_SIZE, numa_memory(q->port->numa));

	if (v == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory to spread port %s", q->port->cfg.name);
	memset(v->to, SPREAD_LOCAL, sizeof(v->to));
	v->all_to = v->home = v->host = SPREAD_LOCAL;
	rcu_publish(q->view, v);
	return 0;
}

static int spread_connect_queue(struct port_queue *q, struct error *err)
{
	struct worker *from = worker_get(q->rx_worker), *to;
	bool spread = spread_ports[q->port->id].table != NULL;
	int ret = 0;

	if (from == NULL)
		return 0;
	if (from->role != WORKER_FORWARDING) {
		to = worker_get(from->target);
		ret = to ? handoff_connect(from, to, err) : 0;
	}
	for (to = worker_next(NULL); to && ret == 0 && spread; to = worker_next(to))
		if (to->role == WORKER_FORWARDING && !to->leaving)
			ret = handoff_connect(from, to, err);
	if (ret == 0 && q->view == NULL &&
	    (spread || from->role != WORKER_FORWARDING || q->port->host_worker != SPREAD_LOCAL))
		ret = spread_make_view(q, err);
	return ret;
}

int spread_refresh(struct error *err)
{
	struct port *p;
	unsigned i;
	int ret = 0;

	for (p = port_next(NULL); p && ret == 0; p = port_next(p)) {
		ret = spread_make_table(p, err);
		for (i = 0; i < p->n_queues && ret == 0; i++)
			ret = spread_connect_queue(&p->queues[i], err);
	}
	__atomic_store_n(&spread_epoch, spread_epoch + 1 ? spread_epoch + 1 : 1, __ATOMIC_RELEASE);
	doorbell_ring_all(); // waiting workers update their views, too
	return ret;
}

bool spread_settled(void)
{
	struct port *p;
	unsigned i;

	for (p = port_next(NULL); p; p = port_next(p)) {
		for (i = 0; i < p->n_queues; i++) {
			const struct port_queue *q = &p->queues[i];

			if (__atomic_load_n(&q->owner, __ATOMIC_ACQUIRE) != q->rx_worker)
				return false;
			if (q->view && q->rx_worker != WORKER_NONE &&
			    (__atomic_load_n(&q->view->epoch, __ATOMIC_ACQUIRE) != spread_epoch ||
			     __atomic_load_n(&q->view->n_waits, __ATOMIC_ACQUIRE) > 0))
				return false;
		}
	}
	return true;
}

void spread_port_gone(struct port *port)
{
	unsigned i;

	for (i = 0; i < port->n_queues; i++)
		rte_free(port->queues[i].view);
	rte_free(spread_ports[port->id].table);
	spread_ports[port->id] = (struct spread_port){0};
}
