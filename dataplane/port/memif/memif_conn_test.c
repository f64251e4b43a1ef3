// SPDX-License-Identifier: Apache-2.0
// Connections of servers and clients: established, refused and lost.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "port/memif/memif_testlib.h"

static void multi_queue(void **state)
{
	static const uint16_t queues[][2] = {{4, 4}, {4, 1}, {1, 4}, {16, 16}, {3, 2}}; // server, client
	struct rte_mbuf *m, *got;
	unsigned i, q;

	for (i = 0; i < RTE_DIM(queues); i++) {
		struct port_config server = test_config("server", false, "mq"),
				   client = test_config("client", true, "mq");
		uint16_t rings = RTE_MIN(queues[i][0], queues[i][1]);
		struct test_pair p;

		server.queues = queues[i][0];
		client.queues = queues[i][1];
		p = test_pair(&server, &client);
		for (q = 0; q < server.queues; q++) { // every queue sends, whatever number the other side has
			m = test_frame(200, q, 1);
			assert_int_equal(test_tx(p.server, q, &m, 1), 1);
			assert_int_equal(test_rx(p.client, q % rings, &got, 1), 1);
			assert_true(test_frame_is(got, 200, q));
			rte_pktmbuf_free(got);
		}
		for (q = 0; q < client.queues; q++) {
			m = test_frame(200, q, 1);
			assert_int_equal(test_tx(p.client, q, &m, 1), 1);
			assert_int_equal(test_rx(p.server, q % rings, &got, 1), 1);
			assert_true(test_frame_is(got, 200, q));
			rte_pktmbuf_free(got);
		}
		test_stream(p.client, p.server, rings - 1, 2000);
		test_pair_close(p);
	}
}

static void shared_socket(void **state)
{
	struct port_config s1 = test_config("s1", false, "shared"), s2 = s1, c1 = test_config("c1", true, "shared"),
			   c2 = c1;
	struct port port = {.n_queues = 1}, *extra;
	struct error err = {0};
	struct test_pair p1, p2;

	s2.memif_id = c2.memif_id = 0xfffffffe;
	strcpy(s2.secret, "open sesame");
	strcpy(c2.secret, "open sesame");
	p1 = test_pair(&s1, &c1);
	p2 = test_pair(&s2, &c2);
	test_carry(p1.client, p1.server, 100, 1);
	test_carry(p2.server, p2.client, 100, 1);
	assert_int_equal(port_memif_ops.open(&port, &s2, &err), -EEXIST);
	assert_string_equal(err.field, "port.memif.id");
	extra = test_open(&c2); // a second client of the same id
	assert_true(test_wait_text(extra->last_error, "already connected"));
	test_close(extra);
	test_pair_close(p1);
	test_carry(p2.client, p2.server, 100, 1);
	test_pair_close(p2);
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
		bool client, whole;
	} bad[] = {
		{16384, 32768, "/tmp/x", "port.memif.ring_size", .client = true},
		{0, 0, "", "port.memif.socket", .client = false},
		{0, 0, "x", "port.memif.socket", .client = false},
		{0, 0, "/no/such/dir/x", "port.memif.socket", .client = false},
		{0, 0, "/proc/x", "port.memif.socket", .client = false},
		// A segment of 64 KB has to fit into the longest chain of descriptors, and into the ring.
		{1024, 448, "/tmp/x", "port.memif.whole_segments", .client = true, .whole = true},
		{32, 1024, "/tmp/x", "port.memif.whole_segments", .client = true, .whole = true},
		{64, 960, "/tmp/x", "port.memif.whole_segments", .client = true, .whole = true},
	};
	unsigned fds = test_fds(), i;

	for (i = 0; i < RTE_DIM(bad); i++) {
		struct port_config cfg = test_config("bad", bad[i].client, "x");
		struct port port = {.n_queues = 16, .cfg = cfg};
		struct error err = {0};

		cfg.queues = 16;
		cfg.ring_size = bad[i].ring;
		cfg.buffer_size = bad[i].buffer;
		cfg.whole_segments = bad[i].whole;
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
	close(fd); // the state that a killed server leaves
	test_close(test_open(&cfg));
	assert_int_not_equal(access(cfg.socket, F_OK), 0);
	assert_int_equal(symlink("/dev/null", cfg.socket), 0); // not a socket, so it is kept
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
		test_carry(client, server, 64, 1);
		test_close(server);
		assert_true(test_wait(client, false));
		assert_int_equal(test_tx(client, 0, &m, 1), 0);
		assert_int_equal(test_rx(client, 0, &(struct rte_mbuf *){NULL}, 1), 0);
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
		test_carry(client, server, 64 + i % 2000, 1);
		test_carry(server, client, 64 + i % 2000, 1);
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
		cmocka_unit_test(multi_queue),
		cmocka_unit_test(shared_socket),
		cmocka_unit_test(refusals_say_why),
		cmocka_unit_test(bad_configuration),
		cmocka_unit_test(stale_socket),
		cmocka_unit_test(client_comes_back),
		cmocka_unit_test(reconnect_a_thousand_times),
	};

	return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
