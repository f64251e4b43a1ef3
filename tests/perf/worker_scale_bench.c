// SPDX-License-Identifier: Apache-2.0
// The cost of sharing: cycles per packet of workers that share all tables. `corelane bench workers scaling`
// runs it and prints its output, a line of JSON for each window.
//
//	corelane-scale-bench [--cpus 1,0] [--workers 1,2,4,8,16] [--rounds 7] [--window-ms 100] [--control]
//
// Each worker walks the whole graph with packets of its own (256 flows, tenant to VXLAN) that are made anew for each
// walk and counted at the port, so that nothing but the router is shared: VRF, routes, next hops, flow table, zone,
// ports, RCU, counters' summing. Cycles are those in which the worker's thread ran, by the kernel's account, so that
// workers that wait for a CPU do not count as busy.
//
// Two CPUs may slow each other down without sharing a line: as threads of one core, by its caches' bandwidth, by the
// clock. So one worker is also measured next to another process ("apart") that shares nothing. What two
// workers cost in addition is contention. --control adds one counter that all workers write with each packet, to show
// the effect of contention.
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "base/rcu.h"
#include "flow/flow.h"
#include "testing/router_fixture.h"
#include "worker/worker.h"

#define PACKETS 256u // of a worker, each of another flow
#define FRAME_MAX 128
#define WORKERS PORT_MAX_QUEUES
#define TUNNEL FREE_ID
#define SINK_HOSTS "172.16.0.0/12"
#define WARM_MS 20
#define GRACE_MS 5000

struct feed { // of a worker
	struct rte_mbuf *pkts[PACKETS];
	struct rte_mbuf made[PACKETS];
	uint8_t frames[PACKETS][FRAME_MAX];
	uint64_t given, sent;
	unsigned next;
} __rte_cache_aligned;

static struct feed feeds[WORKERS];
static const struct port *source; // polled by all, each its queue
static struct error err;
static unsigned cpus[WORKERS] = {1, 0}, n_cpus = 2, counts[WORKERS] = {1, 2, 4, 8, 16}, n_counts = 5, rounds = 7,
		window_ms = 100;
static bool control, apart; // apart: this is the other process
static uint64_t shared __rte_cache_aligned;
static bool writes_shared __rte_cache_aligned, flowing;

static uint16_t give(struct port_queue *q, struct rte_mbuf **out, uint16_t n)
{
	struct feed *f = &feeds[q->index];
	unsigned i;

	if (!flowing || q->port != source || f->given != f->sent)
		return 0;
	n = RTE_MIN(n, PACKETS);
	for (i = 0; i < n; i++) {
		unsigned at = f->next++ % PACKETS;

		memcpy(f->pkts[at], &f->made[at], sizeof(f->made[at]));
		memcpy(rte_pktmbuf_mtod(f->pkts[at], void *), f->frames[at], FRAME_MAX);
		out[i] = f->pkts[at];
		if (writes_shared)
			__atomic_fetch_add(&shared, 1, __ATOMIC_RELAXED);
	}
	f->given += n;
	return n;
}

static uint16_t take(struct port_queue *q, struct rte_mbuf **in, uint16_t n)
{
	unsigned i, own = 0;

	for (i = 0; i < n; i++) {
		if (likely(in[i]->port == source->id))
			own++;
		else
			rte_pktmbuf_free(in[i]); // packets of the router itself
	}
	feeds[this_worker->id].sent += own;
	return n;
}

static void make_feed(unsigned id, uint16_t port)
{
	char dst[32];
	unsigned i;

	for (i = 0; i < PACKETS; i++) {
		struct feed *f = &feeds[id];

		snprintf(dst, sizeof(dst), "172.%u.%u.2", 16 + id % 16, i);
		f->pkts[i] = router_frame(port, GATEWAY, "02:00:00:00:00:05",
					  &(struct packet){.src = "10.9.0.2", .dst = dst});
		memcpy(&f->made[i], f->pkts[i], sizeof(f->made[i]));
		memcpy(f->frames[i], rte_pktmbuf_mtod(f->pkts[i], void *), FRAME_MAX);
	}
}

static struct port *add_port(const char *name, enum port_role role)
{
	struct port_config c = {.role = role,
				.kind = "tap",
				.queues = WORKERS,
				.vrf = role == PORT_TENANT ? RED : UINT16_MAX,
				.bridge = UINT16_MAX};
	struct ip_prefix p;
	struct port *port;

	snprintf(c.name, sizeof(c.name), "%s", name);
	ip_parse_ifaddr(role == PORT_TENANT ? "10.9.0.1/24" : "192.0.9.1/24", NULL, &p, &err);
	if (role == PORT_TENANT) {
		c.gateways[c.n_gateways++] = p;
	} else {
		c.addrs[c.n_addrs++] = p;
		c.mac = router_mac("02:00:00:00:f0:09");
	}
	port = port_add(&c, &err);
	if (port == NULL)
		rte_panic("%s: %s\n", name, err.message);
	return port;
}

// A queue for each worker at both ends, as multi-queue guests and NICs have them.
static struct port *configure(void)
{
	struct port *guest = add_port("scale-guest", PORT_TENANT), *wire = add_port("scale-wire", PORT_FABRIC);
	struct nexthop_config via = {
		.id = TUNNEL + 1, .kind = NH_PORT, .port = {.id = wire->id, .mac = router_mac("02:00:00:00:0f:09")}};
	unsigned i;

	router_nexthop(&via);
	router_route("fabric", "203.0.115.0/24", via.id);
	router_tunnel(TUNNEL, "vxlan", "203.0.115.9", 100);
	router_route("red", SINK_HOSTS, TUNNEL);
	for (i = 0; i < WORKERS; i++)
		make_feed(i, guest->id);
	return guest;
}

static void set_stateful(struct port *guest, bool on)
{
	struct port_config c = guest->cfg;

	c.stateful = on;
	router_set(guest->id, &c);
	flow_changes_take_effect();
}

static double thread_cycles(const struct worker *w)
{
	struct timespec t;
	clockid_t id;

	if (pthread_getcpuclockid(w->thread, &id) != 0 || clock_gettime(id, &t) < 0)
		rte_panic("no clock of worker %u\n", w->id);
	return ((double)t.tv_sec + (double)t.tv_nsec / 1e9) * (double)rte_get_tsc_hz();
}

static void sleep_ms(unsigned ms)
{
	unsigned i;

	for (i = 0; i < ms; i += 10) { // the master's work continues
		usleep(10000);
		router_poll();
	}
}

static uint64_t packets_of(unsigned id)
{
	return __atomic_load_n(&feeds[id].sent, __ATOMIC_RELAXED);
}

// Each worker polls its queue and nothing else.
static void start(struct port *guest, unsigned n)
{
	struct worker_config cfg = {.idle = IDLE_YIELD};
	struct port *p;
	unsigned i;

	for (i = 0; i < n; i++) {
		cfg.cpu = cpus[i % n_cpus];
		if (worker_add(i, &cfg, &err) == NULL)
			rte_panic("worker %u: %s\n", i, err.message);
	}
	for (p = port_next(NULL); p; p = port_next(p))
		worker_forget(p);
	if (!rcu_wait(GRACE_MS)) // until no worker polls what it had before
		rte_panic("a worker does not end its walk\n");
	for (i = 0; i < n; i++)
		if (worker_assign(&guest->queues[i], worker_get(i), &err) < 0)
			rte_panic("queue %u: %s\n", i, err.message);
	__atomic_store_n(&flowing, true, __ATOMIC_RELEASE);
	sleep_ms(WARM_MS);
}

static void stop(unsigned n)
{
	unsigned i;

	__atomic_store_n(&flowing, false, __ATOMIC_RELEASE);
	worker_del_all();
	router_poll();
	for (i = 0; i < n; i++)
		if (feeds[i].given != feeds[i].sent)
			rte_panic("worker %u lost %lu packets: %s\n", i, feeds[i].given - feeds[i].sent,
				  node_test_reason(feeds[i].pkts[0]));
}

// Cycles per packet of n workers at once.
static double window(struct port *guest, unsigned n)
{
	double cycles[WORKERS], spent = 0;
	uint64_t before[WORKERS], packets = 0;
	unsigned i;

	start(guest, n);
	for (i = 0; i < n; i++) {
		cycles[i] = thread_cycles(worker_get(i));
		before[i] = packets_of(i);
	}
	sleep_ms(window_ms);
	for (i = 0; i < n; i++) {
		packets += packets_of(i) - before[i];
		spent += thread_cycles(worker_get(i)) - cycles[i];
	}
	stop(n);
	return packets ? spent / (double)packets : 0;
}

static void say(const char *kind, bool stateful, unsigned n, double cycles)
{
	printf("{\"what\":\"window\",\"kind\":\"%s\",\"stateful\":%s,\"workers\":%u,\"cycles\":%.2f}\n", kind,
	       stateful ? "true" : "false", n, cycles);
	fflush(stdout);
}

// --- The other process: stateful 0 or 1 begins, anything else ends. ---

static struct {
	pid_t pid;
	int to, from;
} beside;

static void tell(char c)
{
	if (write(beside.to, &c, 1) != 1 || read(beside.from, &c, 1) != 1)
		rte_panic("the process beside has gone\n");
}

static void be_beside(struct port *guest)
{
	bool runs = false;
	char c;

	while (read(STDIN_FILENO, &c, 1) == 1) {
		if (runs)
			stop(1);
		runs = c == '0' || c == '1';
		if (runs) {
			set_stateful(guest, c == '1');
			start(guest, 1);
		}
		if (write(STDOUT_FILENO, &c, 1) != 1)
			break;
	}
	if (runs)
		stop(1);
}

static void start_beside(char **argv)
{
	int in[2], out[2];
	char cpu[16];

	snprintf(cpu, sizeof(cpu), "%u", cpus[1]);
	if (pipe(in) < 0 || pipe(out) < 0 || (beside.pid = fork()) < 0)
		rte_panic("no process beside: %s\n", strerror(errno));
	if (beside.pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		close(in[1]);
		close(out[0]);
		execl("/proc/self/exe", argv[0], "--apart", "--cpus", cpu, NULL);
		_exit(127);
	}
	beside.to = in[1];
	beside.from = out[0];
	close(in[0]);
	close(out[1]);
	tell('.'); // it is ready
}

static void one_round(struct port *guest, bool stateful)
{
	unsigned i;

	set_stateful(guest, stateful);
	for (i = 0; i < n_counts; i++)
		say("shared", stateful, counts[i], window(guest, counts[i]));
	if (n_cpus < 2)
		return;
	tell(stateful ? '1' : '0');
	say("apart", stateful, 1, window(guest, 1));
	tell('.');
	if (control) {
		writes_shared = true;
		say("control", stateful, 2, window(guest, 2));
		writes_shared = false;
	}
}

static unsigned list(const char *name, const char *text, unsigned *out, unsigned min, unsigned max)
{
	unsigned n = 0;
	char *end;

	do {
		unsigned long v = strtoul(text, &end, 10);

		if (end == text || v < min || v > max || n == WORKERS || (*end && *end != ',')) {
			fprintf(stderr, "%s: '%s' is not a list; valid: numbers from %u to %u, as in 1,2\n", name, text,
				min, max);
			exit(2);
		}
		out[n++] = (unsigned)v;
		text = end + 1;
	} while (*end);
	return n;
}

static void options(int argc, char **argv)
{
	static const struct option longs[] = {{"cpus", 1, NULL, 'c'},
					      {"workers", 1, NULL, 'w'},
					      {"rounds", 1, NULL, 'r'},
					      {"window-ms", 1, NULL, 'm'},
					      {"control", 0, NULL, 'x'},
					      {"apart", 0, NULL, 'a'},
					      {0}};
	int opt;

	while ((opt = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (opt) {
		case 'c':
			n_cpus = list("--cpus", optarg, cpus, 0, (unsigned)sysconf(_SC_NPROCESSORS_CONF) - 1);
			break;
		case 'w':
			n_counts = list("--workers", optarg, counts, 1, WORKERS);
			break;
		case 'r':
			list("--rounds", optarg, &rounds, 1, 1000);
			break;
		case 'm':
			list("--window-ms", optarg, &window_ms, 10, 10000);
			break;
		case 'x':
			control = true;
			break;
		case 'a':
			apart = true;
			break;
		default:
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	struct port *guest;
	unsigned i;

	options(argc, argv);
	if (!apart && n_cpus > 1)
		start_beside(argv); // before this process has threads
	if (router_setup(NULL) < 0)
		return 1;
	flow_fini();
	if (flow_init(4 * WORKERS * PACKETS) < 0)
		return 1;
	source = guest = configure();
	router_rx = give;
	router_tx = take;
	if (apart) {
		be_beside(guest);
		return 0;
	}
	printf("{\"what\":\"machine\",\"tsc_hz\":%lu,\"cpus\":%u}\n", rte_get_tsc_hz(), n_cpus);
	for (i = 0; i < rounds; i++) {
		one_round(guest, false);
		one_round(guest, true);
	}
	if (beside.pid > 0) {
		close(beside.to);
		waitpid(beside.pid, NULL, 0);
	}
	return 0;
}
