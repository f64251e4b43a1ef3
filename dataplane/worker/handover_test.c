// SPDX-License-Identifier: Apache-2.0
// With real threads and rings, flows of numbered packets pass while modes, rings, queues and workers change. No packet
// is lost, and none overtakes another of its flow. No wait is given up because a thread is late, unless a test says so.
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_cycles.h>

#include "base/doorbell.h"
#include "base/rcu.h"
#include "base/wake_fd.h"
#include "testing/router_fixture.h"
#include "testing/wait_until.h"
#include "worker/handoff.h"
#include "worker/load.h"
#include "worker/orders.h"
#include "worker/spread.h"
#include "worker/wait.h"
#include "worker/worker.h"

#define FLOWS 64u  // of each queue
#define BURST 16   // packets in one poll
#define AWAY 1024u // packets on their way at once; a guest's rings limit them, too

struct flow {
	uint32_t next;   // number of the next packet in
	uint32_t passed; // of the last one out
};

static unsigned cpus[2];
static struct error err;
static struct flow flows[2][FLOWS]; // by queue
static uint64_t received, sent, overtaken, by_worker[WORKER_MAX];
static unsigned building; // number of polls that may add to received
static bool flowing;
static unsigned slow = WORKER_MAX; // the worker that takes long for each packet that it sends

static uint64_t now(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void numbered(struct rte_mbuf *m, unsigned queue)
{
	static __thread unsigned turn;
	unsigned f = turn++ % FLOWS;
	uint16_t *sport = rte_pktmbuf_mtod_offset(m, uint16_t *, 34);
	uint32_t *number = rte_pktmbuf_mtod_offset(m, uint32_t *, 42);

	*sport = (uint16_t)(queue << 8 | f);
	*number = ++flows[queue][f].next;
}

static uint16_t build(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i;

	if (!__atomic_load_n(&flowing, __ATOMIC_SEQ_CST))
		return 0;
	n = RTE_MIN(n, BURST);
	for (i = 0; i < n; i++) {
		pkts[i] = router_frame(RED0, GATEWAY, "02:00:00:00:00:03",
				       &(struct packet){.src = "10.0.0.2", .dst = "10.0.0.3"});
		numbered(pkts[i], q->index);
	}
	__atomic_fetch_add(&received, n, __ATOMIC_RELAXED);
	return n;
}

static uint16_t rx_numbered(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	uint64_t away = now(&received) - now(&sent);

	if (q->port->id != RED0 || away > AWAY)
		return 0;
	__atomic_fetch_add(&building, 1, __ATOMIC_SEQ_CST);
	n = build(q, pkts, n);
	__atomic_fetch_sub(&building, 1, __ATOMIC_SEQ_CST);
	return n;
}

static uint16_t tx_checked(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i;

	if (this_worker->id == __atomic_load_n(&slow, __ATOMIC_RELAXED))
		usleep(1000u * n);
	for (i = 0; i < n; i++) {
		uint16_t sport = *rte_pktmbuf_mtod_offset(pkts[i], uint16_t *, 34);
		uint32_t number = *rte_pktmbuf_mtod_offset(pkts[i], uint32_t *, 42);
		uint32_t *passed = &flows[(sport >> 8) & 1][sport & 0xff].passed;

		if (number != __atomic_load_n(passed, __ATOMIC_ACQUIRE) + 1)
			__atomic_fetch_add(&overtaken, 1, __ATOMIC_RELAXED);
		__atomic_store_n(passed, number, __ATOMIC_RELEASE);
	}
	__atomic_fetch_add(&by_worker[this_worker->id], n, __ATOMIC_RELAXED);
	__atomic_fetch_add(&sent, n, __ATOMIC_RELAXED);
	rte_pktmbuf_free_bulk(pkts, n);
	return n;
}

// The queues always interrupt: their poller never waits for long, but the workers that get its packets do.
static int arm_readable(struct port_queue *q)
{
	static int fd = -1;

	if (fd < 0) {
		fd = wake_fd_new();
		assert_int_equal(wake_fd_watch(fd, eventfd(1, EFD_CLOEXEC), false), 0);
	}
	return q->port->id == RED0 ? fd : -ENOTCONN;
}

static int setup(void **state)
{
	unsigned i, n = 0;
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	for (i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &set))
			cpus[n++] = i;
	if (n == 1)
		cpus[1] = cpus[0];
	router_rx = rx_numbered;
	router_tx = tx_checked;
	router_arm = arm_readable;
	worker_patience = PATIENCE_MS / 20;
	wait_max_ms = 3600000;
	return router_setup(state);
}

static void set_mode(enum port_mode mode)
{
	struct port_config c = router_config(RED0);

	spread_config_edit(&c)->mode = (uint8_t)mode;
	router_set(RED0, &c);
}

static int reset(void **state)
{
	__atomic_store_n(&flowing, false, __ATOMIC_RELAXED);
	__atomic_store_n(&slow, WORKER_MAX, __ATOMIC_RELAXED);
	set_mode(PORT_RUN_TO_COMPLETION);
	worker_del_all();
	rcu_poll();
	memset(flows, 0, sizeof(flows));
	memset(by_worker, 0, sizeof(by_worker));
	received = sent = overtaken = 0;
	return 0;
}

static struct worker *add_role(uint32_t id, enum worker_role role)
{
	struct worker_config cfg = {
		.cpu = cpus[id % 2], .idle = IDLE_YIELD, .role = role, .target = WORKER_NONE, .ring_size = 2 * AWAY};
	struct worker *w = worker_add(id, &cfg, &err);

	if (w == NULL)
		fail_msg("%s", err.message);
	return w;
}

static struct worker *add(uint32_t id)
{
	return add_role(id, WORKER_FORWARDING);
}

static void wait_for(uint64_t more)
{
	uint64_t want = now(&sent) + more;

	assert_true(wait_until((worker_poll(), rcu_poll(), now(&sent) >= want)));
}

static void start(void)
{
	__atomic_store_n(&flowing, true, __ATOMIC_RELAXED);
	wait_for(1000);
}

// Number of changes that did not wait for a worker.
static uint64_t gave_up(void)
{
	uint64_t n = 0;
	unsigned i;

	for (i = 0; i < 2; i++)
		if (port_get(RED0)->queues[i].view)
			n += __atomic_load_n(&port_get(RED0)->queues[i].view->gave_up, __ATOMIC_RELAXED);
	return n;
}

static void stop_and_check(void)
{
	__atomic_store_n(&flowing, false, __ATOMIC_SEQ_CST);
	assert_true(wait_until(__atomic_load_n(&building, __ATOMIC_SEQ_CST) == 0));
	assert_true(wait_until(now(&sent) == now(&received)));
	if (worker_patience > 1)
		assert_int_equal(gave_up(), 0);
	if (gave_up() == 0)
		assert_int_equal(overtaken, 0);
	else
		print_message("a worker was stalled for %u ms: order was not kept %lu times\n", SPREAD_LATE_MS,
			      overtaken);
	assert_true(wait_until(spread_settled()));
}

static void del(uint32_t id)
{
	if (worker_del(id, &err) < 0)
		fail_msg("%s", err.message);
}

static void hybrid_uses_all(void **state)
{
	add(0);
	add(1);
	add(2);
	set_mode(PORT_HYBRID);
	start();
	wait_for(20000);
	stop_and_check();
	assert_true(now(&by_worker[0]) > 0 && now(&by_worker[1]) > 0 && now(&by_worker[2]) > 0);
}

static void mode_switched(void **state)
{
	unsigned i;

	add(0);
	add(1);
	add(2);
	start();
	for (i = 0; i < 100; i++) {
		set_mode(i & 1 ? PORT_RUN_TO_COMPLETION : PORT_HYBRID);
		wait_for(i % 7 * 200);
	}
	stop_and_check();
}

static void set_idle(uint32_t id, enum idle_policy idle)
{
	if (worker_set_idle(worker_get(id), idle, &err) < 0)
		fail_msg("%s", err.message);
}

// Workers start and stop waiting while they get packets through rings, queues and tables change, and rings are
// replaced.
static void policies_switched(void **state)
{
	static const enum idle_policy policies[] = {IDLE_INTERRUPT, IDLE_YIELD, IDLE_INTERRUPT, IDLE_SLEEP,
						    IDLE_INTERRUPT};
	struct worker *w[3] = {add(0), add(1), add(2)};
	unsigned i;

	set_mode(PORT_HYBRID);
	start();
	for (i = 0; i < 100; i++) {
		set_idle(i % 3, policies[i % RTE_DIM(policies)]);
		if (i % 10 == 9)
			set_mode(i % 20 == 9 ? PORT_RUN_TO_COMPLETION : PORT_HYBRID);
		if (i % 4 == 0)
			assert_int_equal(worker_assign(&port_get(RED0)->queues[i / 4 & 1], w[i % 3], &err), 0);
		if (i % 16 == 3)
			assert_int_equal(worker_set_ring_size(w[i % 3], i & 16 ? 2 * AWAY : 4 * AWAY, &err), 0);
		wait_for(i % 7 * 200);
	}
	stop_and_check();
}

// All workers wait, and a worker that is handed packets wakes up: no wait ends by itself.
static void waiting_workers_are_handed_packets(void **state)
{
	struct worker *w[3] = {add(0), add(1), add(2)};
	unsigned i;

	for (i = 0; i < 3; i++)
		set_idle(i, IDLE_INTERRUPT);
	set_mode(PORT_HYBRID);
	for (i = 0; i < 30; i++) {
		start();
		stop_and_check();
		assert_true(wait_until((rcu_poll(), doorbell_waits(1) && doorbell_waits(2))));
	}
	for (i = 0; i < 3; i++) {
		assert_int_equal(now(&w[i]->wait->timeouts), 0);
		assert_true(now(&by_worker[i]) > 0);
	}
	assert_true(now(&w[1]->wait->waits) > 0 && now(&w[2]->wait->waits) > 0);
}

static void queue_moved(void **state)
{
	struct worker *w[3] = {add(0), add(1), add(2)};
	unsigned i;

	set_mode(PORT_HYBRID);
	start();
	for (i = 0; i < 100; i++) {
		assert_int_equal(worker_assign(&port_get(RED0)->queues[i & 1], w[(i / 2) % 3], &err), 0);
		wait_for(i % 5 * 200);
	}
	stop_and_check();
}

static void workers_come_and_go(void **state)
{
	unsigned i;

	add(0);
	set_mode(PORT_HYBRID);
	start();
	for (i = 0; i < 100; i++) {
		add(1 + i % 5);
		wait_for(i % 3 * 200);
		del(i % 2 ? 1 + i % 5 : 0);
		if (i % 2 == 0) {
			add(0);
			del(1 + i % 5);
		}
	}
	stop_and_check();
}

static uint64_t behind(const struct handoff *h)
{
	return handoff_sent(h) - __atomic_load_n(&h->done, __ATOMIC_ACQUIRE);
}

// A worker leaves while another one is far behind with its packets, for longer than the master waits: those in the ring
// are processed all the same. The last test, because the queues count waits that were given up for all that follow.
static void last_packets_of_a_worker(void **state)
{
	struct worker *w = add(0);
	int ret;

	add(1);
	add(2);
	set_mode(PORT_HYBRID);
	start();
	__atomic_store_n(&slow, 1, __ATOMIC_RELAXED);
	assert_true(wait_until(behind(w->out[1]) >= AWAY * 3 / 4));
	__atomic_store_n(&flowing, false, __ATOMIC_SEQ_CST);
	__atomic_store_n(&worker_patience, 1, __ATOMIC_RELAXED); // workers read it
	ret = worker_del(0, &err);
	if (ret < 0 && ret != -ETIMEDOUT)
		fail_msg("%s", err.message);
	assert_true(wait_until((worker_poll(), rcu_poll(), worker_get(0) == NULL)));
	stop_and_check();
}

static void rings_resized(void **state)
{
	unsigned i;

	add(0);
	add(1);
	set_mode(PORT_HYBRID);
	start();
	for (i = 0; i < 100; i++) {
		while (worker_set_ring_size(worker_get(1), i & 1 ? 2 * AWAY : 4 * AWAY, &err) < 0) {
			assert_int_equal(err.code, EAGAIN); // the last change has not finished: this machine is busy
			wait_for(100);
		}
		wait_for(500);
	}
	stop_and_check();
	assert_int_equal(worker_set_ring_size(worker_get(1), 1000, &err), -ERANGE);
	assert_string_equal(err.valid, LIMIT_WORKER_RING_SIZE_VALID);
}

static void isolated_receive(void **state)
{
	struct worker *rx, *fwd = add(0), *other = add(1);
	unsigned i;

	rx = add_role(2, WORKER_ISOLATED_RX);
	assert_int_equal(worker_set_target(rx, 1, &err), 0);
	assert_int_equal(worker_assign(&port_get(RED0)->queues[0], rx, &err), 0);
	assert_int_equal(worker_assign(&port_get(RED0)->queues[1], rx, &err), 0);
	start();
	assert_int_equal(now(&by_worker[2]), 0);
	assert_true(now(&by_worker[1]) > 0);
	for (i = 0; i < 100; i++) {
		assert_int_equal(worker_set_target(rx, i & 1, &err), 0);
		wait_for(i % 5 * 100);
	}
	assert_int_equal(worker_set_target(rx, 2, &err), -ENOENT);
	assert_int_equal(worker_set_target(fwd, 1, &err), -EINVAL);
	del(other->id); // rx gets another target
	assert_int_equal(rx->target, 0);
	wait_for(1000);
	assert_int_equal(worker_del(0, &err), -EBUSY);
	del(2);
	wait_for(1000);
	stop_and_check();
	assert_int_equal(now(&by_worker[2]), 0);
}

static bool held[2], releasing;

static void hold(struct worker *w)
{
	__atomic_store_n(&held[w->id], true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&releasing, __ATOMIC_ACQUIRE))
		usleep(100);
	__atomic_store_n(&held[w->id], false, __ATOMIC_RELEASE);
}

// Holds both workers while the load of their last seconds is made up: the packets of each queue and the share of its
// time in which each worker had packets. What they really did before that no longer weighs anything.
static void seconds(unsigned n, unsigned packets, double share)
{
	struct port *red = port_get(RED0);
	unsigned i, q;

	__atomic_store_n(&releasing, false, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++) {
		worker_set_fault(worker_get(i), hold);
		assert_true(wait_until(__atomic_load_n(&held[i], __ATOMIC_ACQUIRE)));
	}
	load_measure(1);
	while (n-- > 0) {
		for (q = 0; q < red->n_queues; q++)
			red->queues[q].rx_packets += packets;
		for (i = 0; i < 2; i++) {
			worker_get(i)->busy_cycles += (uint64_t)(1e9 * share);
			worker_get(i)->idle_cycles += (uint64_t)(1e9 * (1 - share));
		}
		load_measure(1);
	}
	for (i = 0; i < 2; i++)
		worker_set_fault(worker_get(i), NULL);
	__atomic_store_n(&releasing, true, __ATOMIC_RELEASE);
	assert_true(wait_until(!__atomic_load_n(&held[0], __ATOMIC_ACQUIRE) &&
			       !__atomic_load_n(&held[1], __ATOMIC_ACQUIRE)));
}

#define LONG 60 // seconds after which averages are what the last ones were

static void rebalanced(void **state)
{
	struct port *red = port_get(RED0);
	struct load_plan plan;
	struct worker *a = add(0);

	add(1); // queues stay where they are
	start();
	seconds(LONG, 5000, 0.5);
	assert_int_equal((int)(load_of_queue(&red->queues[0]) + 0.5), 5000);
	assert_int_equal((int)(load_of_queue(&red->queues[1]) + 0.5), 5000);
	assert_int_equal(load_rebalance(false, false, &plan, &err), 0);
	assert_int_equal(plan.n, 1);
	assert_int_equal(plan.moves[0].port, RED0);
	assert_int_equal((int)(plan.before + 0.5), 10000);
	assert_int_equal((int)(plan.after + 0.5), 5000);
	free(plan.moves);
	assert_int_equal(red->queues[0].rx_worker + red->queues[1].rx_worker, 0);
	assert_int_equal(load_rebalance(false, true, &plan, &err), 0);
	free(plan.moves);
	assert_int_equal(red->queues[0].rx_worker + red->queues[1].rx_worker, 1);
	wait_for(1000);
	set_mode(PORT_HYBRID); // all flows were on the first worker: entries move
	wait_for(1000);
	for (unsigned e = 0; e < SPREAD_ENTRIES; e++)
		assert_int_equal(spread_move(red, e, (uint8_t)a->id, &err), 0);
	assert_int_equal(spread_refresh(&err), 0);
	assert_true(wait_until(spread_settled()));
	seconds(LONG, 5000, 0.5);
	assert_int_equal(load_rebalance(false, true, &plan, &err), 0);
	free(plan.moves);
	assert_true(plan.n >= 1);
	assert_true(plan.after < plan.before * 0.9);
	stop_and_check();
	add(2); // with the new worker all entries are distributed again
	assert_false(spread_ports[RED0].moved);
}

static void spread_when_busy(void **state)
{
	add(0);
	add(1);
	set_mode(PORT_AUTO);
	assert_null(spread_ports[RED0].table);
	start();
	seconds(LONG, 0, 0.75);
	assert_false(spread_ports[RED0].busy);
	seconds(LONG, 0, 0.85);
	assert_true(spread_ports[RED0].busy);
	assert_true(wait_until(now(&by_worker[1]) > 0));
	seconds(LONG, 0, 0.3); // two workers are busy for 0.6 of their time, more than half of that of the poller
	assert_true(spread_ports[RED0].busy);
	stop_and_check();
	seconds(LONG, 0, 0.2);
	assert_false(spread_ports[RED0].busy);
	assert_null(spread_ports[RED0].table);
}

static void never_spread(void **state)
{
	struct port_config red = router_config(RED0), host = {.role = PORT_HOST,
							      .kind = "tap",
							      .name = "host0",
							      .fabric = FABRIC0,
							      .vrf = UINT16_MAX,
							      .bridge = UINT16_MAX};

	spread_never = true;
	spread_config_edit(&red)->mode = PORT_AUTO;
	assert_int_equal(port_set(port_get(RED0), &red, &err), -EINVAL);
	assert_string_equal(err.field, "port.mode");
	spread_never = false;
	spread_config_edit(&host)->mode = PORT_HYBRID;
	assert_null(port_add(&host, &err));
	assert_string_equal(err.field, "port.mode");
}

#define T(name) cmocka_unit_test_setup_teardown(name, reset, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(hybrid_uses_all), T(mode_switched),       T(policies_switched), T(waiting_workers_are_handed_packets),
		T(queue_moved),     T(workers_come_and_go), T(rings_resized),     T(isolated_receive),
		T(rebalanced),      T(spread_when_busy),    T(never_spread),      T(last_packets_of_a_worker),
	};

	return cmocka_run_group_tests(tests, setup, router_teardown);
}
