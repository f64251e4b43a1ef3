// SPDX-License-Identifier: Apache-2.0
#include "base/rcu.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_malloc.h>
#include <rte_rcu_qsbr.h>

#include "base/sanitizers.h"
#ifdef WITH_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#define NAP_NS 20000
#define PER_POLL 16384 // objects freed by one rcu_poll(): about 3 ms of the master's time

struct deferred {
	STAILQ_ENTRY(deferred) next;
	uint64_t token, since; // TSC
	void (*fn)(void *);
	void *arg;
};

static struct rte_rcu_qsbr *qsbr;
static STAILQ_HEAD(, deferred) queue = STAILQ_HEAD_INITIALIZER(queue);
static unsigned pending;

// A thread may learn from another one that a grace period is over (acked_token). The thread sanitizer does not see that
// order.
static void rcu_readers_done(void)
{
#ifdef WITH_TSAN
	__tsan_release(qsbr);
#endif
}

static void rcu_readers_gone(void)
{
#ifdef WITH_TSAN
	__tsan_acquire(qsbr);
#endif
}

int rcu_init(void)
{
	size_t size = rte_rcu_qsbr_get_memsize(RCU_MAX_READERS);

	qsbr = rte_zmalloc("rcu", size, RTE_CACHE_LINE_SIZE);
	if (qsbr == NULL)
		return -ENOMEM;
	return rte_rcu_qsbr_init(qsbr, RCU_MAX_READERS);
}

void rcu_fini(void)
{
	while (pending > 0) {
		rcu_synchronize();
		rcu_poll();
	}
	rte_free(qsbr);
	qsbr = NULL;
}

void rcu_reader_online(unsigned reader)
{
	rte_rcu_qsbr_thread_register(qsbr, reader);
	rte_rcu_qsbr_thread_online(qsbr, reader);
}

void rcu_reader_offline(unsigned reader)
{
	rcu_readers_done();
	rte_rcu_qsbr_thread_offline(qsbr, reader);
	rte_rcu_qsbr_thread_unregister(qsbr, reader);
}

void rcu_quiescent(unsigned reader)
{
	rcu_readers_done();
	rte_rcu_qsbr_quiescent(qsbr, reader);
}

void rcu_reader_rest(unsigned reader)
{
	rcu_readers_done();
	rte_rcu_qsbr_thread_offline(qsbr, reader);
}

void rcu_reader_resume(unsigned reader)
{
	rte_rcu_qsbr_thread_online(qsbr, reader);
}

uint64_t rcu_token(void)
{
	return rte_rcu_qsbr_start(qsbr);
}

bool rcu_passed(uint64_t token)
{
	bool passed = rte_rcu_qsbr_check(qsbr, token, false) == 1;

	if (passed)
		rcu_readers_gone();
	return passed;
}

static void rcu_run_first(void)
{
	struct deferred *d = STAILQ_FIRST(&queue);

	STAILQ_REMOVE_HEAD(&queue, next);
	pending--;
	d->fn(d->arg);
	free(d);
}

void rcu_defer(void (*fn)(void *), void *arg)
{
	struct deferred *d = malloc(sizeof(*d));

	if (d == NULL) { // out of memory: waiting is slow, but correct
		unsigned n = pending;

		rcu_synchronize();
		while (n-- > 0 && !STAILQ_EMPTY(&queue)) // earlier calls may use what this one frees
			rcu_run_first();
		fn(arg);
		return;
	}
	d->fn = fn;
	d->arg = arg;
	d->since = rte_rdtsc();
	d->token = rte_rcu_qsbr_start(qsbr);
	STAILQ_INSERT_TAIL(&queue, d, next);
	pending++;
}

void rcu_poll(void)
{
	struct deferred *d;
	unsigned n = 0;

	while (n++ < PER_POLL && (d = STAILQ_FIRST(&queue)) != NULL && rcu_passed(d->token))
		rcu_run_first();
}

unsigned rcu_pending(void)
{
	return pending;
}

uint64_t rcu_behind(unsigned reader)
{
	uint64_t passed = __atomic_load_n(&qsbr->qsbr_cnt[reader].cnt, __ATOMIC_ACQUIRE);
	const struct deferred *d;

	if (passed == __RTE_QSBR_CNT_THR_OFFLINE)
		return 0;
	STAILQ_FOREACH (d, &queue, next)
		if (passed < d->token)
			return rte_rdtsc() - d->since;
	return 0;
}

bool rcu_wait(unsigned ms)
{
	static const struct timespec nap = {.tv_nsec = NAP_NS};
	uint64_t token = rte_rcu_qsbr_start(qsbr), end = rte_rdtsc() + rte_get_tsc_hz() / 1000 * ms;

	while (!rcu_passed(token)) {
		if (rte_rdtsc() > end)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

void rcu_synchronize(void)
{
	rte_rcu_qsbr_check(qsbr, rte_rcu_qsbr_start(qsbr), true);
	rcu_readers_gone();
}
