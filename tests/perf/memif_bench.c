// SPDX-License-Identifier: Apache-2.0
// TSC cycles per frame of memif's rx and tx, server and client of one process on one core; next to DPDK's net_memif.
// Run it pinned: taskset -c 1 build/tests/perf/memif_bench. A frame goes client -> server -> client.
//
// Each figure is the best tenth of many short windows, so that a busy machine disturbs little. One core means that no
// cache line crosses cores: the figures are the work itself, without the distance between the two sides.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#include "port/memif/memif_conn.h"

#define WINDOWS 400
#define TURNS 60 // of a window
#define MAX_BURST 256

struct side {
	uint16_t (*rx)(struct side *s, struct rte_mbuf **pkts, uint16_t n);
	uint16_t (*tx)(struct side *s, struct rte_mbuf **pkts, uint16_t n);
	struct memif_if mif;
	struct memif_shm *shm;
	uint16_t ethdev;
};

static struct rte_mempool *pool;
static struct memif_counters counters;

static uint16_t our_rx(struct side *s, struct rte_mbuf **pkts, uint16_t n)
{
	return memif_rx(&s->shm->rx[0], pkts, n);
}

static uint16_t our_tx(struct side *s, struct rte_mbuf **pkts, uint16_t n)
{
	return memif_tx(&s->shm->tx[0], pkts, n);
}

static uint16_t dpdk_rx(struct side *s, struct rte_mbuf **pkts, uint16_t n)
{
	return rte_eth_rx_burst(s->ethdev, 0, pkts, n);
}

static uint16_t dpdk_tx(struct side *s, struct rte_mbuf **pkts, uint16_t n)
{
	return rte_eth_tx_burst(s->ethdev, 0, pkts, n);
}

static void up(struct memif_if *mif, struct memif_shm *shm)
{
	struct side *s = mif->arg;

	memif_queue_attach_rx(&shm->rx[0], pool, 0, &counters);
	memif_queue_attach_tx(&shm->tx[0], &counters, false);
	s->shm = shm;
}

static void down(struct memif_if *mif, struct memif_shm *shm, const char *reason)
{
	memif_shm_free(shm);
}

static int our_start(struct side *s, struct event_base *base, bool client)
{
	struct error err = {0};

	*s = (struct side){.rx = our_rx, .tx = our_tx};
	s->mif = (struct memif_if){.base = base,
				   .client = client,
				   .queues = 1,
				   .log2_ring = 10,
				   .buffer_size = 2048,
				   .up = up,
				   .down = down,
				   .arg = s,
				   .name = "bench"};
	snprintf(s->mif.socket, sizeof(s->mif.socket), "/tmp/memif_bench.%d", getpid());
	if (memif_if_start(&s->mif, &err) == 0)
		return 0;
	fprintf(stderr, "%s\n", err.message);
	return -EINVAL;
}

static int dpdk_start(struct side *s, uint16_t ethdev)
{
	struct rte_eth_conf conf = {0};

	*s = (struct side){.rx = dpdk_rx, .tx = dpdk_tx, .ethdev = ethdev};
	if (rte_eth_dev_configure(ethdev, 1, 1, &conf) < 0 ||
	    rte_eth_rx_queue_setup(ethdev, 0, 1024, 0, NULL, pool) < 0 ||
	    rte_eth_tx_queue_setup(ethdev, 0, 1024, 0, NULL) < 0)
		return -EIO;
	return rte_eth_dev_start(ethdev);
}

static int dpdk_wait(struct side *server, struct side *client)
{
	struct rte_mbuf *none[1];
	struct rte_eth_link link = {0};
	unsigned tries;

	for (tries = 0; tries < 200 && !link.link_status; tries++) {
		usleep(10000);
		rte_eth_link_get_nowait(client->ethdev, &link);
	}
	client->rx(client, none, 1); // offers its buffers
	return link.link_status ? 0 : -ETIMEDOUT;
}

static int by_value(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

// Adds the cycles of each of the four steps; false when a frame got lost.
static bool turn(struct side *server, struct side *client, struct rte_mbuf **pkts, uint16_t n, uint64_t cycles[4])
{
	uint64_t t0 = rte_rdtsc(), t1, t2, t3;
	bool ok = client->tx(client, pkts, n) == n;

	t1 = rte_rdtsc();
	ok = ok && server->rx(server, pkts, n) == n;
	t2 = rte_rdtsc();
	ok = ok && server->tx(server, pkts, n) == n;
	t3 = rte_rdtsc();
	ok = ok && client->rx(client, pkts, n) == n;
	cycles[0] += t1 - t0;
	cycles[1] += t2 - t1;
	cycles[2] += t3 - t2;
	cycles[3] += rte_rdtsc() - t3;
	return ok;
}

static int measure(const char *name, struct side *server, struct side *client, uint16_t length, uint16_t burst)
{
	static double cost[4][WINDOWS];
	struct rte_mbuf *pkts[MAX_BURST];
	unsigned w, t, i;

	for (i = 0; i < burst; i++) {
		pkts[i] = rte_pktmbuf_alloc(pool);
		memset(rte_pktmbuf_append(pkts[i], length), i, length);
	}
	for (w = 0; w < WINDOWS; w++) {
		uint64_t cycles[4] = {0};

		for (t = 0; t < TURNS; t++)
			if (!turn(server, client, pkts, burst, cycles))
				return fprintf(stderr, "%s lost frames of %u bytes\n", name, length), -EIO;
		for (i = 0; i < 4; i++)
			cost[i][w] = (double)cycles[i] / TURNS / burst;
	}
	rte_pktmbuf_free_bulk(pkts, burst);
	for (i = 0; i < 4; i++)
		qsort(cost[i], WINDOWS, sizeof(double), by_value);
	w = WINDOWS / 10;
	printf("%-10s %5u %6u %8.1f %8.1f %8.1f %8.1f %9.1f\n", name, length, burst, cost[1][w], cost[2][w], cost[3][w],
	       cost[0][w], cost[1][w] + cost[2][w]);
	return 0;
}

int main(int argc, char **argv)
{
	static const uint16_t lengths[] = {64, 128, 256, 512, 1500};
	struct side server, client, dpdk_server, dpdk_client;
	struct event_base *base = event_base_new();
	char vdevs[2][160];
	char *eal[] = {argv[0],       "--no-huge", "-m", "128", "--no-pci", "--no-telemetry", "--no-shconf",
		       "--log-level", "error",     "-l", "0",   vdevs[0],   vdevs[1]};
	unsigned i;
	int ret;

	for (i = 0; i < 2; i++)
		snprintf(vdevs[i], sizeof(vdevs[i]),
			 "--vdev=net_memif%u,role=%s,socket=/tmp/memif_bench.%d.dpdk,socket-abstract=no", i,
			 i == 0 ? "server" : "client", getpid());
	if (rte_eal_init(RTE_DIM(eal), eal) < 0)
		return 1;
	pool = rte_pktmbuf_pool_create("bench", 4095, 512, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (our_start(&server, base, false) < 0 || our_start(&client, base, true) < 0)
		return 1;
	while (server.shm == NULL || client.shm == NULL)
		event_base_loop(base, EVLOOP_ONCE);
	if (dpdk_start(&dpdk_server, 0) < 0 || dpdk_start(&dpdk_client, 1) < 0 ||
	    dpdk_wait(&dpdk_server, &dpdk_client) < 0)
		return 1;
	printf("%-10s %5s %6s %8s %8s %8s %8s %9s  cycles per frame, TSC at %lu MHz\n", "", "bytes", "burst", "srv rx",
	       "srv tx", "cli rx", "cli tx", "srv rx+tx", (unsigned long)(rte_get_tsc_hz() / 1000000));
	for (i = 0, ret = 0; i < RTE_DIM(lengths) * 2 && ret == 0; i++) {
		uint16_t burst = i % 2 ? 32 : MAX_BURST;

		ret = measure("corelane", &server, &client, lengths[i / 2], burst);
		if (ret == 0)
			ret = measure("net_memif", &dpdk_server, &dpdk_client, lengths[i / 2], burst);
	}
	memif_if_stop(&client.mif);
	memif_if_stop(&server.mif);
	rte_eth_dev_stop(1);
	rte_eth_dev_stop(0);
	rte_eth_dev_close(1);
	rte_eth_dev_close(0);
	return ret < 0;
}
