// SPDX-License-Identifier: Apache-2.0
// Which worker polls which queue. A queue moves in two steps: its old worker's list without it is published and every
// worker has passed a quiescent state, then the new worker's list with it. Two workers never poll one queue at once.
#include "worker/assign.h"

#include <errno.h>
#include <string.h>

#include <rte_malloc.h>

#include "base/rcu.h"
#include "port/registry.h"
#include "worker/worker.h"

static struct rx_list *list_alloc(unsigned n)
{
	struct rx_list *l = rte_zmalloc("rx_list", sizeof(*l) + n * sizeof(l->q[0]), 0);

	if (l)
		l->n = n;
	return l;
}

static void list_publish(struct worker *w, struct rx_list *l)
{
	struct rx_list *old = w->rx;

	rcu_publish(w->rx, l);
	rcu_defer(rte_free, old);
}

static int list_add(struct worker *w, struct port_queue *q)
{
	struct rx_list *l = list_alloc(w->rx->n + 1);

	if (l == NULL)
		return -ENOMEM;
	memcpy(l->q, w->rx->q, w->rx->n * sizeof(l->q[0]));
	l->q[w->rx->n] = q;
	q->rx_worker = w->id;
	list_publish(w, l);
	return 0;
}

static int list_remove(struct worker *w, struct port_queue *q)
{
	struct rx_list *l = list_alloc(w->rx->n);
	unsigned i;

	if (l == NULL)
		return -ENOMEM;
	l->n = 0;
	for (i = 0; i < w->rx->n; i++)
		if (w->rx->q[i] != q)
			l->q[l->n++] = w->rx->q[i];
	q->rx_worker = WORKER_NONE;
	list_publish(w, l);
	return 0;
}

int worker_assign(struct port_queue *q, struct worker *w, struct error *err)
{
	struct worker *old = worker_get(q->rx_worker);

	if (old == w)
		return 0;
	if (old) {
		if (list_remove(old, q) < 0)
			return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory to move a queue");
		rcu_synchronize(); // the old worker has let go of it
	}
	if (list_add(w, q) < 0)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory to move a queue");
	return 0;
}

static struct worker *least_loaded(const struct worker *except)
{
	struct worker *w, *best = NULL;

	for (w = worker_next(NULL); w; w = worker_next(w))
		if (w != except && (best == NULL || w->rx->n < best->rx->n))
			best = w;
	return best;
}

// Two workers share a transmit queue when their ids fall on the same one (port_tx).
static bool tx_is_shared(const struct port *port, uint32_t newcomer)
{
	uint32_t used = 0, bit;
	struct worker *w;

	for (w = worker_next(NULL); w; w = worker_next(w)) {
		bit = 1u << (w->id % port->n_queues);
		if (used & bit)
			return true;
		used |= bit;
	}
	return newcomer != WORKER_NONE && (used & (1u << (newcomer % port->n_queues)));
}

void worker_set_growing(uint32_t newcomer)
{
	bool waits = false;
	struct port *p;

	for (p = port_next(NULL); p; p = port_next(p)) {
		if (tx_is_shared(p, newcomer) && !p->shared_tx) {
			__atomic_store_n(&p->shared_tx, true, __ATOMIC_RELAXED);
			waits = true;
		}
	}
	if (waits)
		rcu_synchronize(); // everybody takes the locks before the newcomer sends
}

void worker_spread(struct port *port)
{
	struct worker *w;
	unsigned i;

	__atomic_store_n(&port->shared_tx, tx_is_shared(port, WORKER_NONE), __ATOMIC_RELAXED);
	for (i = 0; i < port->n_queues; i++) {
		w = least_loaded(NULL);
		if (w && port->queues[i].rx_worker == WORKER_NONE)
			list_add(w, &port->queues[i]);
	}
}

void worker_forget(struct port *port)
{
	struct worker *w;
	unsigned i;

	for (i = 0; i < port->n_queues; i++) {
		w = worker_get(port->queues[i].rx_worker);
		if (w)
			list_remove(w, &port->queues[i]);
	}
}

void worker_handover(struct worker *w)
{
	struct worker *to;

	while (w->rx->n > 0 && (to = least_loaded(w)) != NULL)
		if (worker_assign(w->rx->q[0], to, NULL) < 0)
			break;
}

void worker_set_changed(void)
{
	struct port *p;

	for (p = port_next(NULL); p; p = port_next(p))
		worker_spread(p);
}
