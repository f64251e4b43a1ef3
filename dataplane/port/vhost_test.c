// SPDX-License-Identifier: Apache-2.0
// vhost-user ports against DPDK's virtio-user device in another process, and against a small guest of our own that is killed
// again and again under load. CORELANE_CHURN=1000 sets how often (default 40).
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#include "port/port_fixture.h"
#include "port/vhost_guest.h"

#define CHURN_DEFAULT 40

static char dir[] = "/tmp/corelane-vhost-XXXXXX";
static int forker; // to the process that forks guests

// A guest with DPDK, in a process of its own: argv = guest, path, server, packets per queue. Exits with 0 when all have come back.

static struct rte_mempool *guest_init(const char *path, const char *server)
{
	char vdev[256];
	char *args[] = {"guest", "--lcores=0@(0-1)", "--no-huge", "-m", "128", "--no-pci", "--no-shconf", "--no-telemetry", "--log-level=lib.eal:error",
			"--vdev", vdev, NULL};
	struct rte_eth_conf conf = {};
	struct rte_mempool *pool;
	uint16_t q;

	snprintf(vdev, sizeof(vdev), "net_virtio_user0,path=%s,queues=2,queue_size=256,server=%s", path, server);
	if (sysconf(_SC_NPROCESSORS_CONF) < 2)
		args[1] = "--lcores=0@0";
	if (rte_eal_init(RTE_DIM(args) - 1, args) < 0 || rte_eth_dev_configure(0, 2, 2, &conf) < 0)
		exit(2);
	pool = rte_pktmbuf_pool_create("guest", 4095, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	for (q = 0; q < 2; q++)
		if (pool == NULL || rte_eth_rx_queue_setup(0, q, 256, SOCKET_ID_ANY, NULL, pool) < 0 ||
		    rte_eth_tx_queue_setup(0, q, 256, SOCKET_ID_ANY, NULL) < 0)
			exit(2);
	if (rte_eth_dev_start(0) < 0)
		exit(2);
	return pool;
}

static void guest_send(struct rte_mempool *pool, uint16_t q)
{
	struct rte_mbuf *pkts[8];
	uint16_t sent, i;

	if (rte_pktmbuf_alloc_bulk(pool, pkts, 8) < 0)
		return;
	for (i = 0; i < 8; i++)
		memset(rte_pktmbuf_append(pkts[i], 64), 0x40 + q, 64);
	sent = rte_eth_tx_burst(0, q, pkts, 8);
	rte_pktmbuf_free_bulk(pkts + sent, 8u - sent);
}

static unsigned guest_receive(uint16_t q)
{
	struct rte_mbuf *pkts[32];
	uint16_t n = rte_eth_rx_burst(0, q, pkts, 32), i;

	for (i = 0; i < n; i++)
		if (pkts[i]->pkt_len != 64 || *rte_pktmbuf_mtod(pkts[i], uint8_t *) != 0x40 + q)
			exit(3);
	rte_pktmbuf_free_bulk(pkts, n);
	return n;
}

static int guest_main(char **argv)
{
	struct rte_mempool *pool = guest_init(argv[2], argv[3]);
	unsigned want = (unsigned)atoi(argv[4]), got[2] = {};
	uint64_t end = rte_rdtsc() + 20 * rte_get_tsc_hz();

	while (rte_rdtsc() < end && (got[0] < want || got[1] < want)) {
		guest_send(pool, 0);
		guest_send(pool, 1);
		got[0] += guest_receive(0);
		got[1] += guest_receive(1);
		usleep(50);
	}
	fprintf(stderr, "guest: %u and %u packets came back\n", got[0], got[1]);
	return got[0] >= want && got[1] >= want ? 0 : 1;
}

static pid_t spawn_guest(const char *path, const char *server, const char *count)
{
	char *args[] = {"vhost_test", "guest", (char *)path, (char *)server, (char *)count, NULL};
	pid_t pid;

	assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, environ), 0);
	return pid;
}

static int wait_guest(pid_t pid)
{
	unsigned ms;
	int status;

	for (ms = 0; ms < 30000; ms += 10) {
		fixture_loop_ms(10);
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return -ETIMEDOUT;
}

static struct port_config config(const char *name, bool client, uint16_t queues)
{
	struct port_config cfg = fixture_config("vhost", PORT_TENANT, queues);

	snprintf(cfg.socket, sizeof(cfg.socket), "%s/%s", dir, name);
	cfg.client = client;
	return cfg;
}

static void echo_with_dpdk(bool client)
{
	struct port_config cfg = config(client ? "c" : "s", client, 2);
	struct port *p = fixture_must_open(&cfg);
	const char *server = client ? "1" : "0";
	pid_t pid;
	int i;

	fixture_poll(p, true);
	for (i = 1; i <= 2; i++) { // the second one reconnects
		pid = spawn_guest(cfg.socket, server, "2000");
		assert_int_equal(wait_guest(pid), 0);
		assert_true(fixture_wait_link(p, false, 2000));
		assert_int_equal(p->peer_connects, i);
		assert_int_equal(p->peer_disconnects, i);
		if (client)
			unlink(cfg.socket);
	}
	pid = spawn_guest(cfg.socket, server, "1000000000"); // and the third one is there when the port goes
	assert_true(fixture_wait_link(p, true, 10000));
	fixture_loop_ms(100);
	fixture_close(p);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(cfg.socket);
}

static void dpdk_guest(void **state)
{
	echo_with_dpdk(false);
}

static void dpdk_guest_server(void **state)
{
	echo_with_dpdk(true);
}

// Guests of our own.

struct churn {
	char path[108];
	bool server, hostile;
	unsigned pairs, cycles, min_ms, max_ms;
};

struct churn_result {
	unsigned started; // guests that got as far as traffic
	unsigned echoing; // guests that got packets back
	uint64_t received;
};

struct guest_report { // shared with the guest, which may die at any moment
	unsigned started;
	uint64_t received;
};

static void churn_guest(const struct churn *c, unsigned seed, struct guest_report *report)
{
	struct guest g;

	while (guest_start(&g, c->path, c->server, c->pairs) < 0) {
		if (g.sock >= 0)
			close(g.sock);
		usleep(200);
	}
	report->started = 1;
	for (;;) {
		guest_step(&g);
		if (c->hostile && rand_r(&seed) % 8 == 0)
			guest_misbehave(&g, &seed);
		__atomic_store_n(&report->received, g.received, __ATOMIC_RELAXED);
		usleep(10);
	}
}

static void churn_once(const struct churn *c, unsigned seed, struct churn_result *result)
{
	struct guest_report *report = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned life = c->min_ms + (unsigned)rand_r(&seed) % (c->max_ms - c->min_ms + 1), waited;
	pid_t pid = fork();

	if (pid == 0)
		churn_guest(c, seed, report);
	for (waited = 0; c->min_ms > 0 && !__atomic_load_n(&report->started, __ATOMIC_RELAXED) && waited < 3000; waited++)
		usleep(1000);
	usleep(life * 1000 + (unsigned)rand_r(&seed) % 1000);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	result->started += report->started;
	result->echoing += report->received > 0;
	result->received += report->received;
	munmap(report, 4096);
}

static void forker_main(int sock)
{
	struct churn_result result;
	struct churn c;
	unsigned i;

	while (recv(sock, &c, sizeof(c), 0) == sizeof(c)) {
		memset(&result, 0, sizeof(result));
		for (i = 0; i < c.cycles; i++)
			churn_once(&c, i * 7919 + c.pairs, &result);
		send(sock, &result, sizeof(result), 0);
	}
	_exit(0);
}

static struct churn_result churn(const char *path, struct churn c)
{
	struct pollfd p = {.fd = forker, .events = POLLIN};
	struct churn_result result = {};

	snprintf(c.path, sizeof(c.path), "%s", path);
	assert_int_equal(send(forker, &c, sizeof(c), 0), sizeof(c));
	while (poll(&p, 1, 0) == 0)
		fixture_loop_ms(2);
	assert_int_equal(recv(forker, &result, sizeof(result), 0), sizeof(result));
	return result;
}

static unsigned churn_cycles(unsigned divisor)
{
	const char *env = getenv("CORELANE_CHURN");
	unsigned n = env ? (unsigned)atoi(env) : CHURN_DEFAULT;

	return RTE_MAX(n / divisor, 5u);
}

// The last guest is dead; the library's thread still has to see that.
static void settle(struct port *p)
{
	unsigned before, tries = 0;

	do {
		before = fixture_fds();
		fixture_loop_ms(250);
	} while ((p->link_up || fixture_fds() != before) && ++tries < 20);
	assert_false(p->link_up);
}

// min_ms = 0: some die in the middle of the handshake.
static void churn_port(bool client, bool hostile, uint16_t queues, unsigned pairs, unsigned min_ms, unsigned max_ms, unsigned cycles)
{
	struct port_config cfg = config("churn", client, queues);
	struct churn c = {.server = client, .hostile = hostile, .pairs = pairs, .cycles = 2, .min_ms = 20, .max_ms = 20};
	struct port *p = fixture_must_open(&cfg);
	struct churn_result r;
	unsigned fds, mbufs;

	fixture_poll(p, true);
	churn(cfg.socket, c); // what is allocated once
	settle(p);
	fixture_poll(NULL, false);
	fds = fixture_fds();
	mbufs = fixture_mbufs();
	fixture_poll(p, true);
	c.cycles = cycles;
	c.min_ms = min_ms;
	c.max_ms = max_ms;
	r = churn(cfg.socket, c);
	settle(p);
	assert_int_equal(p->peer_connects, p->peer_disconnects);
	print_message("# %s, %u queues, guests with %u pairs%s: %u killed, %u started, %u echoing, %lu connects, %lu packets came back\n",
		      client ? "client" : "server", queues, pairs, hostile ? ", hostile" : "", cycles, r.started, r.echoing, p->peer_connects,
		      r.received);
	if (min_ms > 0) {
		assert_int_equal(r.started, cycles);
		assert_true(p->peer_connects >= cycles);
	}
	if (!hostile)
		assert_true(r.received > cycles);
	fixture_poll(NULL, false);
	assert_int_equal(fixture_fds(), fds);
	assert_int_equal(fixture_mbufs(), mbufs);
	fixture_close(p);
	assert_int_equal(fixture_mbufs(), mbufs);
}

static void killed(void **state)
{
	churn_port(false, false, 2, 2, 2, 12, churn_cycles(1));
}

static void killed_early(void **state)
{
	churn_port(false, false, 2, 2, 0, 4, churn_cycles(1));
}

static void killed_server(void **state)
{
	churn_port(true, false, 2, 2, 2, 12, churn_cycles(4));
}

static void hostile(void **state)
{
	churn_port(false, true, 2, 2, 2, 30, churn_cycles(2));
}

static void more_pairs_than_queues(void **state)
{
	churn_port(false, false, 1, 4, 10, 20, 5);
	churn_port(false, false, 4, 1, 10, 20, 5);
}

// Ports come and go while their guest does.
static void port_goes(void **state)
{
	struct churn c = {.pairs = 1, .cycles = 60, .min_ms = 1, .max_ms = 6};
	struct pollfd poll_fd = {.fd = forker, .events = POLLIN};
	struct port_config cfg = config("goes", false, 1);
	struct churn_result r;
	unsigned fds = 0, n = 0;
	struct port *p;

	snprintf(c.path, sizeof(c.path), "%s", cfg.socket);
	assert_int_equal(send(forker, &c, sizeof(c), 0), sizeof(c));
	while (poll(&poll_fd, 1, 0) == 0) {
		p = fixture_must_open(&cfg);
		fixture_poll(p, true);
		fixture_loop_ms(1 + n % 25);
		fixture_close(p);
		if (n++ == 0)
			fds = fixture_fds();
	}
	assert_int_equal(recv(forker, &r, sizeof(r), 0), sizeof(r));
	print_message("# %u guests met %u ports\n", r.started, n);
	assert_true(n > 10 && r.started > 10);
	assert_int_equal(fixture_fds(), fds);
}

static void refused(void **state)
{
	struct port_config cfg = config("r", false, 1);
	struct port *p = fixture_must_open(&cfg);
	struct stat st;
	unsigned fds = fixture_fds();
	struct error err;

	assert_null(fixture_open(&cfg, &err)); // twice the same
	assert_string_equal(err.field, "vhost.socket");
	cfg.client = true;
	assert_null(fixture_open(&cfg, &err));
	assert_int_equal(err.code, EEXIST);
	assert_int_equal(fixture_fds(), fds);
	fixture_close(p);
	cfg = config("r", false, 1);
	assert_int_not_equal(stat(cfg.socket, &st), 0); // nothing left behind
	assert_int_equal(fixture_run("touch %s", cfg.socket), 0);
	assert_null(fixture_open(&cfg, &err)); // somebody's file stays
	assert_int_equal(err.code, EEXIST);
	assert_int_equal(stat(cfg.socket, &st), 0);
	unlink(cfg.socket);
	assert_int_equal(fixture_run("python3 -c 'import socket;socket.socket(socket.AF_UNIX).bind(\"%s\")'", cfg.socket), 0);
	fixture_close(fixture_must_open(&cfg)); // a dead socket is replaced
	cfg = config("no/such/dir", false, 1);
	assert_null(fixture_open(&cfg, &err));
	assert_string_equal(err.field, "vhost.socket");
	snprintf(cfg.socket, sizeof(cfg.socket), "relative");
	assert_null(fixture_open(&cfg, &err));
	assert_string_equal(err.field, "vhost.socket");
}

static int stop(void **state)
{
	close(forker);
	rmdir(dir);
	return fixture_stop(state);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(dpdk_guest), cmocka_unit_test(dpdk_guest_server), cmocka_unit_test(killed),
					   cmocka_unit_test(killed_early), cmocka_unit_test(killed_server), cmocka_unit_test(hostile),
					   cmocka_unit_test(more_pairs_than_queues), cmocka_unit_test(port_goes), cmocka_unit_test(refused)};
	int pair[2];

	if (argc == 5)
		_exit(guest_main(argv)); // what drivers leave behind there is not our affair
	if (mkdtemp(dir) == NULL || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return 1;
	if (fork() == 0) { // before there are threads
		close(pair[0]);
		forker_main(pair[1]);
	}
	close(pair[1]);
	forker = pair[0];
	return cmocka_run_group_tests(tests, fixture_start, stop);
}
