// SPDX-License-Identifier: Apache-2.0
// The router of the tests.
#include "gen_router.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>
#include <rte_eal.h>

#include "base/loop.h"
#include "gen_api.h"
#include "poll.h"
#include "port/memif/memif_conn.h"
#include "testing/wait_until.h"

#define QUEUES 4

static struct side {
	struct memif_if mif;
	struct memif_shm *shm;
	struct memif_counters count;
	struct rte_mbuf *held;
} sides[2];

static char directory[64];
static struct rte_mempool *pool;
static struct trial *trial;
static router_fn carry;
static bool quit;

uint64_t router_ms(double ms)
{
	return (uint64_t)(ms * (double)rte_get_tsc_hz() / 1000);
}

static unsigned some_cpu(void)
{
	unsigned i;
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	for (i = 0; !CPU_ISSET(i, &set); i++)
		;
	return i;
}

int router_setup(void **state)
{
	static char *argv[] = {"gen_test",    "--no-huge", "-m", "256",         "--no-pci", "--no-telemetry",
			       "--no-shconf", "-l",        "0",  "--log-level", "error"};
	struct error err;

	snprintf(directory, sizeof(directory), "/tmp/gen_test.XXXXXX");
	if (rte_eal_init(RTE_DIM(argv), argv) < 0 || mkdtemp(directory) == NULL)
		return -1;
	rte_thread_set_affinity(&(rte_cpuset_t){{[0] = ~0ul}}); // lets the router's thread leave the CPU of gen-poll
	pool = rte_pktmbuf_pool_create("router", 8191, 0, 0, 10240, SOCKET_ID_ANY);
	loop_set_base(event_base_new());
	pattern_init();
	return pool == NULL || poll_start(some_cpu(), gen_api_poll, &err) < 0 ? -1 : 0;
}

int router_teardown(void **state)
{
	profile_clear();
	poll_stop();
	event_base_free(loop_base());
	rte_mempool_free(pool);
	rte_eal_cleanup();
	return rmdir(directory); // fails when a socket has been left behind
}

const char *router_socket(int side)
{
	static char paths[2][96];

	snprintf(paths[side], sizeof(paths[side]), "%s/%c", directory, 'a' + side);
	return paths[side];
}

static void gen_router_up(struct memif_if *mif, struct memif_shm *shm)
{
	struct side *s = mif->arg;
	uint16_t i;

	for (i = 0; i < shm->n_rx; i++)
		memif_queue_attach_rx(&shm->rx[i], pool, 0, &s->count);
	for (i = 0; i < shm->n_tx; i++)
		memif_queue_attach_tx(&shm->tx[i], &s->count, false);
	s->shm = shm;
}

static void gen_router_down(struct memif_if *mif, struct memif_shm *shm, const char *reason)
{
	struct side *s = mif->arg;

	s->shm = NULL;
	memif_shm_free(shm);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void router_pump(unsigned ms)
{
	uint64_t end = now_ms() + ms;

	do {
		event_base_loop(loop_base(), EVLOOP_NONBLOCK);
		usleep(200);
	} while (now_ms() < end);
}

void router_configure(const Corelane__V1__GeneratorProfile *p)
{
	struct error err = {0};
	unsigned i;

	if (profile_set(p, &err) < 0)
		fail_msg("%s", err.message);
	for (i = 0; i < profile.n_ports; i++) {
		assert_true(wait_until((router_pump(1), profile.ports[i]->ops->up(profile.ports[i]))));
	}
}

void router_listen(void)
{
	struct error err;
	int i;

	for (i = 0; i < 2; i++) {
		struct memif_if *mif = &sides[i].mif;

		*mif = (struct memif_if){.base = loop_base(),
					 .queues = QUEUES,
					 .log2_ring = 10,
					 .up = gen_router_up,
					 .down = gen_router_down,
					 .arg = &sides[i]};
		assert_true(snprintf(mif->socket, sizeof(mif->socket), "%s", router_socket(i)) <
			    (int)sizeof(mif->socket));
		assert_int_equal(memif_if_start(mif, &err), 0);
	}
}

void router_connect(unsigned queues, unsigned n_streams, Corelane__V1__GeneratorStream **streams)
{
	Corelane__V1__GeneratorPort *ports[] = {message_port("a", router_socket(0)),
						message_port("b", router_socket(1))};
	Corelane__V1__GeneratorProfile p = CORELANE__V1__GENERATOR_PROFILE__INIT;

	router_listen();
	ports[0]->memif->queues = ports[1]->memif->queues = queues;
	p.n_ports = 2;
	p.ports = ports;
	p.n_streams = n_streams;
	p.streams = streams;
	router_configure(&p);
}

void router_drop(int side)
{
	memif_if_stop(&sides[side].mif);
	sides[side].mif.base = NULL;
}

int router_disconnect(void **state)
{
	int i;

	profile_clear();
	router_pump(1);
	for (i = 0; i < 2; i++)
		if (sides[i].mif.base != NULL)
			router_drop(i);
	return rte_mempool_in_use_count(pool) == 0 ? 0 : -1;
}

// Retries until the frame is sent or the test ends: no frame is lost here unless the test says so.
static void send_out(struct side *s, unsigned queue, struct rte_mbuf *m)
{
	struct memif_queue *q = &s->shm->tx[queue % s->shm->n_tx];

	while (memif_tx(q, &m, 1) == 0) {
		if (__atomic_load_n(&quit, __ATOMIC_RELAXED)) {
			rte_pktmbuf_free(m);
			return;
		}
		sched_yield();
	}
}

static void gen_router_forward(int from, unsigned queue, struct rte_mbuf *m)
{
	unsigned copies = 0;
	bool hold = false;
	int to = carry(from, m, &copies, &hold);
	struct side *s = &sides[RTE_MAX(to, 0)];

	if (to < 0) {
		rte_pktmbuf_free(m);
		return;
	}
	for (; copies > 0; copies--)
		send_out(s, queue, rte_pktmbuf_copy(m, pool, 0, UINT32_MAX));
	if (hold && s->held == NULL) {
		s->held = m;
		return;
	}
	send_out(s, queue, m);
	if (s->held != NULL)
		send_out(s, queue, s->held);
	s->held = NULL;
}

static void *router_main(void *arg)
{
	struct rte_mbuf *pkts[64];
	unsigned i, q, k, n;

	while (!__atomic_load_n(&quit, __ATOMIC_RELAXED)) {
		unsigned moved = 0;

		for (i = 0; i < 2; i++) {
			for (q = 0; q < sides[i].shm->n_rx; q++) {
				n = memif_rx(&sides[i].shm->rx[q], pkts, RTE_DIM(pkts));
				for (k = 0; k < n; k++)
					gen_router_forward((int)i, q, pkts[k]);
				moved += n;
			}
		}
		if (moved == 0)
			sched_yield();
	}
	for (i = 0; i < 2; i++) {
		rte_pktmbuf_free(sides[i].held);
		sides[i].held = NULL;
	}
	return NULL;
}

struct trial_plan router_plan(uint64_t packets)
{
	return (struct trial_plan){.packets = packets,
				   .window = router_ms(50),
				   .drain = router_ms(2000),
				   .burst = 1,
				   .verify = VERIFY_ALL,
				   .latency = true};
}

const struct trial *router_run(const struct trial_plan *plan, router_fn fn)
{
	static uint8_t number;
	pthread_t thread;

	if (trial != NULL)
		send_fini(trial);
	free(trial);
	trial = port_new(sizeof(*trial));
	trial->plan = *plan;
	number = number == 255 ? 1 : number + 1;
	assert_int_equal(trial_init(trial, number), 0);
	carry = fn;
	quit = false;
	if (fn != NULL)
		assert_int_equal(pthread_create(&thread, NULL, router_main, NULL), 0);
	poll_run(trial);
	while (!poll_idle())
		router_pump(1);
	__atomic_store_n(&quit, true, __ATOMIC_RELAXED);
	if (fn != NULL)
		pthread_join(thread, NULL);
	assert_int_equal(trial->total.count.due,
			 trial->total.count.sent + trial->total.count.no_room + trial->total.count.late);
	return trial;
}
