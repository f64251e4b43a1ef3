// SPDX-License-Identifier: Apache-2.0
// The master walks over all flows about once a second, a slice per millisecond: ends those whose time is over, decides again those that
// rest while what they were decided by has changed, and gives the memory of ended ones back after a grace period.
#include <netinet/in.h>

#include "flow/flow_private.h"
#include "flow/quota.h"
#include "flow/tcp.h"
#include "worker/punt.h"

#define SLICES 1000         // of a walk
#define SLICE_MIN 16        // flows; to look at one more often would only take its line from the worker that counts there
#define SLICE_US 500        // a slice ends then, and the walk takes longer
#define ENDING 32           // flows that are removed in one go
#define GROW_BUCKETS 256    // moved in one go
#define CLOCKS_APART 8      // seconds that a worker's clock may be ahead: it looked later
#define PRESSURE_PERCENT 85 // of the flows in use: half-open ones get less time from here on

static uint32_t at = 1;
static uint32_t dying; // list of what this slice ended

// Out of the table; true: it was this caller who ended it.
static bool end(struct flow *f)
{
	uint8_t live = FLOW_LIVE;

	if (!__atomic_compare_exchange_n(&f->state, &live, FLOW_ENDED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	flow_table_remove(flow_table, flow_entry(f, 0), flow_entry(f, 1));
	flow_quota_return(f->owner);
	return true;
}

void flow_end(struct flow *f)
{
	end(f);
}

static bool half_open(const struct flow *f)
{
	if (f->dir[0].key.proto == IPPROTO_TCP)
		return f->tcp < TCP_ESTABLISHED;
	return f->dir[1].packets == 0 && f->dir[1].hi == 0 && f->other_packets[1] == 0;
}

// With fewer free flows half-open ones have less time: from all of it down to one second.
static uint32_t patience(const struct flow *f, uint32_t timeout, uint32_t used_percent)
{
	if (used_percent < PRESSURE_PERCENT || !half_open(f))
		return timeout;
	timeout = timeout * (100 - RTE_MIN(used_percent, 100u)) / (100 - PRESSURE_PERCENT);
	return RTE_MAX(timeout, 1u);
}

uint32_t flow_idle(const struct flow *f, unsigned dir, uint16_t now)
{
	uint16_t seen = __atomic_load_n(&f->dir[dir].seen, __ATOMIC_RELAXED);

	return (uint16_t)(seen - now) < CLOCKS_APART ? 0 : (uint16_t)(now - seen);
}

static bool over(const struct flow *f, uint16_t now, uint32_t used_percent)
{
	uint32_t a = flow_idle(f, 0, now), b;

	if (a <= 1) // no age is less: the other line can stay where it is in use
		return false;
	b = flow_idle(f, 1, now);
	return RTE_MIN(a, b) > patience(f, flow_timeout(f), used_percent);
}

static bool stale(const struct flow *f)
{
	return f->dir[0].gen != flow_zones[f->dir[0].key.zone].gen;
}

// Those whose time is over, in groups: what their removal will touch is on its way before the first of them is removed.
static struct flow *ending[ENDING];
static unsigned n_ending;

static void bury(struct flow *f)
{
	f->state = FLOW_DYING;
	f->next = dying;
	dying = (uint32_t)(f - flows);
}

static void end_all(void)
{
	unsigned i;

	for (i = 0; i < n_ending; i++) {
		end(ending[i]);
		if (ending[i]->state == FLOW_ENDED)
			bury(ending[i]);
	}
	n_ending = 0;
}

static void look_at(struct flow *f, uint16_t now, uint32_t used_percent)
{
	uint8_t state = __atomic_load_n(&f->state, __ATOMIC_ACQUIRE);

	if (state == FLOW_ENDED)
		bury(f);
	if (state != FLOW_LIVE || !(over(f, now, used_percent) || (stale(f) && !flow_decide_again(f, 0, NULL))))
		return;
	flow_table_prefetch(flow_table, &f->dir[0].key);
	flow_table_prefetch(flow_table, &f->dir[1].key);
	ending[n_ending++] = f;
	if (n_ending == ENDING)
		end_all();
}

static void walk(uint32_t n, uint64_t until)
{
	uint32_t range = flow_used_range(), capacity = flow_capacity(), used = flow_count();
	uint32_t used_percent = (uint32_t)((uint64_t)used * 100 / capacity), i;
	uint16_t now = (uint16_t)flow_now();

	for (i = 0; i < n; i++, at++) {
		if (at >= range)
			at = 1;
		if (range == 1 || ((i & 63) == 63 && rte_rdtsc() > until))
			break;
		rte_prefetch0(&flows[RTE_MIN(at + 8, range - 1)].state);
		rte_prefetch0(&flows[RTE_MIN(at + 8, range - 1)].dir[0].seen);
		look_at(&flows[at], now, used_percent);
	}
	end_all();
}

void flow_poll(void)
{
	static uint64_t last;
	uint64_t start = rte_rdtsc(), passed = start - last;
	uint64_t n = (uint64_t)flow_used_range() * passed / flow_tsc_hz; // as much as this share of a second is worth

	flow_changes_take_effect();
	if (flow_table == NULL)
		return; // nobody keeps flows yet
	if (last == 0 || n > flow_used_range())
		n = flow_used_range();
	last = start;
	walk((uint32_t)RTE_MAX(n, (uint64_t)SLICE_MIN), start + flow_tsc_hz / 1000000 * SLICE_US);
	if (dying != 0)
		rcu_defer(flow_free_list, (void *)(uintptr_t)dying);
	dying = 0;
	flow_table_grow_step(flow_table, GROW_BUCKETS);
}
