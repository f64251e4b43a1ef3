// SPDX-License-Identifier: Apache-2.0
#include "port/memif/memif_testlib.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>

#include "dpdk/eal_init.h"
#include "base/event_signal.h"
#include "base/loop.h"
#include "base/rcu.h"

#define POOL_SIZE 8191

struct rte_mempool *test_pool;
static char directory[64];

// Stands in for port.c.
unsigned test_too_long;
unsigned test_no_buffer;

void port_refused_too_long(const struct port *port)
{
	test_too_long++;
}

void port_no_buffer(const struct port *port)
{
	test_no_buffer++;
}

void port_link_changed(struct port *port, bool link_up, bool peer_connected)
{
	port->peer_connects += peer_connected && !port->peer_connected;
	port->peer_disconnects += !peer_connected && port->peer_connected;
	port->link_up = link_up;
	port->peer_connected = peer_connected;
}

struct rte_mempool *port_pool(int numa)
{
	return test_pool;
}

int test_setup(void **state)
{
	static char *argv[] = {"memif_test",  "--no-huge", "-m", "128",         "--no-pci", "--no-telemetry",
			       "--no-shconf", "-l",        "0",  "--log-level", "error"};

	if (test_pool != NULL)
		return 0;
	snprintf(directory, sizeof(directory), "/tmp/memif_test.XXXXXX");
	if (eal_init(RTE_DIM(argv), argv) < 0 || rcu_init() < 0 || event_signal_init() < 0 ||
	    mkdtemp(directory) == NULL)
		return -1;
	test_pool = rte_pktmbuf_pool_create("test", POOL_SIZE, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	loop_set_base(event_base_new());
	return test_pool != NULL && loop_base() != NULL ? 0 : -1;
}

int test_teardown(void **state)
{
	int ret = rmdir(directory); // fails when a socket has been left behind

	rcu_fini();
	event_base_free(loop_base());
	rte_mempool_free(test_pool);
	rte_eal_cleanup();
	return ret;
}

const char *test_path(const char *name)
{
	static char paths[4][MEMIF_SOCKET_SIZE];
	static unsigned i;
	char *path = paths[i++ % 4];

	snprintf(path, MEMIF_SOCKET_SIZE, "%s/%s", directory, name);
	return path;
}

struct port_config test_config(const char *name, bool client, const char *socket)
{
	struct port_config cfg = {
		.queues = 1, .kind = "memif", .client = client, .vrf = UINT16_MAX, .bridge = UINT16_MAX};

	snprintf(cfg.name, sizeof(cfg.name), "%s", name);
	snprintf(cfg.socket, sizeof(cfg.socket), "%s", test_path(socket));
	return cfg;
}

struct port *test_open(const struct port_config *cfg)
{
	struct port *port = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*port));
	struct error err = {0};
	uint16_t i;

	memset(port, 0, sizeof(*port));
	port->cfg = *cfg;
	port->n_queues = cfg->queues;
	port->numa = SOCKET_ID_ANY;
	port->id = 7;
	port->longest = MEMIF_MAX_FRAME;
	for (i = 0; i < PORT_MAX_QUEUES; i++) {
		port->queues[i].port = port;
		port->queues[i].index = i;
	}
	if (port_memif_ops.open(port, cfg, &err) < 0)
		fail_msg("open: %s", err.message);
	return port;
}

void test_close(struct port *port)
{
	port_memif_ops.close(port);
	free(port);
	rcu_poll();
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000u + ts.tv_nsec / 1000000;
}

static void turn(void)
{
	event_base_loop(loop_base(), EVLOOP_NONBLOCK);
	rcu_poll();
}

void test_pump(unsigned ms)
{
	uint64_t end = now_ms() + ms;

	do {
		turn();
		usleep(200);
	} while (now_ms() < end);
}

bool test_wait(const struct port *port, bool up)
{
	uint64_t end = now_ms() + 3000;

	while (port->link_up != up && now_ms() < end)
		turn();
	return port->link_up == up;
}

bool test_wait_text(const char *text, const char *wanted)
{
	uint64_t end = now_ms() + 3000;

	while (strstr(text, wanted) == NULL && now_ms() < end)
		turn();
	if (strstr(text, wanted) == NULL)
		print_error("'%s' is not in '%s'\n", wanted, text);
	return strstr(text, wanted) != NULL;
}

static uint8_t byte_at(uint32_t seed, uint32_t i)
{
	return (seed * 2654435761u + i * 40503u) >> 7;
}

struct rte_mbuf *test_frame(uint32_t length, uint32_t seed, unsigned segments)
{
	struct rte_mbuf *m = NULL, *seg;
	uint32_t at = 0, i, take;

	while (segments > 0) {
		take = segments == 1 ? length - at : (length - at) / segments;
		seg = rte_pktmbuf_alloc(test_pool);
		assert_non_null(seg);
		assert_true(take <= rte_pktmbuf_tailroom(seg));
		for (i = 0; i < take; i++)
			rte_pktmbuf_mtod(seg, uint8_t *)[i] = byte_at(seed, at + i);
		seg->data_len = seg->pkt_len = take;
		at += take;
		segments--;
		if (m == NULL)
			m = seg;
		else
			assert_int_equal(rte_pktmbuf_chain(m, seg), 0);
	}
	return m;
}

bool test_frame_is(const struct rte_mbuf *m, uint32_t length, uint32_t seed)
{
	uint32_t at = 0, i;

	if (m->pkt_len != length || rte_mbuf_check(m, 1, &(const char *){NULL}) != 0)
		return false;
	for (; m != NULL; m = m->next)
		for (i = 0; i < m->data_len; i++, at++)
			if (rte_pktmbuf_mtod(m, const uint8_t *)[i] != byte_at(seed, at))
				return false;
	return at == length;
}

struct test_pair test_pair(const struct port_config *server, const struct port_config *client)
{
	struct test_pair p = {.server = test_open(server)};

	p.client = test_open(client);
	assert_true(test_wait(p.server, true));
	assert_true(test_wait(p.client, true));
	return p;
}

struct test_pair test_pair_plain(uint16_t queues, uint32_t ring, uint32_t buffer)
{
	struct port_config server = test_config("server", false, "pair"), client = test_config("client", true, "pair");

	server.queues = client.queues = queues;
	server.ring_size = client.ring_size = ring;
	client.buffer_size = buffer;
	return test_pair(&server, &client);
}

void test_pair_close(struct test_pair p)
{
	test_close(p.client);
	test_close(p.server);
}

uint16_t test_rx(struct port *port, uint16_t q, struct rte_mbuf **pkts, uint16_t n)
{
	return port_memif_ops.rx(&port->queues[q], pkts, n);
}

uint16_t test_tx(struct port *port, uint16_t q, struct rte_mbuf **pkts, uint16_t n)
{
	return port_memif_ops.tx(&port->queues[q], pkts, n);
}

void test_carry(struct port *from, struct port *to, uint32_t length, unsigned segments)
{
	struct rte_mbuf *m = test_frame(length, length * 31 + segments, segments), *got = NULL;

	assert_int_equal(test_tx(from, 0, &m, 1), 1);
	assert_int_equal(test_rx(to, 0, &got, 1), 1);
	if (!test_frame_is(got, length, length * 31 + segments))
		fail_msg("frame of %u bytes in %u segments arrived changed", length, segments);
	assert_int_equal(rte_pktmbuf_headroom(got), RTE_PKTMBUF_HEADROOM);
	rte_pktmbuf_free(got);
}

// Bursts of random sizes, so that rings fill, run empty and wrap everywhere; order and content hold.
void test_stream(struct port *from, struct port *to, uint16_t q, unsigned total)
{
	struct rte_mbuf *pkts[BATCH];
	uint32_t sent = 0, received = 0;
	uint16_t i, n, ok;

	while (received < total) {
		n = rand() % BATCH;
		for (i = 0; i < n; i++) {
			uint32_t seed = sent + i, length = seed % 7 == 0 ? 60 + seed % 9000 : 60 + seed % 200;

			pkts[i] = test_frame(length, seed, 1 + length / 2000 + seed % 2);
		}
		ok = test_tx(from, q, pkts, n);
		sent += ok;
		rte_pktmbuf_free_bulk(pkts + ok, n - ok);
		n = test_rx(to, q, pkts, rand() % BATCH);
		for (i = 0; i < n; i++, received++)
			assert_true(test_frame_is(
				pkts[i], received % 7 == 0 ? 60 + received % 9000 : 60 + received % 200, received));
		rte_pktmbuf_free_bulk(pkts, n);
	}
	while ((n = test_rx(to, q, pkts, BATCH)) > 0)
		rte_pktmbuf_free_bulk(pkts, n);
}

unsigned test_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

unsigned test_mbufs(void)
{
	return rte_mempool_in_use_count(test_pool);
}
