// SPDX-License-Identifier: Apache-2.0
// Sends every frame back on the memif queue that it came from, for memif_interop_test.sh.
//
//   memif_echo server|client SOCKET QUEUES FRAMES [SECRET]     (SECRET "" = none)
//
// Prints one line per event: up, "reached" when each ring of the connection has received FRAMES, down REASON, failed
// REASON. SIGTERM ends it, and it prints the counters. Frames that testpmd made
// (UDP over IPv4) are checked for length and IP checksum. "cycles" is the cost of rx and tx of polls of 64 frames and
// more, in TSC cycles per frame: the best tenth of the seconds' 10 ms windows.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ether.h>
#include <rte_ip.h>

#include "port/memif/memif_conn.h"

#define BURST 256
#define WINDOWS 100000

static struct memif_counters rx_count[MEMIF_MAX_RINGS], tx_count[MEMIF_MAX_RINGS];
static struct rte_mempool *pool;
static struct memif_shm *shared;
static uint64_t bad, dropped, longest;
static uint64_t wanted, at_up[MEMIF_MAX_RINGS]; // frames
static bool reached;
static volatile sig_atomic_t ended;
static struct {
	uint64_t cycles, frames, end;
} window;
static double costs[WINDOWS];
static unsigned n_costs;

static void up(struct memif_if *mif, struct memif_shm *shm)
{
	uint16_t i;

	for (i = 0; i < shm->n_rx; i++) {
		memif_queue_attach_rx(&shm->rx[i], pool, 0, &rx_count[i]);
		at_up[i] = rx_count[i].frames;
	}
	reached = false;
	for (i = 0; i < shm->n_tx; i++)
		memif_queue_attach_tx(&shm->tx[i], &tx_count[i], false);
	shared = shm;
	printf("up %u rx rings, %u tx rings, %u descriptors\n", shm->n_rx, shm->n_tx, shm->rx[0].size);
}

static void down(struct memif_if *mif, struct memif_shm *shm, const char *reason)
{
	printf("down %s\n", reason);
	shared = NULL;
	memif_shm_free(shm); // there is one thread, so it is not being polled
}

static void failed(struct memif_if *mif, const char *reason)
{
	static char last[128];

	if (strcmp(last, reason) != 0)
		printf("failed %s\n", reason);
	snprintf(last, sizeof(last), "%s", reason);
}

static bool looks_right(const struct rte_mbuf *m)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_ipv4_hdr *ip = (const void *)(eth + 1);

	if (m->pkt_len < 60 || rte_be_to_cpu_16(eth->ether_type) != RTE_ETHER_TYPE_IPV4)
		return false;
	return rte_be_to_cpu_16(ip->total_length) == m->pkt_len - sizeof(*eth) &&
	       rte_raw_cksum(ip, sizeof(*ip)) == 0xffff;
}

static void account(uint64_t cycles, uint16_t n)
{
	uint64_t now = rte_rdtsc();

	if (n >= 64) {
		window.cycles += cycles;
		window.frames += n;
	}
	if (now < window.end)
		return;
	if (window.frames > 10000 && n_costs < WINDOWS)
		costs[n_costs++] = (double)window.cycles / window.frames;
	window.cycles = window.frames = 0;
	window.end = now + rte_get_tsc_hz() / 100;
}

static void echo(struct memif_queue *rx, struct memif_queue *tx)
{
	struct rte_mbuf *pkts[BURST];
	uint64_t start = rte_rdtsc(), middle, checked;
	uint16_t n = memif_rx(rx, pkts, BURST), sent;

	if (n == 0)
		return;
	middle = rte_rdtsc();
	longest = RTE_MAX(longest, (uint64_t)pkts[0]->pkt_len);
	bad += !looks_right(pkts[0]) + !looks_right(pkts[n - 1]);
	checked = rte_rdtsc();
	sent = memif_tx(tx, pkts, n);
	account(rte_rdtsc() - checked + middle - start, n);
	rte_pktmbuf_free_bulk(pkts + sent, n - sent);
	dropped += n - sent;
}

static int by_value(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static void report(void)
{
	uint64_t rx = 0, tx = 0, kicks = 0;
	unsigned i;

	for (i = 0; i < MEMIF_MAX_RINGS; i++) {
		rx += rx_count[i].frames;
		tx += tx_count[i].frames;
		kicks += tx_count[i].kicks;
		if (rx_count[i].frames > 0)
			printf("queue %u received %lu\n", i, (unsigned long)rx_count[i].frames);
	}
	qsort(costs, n_costs, sizeof(*costs), by_value);
	printf("received %lu sent %lu dropped %lu bad %lu longest %lu wakeups %lu cycles %.1f\n", (unsigned long)rx,
	       (unsigned long)tx, (unsigned long)dropped, (unsigned long)bad, (unsigned long)longest,
	       (unsigned long)kicks, n_costs > 0 ? costs[n_costs / 10] : 0);
}

static void on_term(int signal)
{
	ended = 1;
}

static void look_whether_reached(void)
{
	uint16_t i;

	if (reached || shared == NULL)
		return;
	for (i = 0; i < shared->n_rx; i++)
		if (rx_count[i].frames - at_up[i] < wanted)
			return;
	reached = true;
	printf("reached\n");
}

static void run(struct event_base *base)
{
	unsigned turn;
	uint16_t i;

	for (turn = 0; !ended; turn++) {
		look_whether_reached();
		if (turn % 64 == 0 || shared == NULL)
			event_base_loop(base, EVLOOP_NONBLOCK);
		if (shared == NULL)
			usleep(1000);
		for (i = 0; shared != NULL && i < shared->n_rx; i++)
			echo(&shared->rx[i], &shared->tx[i % shared->n_tx]);
	}
}

int main(int argc, char **argv)
{
	char *eal[] = {argv[0],       "--no-huge", "-m",
		       "128",         "--no-pci",  "--no-telemetry",
		       "--no-shconf", "--lcores",  sysconf(_SC_NPROCESSORS_ONLN) > 1 ? "0@1" : "0@0",
		       "--log-level", "error"};
	struct memif_if mif = {
		.log2_ring = 10, .buffer_size = 2048, .name = "echo", .up = up, .down = down, .failed = failed};
	struct error err = {0};

	if (argc < 5) {
		fprintf(stderr, "usage: %s server|client SOCKET QUEUES FRAMES [SECRET]\n", argv[0]);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGTERM, on_term);
	if (rte_eal_init(RTE_DIM(eal), eal) < 0)
		return 1;
	pool = rte_pktmbuf_pool_create("echo", 8191, 512, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	mif.base = event_base_new();
	mif.client = strcmp(argv[1], "client") == 0;
	mif.queues = atoi(argv[3]);
	wanted = strtoull(argv[4], NULL, 10);
	snprintf(mif.socket, sizeof(mif.socket), "%s", argv[2]);
	snprintf(mif.secret, sizeof(mif.secret), "%s", argc > 5 ? argv[5] : "");
	if (memif_if_start(&mif, &err) < 0) {
		fprintf(stderr, "%s\n", err.message);
		return 1;
	}
	run(mif.base);
	memif_if_stop(&mif);
	report();
	return rte_mempool_in_use_count(pool) == 0 ? 0 : 1;
}
