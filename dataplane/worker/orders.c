// SPDX-License-Identifier: Apache-2.0
#include "worker/orders.h"

#include <errno.h>
#include <stdio.h>

#include <rte_cycles.h>
#include <rte_pause.h>

#include "base/doorbell.h"
#include "base/log.h"
#include "base/rcu.h"
#include "worker/recorder.h"
#include "worker/worker.h"

bool worker_debug_allowed;

static void order(struct worker *w, enum order what)
{
	__atomic_fetch_or(&w->orders, what, __ATOMIC_RELEASE);
	doorbell_ring(w->id);
}

static void done(struct worker *w, enum order what)
{
	__atomic_fetch_and(&w->orders, ~(uint32_t)what, __ATOMIC_RELEASE);
}

static void measure(struct worker *w)
{
	const struct rx_list *l = rcu_read(w->rx);
	struct port_queue *q;
	unsigned i;

	for (i = 0; i < l->n; i++) {
		q = l->q[i];
		if (__atomic_load_n(&q->owner, __ATOMIC_ACQUIRE) == w->id) // else it is another one's yet
			__atomic_store_n(&q->depth, q->port->ops->depth ? q->port->ops->depth(q) : DEPTH_UNKNOWN, __ATOMIC_RELAXED);
	}
	done(w, ORDER_MEASURE);
}

static void delay(struct worker *w)
{
	uint64_t start = rte_rdtsc(), cycles = __atomic_load_n(&w->delay, __ATOMIC_RELAXED);

	while (rte_rdtsc() - start < cycles)
		rte_pause();
	recorder_spent(w->recorder, STAGE_DELAY, rte_rdtsc() - start);
}

void worker_obey(struct worker *w)
{
	uint32_t orders = __atomic_load_n(&w->orders, __ATOMIC_ACQUIRE);

	if (orders & ORDER_MEASURE)
		measure(w);
	if (orders & ORDER_DELAY)
		delay(w);
}

int worker_set_delay(struct worker *w, uint32_t us, struct error *err)
{
	char text[16], valid[48];

	snprintf(text, sizeof(text), "%u", us);
	snprintf(valid, sizeof(valid), "0 to %d", DEBUG_DELAY_US_MAX);
	if (!worker_debug_allowed)
		return error_set(err, EPERM, NULL, NULL, "corelaned --allow-debug", "this daemon was started without debugging");
	if (us > DEBUG_DELAY_US_MAX)
		return error_set(err, EINVAL, "us", text, valid, "is no delay");
	__atomic_store_n(&w->delay, us * (rte_get_tsc_hz() / 1000000), __ATOMIC_RELAXED);
	if (us > 0)
		order(w, ORDER_DELAY);
	else
		done(w, ORDER_DELAY);
	LOG(NOTICE, us > 0 ? "worker %u is delayed by %u us in each loop" : "worker %u is not delayed any more", w->id, us);
	return 0;
}

uint32_t worker_delay(const struct worker *w)
{
	return w->orders & ORDER_DELAY ? (uint32_t)(w->delay / (rte_get_tsc_hz() / 1000000)) : 0;
}

void worker_measure(struct worker *w)
{
	order(w, ORDER_MEASURE);
}
