// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rte_tcp.h>

#include "base/offload.h"
#include "graph/counters.h"
#include "offload/offload_fixture.h"
#include "testing/router_fixture.h"
#include "worker/worker.h"

#define LEN 60

static uint16_t room; // packets that the queue still accepts

static uint16_t tx_some(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i, k = RTE_MIN(n, room);

	room = (uint16_t)(room - k);
	for (i = 0; i < k; i++)
		router_sent[router_n_sent++] = (struct router_sent){q->port->id, q->index, pkts[i]};
	return k;
}

static uint16_t tx_locked(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	assert_false(rte_spinlock_trylock(&q->tx_lock));
	room = 1000;
	return tx_some(q, pkts, n);
}

static int reset(void **state)
{
	router_forget();
	router_tx = NULL;
	return 0;
}

// A packet that leaves by the port; packets differ in their length.
static struct rte_mbuf *packet(uint16_t out, unsigned len)
{
	struct rte_mbuf *m = router_hex("");

	memset(rte_pktmbuf_append(m, (uint16_t)len), 0, len);
	m->port = RED0;
	meta(m)->out_port = out;
	return m;
}

static void send_to(const uint16_t *ports, unsigned n)
{
	struct rte_mbuf *pkts[256];
	unsigned i;

	for (i = 0; i < n; i++)
		pkts[i] = packet(ports[i], LEN + i);
	assert_int_equal(node_test_run("port_tx", pkts, n), 0);
}

static uint64_t refused_by(uint16_t port)
{
	struct port_counters c;

	counters_port(port, &c);
	return c.tx_refused;
}

static uint64_t sent_by(uint16_t port)
{
	struct port_counters c;

	counters_port(port, &c);
	return c.tx_packets;
}

static uint64_t bytes_by(uint16_t port)
{
	struct port_counters c;

	counters_port(port, &c);
	return c.tx_bytes;
}

static void order_kept(void **state)
{
	static const uint16_t ports[] = {RED1, RED1, BLUE0, RED1, FABRIC0, FABRIC0};
	uint64_t red = sent_by(RED1), bytes = bytes_by(RED1), blue = sent_by(BLUE0);
	unsigned i;

	send_to(ports, RTE_DIM(ports));
	assert_int_equal(router_n_sent, RTE_DIM(ports));
	for (i = 0; i < RTE_DIM(ports); i++) {
		assert_int_equal(router_sent[i].port, ports[i]);
		assert_int_equal(router_sent[i].m->pkt_len, LEN + i);
	}
	assert_int_equal(sent_by(RED1), red + 3);
	assert_int_equal(bytes_by(RED1), bytes + LEN + LEN + 1 + LEN + 3);
	assert_int_equal(sent_by(BLUE0), blue + 1);
}

static void queue_full(void **state)
{
	static const uint16_t ports[] = {RED1, RED1, RED1, RED1, RED1};
	uint64_t sent = sent_by(RED1), bytes = bytes_by(RED1), refused = refused_by(RED1),
		 lost = router_drops(RED0, "port_tx_full");

	router_tx = tx_some;
	room = 2;
	send_to(ports, RTE_DIM(ports));
	assert_int_equal(router_n_sent, 2);
	assert_int_equal(sent_by(RED1), sent + 2);
	assert_int_equal(bytes_by(RED1), bytes + 2 * LEN + 1);
	assert_int_equal(router_drops(RED0, "port_tx_full"), lost + 3); // counted at the port that they came in by
	assert_int_equal(node_test_in_use(), 2);
	send_to(ports, 1);
	assert_int_equal(sent_by(RED1), sent + 2);
	assert_int_equal(router_drops(RED0, "port_tx_full"), lost + 4);
	assert_int_equal(refused_by(RED1), refused + 4); // counted at the port that refused them
}

static void down_and_gone(void **state)
{
	static const uint16_t ports[] = {RED1, BLUE0, PORTS_END, PORT_MAX - 1, 0};
	uint64_t down = router_drops(RED0, "port_down"), gone = router_drops(RED0, "port_gone");
	struct port_config c = router_config(RED1);

	c.disabled = true;
	router_set(RED1, &c);
	send_to(ports, RTE_DIM(ports));
	assert_int_equal(router_n_sent, 1);
	assert_int_equal(router_sent[0].port, BLUE0);
	assert_int_equal(router_drops(RED0, "port_down"), down + 1);
	assert_int_equal(router_drops(RED0, "port_gone"), gone + 3);
	assert_int_equal(node_test_in_use(), 1);
	c.disabled = false;
	router_set(RED1, &c);
}

// Each worker has its queue; where there are more workers than queues, they take turns.
static void queues(void **state)
{
	static const uint16_t ports[] = {RED1};
	struct worker *w = router_worker();
	unsigned id;

	for (id = 0; id < 5; id++) {
		w->id = id;
		send_to(ports, 1);
		assert_int_equal(router_sent[router_n_sent - 1].queue, id % 2);
	}
	w->id = 0;
	port_set_tx_flag(port_table[RED1], PORT_TX_SHARED, true);
	router_tx = tx_locked;
	send_to(ports, 1);
	assert_int_equal(router_n_sent, 6);
	assert_true(rte_spinlock_trylock(&port_table[RED1]->queues[0].tx_lock)); // and unlocked afterwards
	rte_spinlock_unlock(&port_table[RED1]->queues[0].tx_lock);
	port_set_tx_flag(port_table[RED1], PORT_TX_SHARED, false);
}

// What the port takes is sent as it is, the rest is cut and completed. Returns how many packets were sent.
static unsigned send_unfinished(const struct offload_packet *p, uint16_t takes, bool checksum_only)
{
	struct rte_mbuf *m = offload_make(p);

	port_table[RED1]->takes = takes;
	offload_mark(m, 0);
	if (checksum_only)
		m->ol_flags &= ~OFFLOAD_LARGE;
	m->port = RED0;
	meta(m)->out_port = RED1;
	router_forget();
	assert_int_equal(node_test_run("port_tx", &m, 1), 0);
	port_table[RED1]->takes = 0;
	return router_n_sent;
}

static void unfinished(void **state)
{
	static const uint16_t all =
		PORT_TAKES_CHECKSUM | PORT_TAKES_TCP4 | PORT_TAKES_TCP6 | PORT_TAKES_UDP4 | PORT_TAKES_UDP6;
	unsigned i, k, n;

	for (i = 0; i < 4; i++) {
		const uint16_t kinds[] = {PORT_TAKES_TCP4, PORT_TAKES_TCP6, PORT_TAKES_UDP4, PORT_TAKES_UDP6};
		struct offload_packet p = {.v6 = i & 1, .udp = i & 2, .payload = 5000, .size = 1300, .tcp_flags = 0x10};

		assert_int_equal(send_unfinished(&p, kinds[i], false), 1);
		assert_true(offload_is_large(router_sent[0].m));
		n = send_unfinished(&p, (uint16_t)(all & ~kinds[i]), false);
		assert_int_equal(n, 4);
		for (k = 0; k < n; k++)
			assert_true(router_l4_ok(router_sent[k].m, 14) && !offload_is_unfinished(router_sent[k].m));
		assert_int_equal(send_unfinished(&p, PORT_TAKES_CHECKSUM, true), 1);
		assert_true(offload_is_unfinished(router_sent[0].m));
		p.payload = 100;
		p.size = 50;
		assert_int_equal(send_unfinished(&p, 0, true), 1);
		assert_false(offload_is_unfinished(router_sent[0].m));
		assert_true(router_l4_ok(router_sent[0].m, 14));
	}
}

// A segment that shows that the sender has slowed down (CWR) is whole only for those who know what that means.
static void congestion_window_reduced(void **state)
{
	const struct offload_packet p = {.payload = 5000, .size = 1300, .tcp_flags = 0x90};

	assert_int_equal(send_unfinished(&p, PORT_TAKES_TCP4, false), 4);
	assert_int_equal(send_unfinished(&p, PORT_TAKES_TCP4 | PORT_TAKES_ECN, false), 1);
}

static void many(void **state)
{
	uint16_t ports[256];
	unsigned i;

	for (i = 0; i < RTE_DIM(ports); i++)
		ports[i] = i % 3 ? RED1 : FABRIC0;
	send_to(ports, RTE_DIM(ports));
	assert_int_equal(router_n_sent, RTE_DIM(ports));
}

static unsigned send_parts(const struct offload_packet *p, uint16_t takes)
{
	struct rte_mbuf *pkts[OFFLOAD_SEGMENTS_MAX];
	struct offload_packet part;
	unsigned i, n = offload_parts(p);

	router_forget();
	for (i = 0; i < n; i++) {
		part = offload_part(p, i);
		pkts[i] = offload_make(&part);
		meta(pkts[i])->out_port = RED1;
	}
	port_table[RED1]->takes = takes;
	assert_int_equal(node_test_run("port_tx", pkts, n), 0);
	port_table[RED1]->takes = 0;
	return router_n_sent;
}

// Packets of one connection become a large segment for a peer that takes it, unless they are short.
static void joined(void **state)
{
	struct offload_packet p = {.payload = 4000, .size = 1000, .sport = 7, .tcp_flags = RTE_TCP_ACK_FLAG};

	assert_int_equal(send_parts(&p, PORT_TAKES_CHECKSUM | PORT_TAKES_TCP4), 1);
	assert_true(offload_is_large(router_sent[0].m));
	assert_int_equal(router_sent[0].m->tso_segsz, 1000);
	assert_int_equal(router_sent[0].m->pkt_len, offload_headers(&p) + 4000);
	assert_int_equal(send_parts(&p, PORT_TAKES_CHECKSUM | PORT_TAKES_TCP6), 4);
	assert_int_equal(send_parts(&p, 0), 4);
	p.payload = 400;
	p.size = 100;
	assert_int_equal(send_parts(&p, PORT_TAKES_CHECKSUM | PORT_TAKES_TCP4), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(order_kept, reset), cmocka_unit_test_setup(joined, reset),
		cmocka_unit_test_setup(queue_full, reset), cmocka_unit_test_setup(down_and_gone, reset),
		cmocka_unit_test_setup(queues, reset),     cmocka_unit_test_setup(many, reset),
		cmocka_unit_test_setup(unfinished, reset), cmocka_unit_test_setup(congestion_window_reduced, reset),
	};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
