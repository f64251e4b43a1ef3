// SPDX-License-Identifier: Apache-2.0
// vhost-user ports against DPDK's virtio-user device in another process.
#include <errno.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#include "dpdk/eal_init.h"
#include "port/port_fixture.h"

static char dir[] = "/tmp/corelane-vhost-XXXXXX";

// A guest with DPDK, in a process of its own: argv = guest, path, server, packets per queue. Exits with 0 when all
// packets have come back.

static struct rte_mempool *guest_init(const char *path, const char *server)
{
	char vdev[256];
	char *args[] = {
		"guest",          "--lcores=0@(0-1)",          "--no-huge", "-m", "128", "--no-pci", "--no-shconf",
		"--no-telemetry", "--log-level=lib.eal:error", "--vdev",    vdev, NULL};
	struct rte_eth_conf conf = {};
	struct rte_mempool *pool;
	uint16_t q;

	snprintf(vdev, sizeof(vdev), "net_virtio_user0,path=%s,queues=2,queue_size=256,server=%s", path, server);
	if (sysconf(_SC_NPROCESSORS_CONF) < 2)
		args[1] = "--lcores=0@0";
	if (eal_init(RTE_DIM(args) - 1, args) < 0 || rte_eth_dev_configure(0, 2, 2, &conf) < 0)
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
	const char *server[] = {client ? "1" : "0", client ? "1,packed_vq=1" : "0,packed_vq=1"};
	pid_t pid;
	int i;

	fixture_poll(p, true);
	for (i = 1; i <= 2; i++) { // the second one reconnects, and would take packed rings
		pid = spawn_guest(cfg.socket, server[i - 1], "2000");
		assert_int_equal(wait_guest(pid), 0);
		assert_true(fixture_wait_link(p, false, 2000));
		assert_int_equal(p->peer_connects, i);
		assert_int_equal(p->peer_disconnects, i);
		if (client)
			unlink(cfg.socket);
	}
	pid = spawn_guest(cfg.socket, server[0], "1000000000"); // the port closes while the third one is connected
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

static void refused(void **state)
{
	struct port_config cfg = config("r", false, 1);
	struct port *p = fixture_must_open(&cfg);
	struct stat st;
	unsigned fds = fixture_fds();
	struct error err;

	assert_null(fixture_open(&cfg, &err)); // the path is in use
	assert_string_equal(err.field, "vhost.socket");
	cfg.client = true;
	assert_null(fixture_open(&cfg, &err));
	assert_int_equal(err.code, EEXIST);
	assert_int_equal(fixture_fds(), fds);
	fixture_close(p);
	cfg = config("r", false, 1);
	assert_int_not_equal(stat(cfg.socket, &st), 0); // nothing is left behind
	assert_int_equal(fixture_run("touch %s", cfg.socket), 0);
	assert_null(fixture_open(&cfg, &err)); // a file that is not a socket is kept
	assert_int_equal(err.code, EEXIST);
	assert_int_equal(stat(cfg.socket, &st), 0);
	unlink(cfg.socket);
	assert_int_equal(
		fixture_run("python3 -c 'import socket;socket.socket(socket.AF_UNIX).bind(\"%s\")'", cfg.socket), 0);
	fixture_close(fixture_must_open(&cfg)); // a dead socket is replaced
	cfg = config("no/such/dir", false, 1);
	assert_null(fixture_open(&cfg, &err));
	assert_string_equal(err.field, "vhost.socket");
}

static unsigned vhost_test_created(int watch)
{
	char buf[4096] __attribute__((aligned(8)));
	ssize_t n = read(watch, buf, sizeof(buf)), at;
	const struct inotify_event *e;
	unsigned created = 0;

	for (at = 0; at < n; at += (ssize_t)(sizeof(*e) + e->len)) {
		e = (const struct inotify_event *)(const void *)(buf + at);
		created += (e->mask & IN_CREATE) != 0;
	}
	return created;
}

// Each bind of a socket changes its directory, and a takeover waits for all of them.
static void one_bind(void **state)
{
	struct port_config cfg = config("once", false, 1);
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	assert_true(inotify_add_watch(watch, dir, IN_CREATE | IN_DELETE) >= 0);
	fixture_close(fixture_must_open(&cfg));
	assert_int_equal(vhost_test_created(watch), 1);
	// A socket of a killed daemon is in the way.
	assert_int_equal(
		fixture_run("python3 -c 'import socket;socket.socket(socket.AF_UNIX).bind(\"%s\")'", cfg.socket), 0);
	assert_int_equal(vhost_test_created(watch), 1);
	fixture_close(fixture_must_open(&cfg));
	assert_int_equal(vhost_test_created(watch), 1);
	close(watch);
}

static void assert_access(const char *path, uid_t uid, gid_t gid, mode_t mode)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, uid);
	assert_int_equal(st.st_gid, gid);
	assert_int_equal(st.st_mode & 07777, mode);
}

static void socket_of_a_server(void **state)
{
	struct port_config cfg = config("access", false, 1);
	const struct group *kvm = getgrnam("kvm");
	struct error err;
	struct port *p = fixture_must_open(&cfg);

	assert_access(cfg.socket, 0, kvm ? kvm->gr_gid : 0, 0660);
	fixture_close(p);
	snprintf(cfg.socket_owner, sizeof(cfg.socket_owner), "1234");
	snprintf(cfg.socket_group, sizeof(cfg.socket_group), "root");
	snprintf(cfg.socket_mode, sizeof(cfg.socket_mode), "0606");
	p = fixture_must_open(&cfg);
	assert_access(cfg.socket, 1234, 0, 0606);
	fixture_close(p);
	snprintf(cfg.socket_owner, sizeof(cfg.socket_owner), "no-such-user");
	assert_null(fixture_open(&cfg, &err));
	assert_string_equal(err.field, "port.vhost.socket_owner");
}

static int stop(void **state)
{
	rmdir(dir);
	return fixture_stop(state);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(dpdk_guest), cmocka_unit_test(dpdk_guest_server),
					   cmocka_unit_test(refused), cmocka_unit_test(one_bind),
					   cmocka_unit_test(socket_of_a_server)};

	if (argc == 5)
		_exit(guest_main(argv)); // without exit handlers: leaks of drivers there are not under test
	fixture_require();
	if (mkdtemp(dir) == NULL)
		return 1;
	return cmocka_run_group_tests(tests, fixture_start, stop);
}
