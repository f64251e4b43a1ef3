// SPDX-License-Identifier: Apache-2.0
// Idle workers: how many system calls each policy makes, and how long a message waits.
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_cycles.h>
#include <sys/eventfd.h>

#include "base/doorbell.h"
#include "base/rcu.h"
#include "base/system_calls.h"
#include "base/wake_fd.h"
#include "testing/router_fixture.h"
#include "worker/health.h"
#include "worker/orders.h"
#include "worker/recorder.h"
#include "worker/wait.h"
#include "worker/spread.h"
#include "worker/worker.h"

static struct error err;
static unsigned cpu;

static int setup(void **state)
{
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	for (unsigned i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			cpu = i;
	return router_setup(state);
}

static int reset(void **state)
{
	worker_del_all();
	router_arm = NULL;
	router_disarm = NULL;
	router_rx = NULL;
	for (struct port *p = port_next(NULL); p; p = port_next(p))
		for (unsigned i = 0; i < p->n_queues; i++)
			p->queues[i].rx_worker = WORKER_NONE;
	rcu_poll();
	return 0;
}

static struct worker *add(enum idle_policy idle)
{
	struct worker *w = worker_add(0, &(struct worker_config){.cpu = cpu, .idle = idle}, &err);

	if (w == NULL)
		fail_msg("%s", err.message);
	return w;
}

struct rate {
	uint64_t loops, calls, switches;
};

static struct rate look(const struct worker *w)
{
	struct worker_health h = {};

	assert_int_equal(health_read(&h, "", w->tid), 0);
	return (struct rate){__atomic_load_n(&w->loops, __ATOMIC_RELAXED),
			     __atomic_load_n(w->system_calls, __ATOMIC_RELAXED), h.voluntary};
}

static struct rate observe(const struct worker *w, unsigned ms)
{
	struct rate a = look(w), b;
	unsigned i;

	for (i = 0; i < 5000 && look(w).loops == a.loops; i++) // until it runs on its CPU
		usleep(1000);
	a = look(w);
	usleep(ms * 1000);
	b = look(w);
	return (struct rate){b.loops - a.loops, b.calls - a.calls, b.switches - a.switches};
}

static void spinning_calls_nothing(void **state)
{
	struct rate r = observe(add(IDLE_SPIN), 100);

	assert_true(r.loops > 1000);
	assert_int_equal(r.calls, 0);
	assert_int_equal(r.switches, 0); // the kernel agrees
	reset(NULL);
	r = observe(add(IDLE_PAUSE), 100);
	assert_true(r.loops > 1000);
	assert_int_equal(r.calls, 0);
	assert_int_equal(r.switches, 0);
}

static void yielding_calls_each_time(void **state)
{
	struct rate r = observe(add(IDLE_YIELD), 100);

	assert_true(r.loops > 0);
	assert_in_range(r.calls, r.loops - 2, r.loops + 2);
}

// Naps grow to the bound, which can be set while the worker runs.
static void sleeping_adapts(void **state)
{
	struct worker *w = add(IDLE_SLEEP);
	struct rate r = observe(w, 200);

	assert_in_range(r.calls, 1, 200000 / 50); // at least 50 us each
	assert_in_range(r.switches, r.calls / 2, r.calls * 2 + 10);
	worker_set_sleep_max(w, 10000);
	usleep(50000);
	r = observe(w, 200);
	assert_in_range(r.calls, 1, 25); // 20 of 10 ms
	worker_set_sleep_max(w, 0);
	assert_int_equal(w->idle_state.sleep_max_us, SLEEP_MAX_US);
}

static void count_free(void *arg)
{
	++*(unsigned *)arg;
}

// During long sleeps grace periods do not wait for it.
static void sleeper_is_not_waited_for(void **state)
{
	struct worker *w = add(IDLE_SLEEP);
	unsigned done = 0, i;
	uint64_t start;

	worker_set_sleep_max(w, LIMIT_WORKER_SLEEP_MAX_US_MAX);
	usleep(400000); // its naps have grown
	for (i = 0; i < 5; i++) {
		start = rte_rdtsc();
		rcu_defer(count_free, &done);
		while (done == i)
			rcu_poll();
		if (rte_rdtsc() - start < rte_get_tsc_hz() / 50)
			return; // less than 20 ms, of the 100 that it sleeps
		usleep(10000);
	}
	fail_msg("the master waited for a sleeping worker");
}

static void nothing(void *arg)
{
}

static void hang(struct worker *w)
{
	usleep(300000);
}

// A worker that hangs is behind by the time that it hangs.
static void behind(void **state)
{
	struct worker *w = add(IDLE_YIELD);
	uint64_t ms = rte_get_tsc_hz() / 1000, most = 0;
	unsigned i;

	observe(w, 10);
	worker_set_fault(w, hang);
	for (i = 0; i < 100; i++) {
		rcu_defer(nothing, NULL);
		usleep(5000);
		most = RTE_MAX(most, rcu_behind(w->id));
	}
	assert_in_range(most, 150 * ms, 3000 * ms);
	worker_health_poll();
	worker_set_fault(w, NULL);
	for (i = 0; i < 5000 && (rcu_poll(), rcu_pending() > 0); i++)
		usleep(1000);
	assert_int_equal(rcu_behind(w->id), 0);
}

// --- Waiting for interrupts. ---

// A device whose only queue is the first one of RED0. It holds at most one packet, which
// is built when it is polled.
static struct {
	uint32_t waiting, taken; // packets
	bool armed;
	int event, wake;
	uint64_t came, slowest; // TSC when the last packet came; the longest time that one waited
	unsigned armings, disarmings;
} device;

static uint16_t device_rx(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	uint64_t waited;

	if (q->port->id != RED0 || q->index != 0 || __atomic_load_n(&device.waiting, __ATOMIC_ACQUIRE) == 0)
		return 0;
	waited = rte_rdtsc() - __atomic_load_n(&device.came, __ATOMIC_RELAXED);
	device.slowest = RTE_MAX(device.slowest, waited);
	__atomic_store_n(&device.waiting, 0, __ATOMIC_RELAXED);
	pkts[0] = router_frame(RED0, GATEWAY, "02:00:00:00:00:03",
			       &(struct packet){.src = "10.0.0.2", .dst = "10.0.0.3"});
	__atomic_fetch_add(&device.taken, 1, __ATOMIC_RELEASE);
	return 1;
}

static int device_arm(struct port_queue *q)
{
	if (q->port->id != RED0 || q->index != 0)
		return -ENOTCONN;
	device.armings++;
	__atomic_store_n(&device.armed, true, __ATOMIC_RELAXED);
	return device.wake;
}

static int device_disarm(struct port_queue *q, bool signalled)
{
	device.disarmings++;
	__atomic_store_n(&device.armed, false, __ATOMIC_RELAXED);
	return signalled ? wake_fd_rest(device.wake) : 0;
}

static void device_send(void)
{
	__atomic_store_n(&device.came, rte_rdtsc(), __ATOMIC_RELAXED);
	__atomic_store_n(&device.waiting, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&device.armed, __ATOMIC_SEQ_CST))
		eventfd_write(device.event, 1);
}

static void device_plug(void)
{
	if (device.event == 0) {
		device.event = eventfd(0, EFD_CLOEXEC);
		device.wake = wake_fd_new();
		assert_int_equal(wake_fd_watch(device.wake, device.event, true), 0);
	}
	device.taken = device.waiting = device.armings = device.disarmings = 0;
	device.slowest = 0;
	router_rx = device_rx;
	router_arm = device_arm;
	router_disarm = device_disarm;
}

static uint16_t tx_nothing(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	rte_pktmbuf_free_bulk(pkts, n);
	return n;
}

static bool until(bool (*done)(const void *arg), const void *arg)
{
	unsigned i;

	for (i = 0; i < 50000 && !done(arg); i++)
		usleep(100);
	return done(arg);
}

static bool is_waiting(const void *w)
{
	return doorbell_waits(((const struct worker *)w)->id) &&
	       __atomic_load_n(&((const struct worker *)w)->wait->waits, __ATOMIC_RELAXED) > 0;
}

static bool is_taken(const void *n)
{
	return __atomic_load_n(&device.taken, __ATOMIC_ACQUIRE) >= *(const uint32_t *)n;
}

// It wakes ten times a second for timed work; all of that is idle time, and makes no long loop.
static void waiting_costs_nothing(void **state)
{
	struct long_loop l[LONGEST_LOOPS];
	struct worker *w;
	struct rate r;
	unsigned i, n;

	device_plug();
	w = add(IDLE_INTERRUPT);
	assert_true(until(is_waiting, w));
	recorder_reset(w->recorder);
	recorder_set_threshold(w->recorder, WAIT_MAX_MS * 500);
	r = observe(w, 1000);
	assert_in_range(r.loops, 2, 60);
	assert_in_range(r.calls, 5, 45);
	assert_in_range(r.switches, 5, 45);
	assert_true(w->idle_cycles > w->busy_cycles + rte_get_tsc_hz() / 2);
	n = recorder_longest(w->recorder, l);
	for (i = 0; i < n; i++)
		assert_true(l[i].taken || l[i].stages[STAGE_GRAPH] < l[i].cycles); // the machine was busy
	assert_true(n <= 1);
	assert_int_equal(health_behind(w), 0);
}

// Packets arrive after pauses that are shorter and longer than the time in which the worker arms its queues, at every
// moment of it.
static void no_wakeup_is_lost(void **state)
{
	uint64_t timeouts;
	struct worker *w;
	unsigned late = 0;
	uint32_t i;

	device_plug();
	router_tx = tx_nothing;
	w = add(IDLE_INTERRUPT);
	assert_true(until(is_waiting, w));
	for (i = 1; i <= 3000; i++) {
		timeouts = w->wait->timeouts;
		device.slowest = 0;
		device_send();
		assert_true(until(is_taken, &i));
		late += device.slowest > rte_get_tsc_hz() / 1000 * (WAIT_MAX_MS - 10) && w->wait->timeouts != timeouts;
		usleep(i % 100 < 95 ? i % 37 * 3 : 1000);
	}
	assert_int_equal(late, 0);
	assert_true(w->wait->waits > 100);
	worker_set_idle(w, IDLE_PAUSE, &err);
	usleep(20000);
	assert_false(device.armed);
	assert_int_equal(device.armings, device.disarmings);
	router_tx = NULL;
}

static uint64_t loops_of(const struct worker *w)
{
	return __atomic_load_n(&w->loops, __ATOMIC_RELAXED);
}

// Milliseconds from the end of a change to the loop that sees it: the best of five, since other threads use this CPU,
// too.
static double reaction(struct worker *w, void (*change)(struct worker *w))
{
	double best = 1e9;
	unsigned i;

	for (i = 0; i < 5; i++) {
		uint64_t start, loops;

		assert_true(until(is_waiting, w));
		usleep(2000);
		loops = loops_of(w);
		change(w);
		start = rte_rdtsc();
		while (loops_of(w) == loops && rte_rdtsc() - start < rte_get_tsc_hz())
			usleep(20);
		best = RTE_MIN(best, (double)(rte_rdtsc() - start) * 1000 / (double)rte_get_tsc_hz());
	}
	return best;
}

static void change_tables(struct worker *w)
{
	struct port_config c = router_config(RED0);

	router_set(RED0, &c);
}

static void change_orders(struct worker *w)
{
	worker_measure(w);
}

static void change_policy(struct worker *w)
{
	assert_int_equal(worker_set_idle(w, IDLE_INTERRUPT, &err), 0);
}

static void inject(struct worker *w)
{
	worker_inject(router_frame(RED0, GATEWAY, "02:00:00:00:00:03",
				   &(struct packet){.src = "10.0.0.2", .dst = "10.0.0.3"}),
		      INJECT_INPUT);
}

static void changes_wake(void **state)
{
	struct worker *w;

	device_plug();
	router_tx = tx_nothing;
	w = add(IDLE_INTERRUPT);
	assert_true(reaction(w, change_tables) < 20);
	assert_true(reaction(w, change_orders) < 20);
	assert_true(reaction(w, change_policy) < 20);
	assert_true(reaction(w, inject) < 20);
	router_tx = NULL;
}

static int arm_never(struct port_queue *q)
{
	return q->port->id == RED0 ? -ENOTSUP : -ENOTCONN;
}

// A queue that refuses to arm is polled by a timer, and the worker reports it.
static void unwilling_queue_is_polled(void **state)
{
	struct worker *w;
	uint32_t one = 1;
	uint64_t waits;

	device_plug();
	router_tx = tx_nothing;
	router_arm = arm_never;
	w = add(IDLE_INTERRUPT);
	observe(w, 20);
	assert_int_equal(w->wait->timer_queue >> 16, RED0);
	waits = w->wait->waits; // waits before it had the queue
	device_send();
	assert_true(until(is_taken, &one));
	assert_int_equal(w->wait->waits, waits);
	router_tx = NULL;
}

static void refused_without_interrupts(void **state)
{
	struct port_config c = router_config(RED0);
	struct worker *w = add(IDLE_YIELD), *other;

	assert_int_equal(worker_set_idle(w, IDLE_INTERRUPT, &err), -EINVAL);
	assert_string_equal(err.field, "worker.idle");
	assert_non_null(strstr(err.message, "gives no interrupts"));
	assert_int_equal(w->idle, IDLE_YIELD);
	// No request gives such a queue to a worker that waits for interrupts.
	other = worker_add(1, &(struct worker_config){.cpu = cpu, .idle = IDLE_INTERRUPT}, &err);
	assert_non_null(other);
	assert_int_equal(other->rx->n, 0);
	assert_int_equal(worker_assign(&port_get(RED0)->queues[0], other, &err), -EINVAL);
	if (strstr(err.message, "waits for interrupts, which queue 0 of port") == NULL)
		fail_msg("%s", err.message);
	spread_config_edit(&c)->polled_by[0] = 2;
	assert_int_equal(port_set(port_get(RED0), &c, &err), -EINVAL);
	assert_int_equal(spread_config(&port_get(RED0)->cfg)->polled_by[0], 0);
	assert_int_equal(worker_del(0, &err), -EBUSY);
	assert_non_null(strstr(err.message, "all others wait for them"));
	assert_int_equal(port_get(RED0)->queues[0].rx_worker, 0);
	// A third worker can take the queues.
	assert_non_null(worker_add(2, &(struct worker_config){.cpu = cpu, .idle = IDLE_YIELD}, &err));
	assert_int_equal(worker_del(0, &err), 0);
	assert_int_equal(port_get(RED0)->queues[0].rx_worker, 2);
}

static uint32_t depth_of(struct port_queue *q)
{
	return 7 + q->index;
}

// The worker measures them, since only the poller may read the queue.
static void depths(void **state)
{
	struct port *p = port_get(RED0);
	struct port_ops ops = *p->ops, *had = (struct port_ops *)p->ops;
	struct worker *w;

	ops.depth = depth_of;
	p->ops = &ops;
	w = add(IDLE_YIELD);
	worker_measure(w);
	observe(w, 20);
	assert_int_equal(w->orders, 0);
	assert_int_equal(p->queues[1].depth, 8);
	assert_int_equal(port_get(RED1)->queues[0].depth, DEPTH_UNKNOWN);
	worker_del_all();
	p->ops = had;
}

#define T(name) cmocka_unit_test_setup_teardown(name, reset, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(spinning_calls_nothing),
		T(yielding_calls_each_time),
		T(sleeping_adapts),
		T(sleeper_is_not_waited_for),
		T(behind),
		T(depths),
		T(waiting_costs_nothing),
		T(no_wakeup_is_lost),
		T(changes_wake),
		T(unwilling_queue_is_polled),
		T(refused_without_interrupts),
	};

	return cmocka_run_group_tests(tests, setup, router_teardown);
}
