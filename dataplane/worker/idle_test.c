// SPDX-License-Identifier: Apache-2.0
// Idle workers: how many system calls each policy makes, and what ends a wait. A wait by itself would last for an hour
// here, so each one that ends was ended.
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_cycles.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/doorbell.h"
#include "base/rcu.h"
#include "base/system_calls.h"
#include "base/wake_fd.h"
#include "testing/router_fixture.h"
#include "testing/wait_until.h"
#include "worker/health.h"
#include "worker/orders.h"
#include "worker/recorder.h"
#include "worker/wait.h"
#include "worker/spread.h"
#include "worker/worker.h"

#define HOUR_MS 3600000

static struct error err;
static unsigned cpu;

static int setup(void **state)
{
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	for (unsigned i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			cpu = i;
	worker_patience = PATIENCE_MS / 20;
	wait_max_ms = HOUR_MS;
	return router_setup(state);
}

static int reset(void **state)
{
	worker_del_all();
	clock_stopped = 0;
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

struct sample {
	uint64_t loops, calls, switches, loops_after; // loops_after: read after the calls
};

struct rate {
	uint64_t loops, switches;
	uint64_t calls, fewest, most; // calls, if each loop makes one: the worker runs on while its counters are read
};

static uint64_t loops_of(const struct worker *w)
{
	return __atomic_load_n(&w->loops, __ATOMIC_ACQUIRE);
}

static struct sample look(const struct worker *w)
{
	struct worker_health h = {};
	struct sample s = {.loops = loops_of(w)};

	s.calls = __atomic_load_n(w->system_calls, __ATOMIC_ACQUIRE);
	s.loops_after = loops_of(w);
	assert_int_equal(health_read(&h, "", w->tid), 0);
	s.switches = h.voluntary;
	return s;
}

// What happens in this number of loops or more.
static struct rate observe(const struct worker *w, uint64_t loops)
{
	uint64_t began = loops_of(w);
	struct sample a, b;

	assert_true(wait_until(loops_of(w) > began)); // it runs on its CPU
	a = look(w);
	assert_true(wait_until(loops_of(w) >= a.loops_after + loops));
	b = look(w);
	return (struct rate){.loops = b.loops - a.loops,
			     .switches = b.switches - a.switches,
			     .calls = b.calls - a.calls,
			     .fewest = b.loops - a.loops_after - 1,
			     .most = b.loops_after - a.loops + 1};
}

// The kernel may switch for a reason of its own, but not in each thousand loops.
static bool calls_nothing(const struct worker *w)
{
	struct rate r = observe(w, 1000);

	assert_int_equal(r.calls, 0);
	return r.switches == 0;
}

static void spinning_calls_nothing(void **state)
{
	struct worker *w = add(IDLE_SPIN);

	assert_true(wait_until(calls_nothing(w)));
	reset(NULL);
	w = add(IDLE_PAUSE);
	assert_true(wait_until(calls_nothing(w)));
}

static bool calls_each_time(const struct worker *w)
{
	struct rate r = observe(w, 300);

	assert_in_range(r.calls, r.fewest, r.most);
	return r.most - r.fewest < 100; // else the worker ran on for long while it was looked at
}

static void yielding_calls_each_time(void **state)
{
	struct worker *w = add(IDLE_YIELD);

	assert_true(wait_until(calls_each_time(w)));
}

static uint32_t nap_of(const struct worker *w)
{
	return __atomic_load_n(&w->idle_state.nap_ns, __ATOMIC_RELAXED);
}

// Naps grow to the bound, which can be set while the worker runs. The next nap would be twice as long as the last one.
static void sleeping_adapts(void **state)
{
	struct worker *w = add(IDLE_SLEEP);
	uint64_t start, ms;
	struct rate r;

	assert_true(wait_until(nap_of(w) == 2 * SLEEP_MAX_US * 1000));
	assert_true(wait_until(calls_each_time(w)));
	worker_set_sleep_max(w, 10000);
	assert_true(wait_until(nap_of(w) == 2 * 10000 * 1000));
	start = rte_rdtsc();
	r = observe(w, 10);
	ms = (rte_rdtsc() - start) * 1000 / rte_get_tsc_hz();
	assert_in_range(r.calls, r.fewest, r.most);
	assert_in_range(r.calls, 5, ms / 9 + 1); // naps of 10 ms, by a clock that may differ from the kernel's
	worker_set_sleep_max(w, 0);
	assert_int_equal(w->idle_state.sleep_max_us, SLEEP_MAX_US);
}

static void count_free(void *arg)
{
	++*(unsigned *)arg;
}

// True: a grace period passed in the middle of a worker's loop.
static bool passes_during_a_loop(const struct worker *w)
{
	uint64_t loop = __atomic_load_n(&w->recorder->loops, __ATOMIC_ACQUIRE);
	unsigned done = 0;

	rcu_defer(count_free, &done);
	assert_true(wait_until((rcu_poll(), done == 1)));
	return __atomic_load_n(&w->recorder->loops, __ATOMIC_ACQUIRE) == loop;
}

// During long sleeps grace periods do not wait for it.
static void sleeper_is_not_waited_for(void **state)
{
	struct worker *w = add(IDLE_SLEEP);

	worker_set_sleep_max(w, LIMIT_WORKER_SLEEP_MAX_US_MAX);
	assert_true(wait_until(nap_of(w) == 2 * LIMIT_WORKER_SLEEP_MAX_US_MAX * 1000)); // its naps have grown
	assert_true(wait_until(passes_during_a_loop(w)));
}

static void nothing(void *arg)
{
}

static bool hung, released;

static void hang(struct worker *w)
{
	__atomic_store_n(&hung, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&released, __ATOMIC_ACQUIRE))
		usleep(1000);
}

// A worker that hangs is behind by the time that it hangs.
static void behind(void **state)
{
	struct worker *w = add(IDLE_YIELD);
	uint64_t before, after, read;

	observe(w, 10);
	worker_set_fault(w, hang);
	assert_true(wait_until(__atomic_load_n(&hung, __ATOMIC_ACQUIRE)));
	before = rte_rdtsc();
	rcu_defer(nothing, NULL);
	after = rte_rdtsc();
	usleep(20000);
	rcu_poll();
	read = rte_rdtsc();
	assert_in_range(rcu_behind(w->id), read - after, rte_rdtsc() - before);
	worker_health_poll();
	worker_set_fault(w, NULL);
	__atomic_store_n(&released, true, __ATOMIC_RELEASE);
	assert_true(wait_until((rcu_poll(), rcu_pending() == 0)));
	assert_int_equal(rcu_behind(w->id), 0);
}

// --- Waiting for interrupts. ---

// A device whose only queue is the first one of RED0. It holds at most one packet, which
// is built when it is polled.
static struct {
	uint32_t waiting, taken; // packets
	bool armed;
	int event, wake;
	uint64_t lasts; // by how much the stopped clock advances in each wait
	unsigned armings, disarmings;
} device;

static uint16_t device_rx(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	if (q->port->id != RED0 || q->index != 0 || __atomic_load_n(&device.waiting, __ATOMIC_ACQUIRE) == 0)
		return 0;
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
	__atomic_store_n(&device.armings, device.armings + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&device.armed, true, __ATOMIC_RELAXED);
	return device.wake;
}

static int device_disarm(struct port_queue *q, bool signalled)
{
	__atomic_store_n(&device.disarmings, device.disarmings + 1, __ATOMIC_RELEASE);
	if (device.lasts > 0)
		clock_stopped += device.lasts;
	__atomic_store_n(&device.armed, false, __ATOMIC_RELAXED);
	return signalled ? wake_fd_rest(device.wake) : 0;
}

static void device_send(void)
{
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
	device.lasts = 0;
	router_rx = device_rx;
	router_arm = device_arm;
	router_disarm = device_disarm;
}

static uint16_t tx_nothing(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	rte_pktmbuf_free_bulk(pkts, n);
	return n;
}

// It listens: it waits, or does so after one more loop.
static bool is_waiting(const struct worker *w)
{
	return doorbell_waits(w->id);
}

static bool is_taken(uint32_t n)
{
	return __atomic_load_n(&device.taken, __ATOMIC_ACQUIRE) >= n;
}

// A worker without a thread, which polls the queue of the device: the test makes its steps.
static struct worker *thread_less(enum idle_policy idle)
{
	static struct recorder recorder;
	static struct wait wait;
	static struct worker w;

	free(w.rx);
	memset(&w, 0, sizeof(w));
	memset(&wait, 0, sizeof(wait));
	memset(&recorder, 0, sizeof(recorder));
	recorder.armed = &recorder.unarmed;
	recorder.unarmed = recorder.mark = 1;
	w.idle = idle;
	w.wait = &wait;
	w.recorder = &recorder;
	w.idle_state.sleep_max_us = SLEEP_MAX_US;
	w.rx = calloc(1, sizeof(*w.rx) + sizeof(w.rx->q[0]));
	w.rx->n = 1;
	w.rx->q[0] = &port_get(RED0)->queues[0];
	w.rx->q[0]->rx_worker = w.rx->q[0]->owner = 0;
	assert_int_equal(doorbell_open(0), 0);
	rcu_reader_online(0);
	clock_stopped = rte_get_tsc_hz();
	return &w;
}

static void thread_less_ends(struct worker *w)
{
	worker_idle_over(w);
	w->rx->q[0]->rx_worker = w->rx->q[0]->owner = WORKER_NONE;
	rcu_reader_offline(0);
}

static void pass_us(uint64_t us)
{
	clock_stopped += us * (rte_get_tsc_hz() / 1000000);
}

// The first nap comes after 20 us without packets; from there on each is twice as long as the last, up to the bound.
static void naps_grow(void **state)
{
	static const unsigned next_us[] = {2, 4, 8, 16, 32, 64, 2 * SLEEP_MAX_US, 2 * SLEEP_MAX_US};
	struct worker *w = thread_less(IDLE_SLEEP);
	uint64_t calls = system_calls;
	unsigned round, i;

	for (round = 0; round < 2; round++) {
		worker_idle(w);
		pass_us(19);
		worker_idle(w);
		assert_int_equal(system_calls, calls);
		pass_us(1);
		for (i = 0; i < RTE_DIM(next_us); i++) {
			worker_idle(w);
			assert_int_equal(system_calls, ++calls);
			assert_int_equal(w->idle_state.nap_ns, next_us[i] * 1000);
		}
		worker_idle_over(w); // there were packets
	}
	thread_less_ends(w);
}

// Without packets for 20 us it arms its queues, and it waits after one more empty walk. What wakes it before that makes
// the wait end at once. The time of a wait is idle time and no part of a loop.
static void arms_and_waits(void **state)
{
	uint64_t ms = rte_get_tsc_hz() / 1000, begin, calls;
	struct worker *w;
	unsigned i;

	device_plug();
	w = thread_less(IDLE_INTERRUPT);
	begin = w->recorder->trail.begin = clock_stopped;
	device.lasts = 70 * ms;
	worker_idle(w);
	pass_us(19);
	worker_idle(w);
	assert_int_equal(device.armings, 0);
	pass_us(1);
	for (i = 1; i <= 2; i++) {
		worker_idle(w);
		assert_int_equal(device.armings, i);
		assert_int_equal(device.disarmings, i - 1);
		assert_true(w->idle_state.armed && doorbell_waits(0));
		if (i == 1)
			device_send(); // its interrupt
		else
			doorbell_ring(0);
		calls = system_calls;
		worker_idle(w);
		assert_false(w->idle_state.armed || doorbell_waits(0));
		assert_int_equal(device.disarmings, i);
		assert_int_equal(w->wait->waits, i);
		assert_int_equal(w->idle_cycles, i * 70 * ms);
		assert_int_equal(w->recorder->trail.begin, begin + i * 70 * ms);
		assert_in_range(system_calls - calls, 1, 3); // the wait, and what silences its waker
	}
	assert_int_equal(w->wait->timeouts, 0);
	worker_idle(w);
	worker_idle_over(w); // the last walk brought packets
	assert_false(w->idle_state.armed);
	assert_int_equal(device.disarmings, 3);
	assert_int_equal(w->wait->waits, 2);
	thread_less_ends(w);
}

static uint64_t waits_of(const struct worker *w)
{
	return __atomic_load_n(&w->wait->waits, __ATOMIC_ACQUIRE);
}

// At most it began to wait.
static bool rests(const struct worker *w)
{
	struct sample a = look(w), b;

	usleep(50000);
	b = look(w);
	return is_waiting(w) && b.loops_after - a.loops <= 1 && b.calls - a.calls <= 1;
}

// It makes no loop and no system call. When timed work wakes it there are two loops, and one call.
static void waiting_costs_nothing(void **state)
{
	uint64_t waits, idle;
	struct worker *w;
	struct sample a, b;

	device_plug();
	w = add(IDLE_INTERRUPT);
	assert_true(wait_until(rests(w)));
	assert_int_equal(health_behind(w), 0);
	reset(NULL);

	wait_max_ms = 20;
	device_plug();
	w = add(IDLE_INTERRUPT);
	assert_true(wait_until(waits_of(w) > 0));
	idle = __atomic_load_n(&w->idle_cycles, __ATOMIC_ACQUIRE);
	a = look(w);
	waits = waits_of(w);
	assert_true(wait_until(waits_of(w) >= waits + 10));
	b = look(w);
	idle = __atomic_load_n(&w->idle_cycles, __ATOMIC_ACQUIRE) - idle;
	wait_max_ms = HOUR_MS;
	assert_true(idle >= 9 * 19 * (rte_get_tsc_hz() / 1000)); // by a clock that may differ from the kernel's
	assert_in_range(b.calls - a.calls, (b.loops - a.loops_after) / 2 - 1, (b.loops_after - a.loops) / 2 + 1);
}

// Packets arrive after pauses that are shorter and longer than the time in which the worker arms its queues, at every
// moment of it.
static void no_wakeup_is_lost(void **state)
{
	struct worker *w;
	uint64_t loops;
	uint32_t i;

	device_plug();
	router_tx = tx_nothing;
	w = add(IDLE_INTERRUPT);
	assert_true(wait_until(is_waiting(w)));
	for (i = 1; i <= 3000; i++) {
		device_send();
		assert_true(wait_until(is_taken(i)));
		usleep(i % 100 < 95 ? i % 37 * 3 : 1000);
	}
	assert_int_equal(w->wait->timeouts, 0);
	assert_true(waits_of(w) > 0);
	worker_set_idle(w, IDLE_PAUSE, &err);
	loops = loops_of(w);
	assert_true(wait_until(loops_of(w) > loops + 2)); // it knows
	assert_false(device.armed);
	assert_int_equal(device.armings, device.disarmings);
	router_tx = NULL;
}

// True: the change ends a wait. One more loop follows the moment at which the worker listens; a second one only follows
// a wait.
static bool wakes(struct worker *w, void (*change)(struct worker *w))
{
	uint64_t loops;

	assert_true(wait_until(is_waiting(w)));
	usleep(2000); // mostly, it waits now
	loops = loops_of(w);
	change(w);
	return wait_until(loops_of(w) >= loops + 2);
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
	assert_true(wakes(w, change_tables));
	assert_true(wakes(w, change_orders));
	assert_true(wakes(w, change_policy));
	assert_true(wakes(w, inject));
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
	uint64_t waits;

	device_plug();
	router_tx = tx_nothing;
	router_arm = arm_never;
	w = add(IDLE_INTERRUPT);
	assert_true(wait_until(__atomic_load_n(&w->wait->timer_queue, __ATOMIC_ACQUIRE) >> 16 == RED0));
	waits = waits_of(w); // waits before it had the queue
	device_send();
	assert_true(wait_until(is_taken(1)));
	assert_int_equal(waits_of(w), waits);
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
	assert_true(wait_until(__atomic_load_n(&w->orders, __ATOMIC_ACQUIRE) == 0));
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
		T(naps_grow),
		T(sleeping_adapts),
		T(sleeper_is_not_waited_for),
		T(behind),
		T(depths),
		T(arms_and_waits),
		T(waiting_costs_nothing),
		T(no_wakeup_is_lost),
		T(changes_wake),
		T(unwilling_queue_is_polled),
		T(refused_without_interrupts),
	};

	return cmocka_run_group_tests(tests, setup, router_teardown);
}
