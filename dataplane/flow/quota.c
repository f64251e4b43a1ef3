// SPDX-License-Identifier: Apache-2.0
// Flow quotas of tenant ports: limits on the number and the rate of new flows.
#include "flow/quota.h"

#include <rte_cycles.h>

#include "base/bucket.h"
#include "flow/flow.h"
#include "port/port.h"

#define REFUSED_SLOTS 4096u
#define REFUSED_SECONDS 2
#define ERRORS_PER_SECOND 1000
#define WINDOW_SHIFT 4 // the rate is limited per window of 1/16 s

DROP_REASON(flow_quota_count, "The port has reached its limit of flows. See `corelane port show`, flow_limit.");
DROP_REASON(flow_quota_share, "The flow table is nearly full, and the port has more than its share of it. See "
			      "`corelane flow count`, or limit the port with `corelane port set NAME --flow-limit N`.");
DROP_REASON(flow_quota_rate,
	    "The port exceeds its limit of new flows per second. See `corelane port show`, flow_rate.");

static struct quota {
	uint32_t limit, rate;    // master: wo, workers: ro
	uint32_t window;         // workers: rw; a race lets a few more pass
	uint32_t in_window;      // atomic
	uint64_t refused;        // atomic
	struct bucket errors[2]; // ICMP errors about flows, which the port sent and received. Workers: rw
} __rte_cache_aligned quotas[PORT_MAX];

// Flows that each worker has created and ended since the start; a worker may end flows of others. Row QUOTA_MASTER: the
// master.
static struct count {
	uint32_t taken, returned; // one thread: rw, all: ro
	uint32_t denied_taken, denied_returned;
} quota_counts[QUOTA_MASTER + 1][PORT_MAX];
uint32_t flow_used_percent;
static uint32_t fair_level = UINT32_MAX;  // Master: wo, workers: ro
static uint8_t over_fair_level[PORT_MAX]; // the port has more flows. Master: wo, workers: ro
static unsigned n_takers;                 // workers with this id or a higher one have an empty row. Workers: rw, atomic

static struct refused {
	uint64_t hash;
	const struct drop_reason *why;
	uint16_t since, owner;
	uint16_t gen;                  // of the zone: a change of rules or routes makes the refusal stale
} refusals[WORKER_MAX][REFUSED_SLOTS]; // each worker uses its own

static bool has_refusals[WORKER_MAX]; // some refusal may be in the cache
static uint16_t last_refused[WORKER_MAX];

static uint32_t quota_window(void)
{
	return (uint32_t)((rte_rdtsc() - flow_tsc_start) / (flow_tsc_hz >> WINDOW_SHIFT));
}

static uint32_t quota_per_window(uint32_t rate)
{
	return RTE_MAX(rate >> WINDOW_SHIFT, 1u);
}

static bool quota_too_fast(struct quota *q, uint32_t rate)
{
	uint32_t window = quota_window();

	if (__atomic_exchange_n(&q->window, window, __ATOMIC_RELAXED) != window)
		__atomic_store_n(&q->in_window, 0, __ATOMIC_RELAXED);
	return __atomic_add_fetch(&q->in_window, 1, __ATOMIC_RELAXED) > quota_per_window(rate);
}

static uint32_t quota_row(unsigned row, uint16_t port, size_t member)
{
	return __atomic_load_n((uint32_t *)RTE_PTR_ADD(&quota_counts[row][port], member), __ATOMIC_ACQUIRE);
}

// The rows change while they are read. Reads `returned` before `taken`: the sum may miss flows that are created
// meanwhile and include flows that end meanwhile, but it is never negative.
static uint32_t quota_sum(uint16_t port, size_t taken, size_t returned)
{
	unsigned i, rows = __atomic_load_n(&n_takers, __ATOMIC_RELAXED);
	uint32_t n = 0;

	n -= quota_row(QUOTA_MASTER, port, returned);
	for (i = 0; i < rows; i++)
		n -= quota_row(i, port, returned);
	for (i = 0; i < rows; i++)
		n += quota_row(i, port, taken);
	return (int32_t)n > 0 ? n : 0;
}

static uint32_t quota_in_use(uint16_t port)
{
	return quota_sum(port, offsetof(struct count, taken), offsetof(struct count, returned));
}

static uint32_t quota_denied(uint16_t port)
{
	return quota_sum(port, offsetof(struct count, denied_taken), offsetof(struct count, denied_returned));
}

bool flow_quota_over_share(uint16_t port)
{
	return __atomic_load_n(&over_fair_level[port], __ATOMIC_RELAXED);
}

bool flow_quota_over_level(uint16_t port)
{
	return quota_in_use(port) > __atomic_load_n(&fair_level, __ATOMIC_RELAXED);
}

// The highest level at which min(use, level) of all ports fits into the room. UINT32_MAX: everything fits.
static uint32_t quota_fair_level(const uint32_t *use, uint64_t room)
{
	uint32_t low = 0, high = UINT32_MAX;

	while (low < high) {
		uint32_t level = low + (high - low) / 2 + 1;
		uint64_t sum = 0;
		unsigned i;

		for (i = 0; i < PORT_MAX; i++)
			sum += RTE_MIN(use[i], level);
		if (sum <= room)
			low = level;
		else
			high = level - 1;
	}
	return low;
}

void flow_quota_weigh(void)
{
	static uint32_t use[PORT_MAX];
	static bool weighed;
	uint32_t level = UINT32_MAX;
	uint16_t i;

	if (flow_pressure() < FLOW_WEIGH_PERCENT && !weighed)
		return;
	weighed = flow_pressure() >= FLOW_WEIGH_PERCENT;
	for (i = 0; weighed && i < PORT_MAX; i++)
		use[i] = quota_in_use(i);
	if (weighed)
		level = quota_fair_level(use, (uint64_t)flow_capacity() * FLOW_WEIGH_PERCENT / 100);
	__atomic_store_n(&fair_level, level, __ATOMIC_RELAXED);
	for (i = 0; i < PORT_MAX; i++)
		__atomic_store_n(&over_fair_level[i], use[i] > level, __ATOMIC_RELAXED);
}

static void quota_count_one(uint32_t *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

static void quota_become_taker(unsigned worker)
{
	unsigned n = __atomic_load_n(&n_takers, __ATOMIC_RELAXED);

	while (worker >= n &&
	       !__atomic_compare_exchange_n(&n_takers, &n, worker + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static bool quota_limit_reached(uint16_t port)
{
	uint32_t limit = __atomic_load_n(&quotas[port].limit, __ATOMIC_RELAXED);

	return unlikely(limit && quota_in_use(port) >= limit); // concurrent workers may exceed the limit by one each
}

static bool quota_share_used(uint16_t port)
{
	return unlikely(flow_pressure() >= FLOW_PRESSURE_PERCENT && flow_quota_over_share(port));
}

const struct drop_reason *flow_quota_take(unsigned worker, uint16_t port)
{
	struct quota *q = &quotas[port];
	uint32_t rate = __atomic_load_n(&q->rate, __ATOMIC_RELAXED);

	if (rate && quota_too_fast(q, rate)) {
		__atomic_add_fetch(&q->refused, 1, __ATOMIC_RELAXED);
		return &drop_flow_quota_rate;
	}
	quota_become_taker(worker);
	if (quota_limit_reached(port)) {
		__atomic_add_fetch(&q->refused, 1, __ATOMIC_RELAXED);
		return &drop_flow_quota_count;
	}
	if (quota_share_used(port)) {
		__atomic_add_fetch(&q->refused, 1, __ATOMIC_RELAXED);
		return &drop_flow_quota_share;
	}
	quota_count_one(&quota_counts[worker][port].taken);
	return NULL;
}

void flow_quota_carried(unsigned worker, uint16_t port)
{
	quota_become_taker(worker);
	quota_count_one(&quota_counts[worker][port].taken);
}

bool flow_quota_take_denied(unsigned worker, uint16_t port)
{
	if (quota_denied(port) >= RTE_MAX(flow_capacity() / FLOW_DENIED_SHARE, (uint32_t)FLOW_DENIED_MIN))
		return false;
	quota_become_taker(worker);
	quota_count_one(&quota_counts[worker][port].denied_taken);
	return true;
}

void flow_quota_return_denied(unsigned worker, uint16_t port)
{
	quota_become_taker(worker == QUOTA_MASTER ? 0 : worker);
	quota_count_one(&quota_counts[worker][port].denied_returned);
}

bool flow_quota_error(uint16_t port, bool received)
{
	return bucket_take(&quotas[port].errors[received], rte_rdtsc(), 1, ERRORS_PER_SECOND, ERRORS_PER_SECOND,
			   flow_tsc_hz);
}

void flow_quota_return(unsigned worker, uint16_t port)
{
	quota_become_taker(worker == QUOTA_MASTER ? 0 : worker);
	quota_count_one(&quota_counts[worker][port].returned);
}

static bool quota_rate_reached(uint16_t port)
{
	const struct quota *q = &quotas[port];
	uint32_t rate = __atomic_load_n(&q->rate, __ATOMIC_RELAXED);

	return rate && __atomic_load_n(&q->window, __ATOMIC_RELAXED) == quota_window() &&
	       __atomic_load_n(&q->in_window, __ATOMIC_RELAXED) >= quota_per_window(rate);
}

// A refusal that rules decided lasts until they change: the zone has another generation then.
static bool quota_refuses_still(const struct refused *r)
{
	if (r->why == &drop_flow_quota_rate)
		return quota_rate_reached(r->owner);
	if (r->why == &drop_flow_quota_count)
		return quota_limit_reached(r->owner);
	return r->why != &drop_flow_quota_share || quota_share_used(r->owner);
}

const struct drop_reason *flow_refused(unsigned worker, const struct flow_key *key, uint16_t now)
{
	const struct refused *r;
	uint64_t hash;

	if (likely((uint16_t)(now - last_refused[worker]) >= REFUSED_SECONDS && has_refusals[worker]))
		has_refusals[worker] = false;
	if (likely(!has_refusals[worker]))
		return NULL;
	hash = flow_key_hash(key);
	r = &refusals[worker][(uint32_t)hash % REFUSED_SLOTS];
	return r->hash == hash && r->why && (uint16_t)(now - r->since) < REFUSED_SECONDS &&
			       r->gen == flow_zone_gen(key->zone) && quota_refuses_still(r)
		       ? r->why
		       : NULL;
}

void flow_refused_add(unsigned worker, const struct flow_key *key, uint16_t owner, const struct drop_reason *why,
		      uint16_t now)
{
	uint64_t hash = flow_key_hash(key);

	has_refusals[worker] = true;
	last_refused[worker] = now;
	refusals[worker][(uint32_t)hash % REFUSED_SLOTS] =
		(struct refused){hash, why, now, owner, flow_zone_gen(key->zone)};
}

PORT_SETTINGS(flow_quota_config)

void flow_quota_set(uint16_t port, uint32_t limit, uint32_t rate)
{
	__atomic_store_n(&quotas[port].limit, limit, __ATOMIC_RELAXED);
	__atomic_store_n(&quotas[port].rate, rate, __ATOMIC_RELAXED);
}

struct flow_quota_state flow_quota_get(uint16_t port)
{
	const struct quota *q = &quotas[port];

	return (struct flow_quota_state){quota_in_use(port), q->limit, q->rate,
					 __atomic_load_n(&q->refused, __ATOMIC_RELAXED)};
}
