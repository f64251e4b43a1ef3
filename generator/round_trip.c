// SPDX-License-Identifier: Apache-2.0
// Measures the round trip of a cache line between gen-poll and a thread on the router's CPU.
#include "round_trip.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_pause.h>

#include "base/thread.h"
#include "poll.h"

#define ROUNDS 1000
#define ROUNDS_MIN 20 // fewer give no median
#define LIMIT_US 2000

static struct {
	pthread_t thread;
	unsigned cpu;
	int started; // 1, or -errno
	int wake;
	bool running, quit;
	uint64_t line __rte_cache_aligned;    // odd: the thread must answer
	uint64_t probing __rte_cache_aligned; // number of the probe that waits for answers, 0 = none
	uint64_t answering;                   // number of the probe that is being answered
} rt;

static uint64_t round_trip_limit(void)
{
	return rte_rdtsc() + rte_get_tsc_hz() / 1000000 * LIMIT_US;
}

static void round_trip_answer(void)
{
	uint64_t probe = __atomic_load_n(&rt.probing, __ATOMIC_ACQUIRE), end = round_trip_limit(), v;

	if (probe == 0)
		return;
	__atomic_store_n(&rt.answering, probe, __ATOMIC_RELEASE);
	while (__atomic_load_n(&rt.probing, __ATOMIC_RELAXED) == probe && rte_rdtsc() < end) {
		v = __atomic_load_n(&rt.line, __ATOMIC_ACQUIRE);
		if (v & 1)
			__atomic_store_n(&rt.line, v + 1, __ATOMIC_RELEASE);
	}
}

// The thread preempts a router that polls on the CPU, for which it needs a real-time class; between probes it sleeps.
static void *round_trip_main(void *arg)
{
	struct sched_param param = {.sched_priority = 1};
	int ret = thread_pin(pthread_self(), rt.cpu);
	uint64_t n;

	pthread_setname_np(pthread_self(), "gen-round-trip");
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
	__atomic_store_n(&rt.started, ret < 0 ? ret : 1, __ATOMIC_RELEASE);
	while (ret == 0 && read(rt.wake, &n, sizeof(n)) == sizeof(n) && !__atomic_load_n(&rt.quit, __ATOMIC_ACQUIRE))
		round_trip_answer();
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	return (*(const uint32_t *)a > *(const uint32_t *)b) - (*(const uint32_t *)a < *(const uint32_t *)b);
}

// Returns the number of completed rounds.
static unsigned round_trip_bounce(uint32_t *took, uint64_t end)
{
	uint64_t begin = rte_rdtsc(), now, next = rt.line + 1;
	unsigned i;

	for (i = 0; i < ROUNDS; i++, next += 2) {
		__atomic_store_n(&rt.line, next, __ATOMIC_RELEASE);
		while (__atomic_load_n(&rt.line, __ATOMIC_ACQUIRE) == next)
			if (rte_rdtsc() > end)
				return i;
		now = rte_rdtsc();
		took[i] = (uint32_t)(now - begin);
		begin = now;
	}
	return i;
}

uint64_t round_trip_probe(void)
{
	static uint64_t probe;
	uint32_t took[ROUNDS];
	uint64_t end = round_trip_limit(), one = 1;
	unsigned n = 0;

	if (!rt.running)
		return 0;
	rt.line += rt.line & 1; // after a round that timed out
	__atomic_store_n(&rt.probing, ++probe, __ATOMIC_RELEASE);
	if (write(rt.wake, &one, sizeof(one)) < 0)
		return 0;
	while (__atomic_load_n(&rt.answering, __ATOMIC_ACQUIRE) != probe && rte_rdtsc() < end)
		rte_pause();
	if (__atomic_load_n(&rt.answering, __ATOMIC_ACQUIRE) == probe)
		n = round_trip_bounce(took, end);
	__atomic_store_n(&rt.probing, 0, __ATOMIC_RELEASE);
	if (n < ROUNDS_MIN)
		return 0;
	qsort(took, n, sizeof(*took), by_value);
	return took[n / 2];
}

int round_trip_start(unsigned cpu, struct error *err)
{
	char text[16];
	int ret;

	rt.cpu = cpu;
	rt.started = 0;
	rt.quit = false;
	rt.wake = eventfd(0, EFD_CLOEXEC);
	ret = rt.wake < 0 ? -errno : -pthread_create(&rt.thread, NULL, round_trip_main, NULL);
	if (ret < 0)
		return error_set(err, -ret, NULL, NULL, NULL, "no thread for the round trip: %s", strerror(-ret));
	while (__atomic_load_n(&rt.started, __ATOMIC_ACQUIRE) == 0)
		usleep(100);
	rt.running = rt.started == 1;
	if (rt.running)
		return 0;
	pthread_join(rt.thread, NULL);
	close(rt.wake);
	snprintf(text, sizeof(text), "%u", cpu);
	return error_set(err, -rt.started, "--round-trip-cpu", text, "a CPU that this process may use",
			 "cannot run there: %s", strerror(-rt.started));
}

void round_trip_stop(void)
{
	uint64_t one = 1;

	if (!rt.running)
		return;
	__atomic_store_n(&rt.quit, true, __ATOMIC_RELEASE);
	if (write(rt.wake, &one, sizeof(one)) == sizeof(one))
		pthread_join(rt.thread, NULL);
	close(rt.wake);
	rt.running = false;
}
