// SPDX-License-Identifier: Apache-2.0
// Real threads on the CPUs of this machine, which they yield when they are idle.
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_cycles.h>

#include "worker/numa.h"
#include "base/rcu.h"
#include "graph/counters.h"
#include "testing/router_fixture.h"
#include "testing/wait_until.h"
#include "worker/handoff.h"
#include "worker/orders.h"
#include "worker/worker.h"
#include "worker/worker_private.h"

#define QUEUES 2 // of each port
#define ALL_QUEUES ((PORTS_END - 1) * QUEUES)

static unsigned cpus[2]; // that this process may use
static struct error err;

static struct {
	int polling, sending; // number of workers that do so at this moment
	uint64_t received, sent;
} queues[PORT_MAX][PORT_MAX_QUEUES];
static uint64_t collisions;
static bool flowing;

static void enter(int *count)
{
	if (__atomic_fetch_add(count, 1, __ATOMIC_ACQ_REL) != 0)
		__atomic_fetch_add(&collisions, 1, __ATOMIC_RELAXED);
}

static void leave(int *count)
{
	__atomic_fetch_sub(count, 1, __ATOMIC_ACQ_REL);
}

// The guest of port RED0 sends to the guest of RED1 without end.
static uint16_t rx_endless(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i, k = 0;

	enter(&queues[q->port->id][q->index].polling);
	if (q->port->id == RED0 && __atomic_load_n(&flowing, __ATOMIC_RELAXED))
		k = RTE_MIN(n, 8);
	for (i = 0; i < k; i++)
		pkts[i] = router_frame(RED0, GATEWAY, "02:00:00:00:00:03",
				       &(struct packet){.src = "10.0.0.2", .dst = "10.0.0.3"});
	__atomic_fetch_add(&queues[q->port->id][q->index].received, k, __ATOMIC_RELAXED);
	leave(&queues[q->port->id][q->index].polling);
	return k;
}

static uint16_t tx_counted(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	enter(&queues[q->port->id][q->index].sending);
	__atomic_fetch_add(&queues[q->port->id][q->index].sent, n, __ATOMIC_RELAXED);
	rte_pktmbuf_free_bulk(pkts, n);
	leave(&queues[q->port->id][q->index].sending);
	return n;
}

static uint64_t received(void)
{
	return __atomic_load_n(&queues[RED0][0].received, __ATOMIC_RELAXED) +
	       __atomic_load_n(&queues[RED0][1].received, __ATOMIC_RELAXED);
}

static uint64_t sent(void)
{
	return __atomic_load_n(&queues[RED1][0].sent, __ATOMIC_RELAXED) +
	       __atomic_load_n(&queues[RED1][1].sent, __ATOMIC_RELAXED);
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
	router_rx = rx_endless;
	router_tx = tx_counted;
	worker_patience = PATIENCE_MS / 20; // no wait is given up
	return router_setup(state);
}

static int reset(void **state)
{
	__atomic_store_n(&flowing, false, __ATOMIC_RELAXED);
	worker_del_all();
	rcu_poll();
	return 0;
}

static struct worker *add(uint32_t id)
{
	struct worker *w = worker_add(id, &(struct worker_config){.cpu = cpus[id % 2], .idle = IDLE_YIELD}, &err);

	if (w == NULL)
		fail_msg("%s", err.message);
	return w;
}

static struct port_queue *queue(uint16_t port, unsigned i)
{
	return &port_get(port)->queues[i];
}

static bool polls(const struct worker *w, const struct port_queue *q)
{
	unsigned i, n = 0;

	for (i = 0; i < w->rx->n; i++)
		n += w->rx->q[i] == q;
	assert_in_range(n, 0, 1);
	assert_int_equal(q->rx_worker == w->id, n);
	return n == 1;
}

static void first_takes_all(void **state)
{
	struct worker *a = add(0), *b = add(1);
	struct port *p;
	unsigned i;

	assert_int_equal(worker_count(), 2);
	assert_int_equal(a->rx->n, ALL_QUEUES);
	assert_int_equal(b->rx->n, 0); // polled queues stay with their worker
	for (p = port_next(NULL); p; p = port_next(p))
		for (i = 0; i < p->n_queues; i++)
			assert_true(polls(a, &p->queues[i]));
}

static void new_port_is_spread(void **state)
{
	struct port_config c = {
		.name = "extra", .kind = "tap", .role = PORT_TENANT, .queues = 4, .vrf = RED, .bridge = UINT16_MAX};
	struct worker *a = add(0), *b = add(1);
	struct port *p = port_add(&c, &err);
	unsigned i, n = 0;

	assert_non_null(p);
	for (i = 0; i < 4; i++)
		n += polls(b, &p->queues[i]);
	assert_int_equal(n, 4); // it had nothing to do
	assert_int_equal(port_del("extra", &err), 0);
	assert_int_equal(a->rx->n, ALL_QUEUES);
	assert_int_equal(b->rx->n, 0);
}

static void assigned(void **state)
{
	struct worker *a = add(0), *b = add(1);
	struct port_queue *q = queue(RED0, 1);

	assert_int_equal(worker_assign(q, b, &err), 0);
	assert_true(polls(b, q));
	assert_false(polls(a, q));
	assert_true(polls(a, queue(RED0, 0)));
	assert_int_equal(worker_assign(q, b, &err), 0); // it is there already
	assert_int_equal(b->rx->n, 1);
	assert_int_equal(worker_assign(q, a, &err), 0);
	assert_int_equal(a->rx->n, ALL_QUEUES);
}

static void handed_over(void **state)
{
	struct worker *b, *c;

	add(0);
	assert_int_equal(worker_del(0, &err), -EBUSY); // no worker would poll
	b = add(1);
	c = add(2);
	assert_int_equal(worker_del(0, &err), 0);
	assert_int_equal(b->rx->n, ALL_QUEUES / 2);
	assert_int_equal(c->rx->n, ALL_QUEUES / 2);
	assert_null(worker_get(0));
	assert_int_equal(worker_del(0, &err), -ENOENT);
	assert_int_equal(worker_del(WORKER_NONE, &err), -ENOENT);
	assert_int_equal(worker_del(2, &err), 0);
	assert_int_equal(b->rx->n, ALL_QUEUES);
}

// Two workers whose ids fall on the same transmit queue share it, and lock it.
static void shared_transmit_queues(void **state)
{
	add(0);
	assert_false(port_get(RED0)->tx_flags & PORT_TX_SHARED);
	add(1);
	assert_false(port_get(RED0)->tx_flags & PORT_TX_SHARED);
	add(2);
	assert_true(port_get(RED0)->tx_flags & PORT_TX_SHARED);
	assert_int_equal(worker_del(1, &err), 0);
	assert_true(port_get(RED0)->tx_flags & PORT_TX_SHARED); // 0 and 2
	assert_int_equal(worker_del(2, &err), 0);
	assert_false(port_get(RED0)->tx_flags & PORT_TX_SHARED);
}

static void refused(void **state)
{
	struct worker *a = add(0);

	assert_null(worker_add(0, &(struct worker_config){.cpu = cpus[0], .idle = IDLE_YIELD}, &err));
	assert_int_equal(err.code, EEXIST);
	assert_string_equal(err.field, "worker.id");
	assert_null(worker_add(WORKER_MAX, &(struct worker_config){.cpu = cpus[0], .idle = IDLE_YIELD}, &err));
	assert_string_equal(err.field, "worker.id");
	assert_null(worker_add(1, &(struct worker_config){.cpu = 100000, .idle = IDLE_YIELD}, &err));
	assert_string_equal(err.field, "worker.cpu");
	assert_null(worker_add(1, &(struct worker_config){.cpu = UINT32_MAX, .idle = IDLE_YIELD}, &err));
	assert_int_equal(worker_move(a, 100000, &err), -EINVAL);
	assert_non_null(strstr(err.message, "worker.cpu '100000': "));
	assert_int_equal(worker_move(a, 8191, &err), -EINVAL);
	assert_memory_equal(err.valid, "one of CPUs ", 12);
	assert_int_equal(worker_move(a, UINT32_MAX, &err), -EINVAL);
	assert_string_equal(err.field, "worker.cpu");
	assert_int_equal(a->cpu, cpus[0]);
	assert_int_equal(worker_count(), 1);
}

// A worker whose policy never yields shares its CPU with no other worker.
static void beside_spinning(void **state)
{
	struct worker *a = add(0), *b;

	if (cpus[0] == cpus[1])
		skip();
	b = add(1);
	assert_int_equal(worker_set_idle(a, IDLE_SPIN, &err), 0);
	assert_null(worker_add(2, &(struct worker_config){.cpu = cpus[0], .idle = IDLE_YIELD}, &err));
	assert_int_equal(err.code, EBUSY);
	assert_int_equal(worker_move(b, cpus[0], &err), -EBUSY);
	assert_int_equal(worker_set_idle(a, IDLE_YIELD, &err), 0);
	assert_null(worker_add(2, &(struct worker_config){.cpu = cpus[0], .idle = IDLE_SPIN}, &err));
	assert_int_equal(err.code, EBUSY);
	assert_int_equal(worker_move(b, cpus[0], &err), 0);
}

static void threads(void **state)
{
	struct worker *a = add(5);
	cpu_set_t set;
	char name[16];

	assert_int_equal(pthread_getname_np(a->thread, name, sizeof(name)), 0);
	assert_string_equal(name, "pmd-fwd-5");
	pthread_getaffinity_np(a->thread, sizeof(set), &set);
	assert_int_equal(CPU_COUNT(&set), 1);
	assert_true(CPU_ISSET(cpus[1], &set));
	assert_int_equal(worker_move(a, cpus[0], &err), 0);
	pthread_getaffinity_np(a->thread, sizeof(set), &set);
	assert_int_equal(CPU_COUNT(&set), 1);
	assert_true(CPU_ISSET(cpus[0], &set));
	assert_int_equal(a->cpu, cpus[0]);
	assert_int_equal(worker_add(WORKER_NONE, &(struct worker_config){.cpu = cpus[0], .idle = IDLE_SLEEP}, &err)->id,
			 0); // the lowest free id
}

// Memory comes from the node of the worker's CPU, or from any node if that one has no memory, as some have not.
static void memory_near_the_worker(void **state)
{
	struct worker *a = add(0);

	assert_int_equal(a->numa, numa_of_cpu("", a->cpu));
	assert_true(a->memory == a->numa || a->memory == SOCKET_ID_ANY);
	assert_int_equal(numa_memory(-1), SOCKET_ID_ANY);
	assert_int_equal(numa_memory(RTE_MAX_NUMA_NODES - 1), SOCKET_ID_ANY);
}

static void wait_until_flowing(void)
{
	uint64_t want = received() + 100;

	assert_true(wait_until(received() >= want));
}

static void change_something(unsigned i)
{
	struct worker *w = worker_next(NULL), *other = worker_next(w);

	if (other == NULL || (i % 3 == 0 && worker_count() < 4)) {
		add(i % 7 == w->id || worker_get(i % 7) ? WORKER_NONE : i % 7);
	} else if (i % 3 == 1) {
		assert_int_equal(worker_del(i & 1 ? w->id : other->id, &err), 0);
	} else {
		assert_int_equal(worker_assign(queue(RED0, i & 1), other, &err), 0);
		assert_int_equal(worker_move(w, cpus[i & 1], &err), 0);
	}
	rcu_poll();
}

// Workers are added, removed and moved, and queues move between them: no two workers ever use a queue at once, and no
// packet is lost.
static void while_packets_flow(void **state)
{
	uint64_t before_rx, before_tx, lost = router_drops(RED0, "port_tx_full") + router_drops(RED0, "port_down");
	unsigned i;

	add(0);
	before_rx = received();
	before_tx = sent();
	__atomic_store_n(&flowing, true, __ATOMIC_RELAXED);
	wait_until_flowing();
	for (i = 0; i < 60; i++) {
		change_something(i);
		usleep(2000);
	}
	wait_until_flowing();
	__atomic_store_n(&flowing, false, __ATOMIC_RELAXED);
	worker_del_all(); // each ends its walk
	assert_int_equal(collisions, 0);
	assert_true(received() > before_rx);
	assert_int_equal(sent() - before_tx, received() - before_rx);
	assert_int_equal(router_drops(RED0, "port_tx_full") + router_drops(RED0, "port_down"), lost);
	assert_int_equal(node_test_in_use(), 0);
}

// More workers, one after the other, than there are sets of counters.
static void comings_and_goings(void **state)
{
	struct port_counters before, after;
	unsigned i;

	counters_port(RED1, &before);
	add(0);
	for (i = 0; i < 300; i++) {
		add(1);
		assert_int_equal(worker_del(1, &err), 0);
		rcu_poll();
	}
	counters_port(RED1, &after);
	assert_true(after.tx_packets >= before.tx_packets);
}

static struct rte_mbuf *frame_to(uint16_t port)
{
	struct rte_mbuf *m = router_frame(RED0, GATEWAY, "02:00:00:00:00:03",
					  &(struct packet){.src = "10.0.0.2", .dst = "10.0.0.3"});

	meta(m)->out_port = port;
	return m;
}

static void injected(void **state)
{
	uint64_t before, full;
	unsigned i;

	full = router_drops(RED0, "inject_full");
	assert_int_equal(worker_inject(frame_to(RED1), INJECT_TX), -EAGAIN); // there is no worker
	assert_int_equal(router_drops(RED0, "inject_full"), full + 1);
	assert_int_equal(node_test_in_use(), 0);
	add(0);
	before = sent();
	for (i = 0; i < 100; i++)
		assert_int_equal(worker_inject(frame_to(RED1), INJECT_TX), 0);
	assert_int_equal(worker_inject(frame_to(0), INJECT_INPUT), 0); // to be routed
	assert_true(wait_until(sent() >= before + 101));
	assert_int_equal(sent(), before + 101);
}

static uint64_t loops_of(const struct worker *w)
{
	return __atomic_load_n(&w->loops, __ATOMIC_RELAXED);
}

// A start: workers that are added while ports are held begin with them, and no grace period waits for them.
static void held_until_ports_are_released(void **state)
{
	struct worker *w;

	worker_hold_ports();
	w = add(0);
	add(1);
	assert_true(rcu_wait(PATIENCE_MS));
	assert_int_equal(worker_del(1, &err), 0); // ends without having begun
	assert_int_equal(loops_of(w), 0);
	worker_release_ports();
	assert_true(wait_until(loops_of(w) >= 10));
	assert_int_equal(w->rx->n, ALL_QUEUES);
}

static bool holds, held;

static void hold(struct worker *w)
{
	__atomic_store_n(&held, true, __ATOMIC_RELAXED);
	while (__atomic_load_n(&holds, __ATOMIC_RELAXED))
		usleep(100);
}

// The process ends while a worker is stalled. What it may use stays: its rings to workers that have ended, and these.
static void ended_beside_a_stalled_one(void **state)
{
	struct worker *stalled = add(0), *other = add(1);

	assert_int_equal(handoff_connect(stalled, other, &err), 0);
	holds = true;
	worker_set_fault(stalled, hold);
	assert_true(wait_until(__atomic_load_n(&held, __ATOMIC_RELAXED)));
	assert_true(wait_until((assert_false(worker_end_all(1)), worker_ended[1])));
	assert_false(worker_ended[0]);
	assert_ptr_equal(worker_get(0), stalled);
	assert_ptr_equal(worker_get(1), other);
	assert_non_null(stalled->out[1]);
	__atomic_store_n(&holds, false, __ATOMIC_RELAXED);
	assert_true(wait_until(worker_end_all(1)));
	assert_int_equal(worker_count(), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, reset, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(first_takes_all),
		T(new_port_is_spread),
		T(assigned),
		T(handed_over),
		T(shared_transmit_queues),
		T(refused),
		T(beside_spinning),
		T(threads),
		T(memory_near_the_worker),
		T(injected),
		T(held_until_ports_are_released),
		T(ended_beside_a_stalled_one),
		T(while_packets_flow),
		T(comings_and_goings),
	};

	return cmocka_run_group_tests(tests, setup, router_teardown);
}
