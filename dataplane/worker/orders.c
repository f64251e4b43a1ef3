// SPDX-License-Identifier: Apache-2.0
#include "worker/orders.h"

#include "base/doorbell.h"
#include "base/rcu.h"
#include "worker/worker.h"

static void orders_send(struct worker *w, enum order order)
{
	__atomic_fetch_or(&w->orders, order, __ATOMIC_RELEASE);
	doorbell_ring(w->id);
}

static void orders_clear(struct worker *w, enum order order)
{
	__atomic_fetch_and(&w->orders, ~(uint32_t)order, __ATOMIC_RELEASE);
}

static void orders_measure(struct worker *w)
{
	const struct rx_list *l = rcu_read(w->rx);
	struct port_queue *q;
	unsigned i;

	for (i = 0; i < l->n; i++) {
		q = l->q[i];
		if (__atomic_load_n(&q->owner, __ATOMIC_ACQUIRE) == w->id) // else another worker still polls it
			__atomic_store_n(&q->depth, q->port->ops->depth ? q->port->ops->depth(q) : DEPTH_UNKNOWN,
					 __ATOMIC_RELAXED);
	}
	orders_clear(w, ORDER_MEASURE);
}

void worker_handle_orders(struct worker *w)
{
	uint32_t orders = __atomic_load_n(&w->orders, __ATOMIC_ACQUIRE);

	if (orders & ORDER_MEASURE)
		orders_measure(w);
	if (orders & ORDER_FAULT)
		w->fault(w);
}

// The pointer stays when the order is cleared: the worker may be about to call it.
void worker_set_fault(struct worker *w, void (*fault)(struct worker *w))
{
	if (fault == NULL) {
		orders_clear(w, ORDER_FAULT);
		return;
	}
	w->fault = fault;
	orders_send(w, ORDER_FAULT);
}

void worker_measure(struct worker *w)
{
	orders_send(w, ORDER_MEASURE);
}
