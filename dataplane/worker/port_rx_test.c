// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_cycles.h>

#include "graph/counters.h"
#include "l3/underlay.h"
#include "testing/router_fixture.h"
#include "worker/worker.h"

static unsigned waiting[PORTS_END][2];        // packets in the device, by port and queue
static unsigned long_from, long_to, long_len; // packets long_from to long_to - 1 of a batch have this length
static unsigned refused;                      // frames that the kind of port refuses
static struct rx_list *list;
static uint64_t cost[PORTS_END]; // cycles that a packet takes, by port
static uint64_t clock_now;

static uint16_t rx_waiting(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	unsigned *have = &waiting[q->port->id][q->index];
	uint16_t i, k = (uint16_t)RTE_MIN(n, *have);

	*have -= k;
	for (; refused > 0; refused--)
		port_refused_too_long(q->port);
	for (i = 0; i < k; i++) {
		pkts[i] = router_hex("000102030405060708090a0b0c0d");
		memset(meta(pkts[i]), 0xff, sizeof(struct pkt_meta)); // values of the buffer's last use
		pkts[i]->port = 99;
		if (i >= long_from && i < long_to)
			pkts[i]->pkt_len = long_len; // as if it were a chain: nothing here reads its other buffers
	}
	return k;
}

static int setup(void **state)
{
	int ret = router_setup(state);

	list = calloc(1, sizeof(*list) + 2 * PORTS_END * sizeof(list->q[0]));
	router_worker()->rx = list;
	router_rx = rx_waiting;
	return ret;
}

static int teardown(void **state)
{
	free(list);
	return router_teardown(state);
}

static int reset(void **state)
{
	list->n = 0;
	memset(waiting, 0, sizeof(waiting));
	long_from = long_to = 0;
	router_worker()->next_queue = 0;
	memset(&router_worker()->burst, 0, sizeof(router_worker()->burst));
	port_get(RED0)->queues[0].most = port_get(RED1)->queues[0].most = 0;
	port_get(RED0)->ops = &port_tap_ops;
	memset(cost, 0, sizeof(cost));
	return 0;
}

static void poll_queue(uint16_t port, uint16_t queue)
{
	list->q[list->n] = &port_get(port)->queues[queue];
	list->q[list->n]->rx_worker = list->q[list->n]->owner = router_worker()->id;
	list->n++;
}

// Runs one round, checks the edges by the ports' roles, and frees the packets. counts: packets by port.
static unsigned walk(unsigned *counts)
{
	unsigned i, n = node_test_run("port_rx", NULL, 0);
	struct rte_mbuf *m;

	memset(counts, 0, PORTS_END * sizeof(*counts));
	for (i = 0; i < n; i++) {
		m = node_test_outs[i].m;
		assert_in_range(m->port, 1, PORTS_END - 1);
		assert_string_equal(node_test_outs[i].edge, m->port <= FABRIC1 ? "fabric_input" : "tenant_input");
		assert_int_equal(meta(m)->flags, 0);
		assert_int_equal(meta(m)->hash, 0);
		assert_int_equal(meta(m)->reason, 0);
		assert_null(meta(m)->nexthop);
		counts[m->port]++;
		rte_pktmbuf_free(m);
	}
	assert_int_equal(router_worker()->polled, n);
	return n;
}

static void by_role(void **state)
{
	struct port_counters before, after;
	unsigned n[PORTS_END];

	counters_port(RED0, &before);
	poll_queue(FABRIC0, 0);
	poll_queue(RED0, 0);
	poll_queue(RED0, 1);
	waiting[FABRIC0][0] = 3;
	waiting[RED0][0] = 5;
	waiting[RED0][1] = 7;
	assert_int_equal(walk(n), 15);
	assert_int_equal(n[FABRIC0], 3);
	assert_int_equal(n[RED0], 12);
	counters_port(RED0, &after);
	assert_int_equal(after.rx_packets, before.rx_packets + 12);
	assert_int_equal(after.rx_bytes, before.rx_bytes + 12 * 14);
	assert_int_equal(port_get(RED0)->queues[1].rx_packets, 7);
	assert_int_equal(walk(n), 0);
}

// A frame may have the port's MTU, an Ethernet header and two VLAN tags, and not a byte more, in every role.
static void longer_than_mtu(void **state)
{
	static const struct {
		unsigned from, to, len, passed;
	} cases[] = {{0, 10, 1522, 10}, {0, 1, 1523, 9}, {9, 10, 1523, 9}, {3, 7, 65536, 6}, {0, 10, UINT32_MAX, 0}};
	static const uint16_t ports[] = {RED0, FABRIC0, LAN0};
	struct port_counters before, after;
	unsigned n[PORTS_END], i, j;
	uint64_t drops;

	for (j = 0; j < RTE_DIM(ports); j++) {
		reset(state);
		poll_queue(ports[j], 0);
		for (i = 0; i < RTE_DIM(cases); i++) {
			drops = router_drops(ports[j], "frame_too_long");
			counters_port(ports[j], &before);
			waiting[ports[j]][0] = 10;
			long_from = cases[i].from;
			long_to = cases[i].to;
			long_len = cases[i].len;
			assert_int_equal(walk(n), cases[i].passed);
			counters_port(ports[j], &after);
			assert_int_equal(router_drops(ports[j], "frame_too_long"), drops + 10 - cases[i].passed);
			assert_int_equal(after.rx_packets, before.rx_packets + 10);
		}
	}
}

static void mtu_changes(void **state)
{
	struct port_config c = router_config(RED0), big = c;
	unsigned n[PORTS_END];

	big.mtu = 1800;
	poll_queue(RED0, 0);
	long_to = 1;
	long_len = 1822;
	router_set(RED0, &big);
	waiting[RED0][0] = 1;
	assert_int_equal(walk(n), 1);
	router_set(RED0, &c);
	waiting[RED0][0] = 1;
	assert_int_equal(walk(n), 0);
}

// Frames that the kind of port refuses are counted, too.
static void refused_by_kind(void **state)
{
	uint64_t drops = router_drops(RED0, "frame_too_long");
	struct port_counters before, after;
	unsigned n[PORTS_END];

	counters_port(RED0, &before);
	poll_queue(RED0, 0);
	refused = 3;
	assert_int_equal(walk(n), 0);
	waiting[RED0][0] = 1;
	refused = 2;
	assert_int_equal(walk(n), 1);
	assert_int_equal(walk(n), 0);
	counters_port(RED0, &after);
	assert_int_equal(router_drops(RED0, "frame_too_long"), drops + 5);
	assert_int_equal(after.rx_packets, before.rx_packets + 6);
}

static void mss_clamp_wanted_by_port(void **state)
{
	struct port_config c = router_config(RED0);

	routed_config_edit(&c)->mss_clamp = 1300;
	router_set(RED0, &c);
	poll_queue(RED0, 0);
	poll_queue(RED1, 0);
	waiting[RED0][0] = waiting[RED1][0] = 1;
	assert_int_equal(node_test_run("port_rx", NULL, 0), 2);
	assert_int_equal(meta(node_test_outs[0].m)->flags, META_CLAMP);
	assert_int_equal(meta(node_test_outs[1].m)->flags, 0);
	rte_pktmbuf_free(node_test_outs[0].m);
	rte_pktmbuf_free(node_test_outs[1].m);
	routed_config_edit(&c)->mss_clamp = 0;
	router_set(RED0, &c);
}

static void nothing_to_poll(void **state)
{
	unsigned n[PORTS_END];

	assert_int_equal(walk(n), 0);
}

// A batch has a bound; the queue that was not reached is the first one of the next round.
static void round_robin(void **state)
{
	unsigned n[PORTS_END], i, total[PORTS_END] = {0};

	poll_queue(RED0, 0);
	poll_queue(RED1, 0);
	poll_queue(BLUE0, 0);
	waiting[RED0][0] = waiting[RED1][0] = waiting[BLUE0][0] = 10 * BATCH;
	for (i = 0; i < 6; i++) {
		assert_int_equal(walk(n), BATCH);
		assert_int_equal((n[RED0] > 0) + (n[RED1] > 0) + (n[BLUE0] > 0), 1);
		total[RED0] += n[RED0];
		total[RED1] += n[RED1];
		total[BLUE0] += n[BLUE0];
	}
	assert_int_equal(total[RED0], 2 * BATCH);
	assert_int_equal(total[RED1], 2 * BATCH);
	assert_int_equal(total[BLUE0], 2 * BATCH);
}

// A batch with little space left polls no further queue: a small burst is not worth its cost.
static void last_room(void **state)
{
	unsigned n[PORTS_END];

	poll_queue(RED0, 0);
	poll_queue(RED1, 0);
	waiting[RED0][0] = 200;
	waiting[RED1][0] = 200;
	assert_int_equal(walk(n), BATCH);
	assert_int_equal(n[RED1], 56);
	waiting[RED0][0] = BATCH - 31;
	waiting[RED1][0] = 200;
	assert_int_equal(walk(n), BATCH - 31);
	assert_int_equal(n[RED1], 0);
	assert_int_equal(walk(n), 200);
}

static void list_shrinks(void **state)
{
	unsigned n[PORTS_END];

	poll_queue(RED0, 0);
	poll_queue(RED1, 0);
	router_worker()->next_queue = 2;
	list->n = 1;
	waiting[RED0][0] = 1;
	assert_int_equal(walk(n), 1);
}

#define LONGEST (rte_get_tsc_hz() / 1000000 * BURST_WALK_US)
#define SHARED (rte_get_tsc_hz() / 1000000 * BURST_SHARED_US)

// A walk as the worker's loop makes it. Returns the cycles that it took.
static uint64_t timed_walk(unsigned *counts)
{
	struct burst *b = &router_worker()->burst;
	uint64_t cycles = 0;
	unsigned i;

	walk(counts);
	for (i = 1; i < PORTS_END; i++)
		cycles += counts[i] * cost[i];
	clock_now += cycles;
	if (cycles > b->longest)
		burst_walked(b, clock_now, cycles);
	return cycles;
}

// Two ports send all they can. A packet of RED0 costs eight times as much as usual.
static void costly_port(void)
{
	burst_init(&router_worker()->burst);
	poll_queue(RED0, 0);
	poll_queue(RED1, 0);
	poll_queue(BLUE0, 0);
	waiting[RED0][0] = waiting[RED1][0] = UINT32_MAX / 2;
	cost[RED0] = LONGEST / BATCH * 8;
	cost[RED1] = cost[BLUE0] = LONGEST / BATCH;
}

// The walks of a port with costly packets become short, and the other port keeps its bursts.
static void costly_burst_is_bounded(void **state)
{
	uint64_t cycles[PORTS_END] = {0}, longest = 0, took;
	unsigned n[PORTS_END], i;

	costly_port();
	assert_true(timed_walk(n) > 7 * LONGEST);
	for (i = 0; i < 20; i++)
		timed_walk(n);
	for (i = 0; i < 1000; i++) {
		took = timed_walk(n);
		longest = RTE_MAX(longest, took);
		assert_true(n[RED0] == 0 || n[RED0] + n[RED1] == n[RED0]);
		assert_true(n[RED1] == 0 || n[RED1] == BATCH);
		cycles[RED0] += n[RED0] * cost[RED0];
		cycles[RED1] += n[RED1] * cost[RED1];
	}
	assert_in_range(longest, 1, LONGEST);
	assert_true(cycles[RED1] >= cycles[RED0]);
	assert_int_equal(port_get(RED0)->queues[0].most, BATCH / 8);
}

// Small bursts of other ports share a walk as before, and a bounded port with few packets, too.
static void small_bursts_share(void **state)
{
	unsigned n[PORTS_END], i;

	costly_port();
	for (i = 0; i < 20; i++)
		timed_walk(n);
	waiting[RED0][0] = 0;
	timed_walk(n);
	waiting[RED0][0] = 2;
	waiting[RED1][0] = waiting[BLUE0][0] = 20;
	router_worker()->next_queue = 0;
	timed_walk(n);
	assert_int_equal(n[RED0], 2);
	assert_int_equal(n[RED1], 20);
	assert_int_equal(n[BLUE0], 20);
	assert_true(router_worker()->burst.bounded);
}

// Packets that are no longer costly come in full bursts again, and bursts are not bounded any more after a while.
static void bound_ends(void **state)
{
	unsigned n[PORTS_END], i;

	costly_port();
	for (i = 0; i < 20; i++)
		timed_walk(n);
	cost[RED0] = cost[RED1] / 4;
	for (i = 0; i < 20; i++)
		timed_walk(n);
	assert_int_equal(port_get(RED0)->queues[0].most, 0);
	assert_true(router_worker()->burst.bounded);
	clock_now += rte_get_tsc_hz() / 1000 * BURST_CALM_MS;
	timed_walk(n);
	assert_false(router_worker()->burst.bounded);
	assert_int_equal(router_worker()->burst.longest, SHARED);
	for (i = 0; i < 6; i++) {
		timed_walk(n);
		assert_int_equal(n[RED0] + n[RED1], BATCH);
	}
	assert_false(router_worker()->burst.bounded);
}

// However costly packets are, their bursts are large enough for the driver, and grow again.
static void least_burst(void **state)
{
	static const struct {
		const struct port_ops *ops;
		uint16_t least;
	} kinds[] = {{&port_dpdk_ops, 8}, {&port_tap_ops, 1}};
	unsigned n[PORTS_END], i, k;

	for (k = 0; k < RTE_DIM(kinds); k++) {
		reset(state);
		port_get(RED0)->ops = kinds[k].ops;
		costly_port();
		cost[RED0] = 2 * LONGEST;
		for (i = 0; i < 20; i++)
			timed_walk(n);
		assert_int_equal(port_get(RED0)->queues[0].most, kinds[k].least);
		cost[RED0] = cost[RED1] / 4;
		for (i = 0; i < 20; i++)
			timed_walk(n);
		assert_int_equal(port_get(RED0)->queues[0].most, 0);
	}
}

// Long packets of the fabric are bounded to the burst of a large segment, short ones as those of any port.
static void long_packets_of_the_fabric(void **state)
{
	unsigned n[PORTS_END], i, k;

	for (k = 0; k < 2; k++) {
		reset(state);
		port_get(FABRIC0)->queues[0].most = 0;
		burst_init(&router_worker()->burst);
		poll_queue(FABRIC0, 0);
		poll_queue(RED1, 0);
		waiting[FABRIC0][0] = waiting[RED1][0] = UINT32_MAX / 2;
		cost[FABRIC0] = 2 * LONGEST;
		cost[RED1] = LONGEST / BATCH;
		long_len = 1400;
		long_to = k == 0 ? BATCH : 0;
		for (i = 0; i < 20; i++)
			timed_walk(n);
		assert_int_equal(port_get(FABRIC0)->queues[0].most,
				 k == 0 ? BURST_JOIN : RTE_MAX(port_get(FABRIC0)->ops->rx_least, 1));
	}
	port_get(FABRIC0)->queues[0].most = 0;
}

// RED0 sends all it can, and RED1 some packets between any two walks.
static void shared_worker(unsigned walks, unsigned some)
{
	unsigned n[PORTS_END], i;

	burst_init(&router_worker()->burst);
	poll_queue(RED0, 0);
	poll_queue(RED1, 0);
	waiting[RED0][0] = UINT32_MAX / 2;
	cost[RED0] = cost[RED1] = LONGEST / BATCH;
	for (i = 0; i < walks; i++) {
		waiting[RED1][0] += some;
		timed_walk(n);
	}
}

// Beside a port with few packets, even ordinary packets do not make walks long. Each walk after those that settle the
// burst is one of the greedy port, or one of the other.
static void greedy_burst_is_short(void **state)
{
	unsigned n[PORTS_END], i;

	shared_worker(20, 10);
	assert_true(router_worker()->burst.shared);
	for (i = 0; i < 1000; i++) {
		waiting[RED1][0] += 5;
		assert_in_range(timed_walk(n), 1, SHARED);
		assert_in_range(n[RED0], n[RED1] > 0 ? 0 : 16, 38);
		assert_in_range(waiting[RED1][0], 0, 10);
	}
}

// A port that was idle may bring many packets at once.
static void backlog_of_idle_port(void **state)
{
	unsigned n[PORTS_END], i;

	shared_worker(20, 10);
	waiting[RED1][0] = 200;
	for (i = 0; i < 2 && waiting[RED1][0] > 0; i++)
		timed_walk(n);
	assert_int_equal(waiting[RED1][0], 0);
	assert_int_equal(port_get(RED1)->queues[0].most, 0);
}

// Where all have more, or only one has packets, bursts are as large as a batch.
static void full_bursts(void **state)
{
	unsigned n[PORTS_END], i, k;

	for (k = 0; k < 2; k++) {
		reset(state);
		shared_worker(20, 10);
		waiting[RED1][0] = k == 0 ? 0 : UINT32_MAX / 2;
		for (i = 0; i < 10; i++)
			timed_walk(n);
		clock_now += rte_get_tsc_hz() / 1000 * BURST_CALM_MS;
		timed_walk(n);
		assert_false(router_worker()->burst.bounded);
		for (i = 0; i < 100; i++) {
			timed_walk(n);
			assert_int_equal(n[RED0] + n[RED1], BATCH);
			assert_true(n[RED0] == 0 || n[RED1] == 0);
		}
	}
}

// Few packets that make a long walk are costly: of frames of 64 KB, for example.
static void few_costly_packets(void **state)
{
	unsigned n[PORTS_END];

	shared_worker(0, 0);
	waiting[RED0][0] = 0;
	waiting[RED1][0] = 8;
	cost[RED1] = SHARED / 4;
	timed_walk(n);
	assert_true(router_worker()->burst.shared);
}

// A frame that alone takes longer than a shared worker's walk may: its port has a quarter of the time, and all of it
// when the others have no packets. A large segment may take as long.
static void dear_frames_rest(void **state)
{
	uint64_t cycles[PORTS_END], none = rte_get_tsc_hz() / 10000000;
	uint32_t longest = port_get(RED0)->longest;
	unsigned n[PORTS_END], i, k;

	for (k = 0; k < 3; k++) {
		reset(state);
		shared_worker(0, 0);
		port_get(RED0)->longest = k == 2 ? UINT16_MAX : longest;
		cost[RED0] = SHARED + SHARED / 3;
		long_len = 64000;
		long_to = k == 2 ? 1 : 0;
		memset(cycles, 0, sizeof(cycles));
		for (i = 0; i < 4000; i++) {
			waiting[RED1][0] = k == 1 ? 0 : 1;
			if (timed_walk(n) == 0) {
				clock_now += none;
				burst_walked(&router_worker()->burst, clock_now, none);
			}
			if (i == 100)
				cycles[0] = clock_now;
			cycles[RED0] += i > 100 ? n[RED0] * cost[RED0] : 0;
		}
		cycles[0] = clock_now - cycles[0];
		if (k == 0) {
			assert_in_range(100 * cycles[RED0] / cycles[0], 20, 26);
		} else {
			assert_in_range(100 * cycles[RED0] / cycles[0], 80, 100);
		}
	}
	port_get(RED0)->longest = longest;
}

// A walk that another thread interrupted is not judged. The queue that it polled may belong to another worker
// afterwards.
static void interrupted_walk_is_forgotten(void **state)
{
	unsigned n[PORTS_END], i;

	costly_port();
	for (i = 0; i < 20; i++)
		timed_walk(n);
	router_worker()->next_queue = 0;
	walk(n);
	assert_int_equal(n[RED0], BATCH / 8);
	list->n = 0;
	walk(n);
	burst_walked(&router_worker()->burst, clock_now, 2 * LONGEST);
	assert_int_equal(port_get(RED0)->queues[0].most, BATCH / 8);
}

static struct rte_mbuf *inject(uint16_t port, enum inject edge)
{
	struct rte_mbuf *m = router_hex("000102030405060708090a0b0c0d");

	m->port = port;
	meta(m)->arg = edge;
	assert_int_equal(rte_ring_enqueue(router_worker()->inject, m), 0);
	return m;
}

// Packets that the master injects.
static void injected(void **state)
{
	struct rte_mbuf *tx = inject(0, INJECT_TX), *fabric = inject(FABRIC1, INJECT_INPUT);
	unsigned i;

	inject(RED0, INJECT_INPUT);
	poll_queue(RED0, 0);
	waiting[RED0][0] = 2;
	assert_int_equal(node_test_run("port_rx", NULL, 0), 5);
	for (i = 0; i < 5; i++) {
		if (node_test_outs[i].m == tx)
			assert_string_equal(node_test_outs[i].edge, "port_tx");
		else if (node_test_outs[i].m == fabric)
			assert_string_equal(node_test_outs[i].edge, "fabric_input");
		else
			assert_string_equal(node_test_outs[i].edge, "tenant_input");
		rte_pktmbuf_free(node_test_outs[i].m);
	}
	for (i = 0; i < 100; i++) // more than one round takes
		inject(0, INJECT_TX);
	assert_int_equal(node_test_run("port_rx", NULL, 0), 32);
	for (i = 0; i < 32; i++)
		rte_pktmbuf_free(node_test_outs[i].m);
	while (rte_ring_count(router_worker()->inject) > 0) {
		unsigned n = node_test_run("port_rx", NULL, 0);

		for (i = 0; i < n; i++)
			rte_pktmbuf_free(node_test_outs[i].m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(by_role, reset),
		cmocka_unit_test_setup(mss_clamp_wanted_by_port, reset),
		cmocka_unit_test_setup(nothing_to_poll, reset),
		cmocka_unit_test_setup(round_robin, reset),
		cmocka_unit_test_setup(last_room, reset),
		cmocka_unit_test_setup(list_shrinks, reset),
		cmocka_unit_test_setup(injected, reset),
		cmocka_unit_test_setup(longer_than_mtu, reset),
		cmocka_unit_test_setup(mtu_changes, reset),
		cmocka_unit_test_setup(refused_by_kind, reset),
		cmocka_unit_test_setup(costly_burst_is_bounded, reset),
		cmocka_unit_test_setup(small_bursts_share, reset),
		cmocka_unit_test_setup(bound_ends, reset),
		cmocka_unit_test_setup(least_burst, reset),
		cmocka_unit_test_setup(long_packets_of_the_fabric, reset),
		cmocka_unit_test_setup(interrupted_walk_is_forgotten, reset),
		cmocka_unit_test_setup(greedy_burst_is_short, reset),
		cmocka_unit_test_setup(backlog_of_idle_port, reset),
		cmocka_unit_test_setup(full_bursts, reset),
		cmocka_unit_test_setup(few_costly_packets, reset),
		cmocka_unit_test_setup(dear_frames_rest, reset),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
