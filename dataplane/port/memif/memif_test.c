// SPDX-License-Identifier: Apache-2.0
// Our server and our client against each other, as ports.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "port/memif/memif_testlib.h"

struct pair {
	struct port *server, *client;
};

static struct pair pair_open(const struct port_config *server, const struct port_config *client)
{
	struct pair p = {.server = test_open(server)};

	p.client = test_open(client);
	assert_true(test_wait(p.server, true));
	assert_true(test_wait(p.client, true));
	return p;
}

static struct pair pair_plain(uint16_t queues, uint32_t ring, uint32_t buffer)
{
	struct port_config server = test_config("server", false, "pair"), client = test_config("client", true, "pair");

	server.queues = client.queues = queues;
	server.ring_size = client.ring_size = ring;
	client.buffer_size = buffer;
	return pair_open(&server, &client);
}

static void pair_close(struct pair p)
{
	test_close(p.client);
	test_close(p.server);
}

static uint16_t rx(struct port *port, uint16_t q, struct rte_mbuf **pkts, uint16_t n)
{
	return port_memif_ops.rx(&port->queues[q], pkts, n);
}

static uint16_t tx(struct port *port, uint16_t q, struct rte_mbuf **pkts, uint16_t n)
{
	return port_memif_ops.tx(&port->queues[q], pkts, n);
}

static void carry(struct port *from, struct port *to, uint32_t length, unsigned segments)
{
	struct rte_mbuf *m = test_frame(length, length * 31 + segments, segments), *got = NULL;

	assert_int_equal(tx(from, 0, &m, 1), 1);
	assert_int_equal(rx(to, 0, &got, 1), 1);
	if (!test_frame_is(got, length, length * 31 + segments))
		fail_msg("frame of %u bytes in %u segments arrived changed", length, segments);
	assert_int_equal(rte_pktmbuf_headroom(got), RTE_PKTMBUF_HEADROOM);
	rte_pktmbuf_free(got);
}

static void frames_of_all_sizes(void **state)
{
	static const uint32_t buffers[] = {128, 1024, 2048, 4096};
	unsigned mbufs = test_mbufs(), i, segments;
	uint32_t length;

	for (i = 0; i < RTE_DIM(buffers); i++) {
		struct pair p = pair_plain(1, 128, buffers[i]);

		for (length = 1; length <= 9600; length += length < 300 ? 1 : 97)
			for (segments = 1 + length / 2048; segments <= 6 && segments <= length; segments++) {
				carry(p.client, p.server, length, segments);
				carry(p.server, p.client, length, segments);
			}
		pair_close(p);
	}
	assert_int_equal(test_mbufs(), mbufs);
}

// What lies behind a frame in its mbuf belongs to somebody else.
static void nothing_leaks(void **state)
{
	struct pair p = pair_plain(1, 32, 2048);
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
		assert_int_equal(tx(p.server, 0, &m, 1), 1);
		assert_int_equal(buffer[length], 0xee);
		assert_memory_equal(buffer + length, buffer + length + 1, 2047 - length);
		assert_int_equal(rx(p.client, 0, &m, 1), 1);
		rte_pktmbuf_free(m);
	}
	pair_close(p);
}

// Bursts of random sizes, so that rings fill, run empty and wrap everywhere; order and content hold.
static void stream(struct port *from, struct port *to, uint16_t q, unsigned total)
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
		ok = tx(from, q, pkts, n);
		sent += ok;
		rte_pktmbuf_free_bulk(pkts + ok, n - ok);
		n = rx(to, q, pkts, rand() % BATCH);
		for (i = 0; i < n; i++, received++)
			assert_true(test_frame_is(pkts[i], received % 7 == 0 ? 60 + received % 9000 : 60 + received % 200, received));
		rte_pktmbuf_free_bulk(pkts, n);
	}
	while ((n = rx(to, q, pkts, BATCH)) > 0)
		rte_pktmbuf_free_bulk(pkts, n);
}

static void rings_wrap(void **state)
{
	unsigned mbufs = test_mbufs();
	uint32_t ring;

	for (ring = 32; ring <= 512; ring *= 4) {
		struct pair p = pair_plain(1, ring, 2048);

		stream(p.client, p.server, 0, 70000);
		stream(p.server, p.client, 0, 70000);
		pair_close(p);
	}
	assert_int_equal(test_mbufs(), mbufs);
}

static void full_ring_refuses(void **state)
{
	struct pair p = pair_plain(1, 32, 128);
	struct rte_mbuf *pkts[64];
	uint16_t i, n;

	for (i = 0; i < 64; i++)
		pkts[i] = test_frame(64, i, 1);
	assert_int_equal(tx(p.client, 0, pkts, 64), 32);
	assert_int_equal(tx(p.client, 0, pkts + 32, 32), 0);
	n = rx(p.server, 0, pkts, 20);
	assert_int_equal(n, 20);
	rte_pktmbuf_free_bulk(pkts, n);
	assert_int_equal(tx(p.client, 0, pkts + 32, 32), 20);
	rte_pktmbuf_free_bulk(pkts + 52, 12);
	n = rx(p.server, 0, pkts, 64);
	assert_int_equal(n, 32);
	rte_pktmbuf_free_bulk(pkts, n);
	pkts[0] = test_frame(128 * 33, 1, 4); // would need more descriptors than there are
	assert_int_equal(tx(p.client, 0, pkts, 1), 0);
	rte_pktmbuf_free(pkts[0]);
	carry(p.client, p.server, 128 * 32, 3);
	pair_close(p);
}

static void no_buffers_no_loss(void **state)
{
	struct pair p = pair_plain(1, 64, 2048);
	struct rte_mbuf *m = test_frame(100, 5, 1), *got, **hoard;
	unsigned n = 0;

	assert_int_equal(tx(p.client, 0, &m, 1), 1);
	hoard = calloc(rte_mempool_avail_count(test_pool), sizeof(*hoard));
	while ((m = rte_pktmbuf_alloc(test_pool)) != NULL)
		hoard[n++] = m;
	assert_int_equal(rx(p.server, 0, &got, 1), 0);
	rte_pktmbuf_free_bulk(hoard, n);
	free(hoard);
	assert_int_equal(rx(p.server, 0, &got, 1), 1);
	assert_true(test_frame_is(got, 100, 5));
	rte_pktmbuf_free(got);
	pair_close(p);
}

// A frame that somebody else still holds is not given back to the pool under his hands.
static void shared_mbufs_survive(void **state)
{
	struct pair p = pair_plain(1, 64, 2048);
	struct rte_mbuf *m = test_frame(100, 5, 1), *got;

	rte_mbuf_refcnt_update(m, 1);
	assert_int_equal(tx(p.client, 0, &m, 1), 1);
	assert_int_equal(rte_mbuf_refcnt_read(m), 1);
	assert_true(test_frame_is(m, 100, 5));
	rte_pktmbuf_free(m);
	assert_int_equal(rx(p.server, 0, &got, 1), 1);
	rte_pktmbuf_free(got);
	pair_close(p);
}

static void multi_queue(void **state)
{
	static const uint16_t queues[][2] = {{4, 4}, {4, 1}, {1, 4}, {16, 16}, {3, 2}}; // server, client
	struct rte_mbuf *m, *got;
	unsigned i, q;

	for (i = 0; i < RTE_DIM(queues); i++) {
		struct port_config server = test_config("server", false, "mq"), client = test_config("client", true, "mq");
		uint16_t rings = RTE_MIN(queues[i][0], queues[i][1]);
		struct pair p;

		server.queues = queues[i][0];
		client.queues = queues[i][1];
		p = pair_open(&server, &client);
		for (q = 0; q < server.queues; q++) { // every queue sends, whatever the other side has
			m = test_frame(200, q, 1);
			assert_int_equal(tx(p.server, q, &m, 1), 1);
			assert_int_equal(rx(p.client, q % rings, &got, 1), 1);
			assert_true(test_frame_is(got, 200, q));
			rte_pktmbuf_free(got);
		}
		for (q = 0; q < client.queues; q++) {
			m = test_frame(200, q, 1);
			assert_int_equal(tx(p.client, q, &m, 1), 1);
			assert_int_equal(rx(p.server, q % rings, &got, 1), 1);
			assert_true(test_frame_is(got, 200, q));
			rte_pktmbuf_free(got);
		}
		stream(p.client, p.server, rings - 1, 2000);
		pair_close(p);
	}
}

static void shared_socket(void **state)
{
	struct port_config s1 = test_config("s1", false, "shared"), s2 = s1, c1 = test_config("c1", true, "shared"), c2 = c1;
	struct port port = {.n_queues = 1}, *extra;
	struct error err = {0};
	struct pair p1, p2;

	s2.memif_id = c2.memif_id = 0xfffffffe;
	strcpy(s2.secret, "open sesame");
	strcpy(c2.secret, "open sesame");
	p1 = pair_open(&s1, &c1);
	p2 = pair_open(&s2, &c2);
	carry(p1.client, p1.server, 100, 1);
	carry(p2.server, p2.client, 100, 1);
	assert_int_equal(port_memif_ops.open(&port, &s2, &err), -EEXIST);
	assert_string_equal(err.field, "port.memif.id");
	extra = test_open(&c2); // a second client of the same id
	assert_true(test_wait_text(extra->last_error, "already connected"));
	test_close(extra);
	pair_close(p1);
	carry(p2.client, p2.server, 100, 1);
	pair_close(p2);
}

static void refusals_say_why(void **state)
{
	struct port_config s = test_config("s", false, "refuse"), c = test_config("c", true, "refuse");
	struct port *server, *client;

	strcpy(s.secret, "open sesame");
	server = test_open(&s);
	client = test_open(&c);
	assert_true(test_wait_text(client->last_error, "wrong secret"));
	assert_true(test_wait_text(server->last_error, "wrong secret"));
	test_close(client);
	strcpy(c.secret, "open sesame!");
	client = test_open(&c);
	assert_true(test_wait_text(client->last_error, "wrong secret"));
	test_close(client);
	strcpy(c.secret, "open sesame");
	c.memif_id = 3;
	client = test_open(&c);
	assert_true(test_wait_text(client->last_error, "no interface with id 3"));
	test_close(client);
	test_close(server);
	client = test_open(&c);
	assert_true(test_wait_text(client->last_error, "cannot connect"));
	test_close(client);
}

static void bad_configuration(void **state)
{
	static const struct {
		uint32_t ring, buffer;
		const char *socket, *field;
	} bad[] = {
		{1000, 0, "/tmp/x", "port.memif.ring_size"},   {16, 0, "/tmp/x", "port.memif.ring_size"},
		{32768, 0, "/tmp/x", "port.memif.ring_size"},  {0, 100, "/tmp/x", "port.memif.buffer_size"},
		{0, 65536, "/tmp/x", "port.memif.buffer_size"}, {16384, 32768, "/tmp/x", "port.memif.ring_size"},
		{0, 0, "", "port.memif.socket"},               {0, 0, "x", "port.memif.socket"},
		{0, 0, "/no/such/dir/x", "port.memif.socket"}, {0, 0, "/proc/x", "port.memif.socket"},
	};
	unsigned fds = test_fds(), i;

	for (i = 0; i < RTE_DIM(bad); i++) {
		struct port_config cfg = test_config("bad", i == 5, "x");
		struct port port = {.n_queues = 16, .cfg = cfg};
		struct error err = {0};

		cfg.queues = 16;
		cfg.ring_size = bad[i].ring;
		cfg.buffer_size = bad[i].buffer;
		snprintf(cfg.socket, sizeof(cfg.socket), "%s", bad[i].socket);
		assert_true(port_memif_ops.open(&port, &cfg, &err) < 0);
		assert_string_equal(err.field, bad[i].field);
	}
	assert_int_equal(test_fds(), fds);
}

static int bind_socket(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void stale_socket(void **state)
{
	struct port_config cfg = test_config("server", false, "stale");
	struct port port = {.n_queues = 1, .cfg = cfg};
	struct error err = {0};
	int fd = bind_socket(cfg.socket);

	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(port_memif_ops.open(&port, &cfg, &err), -EADDRINUSE);
	assert_int_equal(access(cfg.socket, F_OK), 0);
	close(fd); // as a killed server leaves it
	test_close(test_open(&cfg));
	assert_int_not_equal(access(cfg.socket, F_OK), 0);
	assert_int_equal(symlink("/dev/null", cfg.socket), 0); // nothing of ours
	assert_true(port_memif_ops.open(&port, &cfg, &err) < 0);
	assert_int_equal(unlink(cfg.socket), 0);
}

static void client_comes_back(void **state)
{
	struct port_config s = test_config("s", false, "again"), c = test_config("c", true, "again");
	struct port *client = test_open(&c), *server = test_open(&s); // the client first
	unsigned i;

	for (i = 0; i < 2; i++) {
		struct rte_mbuf *m = test_frame(64, 1, 1);

		assert_true(test_wait(client, true));
		carry(client, server, 64, 1);
		test_close(server);
		assert_true(test_wait(client, false));
		assert_int_equal(tx(client, 0, &m, 1), 0);
		assert_int_equal(rx(client, 0, &(struct rte_mbuf *){NULL}, 1), 0);
		rte_pktmbuf_free(m);
		assert_true(strstr(client->last_error, "interface removed") != NULL);
		server = test_open(&s);
	}
	test_close(server);
	test_close(client);
}

static void reconnect_a_thousand_times(void **state)
{
	struct port_config s = test_config("s", false, "thousand"), c = test_config("c", true, "thousand");
	unsigned mbufs = test_mbufs(), fds, i;
	struct port *server, *client;

	s.queues = c.queues = 2;
	server = test_open(&s);
	fds = test_fds();
	for (i = 0; i < 1000; i++) {
		client = test_open(&c);
		assert_true(test_wait(client, true));
		carry(client, server, 64 + i % 2000, 1);
		carry(server, client, 64 + i % 2000, 1);
		test_close(client);
		assert_true(test_wait(server, false));
	}
	assert_int_equal(server->peer_connects, 1000);
	assert_int_equal(server->peer_disconnects, 1000);
	assert_int_equal(test_fds(), fds);
	assert_int_equal(test_mbufs(), mbufs);
	test_close(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_of_all_sizes), cmocka_unit_test(nothing_leaks),     cmocka_unit_test(rings_wrap),
		cmocka_unit_test(full_ring_refuses),   cmocka_unit_test(no_buffers_no_loss), cmocka_unit_test(shared_mbufs_survive),
		cmocka_unit_test(multi_queue),         cmocka_unit_test(shared_socket),     cmocka_unit_test(refusals_say_why),
		cmocka_unit_test(bad_configuration),   cmocka_unit_test(stale_socket),      cmocka_unit_test(client_comes_back),
		cmocka_unit_test(reconnect_a_thousand_times),
	};

	return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
