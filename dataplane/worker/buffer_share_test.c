// SPDX-License-Identifier: Apache-2.0
// A guest floods while the worker that finishes its packets is held up in a transmit. Its packets wait in that worker's
// ring, which could hold all buffers of the pool. Another guest and the fabric must get buffers all the same.
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rcu.h"
#include "testing/router_fixture.h"
#include "worker/spread.h"
#include "worker/worker.h"

#define POLLER 0
#define STALLED 1
#define BURST 32

static struct error err;
static bool sending, held_up;         // the guests send; the stalled worker's transmit does not return
static uint64_t missed[PORTS_END];    // packets that found no buffer, by port
static uint64_t received[PORTS_END];  // packets that found one
static const unsigned long_frame = 3; // buffers of the flood's packets, in the test of chains
static bool chains;
static uint64_t most; // packets of the flood, 0 = any number

static uint64_t now(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static struct rte_mbuf *from_guest(const struct port *p)
{
	bool red0 = p->id == RED0;
	struct packet packet = {.src = red0 ? "10.0.0.2" : "10.0.0.3", .dst = red0 ? "10.0.0.3" : "10.0.0.2"};

	if (p->role == PORT_FABRIC)
		return router_hex("ffffffffffff 02000000000f 88b5 00000000");
	return router_frame(p->id, GATEWAY, red0 ? "02:00:00:00:00:03" : "02:00:00:00:00:04", &packet);
}

// Fails as the pool does, so that the test's packets are built only when there are buffers for a burst.
static bool buffers_left(const struct port *p, unsigned n)
{
	struct rte_mbuf *pkts[BURST * 4];

	if (rte_pktmbuf_alloc_bulk(node_test_pool, pkts, n) < 0) {
		__atomic_fetch_add(&missed[p->id], BURST, __ATOMIC_RELAXED);
		return false;
	}
	rte_pktmbuf_free_bulk(pkts, n);
	return true;
}

static void lengthen(struct rte_mbuf *m)
{
	unsigned i;

	for (i = 1; i < long_frame; i++)
		assert_int_equal(rte_pktmbuf_chain(m, rte_pktmbuf_alloc(node_test_pool)), 0);
}

static uint16_t rx_flood(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	const struct port *p = q->port;
	bool flood = p->id == RED0;
	uint16_t i;

	if (!__atomic_load_n(&sending, __ATOMIC_RELAXED) || q->index != 0 ||
	    (p->id != RED0 && p->id != RED1 && p->id != FABRIC0))
		return 0;
	if (flood && now(&most) != 0 && now(&received[RED0]) >= now(&most))
		return 0;
	n = RTE_MIN(n, BURST);
	if (!buffers_left(p, chains ? BURST * long_frame : BURST))
		return 0;
	for (i = 0; i < n; i++) {
		pkts[i] = from_guest(p);
		if (flood && chains)
			lengthen(pkts[i]);
	}
	__atomic_fetch_add(&received[p->id], n, __ATOMIC_RELAXED);
	return n;
}

static uint16_t tx_stalled(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	while (this_worker->id == STALLED && __atomic_load_n(&held_up, __ATOMIC_RELAXED))
		sched_yield();
	rte_pktmbuf_free_bulk(pkts, n);
	return n;
}

static void worker_must_start(uint32_t id)
{
	struct worker_config cfg = {
		.cpu = (unsigned)sched_getcpu(), .idle = IDLE_YIELD, .target = WORKER_NONE, .ring_size = 8192};

	if (worker_add(id, &cfg, &err) == NULL)
		fail_msg("%s", err.message);
}

// Port RED0 is polled by one worker, and all its packets are finished by the other one.
static void flood_through_ring(void)
{
	struct port_config c = router_config(RED0);
	static const uint16_t polled[] = {RED0, RED1, FABRIC0};
	unsigned i, q;

	worker_must_start(POLLER);
	worker_must_start(STALLED);
	for (i = 0; i < RTE_DIM(polled); i++)
		for (q = 0; q < port_get(polled[i])->n_queues; q++)
			assert_int_equal(worker_assign(&port_get(polled[i])->queues[q], worker_get(POLLER), &err), 0);
	spread_config_edit(&c)->mode = PORT_HYBRID;
	memset(spread_config_edit(&c)->weights, 0, sizeof(spread_config_edit(&c)->weights));
	spread_config_edit(&c)->weights[STALLED] = 1;
	router_set(RED0, &c);
}

static void wait_for(const uint64_t *counter, uint64_t more)
{
	uint64_t want = now(counter) + more;
	unsigned i;

	for (i = 0; i < 20000 && now(counter) < want; i++) {
		usleep(500);
		rcu_poll();
	}
	assert_true(now(counter) >= want);
}

static void flood(void)
{
	uint64_t before = router_drops(RED0, "buffer_share");

	__atomic_store_n(&held_up, true, __ATOMIC_RELAXED);
	__atomic_store_n(&sending, true, __ATOMIC_RELAXED);
	wait_for(&received[RED1], 20000);
	wait_for(&received[FABRIC0], 20000);
	assert_int_equal(now(&missed[RED1]), 0);
	assert_int_equal(now(&missed[FABRIC0]), 0);
	assert_true(router_drops(RED0, "buffer_share") > before);
	assert_int_equal(router_drops(RED1, "buffer_share"), 0);
	assert_int_equal(router_drops(FABRIC0, "buffer_share"), 0);
	__atomic_store_n(&held_up, false, __ATOMIC_RELAXED);
}

// What the flood held returns, and the guest gets buffers again.
static void recovers(void)
{
	uint64_t before;
	unsigned i;

	__atomic_store_n(&sending, false, __ATOMIC_RELAXED);
	for (i = 0; i < 20000 && rte_mempool_in_use_count(node_test_pool) > 0; i++)
		usleep(500);
	assert_int_equal(rte_mempool_in_use_count(node_test_pool), 0);
	before = router_drops(RED0, "buffer_share");
	__atomic_store_n(&most, now(&received[RED0]) + 4 * BURST, __ATOMIC_RELAXED);
	__atomic_store_n(&sending, true, __ATOMIC_RELAXED);
	wait_for(&received[RED0], 4 * BURST);
	assert_int_equal(router_drops(RED0, "buffer_share"), before);
}

static int reset(void **state)
{
	struct port_config c = router_config(RED0);

	__atomic_store_n(&sending, false, __ATOMIC_RELAXED);
	__atomic_store_n(&held_up, false, __ATOMIC_RELAXED);
	spread_config_edit(&c)->mode = PORT_RUN_TO_COMPLETION;
	router_set(RED0, &c);
	worker_del_all();
	rcu_poll();
	memset(received, 0, sizeof(received));
	memset(missed, 0, sizeof(missed));
	chains = false;
	most = 0;
	return 0;
}

static void flood_does_not_starve_others(void **state)
{
	flood_through_ring();
	flood();
	recovers();
}

static void chains_count_as_buffers(void **state)
{
	chains = true;
	flood_through_ring();
	flood();
}

static int setup(void **state)
{
	router_rx = rx_flood;
	router_tx = tx_stalled;
	return router_setup(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(flood_does_not_starve_others, reset, reset),
		cmocka_unit_test_setup_teardown(chains_count_as_buffers, reset, reset),
	};

	return cmocka_run_group_tests(tests, setup, router_teardown);
}
