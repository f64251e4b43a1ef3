// SPDX-License-Identifier: Apache-2.0
// Which worker polls which queue. To move a queue, the master adds it to the new worker's list and sets rx_worker. The
// old worker, the owner, sees that before it polls, waits until the packets that it handed on are finished, and makes
// the new worker the owner. Two workers never poll a queue at once.
#include "worker/assign.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_malloc.h>

#include "base/doorbell.h"
#include "base/log.h"
#include "base/rcu.h"
#include "port/registry.h"
#include "worker/handoff.h"
#include "worker/spread.h"
#include "worker/worker.h"
#include "worker/worker_private.h"

#define SETTLE_NS 20000
#define GROW_MS 200

unsigned worker_patience = 1;
static bool assign_held;   // no queue gets a poller
static bool assign_untidy; // a list may contain queues that others poll

static struct rx_list *rx_list_alloc(unsigned n)
{
	struct rx_list *l = rte_zmalloc("rx_list", sizeof(*l) + n * sizeof(l->q[0]), 0);

	if (l)
		l->n = n;
	return l;
}

static void rx_list_publish(struct worker *w, struct rx_list *l)
{
	struct rx_list *old = w->rx;

	rcu_publish(w->rx, l);
	doorbell_ring(w->id);
	rcu_defer(rte_free, old);
}

static bool rx_list_has(const struct worker *w, const struct port_queue *q)
{
	unsigned i;

	for (i = 0; i < w->rx->n; i++)
		if (w->rx->q[i] == q)
			return true;
	return false;
}

static int assign_list_add(struct worker *w, struct port_queue *q)
{
	struct rx_list *l = rx_list_alloc(w->rx->n + 1);

	if (l == NULL)
		return -ENOMEM;
	memcpy(l->q, w->rx->q, w->rx->n * sizeof(l->q[0]));
	l->q[w->rx->n] = q;
	rx_list_publish(w, l);
	return 0;
}

// Removes the queues that keep() refuses. Without memory the list stays as it is, which costs a check per poll.
static void rx_list_filter(struct worker *w,
			   bool (*keep)(const struct worker *, const struct port_queue *, const void *),
			   const void *arg)
{
	struct rx_list *l = rx_list_alloc(w->rx->n);
	unsigned i, n = w->rx->n;

	if (l == NULL)
		return;
	for (i = l->n = 0; i < n; i++)
		if (keep(w, w->rx->q[i], arg))
			l->q[l->n++] = w->rx->q[i];
	if (l->n == n)
		rte_free(l);
	else
		rx_list_publish(w, l);
}

bool worker_settle(bool (*done)(const void *arg), const void *arg, unsigned ms)
{
	static const struct timespec nap = {.tv_nsec = SETTLE_NS};
	uint64_t end = rte_rdtsc() + rte_get_tsc_hz() / 1000 * ms * worker_patience;

	while (!done(arg)) {
		if (rte_rdtsc() > end)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

static bool assign_owned(const void *arg)
{
	const struct port_queue *q = arg;

	return __atomic_load_n(&q->owner, __ATOMIC_ACQUIRE) == q->rx_worker;
}

static bool assign_keep_own(const struct worker *w, const struct port_queue *q, const void *arg)
{
	return q->rx_worker == w->id || __atomic_load_n(&q->owner, __ATOMIC_ACQUIRE) == w->id;
}

void worker_tidy(void)
{
	struct worker *w;
	struct port *p;
	unsigned i;

	if (!assign_untidy)
		return;
	assign_untidy = false;
	for (p = port_next(NULL); p; p = port_next(p))
		for (i = 0; i < p->n_queues; i++)
			assign_untidy |= !assign_owned(&p->queues[i]);
	for (w = worker_next(NULL); w; w = worker_next(w))
		rx_list_filter(w, assign_keep_own, NULL);
}

// Starts the move; the old worker completes it.
static int assign_start_move(struct port_queue *q, struct worker *w)
{
	if (!rx_list_has(w, q) && assign_list_add(w, q) < 0)
		return -ENOMEM;
	assign_untidy = true;
	__atomic_store_n(&q->rx_worker, w->id, __ATOMIC_RELEASE);
	if (__atomic_load_n(&q->owner, __ATOMIC_ACQUIRE) == WORKER_NONE)
		__atomic_store_n(&q->owner, w->id, __ATOMIC_RELEASE);
	// The old worker, or the new one if there was none.
	doorbell_ring(__atomic_load_n(&q->owner, __ATOMIC_ACQUIRE));
	return 0;
}

// --- Workers that wait for interrupts. ---

static bool assign_may_poll(const struct worker *w, const struct port_queue *q)
{
	return w->idle != IDLE_INTERRUPT || port_queue_wakes(q);
}

// The least loaded forwarding worker that may poll the queue. NULL: none.
static struct worker *assign_poller(const struct port_queue *q, const struct worker *except)
{
	struct worker *w, *best = NULL;

	for (w = worker_next(NULL); w; w = worker_next(w))
		if (w != except && !w->leaving && w->role == WORKER_FORWARDING && assign_may_poll(w, q) &&
		    (best == NULL || w->rx->n < best->rx->n))
			best = w;
	return best;
}

// If none may, the queue is polled all the same: its worker sleeps instead of waiting (wait.c).
static struct worker *assign_any_poller(const struct port_queue *q, const struct worker *except)
{
	struct worker *w = assign_poller(q, except);

	return w ? w : worker_least_loaded(except);
}

static int assign_refuse_wait(const struct port_queue *q, const struct worker *w, struct error *err)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", w->id);
	return error_set(err, EINVAL, "worker", text, "a worker with another idle policy (spin, pause, yield, sleep)",
			 "waits for interrupts, which queue %u of port %s (%s) does not give", q->index,
			 q->port->cfg.name, q->port->driver);
}

int worker_may_wait(const struct worker *w, struct error *err)
{
	unsigned i;

	for (i = 0; i < w->rx->n; i++) {
		const struct port_queue *q = w->rx->q[i];

		if (q->rx_worker == w->id && !port_queue_wakes(q))
			return error_set(err, EINVAL, "worker.idle", "interrupt",
					 "spin, pause, yield, sleep; interrupt once another worker polls the queue",
					 "cannot be set: worker %u polls queue %u of port %s (%s), which gives no "
					 "interrupts",
					 w->id, q->index, q->port->cfg.name, q->port->driver);
	}
	return 0;
}

int worker_may_leave(const struct worker *w, struct error *err)
{
	char text[16];
	unsigned i;

	snprintf(text, sizeof(text), "%u", w->id);
	for (i = 0; i < w->rx->n; i++) {
		const struct port_queue *q = w->rx->q[i];

		if (q->rx_worker == w->id && worker_least_loaded(w) != NULL && assign_poller(q, w) == NULL)
			return error_set(err, EBUSY, "worker.id", text,
					 "the same request once another worker has another idle policy",
					 "polls queue %u of port %s (%s), which gives no interrupts, and all others "
					 "wait for them",
					 q->index, q->port->cfg.name, q->port->driver);
	}
	return 0;
}

static int assign_may_spread_queue(const struct port_queue *q, const struct port_config *cfg, struct error *err)
{
	unsigned wanted = spread_config(cfg)->polled_by[q->index];
	const struct worker *w = wanted && !q->host ? worker_get(wanted - 1) : NULL;

	if (w && !w->leaving)
		return assign_may_poll(w, q) ? 0 : assign_refuse_wait(q, w, err);
	if (q->rx_worker != WORKER_NONE || worker_least_loaded(NULL) == NULL || assign_poller(q, NULL) != NULL)
		return 0;
	return error_set(err, EINVAL, "port.device", q->port->driver,
			 "a worker with another idle policy (spin, pause, yield, sleep)",
			 "gives no interrupts, and all workers wait for them");
}

int worker_may_spread(const struct port *port, const struct port_config *cfg, struct error *err)
{
	unsigned i;
	int ret = 0;

	for (i = 0; i < port_polled_queues(port) && ret == 0; i++)
		ret = assign_may_spread_queue(&port->queues[i], cfg, err);
	return ret;
}

int worker_assign(struct port_queue *q, struct worker *w, struct error *err)
{
	int ret;

	if (q->rx_worker == w->id)
		return 0;
	if (!assign_may_poll(w, q))
		return assign_refuse_wait(q, w, err);
	if (assign_start_move(q, w) < 0)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory to move a queue");
	ret = spread_refresh(err);
	if (!assign_held && !worker_settle(assign_owned, q, SETTLE_MS))
		LOG(WARNING, "queue %u of port %s moves to worker %u once worker %u (late) releases it", q->index,
		    q->port->cfg.name, w->id, __atomic_load_n(&q->owner, __ATOMIC_RELAXED));
	worker_tidy();
	return ret;
}

struct worker *worker_least_loaded(const struct worker *except)
{
	struct worker *w, *best = NULL;

	for (w = worker_next(NULL); w; w = worker_next(w))
		if (w != except && !w->leaving && w->role == WORKER_FORWARDING &&
		    (best == NULL || w->rx->n < best->rx->n))
			best = w;
	return best;
}

// Two workers share a transmit queue when their ids map to the same one (port_tx).
static bool assign_tx_is_shared(const struct port *port, uint32_t newcomer)
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

bool worker_set_growing(uint32_t newcomer)
{
	bool waits = false;
	struct port *p;

	for (p = port_next(NULL); p; p = port_next(p)) {
		if (assign_tx_is_shared(p, newcomer) && !(p->tx_flags & PORT_TX_SHARED)) {
			port_set_tx_flag(p, PORT_TX_SHARED, true);
			waits = true;
		}
	}
	return !waits || rcu_wait(GROW_MS * worker_patience); // all workers take the locks before the new one sends
}

void worker_share_tx(struct port *port)
{
	port_set_tx_flag(port, PORT_TX_SHARED, assign_tx_is_shared(port, WORKER_NONE));
}

void worker_spread(struct port *port)
{
	const uint8_t *polled_by = spread_config(&port->cfg)->polled_by;
	struct worker *w;
	unsigned i;

	worker_share_tx(port);
	for (i = 0; i < port_polled_queues(port) && !assign_held; i++) {
		w = polled_by[i] && !port->queues[i].host ? worker_get(polled_by[i] - 1u) : NULL;
		if (w == NULL || w->leaving || !assign_may_poll(w, &port->queues[i]))
			w = port->queues[i].rx_worker == WORKER_NONE ? assign_any_poller(&port->queues[i], NULL) : NULL;
		if (w && port->queues[i].rx_worker != w->id)
			assign_start_move(&port->queues[i], w);
	}
}

static bool assign_keep_other_ports(const struct worker *w, const struct port_queue *q, const void *port)
{
	return q->port != port;
}

void worker_forget(struct port *port)
{
	struct worker *w;
	unsigned i;

	for (w = worker_next(NULL); w; w = worker_next(w))
		rx_list_filter(w, assign_keep_other_ports, port);
	for (i = 0; i < port->n_queues; i++) {
		__atomic_store_n(&port->queues[i].rx_worker, WORKER_NONE, __ATOMIC_RELAXED);
		__atomic_store_n(&port->queues[i].owner, WORKER_NONE, __ATOMIC_RELAXED);
	}
}

bool worker_replaceable(const struct worker *w)
{
	return w->role != WORKER_FORWARDING || worker_least_loaded(w) != NULL;
}

void worker_retarget(const struct worker *w)
{
	struct worker *to = worker_least_loaded(w), *from;

	for (from = worker_next(NULL); from; from = worker_next(from))
		if (to && from->target == w->id)
			__atomic_store_n(&from->target, (uint8_t)to->id, __ATOMIC_RELAXED);
}

void worker_handover(struct worker *w)
{
	struct worker *to;
	unsigned i;

	w->leaving = true;
	for (i = 0; i < w->rx->n; i++)
		if (w->rx->q[i]->rx_worker == w->id && (to = assign_any_poller(w->rx->q[i], w)) != NULL)
			assign_start_move(w->rx->q[i], to);
	worker_retarget(w);
	spread_refresh(NULL);
}

// Returns whether the worker has finished all packets that it was handed; *sent is their number.
static bool assign_passed_all(const struct worker *w, uint64_t *sent)
{
	unsigned i;

	*sent = 0;
	for (i = 0; w->in && i < w->in->n; i++) {
		uint64_t position = handoff_sent(w->in->h[i]);

		if (!handoff_passed(w->in->h[i], position))
			return false;
		*sent += position;
	}
	return true;
}

// A walk that is still under way may hand over packets as before the change.
bool worker_is_free(const struct worker *w)
{
	uint64_t before, after;

	return spread_settled() && assign_passed_all(w, &before) && rcu_wait(SETTLE_MS) &&
	       assign_passed_all(w, &after) && after == before;
}

void worker_orphan_queues(const struct worker *w)
{
	unsigned i;

	for (i = 0; i < w->rx->n; i++)
		if (w->rx->q[i]->rx_worker == w->id)
			w->rx->q[i]->rx_worker = w->rx->q[i]->owner = WORKER_NONE;
}

void worker_hold_ports(void)
{
	assign_held = true;
	worker_gate_set(true);
}

void worker_release_ports(void)
{
	assign_held = false;
	worker_set_changed();
	worker_gate_set(false);
}

void worker_set_changed(void)
{
	struct port *p;

	for (p = port_next(NULL); p; p = port_next(p))
		worker_spread(p);
	spread_refresh(NULL);
	worker_tidy();
}
