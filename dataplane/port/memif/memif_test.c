// SPDX-License-Identifier: Apache-2.0
// Frames between a server port and a client port.
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/offload.h"
#include "base/system_calls.h"
#include "port/memif/memif_testlib.h"

static void frames_of_all_sizes(void **state)
{
	static const uint32_t buffers[] = {128, 1024, 2048, 4096};
	unsigned mbufs = test_mbufs(), i, segments;
	uint32_t length;

	for (i = 0; i < RTE_DIM(buffers); i++) {
		struct test_pair p = test_pair_plain(1, 128, buffers[i]);

		for (length = 1; length <= 9600; length += length < 300 ? 1 : 97)
			for (segments = 1 + length / 2048; segments <= 6 && segments <= length; segments++) {
				test_carry(p.client, p.server, length, segments);
				test_carry(p.server, p.client, length, segments);
			}
		test_pair_close(p);
	}
	assert_int_equal(test_mbufs(), mbufs);
}

// Bytes behind a frame in its mbuf are not copied.
static void nothing_leaks(void **state)
{
	struct test_pair p = test_pair_plain(1, 32, 2048);
	struct rte_mbuf *m;
	uint32_t length, slot;

	for (length = 1; length <= 300; length++) {
		const struct memif_queue *q;
		const uint8_t *buffer;

		m = test_frame(2000, length, 1);
		m->data_len = m->pkt_len = length;
		slot = (length - 1) % 32;
		q = *(struct memif_queue **)p.client->queues[0].priv; // its rx ring: the server writes there
		buffer = q->buffers + slot * q->buffer_stride;
		memset((uint8_t *)buffer, 0xee, 2048);
		assert_int_equal(test_tx(p.server, 0, &m, 1), 1);
		assert_int_equal(buffer[length], 0xee);
		assert_memory_equal(buffer + length, buffer + length + 1, 2047 - length);
		assert_int_equal(test_rx(p.client, 0, &m, 1), 1);
		rte_pktmbuf_free(m);
	}
	test_pair_close(p);
}

static void rings_wrap(void **state)
{
	unsigned mbufs = test_mbufs();
	uint32_t ring;

	for (ring = 32; ring <= 512; ring *= 4) {
		struct test_pair p = test_pair_plain(1, ring, 2048);

		test_stream(p.client, p.server, 0, 70000);
		test_stream(p.server, p.client, 0, 70000);
		test_pair_close(p);
	}
	assert_int_equal(test_mbufs(), mbufs);
}

static void full_ring_refuses(void **state)
{
	struct test_pair p = test_pair_plain(1, 32, 128);
	struct rte_mbuf *pkts[64];
	uint16_t i, n;

	for (i = 0; i < 64; i++)
		pkts[i] = test_frame(64, i, 1);
	assert_int_equal(test_tx(p.client, 0, pkts, 64), 32);
	assert_int_equal(test_tx(p.client, 0, pkts + 32, 32), 0);
	n = test_rx(p.server, 0, pkts, 20);
	assert_int_equal(n, 20);
	rte_pktmbuf_free_bulk(pkts, n);
	assert_int_equal(test_tx(p.client, 0, pkts + 32, 32), 20);
	rte_pktmbuf_free_bulk(pkts + 52, 12);
	n = test_rx(p.server, 0, pkts, 64);
	assert_int_equal(n, 32);
	rte_pktmbuf_free_bulk(pkts, n);
	pkts[0] = test_frame(128 * 33, 1, 4); // would need more descriptors than there are
	assert_int_equal(test_tx(p.client, 0, pkts, 1), 0);
	rte_pktmbuf_free(pkts[0]);
	test_carry(p.client, p.server, 128 * 32, 3);
	test_pair_close(p);
}

static void no_buffers_no_loss(void **state)
{
	struct test_pair p = test_pair_plain(1, 64, 2048);
	struct rte_mbuf *m = test_frame(100, 5, 1), *got, **hoard;
	unsigned n = 0, before;

	assert_int_equal(test_tx(p.client, 0, &m, 1), 1);
	hoard = calloc(rte_mempool_avail_count(test_pool), sizeof(*hoard));
	while ((m = rte_pktmbuf_alloc(test_pool)) != NULL)
		hoard[n++] = m;
	before = test_no_buffer;
	assert_int_equal(test_rx(p.server, 0, &got, 1), 0);
	assert_int_equal(test_no_buffer, before + 1);
	rte_pktmbuf_free_bulk(hoard, n);
	free(hoard);
	assert_int_equal(test_rx(p.server, 0, &got, 1), 1);
	assert_int_equal(test_no_buffer, before + 1);
	assert_true(test_frame_is(got, 100, 5));
	rte_pktmbuf_free(got);
	test_pair_close(p);
}

// An mbuf with another reference does not return to the pool.
static void shared_mbufs_survive(void **state)
{
	struct test_pair p = test_pair_plain(1, 64, 2048);
	struct rte_mbuf *m = test_frame(100, 5, 1), *got;

	rte_mbuf_refcnt_update(m, 1);
	assert_int_equal(test_tx(p.client, 0, &m, 1), 1);
	assert_int_equal(rte_mbuf_refcnt_read(m), 1);
	assert_true(test_frame_is(m, 100, 5));
	rte_pktmbuf_free(m);
	assert_int_equal(test_rx(p.server, 0, &got, 1), 1);
	rte_pktmbuf_free(got);
	test_pair_close(p);
}

struct wanted {
	const char *name;
	uint64_t value;
};

static void match(void *arg, const char *name, uint64_t value)
{
	struct wanted *w = arg;

	if (strcmp(name, w->name) == 0)
		w->value = value;
}

static uint64_t counter(struct port *port, const char *name)
{
	struct wanted w = {.name = name, .value = UINT64_MAX};

	port_memif_ops.xstats(port, match, &w);
	return w.value;
}

// A peer that polls is never woken, another one once per burst. A peer that blocks its eventfd delays only itself.
static void sleeping_peer(void **state)
{
	struct test_pair p = test_pair_plain(1, 64, 2048);
	struct memif_queue *q = *(struct memif_queue **)p.client->queues[0].priv;
	struct rte_mbuf *pkts[8];
	uint64_t count = 0, full = UINT64_MAX - 1, calls = system_calls;
	unsigned round, i;

	for (round = 0; round < 3; round++) {
		if (round == 1)
			q->ring->flags = 0;
		if (round == 2) {
			assert_int_equal(fcntl(q->kick_fd, F_SETFL, 0), 0); // the server's descriptor now blocks
			assert_int_equal(write(q->kick_fd, &full, sizeof(full)), sizeof(full));
			alarm(10);
		}
		for (i = 0; i < 8; i++)
			pkts[i] = test_frame(100, i, 1);
		assert_int_equal(test_tx(p.server, 0, pkts, 8), 8);
		if (round < 2)
			assert_int_equal(read(q->kick_fd, &count, sizeof(count)), round == 0 ? -1 : (int)sizeof(count));
		assert_int_equal(count, round == 0 ? 0 : 1);
		assert_int_equal(test_rx(p.client, 0, pkts, 8), 8);
		rte_pktmbuf_free_bulk(pkts, 8);
	}
	alarm(0);
	assert_int_equal(read(q->kick_fd, &count, sizeof(count)), sizeof(count));
	assert_true(count == UINT64_MAX); // it was signalled, and stays at its maximum
	assert_int_equal(system_calls, calls + 2);
	assert_int_equal(counter(p.server, "queue0_tx_wakeups"), 2);
	assert_int_equal(counter(p.server, "queue0_tx_wakeups_failed"), 0);
	assert_int_equal(counter(p.server, "queue0_tx_frames"), 24);
	test_pair_close(p);
}

static bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

// A reader that waits is kicked by later packets, but not after it polls again.
static void waiting_reader(void **state)
{
	struct test_pair p = test_pair_plain(1, 64, 2048);
	struct port *ends[] = {p.server, p.client};
	unsigned i;
	int fd;

	for (i = 0; i < 2; i++) {
		struct port *reader = ends[i], *writer = ends[!i];
		struct port_queue *q = &reader->queues[0];

		test_carry(writer, reader, 100, 1);
		assert_int_equal(counter(writer, "queue0_tx_wakeups"), 0);
		fd = port_memif_ops.arm(q);
		assert_true(fd >= 0);
		assert_false(readable(fd));
		test_carry(writer, reader, 100, 1);
		assert_true(readable(fd));
		assert_int_equal(port_memif_ops.disarm(q, true), 0);
		assert_false(readable(fd));
		test_carry(writer, reader, 100, 1);
		assert_false(readable(fd));
		assert_int_equal(counter(writer, "queue0_tx_wakeups"), 1);
		fd = port_memif_ops.arm(q); // again, although the eventfd has not been read
		test_carry(writer, reader, 100, 1);
		assert_true(readable(fd));
		assert_int_equal(port_memif_ops.disarm(q, true), 0);
	}
	test_close(p.client);
	assert_true(test_wait(p.server, false));
	assert_int_equal(port_memif_ops.arm(&p.server->queues[0]), -ENOTCONN);
	test_close(p.server);
}

static struct rte_mbuf *whole_frame(uint32_t length)
{
	struct rte_mbuf *m = test_frame(length, length, 2 + length / 2000);

	m->ol_flags = OFFLOAD_WHOLE;
	m->tx_offload = 0;
	m->tso_segsz = 1448;
	m->outer_l3_len = 50;
	return m;
}

static void carry_whole(struct port *from, struct port *to, uint32_t length)
{
	struct rte_mbuf *m = whole_frame(length), *got;

	assert_int_equal(test_tx(from, 0, &m, 1), 1);
	assert_int_equal(test_rx(to, 0, &got, 1), 1);
	assert_true(test_frame_is(got, length, length));
	assert_int_equal(got->ol_flags, OFFLOAD_WHOLE | OFFLOAD_CAME_WHOLE);
	assert_int_equal(got->tso_segsz, 1448);
	assert_int_equal(got->outer_l3_len, 50);
	rte_pktmbuf_free(got);
}

// port_tx has looked at what the last peer took when another one connects, which does not know whole packets. The
// frames before it are sent.
static void refuse_whole(struct port *from, struct port *to, uint32_t length)
{
	struct rte_mbuf *pkts[2] = {test_frame(100, 1, 1), whole_frame(length)}, *got;

	assert_int_equal(test_tx(from, 0, pkts, 2), 1);
	rte_pktmbuf_free(pkts[1]);
	assert_int_equal(test_rx(to, 0, &got, 1), 1);
	assert_true(test_frame_is(got, 100, 1));
	rte_pktmbuf_free(got);
	assert_int_equal(test_rx(to, 0, &got, 1), 0);
}

// Whole packets of tunnels keep their mark if both ends want them, in one descriptor and in many.
static void whole_packets(void **state)
{
	static const uint32_t buffers[] = {512, 2048, 16384};
	unsigned i, k;

	for (i = 0; i < 4 * RTE_DIM(buffers); i++) {
		struct port_config server = test_config("server", false, "whole"),
				   client = test_config("client", true, "whole");
		const uint16_t takes = (i & 3) == 3 ? PORT_TAKES_WHOLE : 0;
		struct test_pair p;

		server.role = client.role = PORT_FABRIC;
		server.whole_segments = i & 1;
		client.whole_segments = i & 2;
		client.buffer_size = buffers[i / 4];
		p = test_pair(&server, &client);
		assert_int_equal(p.server->takes, takes);
		assert_int_equal(p.client->takes, takes);
		for (k = 0; k < 2; k++) {
			(takes ? carry_whole : refuse_whole)(p.server, p.client, k ? 65000 : 3000);
			(takes ? carry_whole : refuse_whole)(p.client, p.server, k ? 65000 : 3000);
		}
		test_carry(p.server, p.client, 1000, 1);
		test_carry(p.client, p.server, 3000, 2);
		test_pair_close(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_of_all_sizes), cmocka_unit_test(nothing_leaks),
		cmocka_unit_test(rings_wrap),          cmocka_unit_test(full_ring_refuses),
		cmocka_unit_test(no_buffers_no_loss),  cmocka_unit_test(shared_mbufs_survive),
		cmocka_unit_test(sleeping_peer),       cmocka_unit_test(waiting_reader),
		cmocka_unit_test(whole_packets),
	};

	return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
