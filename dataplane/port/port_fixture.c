// SPDX-License-Identifier: Apache-2.0
#include "port/port_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include "dpdk/eal_init.h"
#include "base/loop.h"
#include "base/rcu.h"

struct job {
	struct port *port;
	bool echo;
};

static struct job jobs[2], *job; // job: master wo, worker ro (RCU)
static pthread_t worker;
static bool stop;
static uint16_t next_id = 1;
unsigned fixture_too_long;
unsigned fixture_no_buffer;
const struct drop_reason *fixture_refused;

void port_no_buffer(const struct port *port)
{
	fixture_no_buffer++;
}

void port_link_changed(struct port *port, bool link_up, bool peer_connected)
{
	port->peer_connects += peer_connected && !port->peer_connected;
	port->peer_disconnects += !peer_connected && port->peer_connected;
	port->peer_connected = peer_connected;
	port->link_up = port->up = link_up;
}

void port_refused_too_long(const struct port *port)
{
	fixture_too_long++;
}

void port_refused(const struct port *port, struct rte_mbuf *m, const struct drop_reason *why)
{
	fixture_refused = why;
	rte_pktmbuf_free(m);
}

// Arms and disarms as a waiting worker does, whatever the peer does.
static void arm_sometimes(struct port_queue *q)
{
	const struct port_ops *ops = q->port->ops;

	if (q->armed)
		ops->disarm(q, true);
	q->armed = q->armed == 0 && port_queue_wakes(q) && ops->arm(q) >= 0;
}

static void poll_queue(const struct job *j, struct port_queue *q)
{
	struct rte_mbuf *pkts[BATCH];
	uint16_t n = j->port->ops->rx(q, pkts, BATCH), sent = 0;

	if (j->echo && n > 0)
		sent = j->port->ops->tx(q, pkts, n);
	if (n == 0)
		arm_sometimes(q);
	rte_pktmbuf_free_bulk(pkts + sent, (unsigned)(n - sent));
}

static void *worker_main(void *arg)
{
	const struct job *j;
	uint16_t i;

	rte_thread_register();
	rcu_reader_online(0);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		j = rcu_read(job);
		for (i = 0; j != NULL && i < j->port->n_queues; i++)
			poll_queue(j, &j->port->queues[i]);
		rcu_quiescent(0);
		if (j == NULL)
			usleep(100);
		else
			sched_yield(); // the test machine has few CPUs
	}
	rcu_reader_offline(0);
	rte_thread_unregister();
	return NULL;
}

static void skip_all(const char *why)
{
	printf("1..0 # SKIP %s\n", why); // as the TAP protocol has it
	exit(0);
}

void fixture_require(void)
{
	if (geteuid() != 0)
		skip_all("network interfaces need root");
	if (access("/dev/net/tun", R_OK | W_OK) < 0 || fixture_run("ip netns list >/dev/null 2>&1") != 0)
		skip_all("needs /dev/net/tun and iproute2");
}

int fixture_start(void **state)
{
	char prefix[48]; // a directory of its own, which no other test removes
	char *args[] = {
		"test",           "--lcores=0@(0-1)",          "--no-huge", "-m", "512", "--no-pci", "--no-shconf",
		"--no-telemetry", "--log-level=lib.eal:error", prefix,      NULL};

	snprintf(prefix, sizeof(prefix), "--file-prefix=port-test-%d", (int)getpid());
	if (sysconf(_SC_NPROCESSORS_CONF) < 2)
		args[1] = "--lcores=0@0";
	// A network namespace of its own: nothing is left behind, whatever happens.
	if (unshare(CLONE_NEWNET) < 0 || fixture_run("ip link set lo up") != 0)
		return -1;
	if (eal_init(RTE_DIM(args) - 1, args) < 0 || rcu_init() < 0)
		return -1;
	loop_set_base(event_base_new());
	return pthread_create(&worker, NULL, worker_main, NULL);
}

int fixture_stop(void **state)
{
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(worker, NULL);
	rcu_fini();
	event_base_free(loop_base());
	port_pool_fini();
	return rte_eal_cleanup();
}

struct port_config fixture_config(const char *kind, enum port_role role, uint16_t queues)
{
	return (struct port_config){.name = "test", .kind = kind, .role = role, .queues = queues, .mtu = 1500};
}

struct port *fixture_open(const struct port_config *cfg, struct error *err)
{
	static const struct port_ops *const kinds[] = {&port_dpdk_ops, &port_tap_ops, &port_vhost_ops};
	struct port *p = rte_zmalloc("port", sizeof(*p), RTE_CACHE_LINE_SIZE);
	uint16_t i;

	p->id = next_id++;
	p->cfg = *cfg;
	p->role = (uint8_t)cfg->role;
	p->n_queues = cfg->queues;
	for (i = 0; i < RTE_DIM(kinds); i++)
		if (strcmp(kinds[i]->kind, cfg->kind) == 0)
			p->ops = kinds[i];
	for (i = 0; i < PORT_MAX_QUEUES; i++) {
		p->queues[i].port = p;
		p->queues[i].index = i;
	}
	if (p->ops->open(p, cfg, err) == 0)
		return p;
	rte_free(p);
	return NULL;
}

struct port *fixture_must_open(const struct port_config *cfg)
{
	struct error err = {};
	struct port *p = fixture_open(cfg, &err);

	if (p == NULL)
		fail_msg("%s", err.message);
	return p;
}

void fixture_close(struct port *port)
{
	if (job != NULL && job->port == port)
		fixture_poll(NULL, false);
	port->ops->close(port);
	rte_free(port);
}

static void leave_loop(evutil_socket_t fd, short what, void *arg)
{
	event_base_loopbreak(loop_base());
}

void fixture_loop_ms(unsigned ms)
{
	const struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	event_base_once(loop_base(), -1, EV_TIMEOUT, leave_loop, NULL, &tv);
	event_base_dispatch(loop_base());
}

bool fixture_wait_link(struct port *port, bool up, unsigned ms)
{
	for (; port->link_up != up && ms > 0; ms -= RTE_MIN(ms, 10u))
		fixture_loop_ms(10);
	return port->link_up == up;
}

void fixture_poll(struct port *port, bool echo)
{
	struct job *j = job == &jobs[0] ? &jobs[1] : &jobs[0];

	*j = (struct job){.port = port, .echo = echo};
	rcu_publish(job, port ? j : NULL);
	rcu_synchronize();
}

unsigned fixture_receive(struct port *port, uint16_t queue, struct rte_mbuf **pkts, unsigned n, unsigned ms)
{
	uint64_t end = rte_rdtsc() + rte_get_tsc_hz() / 1000 * ms;
	unsigned got = 0;

	while (got < n && rte_rdtsc() < end)
		got += port->ops->rx(&port->queues[queue], pkts + got, (uint16_t)(n - got));
	return got;
}

struct rte_mbuf *fixture_packet(unsigned len, uint8_t fill)
{
	struct rte_mbuf *head = rte_pktmbuf_alloc(port_pool(SOCKET_ID_ANY)), *m;
	static const uint8_t header[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5};
	unsigned left = len, k;

	assert_non_null(head);
	for (m = head;; left -= k) {
		k = RTE_MIN(left, (unsigned)rte_pktmbuf_tailroom(m));
		memset(rte_pktmbuf_append(m, (uint16_t)k), fill, k);
		if (m != head)
			rte_pktmbuf_chain(head, m);
		if (left == k)
			break;
		m = rte_pktmbuf_alloc(port_pool(SOCKET_ID_ANY));
		assert_non_null(m);
	}
	memcpy(rte_pktmbuf_mtod(head, void *), header, sizeof(header));
	return head;
}

int fixture_run(const char *fmt, ...)
{
	char command[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	return system(command);
}

unsigned fixture_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

unsigned fixture_mbufs(void)
{
	unsigned total, in_use;

	port_pool_usage(&total, &in_use);
	return in_use;
}
