// SPDX-License-Identifier: Apache-2.0
// Whole trials: from a profile over real rings through a router to the counters. Routers with faults: fault_test.c.
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gen_router.h"
#include "poll.h"
#include "testing/wait_until.h"

#define PACKETS 50000
#define TRIES 1000 // of trials in which the generator may be late because other threads occupy its CPU

static unsigned seen; // by the router
static const char *wrong;

// A trial that waits for all frames: none is lost because the router's thread gets no CPU.
static struct trial_plan whole_plan(uint64_t packets)
{
	struct trial_plan plan = router_plan(packets);

	plan.drain = router_ms(PATIENCE_MS);
	return plan;
}

static const struct stream_count *total(const struct trial *t)
{
	return &t->total.count;
}

static Corelane__V1__GeneratorStream *stream(bool ipv6, uint32_t size, uint32_t flows)
{
	struct test_header h = header_plain(ipv6, 1);
	Corelane__V1__GeneratorStream *m = message_stream(&h, size);

	m->flows->count = flows;
	m->flows->source_ports = 1000;
	m->flows->destination_ports = 100;
	return m;
}

static Corelane__V1__GeneratorStream *back(Corelane__V1__GeneratorStream *m)
{
	m->name = m->tx_port = (char *)"b";
	m->rx_port = (char *)"a";
	return m;
}

static void connect_one(Corelane__V1__GeneratorStream *m)
{
	seen = 0;
	wrong = NULL;
	router_connect(1, 1, &m);
}

static int across(int side, struct rte_mbuf *m, unsigned *copies, bool *hold)
{
	const char *w = frame_wrong(rte_pktmbuf_mtod(m, const uint8_t *), m->pkt_len);

	seen++;
	wrong = w ? w : wrong;
	return !side;
}

static void assert_clean(const struct trial *t)
{
	const struct stream_count *c = total(t);

	assert_int_equal(c->received, c->sent);
	assert_int_equal(c->duplicated + c->reordered + c->misplaced + c->corrupt + c->wrong_header, 0);
	assert_int_equal(t->sink.foreign + t->sink.corrupt, 0);
	assert_null(wrong);
}

static void every_frame_comes_back(void **state)
{
	struct trial_plan plan = whole_plan(PACKETS);
	const struct trial *t;
	uint64_t timed = 0;
	unsigned i;

	connect_one(stream(false, 64, 1000));
	t = router_run(&plan, across);
	assert_int_equal(total(t)->sent, PACKETS);
	assert_int_equal(seen, PACKETS);
	assert_int_equal(t->sink.checked, PACKETS);
	assert_clean(t);
	for (i = 0; i < HISTOGRAM_BARS; i++)
		timed += t->sink.histogram.bars[i];
	assert_int_equal(timed + t->sink.not_timed, PACKETS);
	t = router_run(&plan, across); // a second time, from the state of the first
	assert_int_equal(total(t)->received, PACKETS);
	assert_clean(t);
}

// The percentile of a window does not see the windows before it.
static void percentile_of_a_window(void **state)
{
	static struct histogram all, before;

	assert_int_equal(histogram_quantile_since(&all, &before, 0.99), 0);
	all.bars[histogram_bar(10)] = 99;
	all.bars[histogram_bar(1000)] = 1;
	assert_int_equal(histogram_quantile_since(&all, &before, 0.99), 10);
	before = all;
	assert_int_equal(histogram_quantile_since(&all, &before, 0.99), 0);
	all.bars[histogram_bar(20)] += 49;
	all.bars[histogram_bar(1000)] += 1;
	assert_int_equal(histogram_quantile_since(&all, &before, 0.98), 20);
	assert_int_equal(histogram_quantile_since(&all, &before, 0.99), histogram_low(histogram_bar(1000)));
}

// Windows have a percentile if latencies are measured.
static void windows_have_latencies(void **state)
{
	struct trial_plan plan = whole_plan(PACKETS);
	const struct trial *t;
	unsigned i, with, run, tries;

	connect_one(stream(false, 64, 1000));
	plan.window = router_ms(2);
	plan.packets_per_second = 250000; // 100 windows: a pause of the CPU leaves some
	for (run = 0; run < 2; run++) {
		plan.latency = run == 0;
		tries = TRIES;
		do {
			t = router_run(&plan, across);
			for (i = with = 0; i < RTE_MIN(t->n_written, (unsigned)TRIAL_WINDOWS); i++)
				with += t->windows[i].p99 > 0;
		} while (plan.latency && with <= 1 && --tries > 0);
		assert_true(plan.latency ? with > 1 : with == 0);
	}
}

// Another poller on the CPU gets its turn after each poll.
static void the_cpu_is_shared(void **state)
{
	struct trial_plan plan = whole_plan(PACKETS);
	const struct trial *t;

	connect_one(stream(false, 64, 1000));
	t = router_run(&plan, across);
	assert_int_equal(t->turns, 0);
	plan.share = true;
	plan.real_time[0] = (int)syscall(SYS_gettid);
	plan.real_time[1] = INT_MAX; // an invalid priority
	plan.n_real_time = 2;
	t = router_run(&plan, across);
	assert_int_equal(t->real_time, geteuid() == 0); // only root may set it
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	assert_int_equal(total(t)->received, PACKETS);
	assert_clean(t);
	assert_true(t->turns > 0 && t->turn_cycles > 0);
	assert_true(t->away == router_ms(1));
}

// It sleeps when few packets arrive, which makes nothing late or lost.
static void it_rests(void **state)
{
	struct trial_plan plan = whole_plan(PACKETS);
	const struct trial *t;

	connect_one(stream(false, 64, 1000));
	plan.packets_per_second = 200000;
	plan.rest_us = 100;
	t = router_run(&plan, across);
	assert_int_equal(total(t)->due, PACKETS);
	assert_int_equal(total(t)->received, total(t)->sent); // other programs may have made it late
	// At least when it waits for the last frames. The kernel's clock may differ from the TSC.
	assert_true(t->turns > 0 && t->turn_cycles / t->turns >= router_ms(1) / 11);
	assert_true(t->away == t->sink.clock.hz / 1000000 * 200);
}

// Packets at a port that is not read stay there and are not received.
static void a_port_is_not_read(void **state)
{
	struct trial_plan plan = whole_plan(100);

	connect_one(stream(false, 64, 10));
	plan.unread = profile.ports[1];
	plan.drain = router_ms(50);
	assert_int_equal(total(router_run(&plan, across))->received, 0);
	plan.unread = NULL;
	plan.drain = router_ms(PATIENCE_MS);
	assert_int_equal(total(router_run(&plan, across))->received, 100);
}

// The streams that send share the packets by their weights.
static void silent_streams(void **state)
{
	struct trial_plan plan = whole_plan(100);
	Corelane__V1__GeneratorStream *both[] = {stream(false, 64, 10), back(stream(false, 64, 10))};
	const struct trial *t;
	unsigned i;

	seen = 0;
	wrong = NULL;
	router_connect(2, 2, both);
	for (i = 0; i < 4; i++) { // each of them, with and without a rate
		profile.streams[i % 2].silent = true;
		profile.streams[1 - i % 2].silent = false;
		plan.packets_per_second = i < 2 ? 0 : 20000;
		t = router_run(&plan, across);
		assert_clean(t);
		assert_int_equal(t->streams[i % 2].count.sent, 0);
		assert_int_equal(total(t)->due, 100); // others may have made it late
	}
}

static void sizes_in_turn_both_ways(void **state)
{
	struct trial_plan plan = whole_plan(PACKETS);
	Corelane__V1__GeneratorStream *both[] = {stream(false, 64, 100), back(stream(true, 100, 7))};
	const struct trial *t;
	unsigned i;

	for (i = 0; i < 2; i++) {
		both[i]->n_sizes = 3;
		both[i]->sizes[1] = 570;
		both[i]->sizes[2] = 1518;
	}
	both[1]->sizes[2] = 9000;
	both[1]->weight = 3;
	seen = 0;
	wrong = NULL;
	router_connect(2, 2, both);
	t = router_run(&plan, across);
	assert_clean(t);
	assert_int_equal(t->streams[0].count.sent, PACKETS / 4);
	assert_int_equal(t->streams[1].count.sent, PACKETS - PACKETS / 4);
}

// What is due follows from the cycles of a window, whatever the machine does: what it was late for counts as due, too.
static void assert_due(uint64_t due, uint64_t cycles)
{
	uint64_t want = cycles * 250 / router_ms(1);

	assert_in_range(due, want - RTE_MIN(want, 258u), want + 258); // a turn sends up to 256 of what is due
}

static void the_rate_is_kept(void **state)
{
	struct trial_plan plan = whole_plan(0);
	struct stream_count sum = {0};
	const struct trial *t;
	uint64_t cycles = 0;
	unsigned i;

	plan.duration = router_ms(400);
	plan.packets_per_second = 250000;
	connect_one(stream(false, 64, 100));
	t = router_run(&plan, across);
	assert_int_equal(t->total.cycles, plan.duration);
	assert_due(total(t)->due, t->total.cycles);
	assert_int_equal(total(t)->received, total(t)->sent);
	assert_in_range(t->n_written, 8, 9); // of 50 ms, and what is left by rounding
	for (i = 0; i < t->n_written; i++) {
		const struct window *w = &t->windows[i];

		assert_due(w->count.due, w->cycles);
		cycles += w->cycles;
		sum.due += w->count.due;
		sum.sent += w->count.sent;
	}
	assert_int_equal(cycles, plan.duration);
	assert_int_equal(sum.due, total(t)->due);
	assert_int_equal(sum.sent, total(t)->sent);
}

// Sends what becomes due until `active` cycles of sending have passed. Returns the number of frames.
static unsigned sends_until(struct trial *t, uint64_t active)
{
	return send_due(t, rte_rdtsc(), active);
}

// A trial that is stepped: nothing empties the ring, so that 1024 frames fit.
static struct trial *stepped(struct trial_plan plan)
{
	struct trial *t = port_new(sizeof(*t));

	t->plan = plan;
	assert_int_equal(trial_init(t, 1), 0);
	return t;
}

static void stepped_ends(struct trial *t)
{
	send_fini(t);
	free(t);
}

// A burst each 5 ms: a hundred frames as on a wire, and nothing before the next one.
static void bursts_have_gaps(void **state)
{
	struct trial_plan plan = router_plan(10 * 100);
	unsigned us, sent, burst = 0;
	struct trial *t;

	plan.burst = 100;
	plan.packets_per_second = 20000;
	connect_one(stream(false, 64, 10));
	t = stepped(plan);
	for (us = 0; us < 50000; us += 10) {
		sent = sends_until(t, us * (t->sink.clock.hz / 1000000));
		burst = us % 5000 == 0 ? sent : burst + sent;
		if (us % 5000 == 20) // they need 3 us
			assert_int_equal(burst, 100);
		else if (us % 5000 > 20)
			assert_int_equal(sent, 0);
	}
	assert_int_equal(t->streams[0].count.late + t->streams[0].count.no_room, 0);
	stepped_ends(t);
}

// What became due while gen-poll did not run would be a burst: with latencies, it is late and not sent.
static void no_burst_after_a_gap(void **state)
{
	struct trial *t = port_new(sizeof(*t));
	unsigned i;

	connect_one(stream(false, 64, 10));
	for (i = 0; i < 2; i++) {
		t->plan = router_plan(0);
		t->plan.latency = i == 0;
		t->plan.packets_per_second = 1e6;
		t->last_sent = 0;
		assert_int_equal(trial_init(t, 1), 0);
		assert_in_range(sends_until(t, t->away / 2), AWAY_US / 2, AWAY_US / 2 + 1);
		assert_in_range(sends_until(t, t->away * 4), i == 0 ? 0 : 69, i == 0 ? 0 : 71);
		assert_in_range(t->streams[0].count.late, i == 0 ? 69 : 0, i == 0 ? 71 : 0);
		assert_in_range(sends_until(t, t->away * 4 + t->away / 2), AWAY_US / 2 - 1, AWAY_US / 2 + 1);
		send_fini(t);
	}
	free(t);
}

// A stream that is not timed sends little in a turn when others are timed.
static void untimed_streams_take_short_turns(void **state)
{
	struct trial *t = port_new(sizeof(*t));
	unsigned i;

	connect_one(stream(false, 64, 10));
	for (i = 0; i < 4; i++) {
		t->plan = router_plan(0);
		t->plan.latency = i % 2 == 0;
		t->plan.packets_per_second = 1e8;
		t->last_sent = 0;
		profile.streams[0].untimed = i < 2;
		assert_int_equal(trial_init(t, 1), 0);
		assert_int_equal(sends_until(t, t->away / 2), i == 0 ? 16 : 256);
		send_fini(t);
	}
	free(t);
}

static int keeps(int side, struct rte_mbuf *m, unsigned *copies, bool *hold)
{
	return -1;
}

// The ring is not emptied: frames that are due after it is full have no room, or the generator was late.
static void a_full_ring_is_told(void **state)
{
	struct trial_plan plan = whole_plan(5000);
	const struct trial *t;
	unsigned tries = TRIES;

	plan.packets_per_second = 1e6;
	plan.drain = router_ms(1);
	connect_one(stream(false, 64, 10));
	do {
		t = router_run(&plan, NULL);
		assert_int_equal(total(t)->due, 5000);
		assert_in_range(total(t)->sent, 0, 1024);
		assert_int_equal(total(t)->received, 0);
	} while (total(t)->late == 5000 && --tries > 0);
	assert_true(total(t)->sent > 0);
	tries = TRIES;
	plan.packets_per_second = 0;
	plan.packets = 0;
	plan.duration = router_ms(20);
	t = router_run(&plan, NULL);
	assert_in_range(total(t)->sent, 0, 1024);
	assert_int_equal(total(t)->sent, total(t)->due);
	do
		t = router_run(&plan, keeps);
	while (total(t)->sent <= 1024 && --tries > 0);
	assert_int_not_equal(tries, 0);
}

// A generator that rests is not late when the ring is full: it has no room for what became due meanwhile.
static void it_rests_beside_a_full_ring(void **state)
{
	struct trial_plan plan = whole_plan(100000);
	const struct trial *t;
	unsigned tries = TRIES;

	plan.packets_per_second = 5e6;
	plan.rest_us = 100;
	plan.drain = router_ms(1);
	connect_one(stream(false, 64, 10));
	do {
		t = router_run(&plan, NULL);
		assert_int_equal(total(t)->due, 100000);
		assert_int_equal(total(t)->sent + total(t)->no_room + total(t)->late, 100000);
	} while (total(t)->no_room <= total(t)->late && --tries > 0);
	assert_int_not_equal(tries, 0);
}

// Frames of the trial before do not count.
static void stragglers_are_stale(void **state)
{
	struct trial_plan plan = whole_plan(500);
	const struct trial *t;

	plan.drain = router_ms(1);
	connect_one(stream(false, 64, 10));
	t = router_run(&plan, NULL);
	assert_int_equal(total(t)->received, 0);
	plan.drain = router_ms(PATIENCE_MS);
	t = router_run(&plan, across);
	assert_int_equal(total(t)->received, 500);
	assert_int_equal(t->sink.stale, 500);
}

// Frames that come back while the generator does not run are not lost, however long it is away. The router's thread may
// not have had a CPU in that time: then the trial is repeated.
static void the_wait_ends_with_a_look(void **state)
{
	struct trial_plan plan = router_plan(1000);
	unsigned tries = 100;
	const struct trial *t;

	plan.drain = router_ms(1);
	plan.rest_us = 50000;
	connect_one(stream(false, 64, 10));
	do {
		t = router_run(&plan, across);
		assert_int_equal(total(t)->sent, 1000);
	} while (total(t)->received < 1000 && --tries > 0);
	assert_int_not_equal(tries, 0);
	assert_clean(t);
}

static uint8_t ports_seen[65536 / 8];

static int collects_flows(int side, struct rte_mbuf *m, unsigned *copies, bool *hold)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *) + 34;
	unsigned port = p[0] << 8 | p[1];

	seen += !(ports_seen[port / 8] & 1 << port % 8);
	ports_seen[port / 8] |= 1 << port % 8;
	return !side;
}

static void flows_come_and_go(void **state)
{
	Corelane__V1__GeneratorStream *m = stream(false, 64, 100);
	struct trial_plan plan = whole_plan(0);
	const struct trial *t;
	struct trial *own;
	unsigned ms;

	m->flows->source_ports = 50000;
	m->flows->destination_ports = 1;
	m->flows->new_per_second = 10000;
	plan.duration = router_ms(300);
	plan.packets_per_second = 200000; // each flow would be seen 2000 times a second, and lasts 10 ms
	connect_one(m);
	t = router_run(&plan, collects_flows);
	assert_clean(t);
	assert_in_range(t->streams[0].renewed, 1, t->total.cycles * 10 / router_ms(1) + 1);
	assert_in_range(seen, 1, t->streams[0].renewed + 100);
	if (total(t)->late == 0) {
		assert_in_range(t->streams[0].renewed, 2900, 3001);
		assert_in_range(seen, 2900, 3101);
	}
	own = stepped(plan);
	for (ms = 0; ms <= 300; ms++) {
		sends_until(own, router_ms(ms));
		assert_in_range(own->streams[0].renewed, ms * 10 - (ms > 0), ms * 10 + 1);
	}
	stepped_ends(own);
}

// Both ends of one memif: the copying server, and the client in its own memory.
static void server_and_client(void **state)
{
	Corelane__V1__GeneratorPort *ports[] = {message_port("a", router_socket(0)),
						message_port("b", router_socket(0))};
	Corelane__V1__GeneratorStream *both[] = {stream(false, 64, 1000), back(stream(true, 9000, 7))};
	Corelane__V1__GeneratorProfile p = CORELANE__V1__GENERATOR_PROFILE__INIT;
	struct trial_plan plan = whole_plan(PACKETS);
	const struct trial *t;

	ports[0]->memif->server = true;
	ports[0]->memif->queues = ports[1]->memif->queues = 3;
	p.n_ports = p.n_streams = 2;
	p.ports = ports;
	p.streams = both;
	router_configure(&p);
	t = router_run(&plan, NULL);
	assert_int_equal(total(t)->sent, PACKETS);
	assert_clean(t);
}

static void a_peer_that_goes(void **state)
{
	struct trial_plan plan = whole_plan(0);
	unsigned i;

	for (i = 0; i < 20; i++) {
		struct trial *t = port_new(sizeof(*t));

		plan.duration = router_ms(3600000);
		connect_one(stream(false, 64, 10));
		t->plan = plan;
		assert_int_equal(trial_init(t, 1), 0);
		poll_run(t);
		router_pump(2);
		router_drop(0);
		assert_true(wait_until((router_pump(1), !profile.ports[0]->ops->up(profile.ports[0]))));
		assert_false(poll_idle());
		t->stop = TRIAL_ABANDON;
		while (!poll_idle())
			router_pump(1);
		send_fini(t);
		free(t);
		router_disconnect(state);
	}
}

// Another profile with the same ports leaves them connected.
static void ports_that_stay(void **state)
{
	Corelane__V1__GeneratorPort *ports[] = {message_port("a", router_socket(0)),
						message_port("b", router_socket(1))};
	Corelane__V1__GeneratorStream *s = stream(true, 500, 10);
	Corelane__V1__GeneratorProfile p = CORELANE__V1__GENERATOR_PROFILE__INIT;
	struct trial_plan plan = whole_plan(PACKETS);
	const struct gen_port *a;
	struct error err;

	connect_one(stream(false, 64, 10));
	a = profile.ports[0];
	p.n_ports = 2;
	p.ports = ports;
	p.n_streams = 1;
	p.streams = &s;
	assert_int_equal(profile_set(&p, &err), 0);
	assert_ptr_equal(profile.ports[0], a);
	assert_true(a->ops->up(a));
	assert_clean(router_run(&plan, across)); // although the pattern has other headers
}

#define TEST(f) cmocka_unit_test_teardown(f, router_disconnect)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_frame_comes_back), TEST(the_cpu_is_shared),         TEST(it_rests),
		TEST(a_port_is_not_read),     TEST(sizes_in_turn_both_ways),   TEST(the_rate_is_kept),
		TEST(bursts_have_gaps),       TEST(a_full_ring_is_told),       TEST(it_rests_beside_a_full_ring),
		TEST(stragglers_are_stale),   TEST(the_wait_ends_with_a_look), TEST(flows_come_and_go),
		TEST(server_and_client),      TEST(a_peer_that_goes),          TEST(ports_that_stay),
		TEST(silent_streams),         TEST(no_burst_after_a_gap),      TEST(untimed_streams_take_short_turns),
		TEST(percentile_of_a_window), TEST(windows_have_latencies),
	};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
