// SPDX-License-Identifier: Apache-2.0
// vhost-user ports whose guests are killed repeatedly under load, at any moment; guests that misbehave; ports that are
// removed while their guest connects. CORELANE_CHURN=1000 sets the number of guests (default 40).
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "port/port_fixture.h"
#include "port/vhost_guest.h"
#include "testing/wait_until.h"

#define CHURN_DEFAULT 40

static char dir[] = "/tmp/corelane-churn-XXXXXX";
static int forker; // to the process that forks guests

static struct port_config config(const char *name, bool client, uint16_t queues)
{
	struct port_config cfg = fixture_config("vhost", PORT_TENANT, queues);

	snprintf(cfg.socket, sizeof(cfg.socket), "%s/%s", dir, name);
	cfg.client = client;
	return cfg;
}

enum reach { REACH_NOTHING, REACH_STARTED, REACH_ECHO, REACH_ALL_RINGS };

struct churn {
	char path[108];
	bool server, hostile;
	enum reach reach; // what a guest has done before its time begins
	unsigned pairs, cycles, min_ms, max_ms;
};

struct churn_result {
	unsigned started; // guests that began to send
	unsigned echoing; // guests that got packets back
	unsigned served;  // guests that could send on every ring
	uint64_t received;
};

struct guest_report { // shared with the guest, which may die at any moment
	unsigned started, served;
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
		report->served = report->served || guest_served(&g);
		usleep(10);
	}
}

static bool churn_reached(const struct guest_report *report, enum reach reach)
{
	switch (reach) {
	case REACH_NOTHING:
		break;
	case REACH_STARTED:
		return __atomic_load_n(&report->started, __ATOMIC_RELAXED) != 0;
	case REACH_ECHO:
		return __atomic_load_n(&report->received, __ATOMIC_RELAXED) > 0;
	case REACH_ALL_RINGS:
		return churn_reached(report, REACH_ECHO) && __atomic_load_n(&report->served, __ATOMIC_RELAXED) != 0;
	}
	return true;
}

static void churn_once(const struct churn *c, unsigned seed, struct churn_result *result)
{
	struct guest_report *report = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned life = c->min_ms + (unsigned)rand_r(&seed) % (c->max_ms - c->min_ms + 1);
	pid_t pid = fork();

	if (pid == 0)
		churn_guest(c, seed, report);
	wait_until(churn_reached(report, c->reach));
	usleep(life * 1000 + (unsigned)rand_r(&seed) % 1000);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	result->started += report->started;
	result->echoing += report->received > 0;
	result->served += report->served;
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

// Waits until the library's thread has noticed the death of the last guest.
static void settle(struct port *p)
{
	unsigned before, tries = 0;

	do {
		before = fixture_fds();
		fixture_loop_ms(250);
	} while ((p->link_up || p->peer_connects != p->peer_disconnects || fixture_fds() != before) &&
		 ++tries < PATIENCE_MS / 250);
	assert_false(p->link_up);
	assert_int_equal(p->peer_connects, p->peer_disconnects);
}

// REACH_NOTHING: some die in the middle of the handshake.
static void churn_port(bool client, bool hostile, uint16_t queues, unsigned pairs, enum reach reach, unsigned max_ms,
		       unsigned cycles)
{
	struct port_config cfg = config("churn", client, queues);
	struct churn c = {.server = client,
			  .hostile = hostile,
			  .reach = hostile ? REACH_STARTED : REACH_ECHO,
			  .pairs = pairs,
			  .cycles = 2,
			  .min_ms = 20,
			  .max_ms = 20};
	struct port *p = fixture_must_open(&cfg);
	struct churn_result r;
	unsigned fds, mbufs;

	fixture_poll(p, true);
	churn(cfg.socket, c); // for memory that is allocated only once
	settle(p);
	fixture_poll(NULL, false);
	fds = fixture_fds();
	mbufs = fixture_mbufs();
	fixture_poll(p, true);
	c.cycles = cycles;
	c.reach = reach;
	c.min_ms = 0;
	c.max_ms = max_ms;
	r = churn(cfg.socket, c);
	settle(p);
	print_message("# %s, %u queues, guests with %u pairs%s: %u killed, %u started, %u echoing, %lu connects, %lu "
		      "packets came back\n",
		      client ? "client" : "server", queues, pairs, hostile ? ", hostile" : "", cycles, r.started,
		      r.echoing, p->peer_connects, r.received);
	if (reach >= REACH_STARTED)
		assert_int_equal(r.started, cycles);
	if (reach >= REACH_ECHO) {
		assert_int_equal(r.echoing, cycles);
		assert_true(p->peer_connects >= cycles);
	}
	if (reach >= REACH_ALL_RINGS)
		assert_int_equal(r.served, cycles);
	fixture_poll(NULL, false);
	assert_true(wait_until(fixture_fds() == fds && fixture_mbufs() == mbufs));
	fixture_close(p);
	assert_int_equal(fixture_mbufs(), mbufs);
}

static void killed(void **state)
{
	churn_port(false, false, 2, 2, REACH_ECHO, 12, churn_cycles(1));
}

static void killed_early(void **state)
{
	churn_port(false, false, 2, 2, REACH_NOTHING, 4, churn_cycles(1));
}

static void killed_server(void **state)
{
	churn_port(true, false, 2, 2, REACH_ECHO, 12, churn_cycles(4));
}

static void hostile(void **state)
{
	churn_port(false, true, 2, 2, REACH_STARTED, 30, churn_cycles(2));
}

static void more_pairs_than_queues(void **state)
{
	churn_port(false, false, 1, 4, REACH_ALL_RINGS, 20, 5);
	churn_port(false, false, 4, 1, REACH_ALL_RINGS, 20, 5);
}

// Ports are added and removed while guests connect and die. Each port lives a little longer than the one before, so
// that each guest finds one that lives long enough, however slow the machine is.
static void ports_removed(void **state)
{
	struct churn c = {.reach = REACH_STARTED, .pairs = 1, .cycles = 60, .min_ms = 1, .max_ms = 6};
	struct pollfd poll_fd = {.fd = forker, .events = POLLIN};
	struct port_config cfg = config("goes", false, 1);
	struct churn_result r;
	unsigned fds, n;
	struct port *p;

	fixture_close(fixture_must_open(&cfg));
	fds = fixture_fds();
	snprintf(c.path, sizeof(c.path), "%s", cfg.socket);
	assert_int_equal(send(forker, &c, sizeof(c), 0), sizeof(c));
	for (n = 0; n < 20 || poll(&poll_fd, 1, 0) == 0; n++) {
		p = fixture_must_open(&cfg);
		fixture_poll(p, true);
		fixture_loop_ms(1 + n % 25 + n / 50);
		fixture_close(p);
	}
	assert_int_equal(recv(forker, &r, sizeof(r), 0), sizeof(r));
	print_message("# %u guests met %u ports\n", r.started, n);
	assert_int_equal(r.started, c.cycles);
	assert_true(wait_until(fixture_fds() == fds));
}

static int stop(void **state)
{
	close(forker);
	rmdir(dir);
	return fixture_stop(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed),  cmocka_unit_test(killed_early),           cmocka_unit_test(killed_server),
		cmocka_unit_test(hostile), cmocka_unit_test(more_pairs_than_queues), cmocka_unit_test(ports_removed)};
	int pair[2];

	fixture_require();
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
