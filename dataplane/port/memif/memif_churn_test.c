// SPDX-License-Identifier: Apache-2.0
// A worker polls a server port at full speed while a thousand clients connect, send at full speed, and are killed.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rte_lcore.h>

#include "base/rcu.h"
#include "base/sanitizers.h"
#include "port/memif/memif_testlib.h"

#define LIVES ASAN_ROUNDS(TSAN_ROUNDS(1000, 150), 200) // forking is slow with the address sanitizer
#define READER 3

// --- a client's life, in a process of its own ---

struct life {
	struct memif_if mif;
	struct memif_counters count[2];
	int report;      // pipe: a byte per connection that came up
	unsigned rounds; // bursts before the client is killed
};

static void blast_and_die(struct memif_if *mif, struct memif_shm *shm)
{
	struct life *life = mif->arg;
	struct rte_mbuf *pkts[BATCH];
	unsigned i, round;
	uint16_t n;

	for (i = 0; i < shm->n_tx; i++)
		memif_queue_attach_tx(&shm->tx[i], &life->count[i], false);
	for (i = 0; i < shm->n_rx; i++)
		memif_queue_attach_rx(&shm->rx[i], test_pool, 0, &life->count[i]);
	if (write(life->report, "u", 1) != 1)
		_exit(1);
	for (round = 0; round < life->rounds; round++) {
		for (i = 0; i < BATCH; i++)
			pkts[i] = test_frame(i % 16 ? 64 : 3000, i, i % 16 ? 1 : 2);
		n = memif_tx(&shm->tx[round % shm->n_tx], pkts, BATCH);
		rte_pktmbuf_free_bulk(pkts + n, BATCH - n);
		n = memif_rx(&shm->rx[round % shm->n_rx], pkts, BATCH);
		rte_pktmbuf_free_bulk(pkts, n);
	}
	raise(SIGKILL);
}

static void refused(struct memif_if *mif, const char *reason)
{
	_exit(0); // the server has yet to notice the previous client's death
}

static void live(const char *socket, int report, unsigned seed)
{
	struct life life = {.report = report, .rounds = seed % 13};
	struct timeval early = {.tv_usec = seed % 3000};
	struct error err;

	life.mif = (struct memif_if){.base = event_base_new(),
				     .client = true,
				     .queues = 2,
				     .log2_ring = 8,
				     .buffer_size = 2048,
				     .up = blast_and_die,
				     .failed = refused,
				     .arg = &life,
				     .name = "mayfly"};
	strcpy(life.mif.socket, socket);
	if (memif_if_start(&life.mif, &err) < 0)
		_exit(1);
	if (seed % 4 == 0) { // one in four is killed during the handshake
		event_base_loopexit(life.mif.base, &early);
		event_base_dispatch(life.mif.base);
		raise(SIGKILL);
	}
	event_base_dispatch(life.mif.base);
	_exit(0);
}

// Forks lives one after the other, before this process has threads.
static pid_t nursery(const char *socket, int report)
{
	pid_t pid = fork(), child;
	unsigned i;

	if (pid != 0)
		return pid;
	for (i = 1;; i++) {
		child = fork();
		if (child == 0)
			live(socket, report, i * 2654435761u >> 8);
		waitpid(child, NULL, 0);
		usleep(200);
	}
}

// --- the worker ---

struct worker {
	struct port *port;
	bool stop;
	uint64_t packets;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	struct rte_mbuf *pkts[BATCH];
	uint64_t before;
	uint16_t q, n, sent;

	rte_thread_register();
	rcu_reader_online(READER);
	while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
		before = w->packets;
		for (q = 0; q < w->port->n_queues; q++) {
			n = port_memif_ops.rx(&w->port->queues[q], pkts, BATCH);
			sent = n > 0 ? port_memif_ops.tx(&w->port->queues[q], pkts, n) : 0;
			rte_pktmbuf_free_bulk(pkts + sent, n - sent);
			w->packets += n;
		}
		rcu_quiescent(READER);
		if (w->packets == before)
			sched_yield(); // to the clients, on a machine with few CPUs
	}
	rcu_reader_offline(READER);
	rte_thread_unregister();
	return NULL;
}

static void killed_under_load(void **state)
{
	struct port_config cfg = test_config("server", false, "churn");
	unsigned mbufs = test_mbufs(), fds, ups = 0;
	time_t limit = time(NULL) + 110;
	struct worker w = {0};
	pthread_t thread;
	int report[2];
	char bytes[64];
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe2(report, O_NONBLOCK | O_CLOEXEC), 0);
	pid = nursery(cfg.socket, report[1]);
	cfg.queues = 2;
	w.port = test_open(&cfg);
	fds = test_fds();
	assert_int_equal(pthread_create(&thread, NULL, work, &w), 0);
	while (ups < LIVES && time(NULL) < limit) {
		test_pump(1);
		n = read(report[0], bytes, sizeof(bytes));
		ups += n > 0 ? n : 0;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	test_pump(200); // until the last orphan has ended
	assert_true(test_wait(w.port, false));
	test_pump(50);
	assert_int_equal(rcu_pending(), 0);
	assert_int_equal(test_fds(), fds);
	__atomic_store_n(&w.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	print_message("# %u lives, %lu connections, %lu packets\n", ups, (unsigned long)w.port->peer_connects,
		      (unsigned long)w.packets);
	assert_true(ups >= LIVES);
	assert_true(w.port->peer_connects >= LIVES);
	assert_int_equal(w.port->peer_connects, w.port->peer_disconnects);
	assert_true(w.packets > LIVES);
	test_close(w.port);
	close(report[0]);
	close(report[1]);
	assert_int_equal(test_mbufs(), mbufs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(killed_under_load)};

	return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
