// SPDX-License-Identifier: Apache-2.0
#include "worker/handoff.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include "base/doorbell.h"
#include "base/rcu.h"
#include "graph/held.h"
#include "graph/meta.h"
#include "worker/worker.h"

const struct number_limits handoff_sizes = {
	.min = LIMIT_WORKER_RING_SIZE_MIN, .max = LIMIT_WORKER_RING_SIZE_MAX, .power_of_two = true};

// By a worker that has stopped.
static void handoff_free_left(struct rte_mbuf *m)
{
	held_end(m);
	rte_pktmbuf_free(m);
}

static void handoff_free(void *arg)
{
	struct handoff *h = arg;
	struct rte_mbuf *m;

	while (rte_ring_sc_dequeue(h->ring, (void **)&m) == 0)
		handoff_free_left(m);
	rte_ring_free(h->ring);
	rte_free(h);
}

static struct handoff *handoff_new(const struct worker *from, const struct worker *to)
{
	struct handoff *h = rte_zmalloc_socket("handoff", sizeof(*h), RTE_CACHE_LINE_SIZE, to->memory);
	static unsigned serial;
	char name[RTE_RING_NAMESIZE];

	if (h == NULL)
		return NULL;
	snprintf(name, sizeof(name), "handoff-%u-%u-%u", from->id, to->id, serial++);
	h->ring = rte_ring_create(name, to->ring_size, to->memory, RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
	h->size = to->ring_size;
	h->from = (uint8_t)from->id;
	h->to = (uint8_t)to->id;
	h->bell = to->idle == IDLE_INTERRUPT;
	if (h->ring)
		return h;
	rte_free(h);
	return NULL;
}

// Publishes the list with one ring more, or without one.
static int handoff_list_change(struct worker *w, struct handoff *more, const struct handoff *less)
{
	struct handoff_list *l, *old = w->in;
	unsigned i, n = old ? old->n : 0;

	l = rte_zmalloc("handoff_list", sizeof(*l) + (n + 1) * sizeof(l->h[0]), 0);
	if (l == NULL)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		if (old->h[i] != less)
			l->h[l->n++] = old->h[i];
	if (more)
		l->h[l->n++] = more;
	rcu_publish(w->in, l);
	rcu_defer(rte_free, old);
	return 0;
}

void handoff_set_bell(struct worker *to, bool bell)
{
	unsigned i;

	for (i = 0; to->in && i < to->in->n; i++)
		__atomic_store_n(&to->in->h[i]->bell, bell, __ATOMIC_RELAXED);
}

static int handoff_add(struct worker *from, struct worker *to, struct handoff *before, struct error *err)
{
	struct handoff *h = handoff_new(from, to);

	if (h)
		h->before = before;
	if (h && handoff_list_change(to, h, NULL) == 0) {
		rcu_publish(from->out[to->id], h);
		__atomic_store_n(&from->reopen, true, __ATOMIC_SEQ_CST);
		doorbell_ring(from->id);
		return 0;
	}
	if (h)
		handoff_free(h);
	return error_set(err, ENOMEM, NULL, NULL, NULL,
			 "no memory for a ring of %u packets from worker %u to worker %u", to->ring_size, from->id,
			 to->id);
}

int handoff_connect(struct worker *from, struct worker *to, struct error *err)
{
	return from == to || from->out[to->id] ? 0 : handoff_add(from, to, NULL, err);
}

int handoff_resize(struct worker *to, struct error *err)
{
	struct worker *from;
	int ret = 0;

	for (from = worker_next(NULL); from && ret == 0; from = worker_next(from)) {
		struct handoff *old = from->out[to->id];

		if (old && old->before)
			return error_set(err, EAGAIN, "worker.ring_size", NULL, "the same request a moment later",
					 "is still being changed by the last request");
		if (old && old->size != to->ring_size)
			ret = handoff_add(from, to, old, err);
	}
	return ret;
}

static bool handoff_retire(struct worker *from, struct worker *to)
{
	struct handoff *h = from->out[to->id], *old = h ? h->before : NULL;

	if (old == NULL)
		return true;
	if (!__atomic_load_n(&h->flowing, __ATOMIC_ACQUIRE) || handoff_list_change(to, NULL, old) < 0)
		return false;
	h->before = NULL; // both ends use the new ring
	rcu_defer(handoff_free, old);
	return true;
}

bool handoff_poll(void)
{
	struct worker *from, *to;
	bool all = true;

	for (from = worker_next(NULL); from; from = worker_next(from))
		for (to = worker_next(NULL); to; to = worker_next(to))
			all &= handoff_retire(from, to);
	return all;
}

void handoff_disconnect(struct worker *w)
{
	struct worker *other;
	unsigned i;

	for (i = 0; w->in && i < w->in->n; i++) {
		other = worker_get(w->in->h[i]->from);
		if (other)
			rcu_publish(other->out[w->id], NULL);
		rcu_defer(handoff_free, w->in->h[i]);
	}
	rcu_defer(rte_free, w->in);
	w->in = NULL;
	for (i = 0; i < WORKER_MAX; i++) {
		other = worker_get(i);
		if (w->out[i] == NULL || other == NULL)
			continue;
		if (w->out[i]->before && handoff_list_change(other, NULL, w->out[i]->before) == 0)
			rcu_defer(handoff_free, w->out[i]->before);
		if (handoff_list_change(other, NULL, w->out[i]) == 0)
			rcu_defer(handoff_free, w->out[i]);
		w->out[i] = NULL;
	}
}

// The producer begins to use a ring: nothing follows in the one that it replaces.
static void handoff_open(struct handoff *h)
{
	__atomic_store_n(&h->sent, h->before ? h->before->sent : 0, __ATOMIC_RELAXED);
	h->refused = h->before ? h->before->refused : 0;
	if (h->before)
		__atomic_store_n(&h->before->closed, true, __ATOMIC_RELEASE);
	__atomic_store_n(&h->opened, true, __ATOMIC_RELEASE);
	doorbell_ring(h->to);
}

static void handoff_sample(struct handoff *h)
{
	h->sample_at = h->sent + 1;
	h->sample_tsc = rte_rdtsc();
	__atomic_store_n(&h->sampling, true, __ATOMIC_RELEASE);
}

// Marks the packets, and counts their buffers before the consumer can.
static uint32_t handoff_mark(struct rte_mbuf **pkts, unsigned n, uint32_t arg)
{
	uint32_t buffers = 0;
	unsigned i;

	for (i = 0; i < n; i++) {
		meta(pkts[i])->arg = arg;
		buffers += pkts[i]->nb_segs;
	}
	return buffers;
}

unsigned handoff_give(struct worker *from, unsigned to, struct rte_mbuf **pkts, unsigned n, uint32_t arg)
{
	struct handoff *h = rcu_read(from->out[to]);
	unsigned given, room, i;

	if (unlikely(h == NULL))
		return 0;
	held_begin_as(pkts[0]->port, handoff_mark(pkts, n, arg));
	if (unlikely(!h->opened))
		handoff_open(h);
	if (!__atomic_load_n(&h->sampling, __ATOMIC_ACQUIRE))
		handoff_sample(h);
	given = rte_ring_sp_enqueue_burst(h->ring, (void **)pkts, n, &room);
	for (i = given; i < n; i++)
		held_end(pkts[i]);
	__atomic_store_n(&h->sent, h->sent + given, __ATOMIC_RELAXED);
	h->refused += n - given;
	h->high = RTE_MAX(h->high, h->size - room);
	if (unlikely(__atomic_load_n(&h->bell, __ATOMIC_RELAXED)))
		doorbell_ring(h->to);
	return given;
}

unsigned handoff_room(const struct worker *from, unsigned to)
{
	const struct handoff *h = rcu_read(from->out[to]);

	return h ? rte_ring_free_count(h->ring) : 0;
}

bool handoff_pending(const struct worker *from, unsigned to)
{
	const struct handoff *h = to < WORKER_MAX ? rcu_read(from->out[to]) : NULL;

	return h && !handoff_passed(h, handoff_sent(h));
}

static bool handoff_may_flow(struct handoff *h)
{
	struct handoff *b = h->before;

	if (b && !(__atomic_load_n(&b->closed, __ATOMIC_ACQUIRE) && rte_ring_empty(b->ring)))
		return false;
	h->taken = b ? b->taken : 0; // handoff_done() updates done
	__atomic_store_n(&h->flowing, true, __ATOMIC_RELEASE);
	return true;
}

static void handoff_sampled(struct handoff *h)
{
	uint64_t cycles = rte_rdtsc() - h->sample_tsc;

	h->waited[RTE_MIN(63 - __builtin_clzll(cycles | 1), HANDOFF_BUCKETS - 1)]++;
	__atomic_store_n(&h->sampling, false, __ATOMIC_RELEASE);
}

unsigned handoff_take(struct handoff *h, struct rte_mbuf **pkts, unsigned n)
{
	if (unlikely(!h->flowing) && !handoff_may_flow(h))
		return 0;
	n = rte_ring_sc_dequeue_burst(h->ring, (void **)pkts, n, NULL);
	h->taken += n;
	if (n > 0 && __atomic_load_n(&h->sampling, __ATOMIC_ACQUIRE) && h->taken >= h->sample_at)
		handoff_sampled(h);
	return n;
}

// Rings were replaced: uses all new ones, also those that this worker has no packets for just now.
static void handoff_reopen(struct worker *w)
{
	struct handoff *h;
	unsigned i;

	__atomic_store_n(&w->reopen, false, __ATOMIC_SEQ_CST);
	for (i = 0; i < WORKER_MAX; i++) {
		h = rcu_read(w->out[i]);
		if (h && !h->opened)
			handoff_open(h);
	}
}

void handoff_done(struct worker *w)
{
	const struct handoff_list *l = w->in_now;
	unsigned i;

	if (unlikely(__atomic_load_n(&w->reopen, __ATOMIC_RELAXED)))
		handoff_reopen(w);
	for (i = 0; l && i < l->n; i++)
		if (l->h[i]->done != l->h[i]->taken)
			__atomic_store_n(&l->h[i]->done, l->h[i]->taken, __ATOMIC_RELEASE);
}
