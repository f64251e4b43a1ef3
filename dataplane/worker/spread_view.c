// SPDX-License-Identifier: Apache-2.0
// The poller's side: makes a queue's view follow the port's table.
#include <string.h>

#include <rte_cycles.h>

#include "base/doorbell.h"
#include "base/rcu.h"
#include "port/registry.h"
#include "worker/handoff.h"
#include "worker/spread.h"
#include "worker/wait.h"
#include "worker/worker.h"

// Pauses the queue while worker `to` still holds packets from this one.
static void spread_view_wait_for(struct worker *w, struct spread_view *v, uint8_t to)
{
	const struct handoff *h = rcu_read(w->out[to]);
	unsigned i;

	for (i = 0; i < v->n_waits; i++)
		if (v->waits[i].to == to)
			return;
	if (h == NULL || handoff_passed(h, handoff_sent(h)))
		return;
	v->waits[v->n_waits].to = to;
	v->waits[v->n_waits].position = handoff_sent(h);
	v->wait_since = rte_rdtsc();
	__atomic_store_n(&v->n_waits, v->n_waits + 1, __ATOMIC_RELEASE);
}

static bool spread_view_waits_over(struct worker *w, struct spread_view *v)
{
	uint64_t late = rte_get_tsc_hz() / 1000 * SPREAD_LATE_MS * __atomic_load_n(&worker_patience, __ATOMIC_RELAXED);
	const struct handoff *h;
	unsigned n = v->n_waits;

	for (; n > 0; n--) {
		h = rcu_read(w->out[v->waits[n - 1].to]);
		if (h && !handoff_passed(h, v->waits[n - 1].position))
			break;
	}
	if (n > 0 && rte_rdtsc() - v->wait_since > late) {
		__atomic_store_n(&v->gave_up, v->gave_up + 1, __ATOMIC_RELAXED);
		n = 0;
	}
	__atomic_store_n(&v->n_waits, n, __ATOMIC_RELEASE);
	return n == 0;
}

static uint8_t spread_view_target_of(const struct worker *w, const struct port *port, const struct spread *s,
				     unsigned entry)
{
	uint8_t to = s ? s->to[entry] : SPREAD_LOCAL;

	if (to == SPREAD_LOCAL && w->role != WORKER_FORWARDING && port->role != PORT_HOST)
		to = w->target;
	if (to == w->id || to >= WORKER_MAX || rcu_read(w->out[to]) == NULL)
		return SPREAD_LOCAL;
	return to;
}

static void spread_view_follow(struct worker *w, struct port_queue *q, struct spread_view *v)
{
	const struct spread *s = rcu_read(spread_ports[q->port->id].table);
	uint8_t host = __atomic_load_n(&q->port->host_worker, __ATOMIC_ACQUIRE);
	uint64_t targets = 0;
	bool same = true;
	unsigned i;

	for (i = 0; i < SPREAD_ENTRIES; i++) {
		uint8_t to = spread_view_target_of(w, q->port, s, i);

		if (to != v->to[i] && v->to[i] != SPREAD_LOCAL)
			spread_view_wait_for(w, v, v->to[i]);
		v->to[i] = to;
		same = same && to == v->to[0];
		targets |= to == SPREAD_LOCAL ? 0 : 1ull << to;
	}
	v->targets = targets;
	v->all_to = same ? v->to[0] : SPREAD_SEVERAL;
	v->home = w->role == WORKER_FORWARDING ? SPREAD_LOCAL : spread_view_target_of(w, q->port, NULL, 0);
	v->full = w->role == WORKER_ISOLATED_RX ? SPREAD_FULL_WAIT : rcu_read(port_fwds[q->port->id])->ring_full;
	if (w->role == WORKER_HOST_PATH && v->full == SPREAD_FULL_WAIT) // the host path waits for no other worker
		v->full = SPREAD_FULL_DROP;
	if (v->host != SPREAD_LOCAL && v->host != host)
		spread_view_wait_for(w, v, v->host);
	v->host = host;
}

bool spread_ready(struct worker *w, struct port_queue *q, struct spread_view *v)
{
	uint32_t epoch = __atomic_load_n(&spread_epoch, __ATOMIC_ACQUIRE);

	if (unlikely(v->n_waits > 0) && !spread_view_waits_over(w, v))
		return false;
	if (likely(v->epoch == epoch))
		return true;
	spread_view_follow(w, q, v);
	__atomic_store_n(&v->epoch, epoch, __ATOMIC_RELEASE);
	return v->n_waits == 0;
}

uint16_t spread_room(const struct worker *w, const struct spread_view *v, uint16_t room)
{
	uint64_t left = v->targets;

	for (; left != 0; left &= left - 1)
		room = (uint16_t)RTE_MIN((unsigned)room, handoff_room(w, (unsigned)__builtin_ctzll(left)));
	return room;
}

void spread_give_queue(struct worker *w, struct port_queue *q)
{
	struct spread_view *v = q->view;
	uint32_t to;
	unsigned i;

	if (v && !v->leaving) {
		v->leaving = true;
		for (i = 0; i < WORKER_MAX; i++)
			if (v->targets & (1ull << i))
				spread_view_wait_for(w, v, (uint8_t)i);
		if (v->host != SPREAD_LOCAL)
			spread_view_wait_for(w, v, v->host);
	}
	if (v && v->n_waits > 0 && !spread_view_waits_over(w, v))
		return;
	if (v) { // back to its initial state
		v->leaving = false;
		v->epoch = 0;
		v->targets = 0;
		v->all_to = v->home = v->host = SPREAD_LOCAL;
		memset(v->to, SPREAD_LOCAL, sizeof(v->to));
	}
	wait_disarm_queue(w, q);
	to = __atomic_load_n(&q->rx_worker, __ATOMIC_RELAXED);
	__atomic_store_n(&q->owner, to, __ATOMIC_RELEASE);
	doorbell_ring(to);
}
