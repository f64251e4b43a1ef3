// SPDX-License-Identifier: Apache-2.0
// Ages flows. Each worker scans its own chunks about once a second, one slice between two walks of its graph: it ends
// expired flows, re-evaluates idle flows that are stale, and frees flows past their grace period. The master does what
// belongs to no worker: generations, growth of the table, and the chunks of removed workers.
#include <errno.h>
#include <netinet/in.h>

#include "flow/flow_private.h"
#include "flow/quota.h"
#include "flow/taken_ports.h"
#include "flow/tcp.h"
#include "policy/service.h"
#include "worker/worker.h"

#define SLICE_US 20           // budget of a slice; flows are handled in groups, so a slice may take a little longer
#define SLICE_SHARE 3         // the pause is this many times the slice; a scan of many flows then exceeds a second
#define SLICE_GAP_US 1000     // upper bound of the pause when no chunks are due
#define AHEAD 8               // flows that are prefetched ahead
#define SKIP 256              // chunks of other owners between two reads of the clock
#define EVERY_ROUNDS 32       // one of so many rounds looks at all flows, for the generation of direction 1
#define GROW_BUCKETS 256      // buckets moved per millisecond
#define HAND_OVER 256         // chunks examined per millisecond and removed worker
#define CLOCKS_APART 8        // seconds by which `seen` may be ahead of `now`: another worker read the clock later
#define SQUEEZE_PERCENT 95    // share of flows in use above which ports over their share lose flows of any age
#define WEIGH_EVERY 8         // milliseconds
#define OVER_SHARE_SECONDS 60 // longest timeout under pressure of a port that is over its share

static struct walker {  // one worker's scan
	uint64_t next;  // TSC at which the next slice begins
	uint64_t until; // TSC up to which `due` has been accounted
	uint32_t due;   // chunks that are due
	uint32_t at;    // current chunk
	unsigned slot;  // flow in it at which the last slice stopped
	unsigned round; // scans of all chunks since the start
} __rte_cache_aligned walkers[WORKER_MAX];

static void ager_count_service(const struct flow *f)
{
	uint64_t packets[2], bytes[2];
	unsigned i;

	for (i = 0; i < 2; i++) {
		packets[i] = flow_packets(f, i);
		bytes[i] = flow_bytes(f, i);
	}
	service_flow_ended(f->nat, packets, bytes);
}

// Ends those flows that are still live. n <= FLOW_REMOVE / 2.
static void ager_end(struct flow *const *f, unsigned n)
{
	unsigned i, k = 0, worker = this_worker ? this_worker->id : QUOTA_MASTER;
	flow_entry_t entries[FLOW_REMOVE];

	for (i = 0; i < n; i++) {
		uint8_t live = FLOW_LIVE;

		if (!__atomic_compare_exchange_n(&f[i]->state, &live, FLOW_ENDING, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		entries[k++] = flow_entry(f[i], 0);
		entries[k++] = flow_entry(f[i], 1);
	}
	flow_table_remove(flow_table, entries, k);
	for (i = 0; i < k; i += 2) {
		struct flow *gone = flow_of(entries[i]);

		flow_quota_return(worker, gone->owner);
		// Any flow may have had a port of a pool, also one from outside.
		taken_ports_forget(&gone->dir[0].key);
		taken_ports_forget(&gone->dir[1].key);
		if (nat_is_endpoint(gone->nat))
			ager_count_service(gone);
		if (gone->born_denied)
			flow_quota_return_denied(worker, gone->owner);
		__atomic_store_n(&gone->dir[0].gen, 0,
				 __ATOMIC_RELAXED); // stale, so the owner of its chunk does not skip it as fresh
		__atomic_store_n(&gone->state, FLOW_ENDED, __ATOMIC_RELEASE);
	}
}

void flow_end(struct flow *f)
{
	ager_end(&f, 1);
}

static bool ager_half_open(const struct flow *f)
{
	if (f->dir[0].key.proto == IPPROTO_TCP)
		return f->tcp < TCP_ESTABLISHED;
	return f->dir[1].packets == 0 && f->dir[1].hi == 0 && f->other_packets[1] == 0;
}

static bool ager_squeezed(void)
{
	return flow_pressure() >= SQUEEZE_PERCENT;
}

// Under pressure the timeouts of half-open flows, and of all flows of ports that are over their share, shrink with the
// share of free flows, down to one second.
static uint32_t ager_patience(const struct flow *f, uint32_t timeout, bool over_share)
{
	uint32_t percent = flow_pressure();

	if (over_share)
		timeout = RTE_MIN(timeout, (uint32_t)OVER_SHARE_SECONDS);
	else if (percent < FLOW_PRESSURE_PERCENT || !ager_half_open(f))
		return timeout;
	timeout = timeout * (100 - RTE_MIN(percent, 100u)) / (100 - FLOW_PRESSURE_PERCENT);
	return RTE_MAX(timeout, 1u);
}

uint32_t flow_idle(const struct flow *f, unsigned dir, uint16_t now)
{
	uint16_t seen = __atomic_load_n(&f->dir[dir].seen, __ATOMIC_RELAXED);

	return (uint16_t)(seen - now) < CLOCKS_APART ? 0 : (uint16_t)(now - seen);
}

static bool ager_over(const struct flow *f, uint16_t now)
{
	bool over_share = unlikely(flow_pressure() >= FLOW_PRESSURE_PERCENT) && flow_quota_over_share(f->owner);

	if (over_share && ager_squeezed() && flow_quota_over_level(f->owner))
		return true;
	return RTE_MIN(flow_idle(f, 0, now), flow_idle(f, 1, now)) > ager_patience(f, flow_timeout(f), over_share);
}

static bool ager_stale(const struct flow *f)
{
	return f->dir[0].gen != __atomic_load_n(&flow_zones[f->dir[0].key.zone].gen, __ATOMIC_RELAXED);
}

// --- One chunk. ---

// Returns a bitmap of the flows that need a closer look and prefetches their other cache lines. Direction 0's line
// suffices to decide: timeouts are at least a second.
static uint64_t ager_resting(const struct flow *first, uint64_t used, uint16_t now, bool all)
{
	uint64_t look = 0;
	unsigned i;

	for (i = 0; i < AHEAD; i++)
		rte_prefetch0(&first[i]);
	for (i = 0; i < FLOW_CHUNK; i++) {
		const struct flow *f = &first[i];

		rte_prefetch0(f + AHEAD);
		if (!(used >> i & 1) || (flow_idle(f, 0, now) <= 1 && !ager_stale(f) && !all))
			continue;
		rte_prefetch0(&f->dir[1]);
		rte_prefetch0(&f->state);
		look |= 1ull << i;
	}
	return look;
}

static bool ager_has_to_end(struct flow *f, uint16_t now)
{
	uint8_t state = __atomic_load_n(&f->state, __ATOMIC_ACQUIRE);

	if (state != FLOW_LIVE)
		return state == FLOW_ENDED;
	flow_forget_generation(f);
	return ager_over(f, now) || (ager_stale(f) && flow_decide_again(f, &(struct flow_again){0}) == -ESTALE);
}

static void ager_end_all(unsigned worker, struct flow *first, uint64_t ends)
{
	struct flow *f[FLOW_REMOVE / 2];
	unsigned i, n;

	while (ends) {
		for (n = 0; ends && n < RTE_DIM(f); ends &= ends - 1)
			f[n++] = &first[__builtin_ctzll(ends)];
		ager_end(f, n);
		for (i = 0; i < n; i++)
			if (__atomic_load_n(&f[i]->state, __ATOMIC_ACQUIRE) == FLOW_ENDED) // else it will be soon
				flow_bury(worker, f[i]);
	}
}

// Returns false if the time ran out; the next slice continues at w->slot.
static bool ager_walk_chunk(struct walker *w, unsigned worker, uint16_t now, uint64_t until)
{
	struct flow *first = flow_chunk_first(w->at);
	bool every = ager_squeezed() || w->round % EVERY_ROUNDS == 0, all = true;
	uint64_t look = ager_resting(first, flow_chunk_used(w->at) & ~0ull << w->slot, now, every), ends = 0;

	for (; look && all; look &= look - 1) {
		unsigned i = (unsigned)__builtin_ctzll(look);
		bool decided = ager_stale(&first[i]);

		if (ager_has_to_end(&first[i], now))
			ends |= 1ull << i;
		if (decided && i + 1 < FLOW_CHUNK && rte_rdtsc() > until) {
			w->slot = i + 1;
			all = false;
		}
	}
	ager_end_all(worker, first, ends);
	return all;
}

// --- One slice. ---

// Every chunk becomes due once a second. Chunks of all owners are counted.
static void ager_become_due(struct walker *w, uint64_t tsc, uint32_t chunks)
{
	uint64_t passed = RTE_MIN(tsc - w->until, flow_tsc_hz), n = passed * chunks / flow_tsc_hz;

	w->due = (uint32_t)RTE_MIN(w->due + n, (uint64_t)chunks);
	w->until = n == chunks ? tsc : w->until + n * flow_tsc_hz / chunks;
}

static void ager_walk(struct walker *w, unsigned worker, uint32_t chunks, uint64_t until)
{
	uint16_t now = (uint16_t)flow_now();
	unsigned n = 0;
	bool mine;

	for (; w->due > 0; w->due--) {
		if (w->at == 0 || w->at > chunks) {
			w->at = 1;
			w->slot = 0;
			w->round++;
		}
		mine = flow_chunk_mine(worker, w->at);
		if (mine && !ager_walk_chunk(w, worker, now, until))
			return;
		w->at++;
		w->slot = 0;
		if ((mine || ++n % SKIP == 0) && rte_rdtsc() > until) {
			w->due--;
			return;
		}
	}
}

static void ager_slice(struct walker *w, unsigned worker, uint64_t tsc)
{
	uint64_t start = rte_rdtsc(), us = flow_tsc_hz / 1000000, gap = us * SLICE_GAP_US;
	uint32_t chunks = flow_chunks_used();

	if (chunks > 0) {
		ager_become_due(w, tsc, chunks);
		flow_reclaim(worker);
		ager_walk(w, worker, chunks, start + us * SLICE_US);
		gap = w->due > 0 ? 0 : RTE_MIN(gap, flow_tsc_hz / chunks);
	}
	w->next = tsc + RTE_MAX((rte_rdtsc() - start) * SLICE_SHARE, gap);
}

void flow_age(unsigned worker, uint64_t tsc)
{
	struct walker *w = &walkers[worker];

	if (unlikely(tsc >= w->next))
		ager_slice(w, worker, tsc);
}

// The last slice left due chunks behind.
bool flow_age_unfinished(unsigned worker)
{
	return walkers[worker].due > 0;
}

// --- Master. ---

// Selects the forwarding workers in turn.
static struct worker *ager_heir(void)
{
	static uint32_t last;
	struct worker *w, *next = NULL;

	for (w = worker_next(NULL); w; w = worker_next(w))
		if (w->role == WORKER_FORWARDING && (next == NULL || (next->id <= last && w->id > last)))
			next = w;
	if (next)
		last = next->id;
	return next;
}

static void ager_share_out(void)
{
	unsigned id, n = flow_pool_workers();

	for (id = 0; id < n; id++) {
		struct worker *w = worker_get(id) ? NULL : ager_heir();

		if (w)
			flow_hand_over(id, w->id, HAND_OVER);
	}
}

void flow_poll(void)
{
	static unsigned turn;

	flow_changes_take_effect();
	if (flow_table == NULL)
		return; // no port has kept flows yet
	__atomic_store_n(&flow_used_percent, (uint32_t)((uint64_t)flow_count() * 100 / flow_capacity()),
			 __ATOMIC_RELAXED);
	if (++turn % WEIGH_EVERY == 0)
		flow_quota_weigh();
	ager_share_out();
	flow_grow_step(GROW_BUCKETS);
}
