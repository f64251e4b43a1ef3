// SPDX-License-Identifier: Apache-2.0
#include "flow/quota.h"

#include <stdalign.h>

#include <rte_cycles.h>

#include "flow/flow.h"
#include "port/port.h"
#include "worker/worker.h"

#define REFUSED_SLOTS 4096u
#define REFUSED_SECONDS 2
#define WINDOW_SHIFT 4 // the rate is watched over 1/16 s

DROP_REASON(flow_quota_count, "The port has as many flows as it may have. See `corelane port show`, flow_limit.");
DROP_REASON(flow_quota_rate, "The port makes more new flows per second than it may. See `corelane port show`, flow_rate.");

static struct quota {
	uint32_t limit, rate; // master: wo, workers: ro
	uint32_t taken;       // flows ever: workers, atomic
	uint32_t window;      // workers: rw, races let a few more pass
	uint32_t in_window;   // atomic
	uint64_t refused;     // atomic
	// Mostly the master's, so that workers need not wait for this line with each new flow.
	alignas(RTE_CACHE_LINE_SIZE) uint32_t returned; // atomic
} __rte_cache_aligned quotas[PORT_MAX];

static struct refused {
	uint64_t hash;
	const struct drop_reason *why;
	uint16_t since;
} refused[WORKER_MAX][REFUSED_SLOTS]; // of each worker its own

static bool refusing[WORKER_MAX]; // anything is remembered
static uint16_t last_refused[WORKER_MAX];

static bool too_fast(struct quota *q, uint32_t rate)
{
	uint32_t window = (uint32_t)((rte_rdtsc() - flow_tsc_start) / (flow_tsc_hz >> WINDOW_SHIFT));
	uint32_t most = RTE_MAX(rate >> WINDOW_SHIFT, 1u);

	if (__atomic_exchange_n(&q->window, window, __ATOMIC_RELAXED) != window)
		__atomic_store_n(&q->in_window, 0, __ATOMIC_RELAXED);
	return __atomic_add_fetch(&q->in_window, 1, __ATOMIC_RELAXED) > most;
}

const struct drop_reason *flow_quota_take(uint16_t port)
{
	struct quota *q = &quotas[port];
	uint32_t limit = q->limit, rate = q->rate, taken;

	if (rate && too_fast(q, rate)) {
		__atomic_add_fetch(&q->refused, 1, __ATOMIC_RELAXED);
		return &drop_flow_quota_rate;
	}
	taken = __atomic_add_fetch(&q->taken, 1, __ATOMIC_RELAXED);
	if (unlikely(limit && taken - __atomic_load_n(&q->returned, __ATOMIC_RELAXED) > limit)) {
		flow_quota_return(port);
		__atomic_add_fetch(&q->refused, 1, __ATOMIC_RELAXED);
		return &drop_flow_quota_count;
	}
	return NULL;
}

void flow_quota_return(uint16_t port)
{
	__atomic_add_fetch(&quotas[port].returned, 1, __ATOMIC_RELAXED);
}

const struct drop_reason *flow_refused(unsigned worker, const struct flow_key *key, uint16_t now)
{
	const struct refused *r;
	uint64_t hash;

	if (likely((uint16_t)(now - last_refused[worker]) >= REFUSED_SECONDS && refusing[worker]))
		refusing[worker] = false;
	if (likely(!refusing[worker]))
		return NULL;
	hash = flow_key_hash(key);
	r = &refused[worker][(uint32_t)hash % REFUSED_SLOTS];
	return r->hash == hash && r->why && (uint16_t)(now - r->since) < REFUSED_SECONDS ? r->why : NULL;
}

void flow_refused_add(unsigned worker, const struct flow_key *key, const struct drop_reason *why, uint16_t now)
{
	uint64_t hash = flow_key_hash(key);

	refusing[worker] = true;
	last_refused[worker] = now;
	refused[worker][(uint32_t)hash % REFUSED_SLOTS] = (struct refused){hash, why, now};
}

void flow_quota_set(uint16_t port, uint32_t limit, uint32_t rate)
{
	quotas[port].limit = limit;
	quotas[port].rate = rate;
}

struct flow_quota_state flow_quota_get(uint16_t port)
{
	const struct quota *q = &quotas[port];

	return (struct flow_quota_state){__atomic_load_n(&q->taken, __ATOMIC_RELAXED) -
						 __atomic_load_n(&q->returned, __ATOMIC_RELAXED),
					 q->limit, q->rate, __atomic_load_n(&q->refused, __ATOMIC_RELAXED)};
}
