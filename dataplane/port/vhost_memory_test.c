// SPDX-License-Identifier: Apache-2.0
// A vhost-user guest whose memory is taken away: the connection ends with an event, and nobody else notices.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cmocka.h>
#include <rte_vhost.h>

#include "base/event.h"
#include "base/rcu.h"
#include "port/port_fixture.h"
#include "port/port_kinds.h"
#include "port/vhost.h"
#include "port/vhost_fixture.h"
#include "testing/wait_until.h"

// The router's control thread maps memory that is not there, and looks at the rings in it.
static void memory_that_is_not_there(void **state)
{
	connect_guest(state);
	guest_shrink_memory(&g);
	guest_resend_memory(&g);
	fixture_loop_ms(100);
	disconnect_guest(state);
	connect_guest(state);
	serves();
	disconnect_guest(state);
}

static unsigned lost_events(uint64_t after)
{
	const struct event_record *e;
	unsigned n = 0;

	for (; (e = event_after(after)) != NULL; after = e->number) {
		assert_string_equal(e->kind->name, "port_memory_lost"); // and nothing else
		assert_string_equal(e->subject, "port test");
		assert_non_null(strstr(e->text, "F_SEAL_SHRINK"));
		n++;
	}
	return n;
}

// The guest's process shrinks the file of its memory.
static void taken_by_shrinking(void)
{
	guest_shrink_memory(&g);
}

// The router may not access its mapping of the guest's memory any more.
static void taken_by_protection(void)
{
	const struct vhost_queue *q = port->queues[0].priv;
	struct rte_vhost_memory *mem = NULL;

	assert_int_equal(rte_vhost_get_mem_table(VRING_VID(q->rx), &mem), 0);
	assert_int_equal(mprotect(mem->regions[0].mmap_addr, mem->regions[0].mmap_size, PROT_NONE), 0);
	free(mem);
}

// As workers do it: the library does not unmap what they use.
static void touched_by_rx(void)
{
	struct rte_mbuf *pkts[BATCH];
	unsigned n;

	rcu_reader_online(RCU_MASTER);
	n = port->ops->rx(&port->queues[0], pkts, BATCH);
	rcu_reader_offline(RCU_MASTER);
	assert_int_equal(n, 0);
}

static void touched_by_tx(void)
{
	struct rte_mbuf *m = fixture_packet(60, 0);
	unsigned n;

	rcu_reader_online(RCU_MASTER);
	n = port->ops->tx(&port->queues[0], &m, 1);
	rcu_reader_offline(RCU_MASTER);
	if (n == 0)
		rte_pktmbuf_free(m);
}

// While a thread of the library answers a message of the guest's: it looks at the ring's indexes.
static void touched_by_message(void)
{
	guest_move_ring(&g, TX, GUEST_RING, 16 * MIB);
}

static const struct {
	void (*take)(void);
	void (*touch)(void);
} losses[] = {
	{taken_by_shrinking, touched_by_rx},      {taken_by_shrinking, touched_by_tx},
	{taken_by_shrinking, touched_by_message}, {taken_by_protection, touched_by_rx},
	{taken_by_protection, touched_by_tx},     {taken_by_protection, touched_by_message},
};

// Memory that a worker or the library's thread does not find any more ends the connection with an event. Another port
// goes on, and the next guest of this one is served.
static void memory_taken_away(void **state)
{
	struct port *other = open_port("other");
	struct guest beside;
	struct rte_mbuf *m;
	uint64_t event;
	unsigned i;
	char byte;

	assert_int_equal(guest_start(&beside, other->cfg.socket, false, 1), 0);
	assert_true(fixture_wait_link(other, true, PATIENCE_MS));
	for (i = 0; i < RTE_DIM(losses); i++) {
		connect_one(1);     // in the test itself, because cmocka has signal handlers of its own
		guest_features(&g); // waits until the messages before it were handled, so that the worker has the rings
		event = event_last();
		losses[i].take();
		losses[i].touch();
		while (recv(g.sock, &byte, 1, 0) > 0) // until it is disconnected
			;
		assert_true(fixture_wait_link(port, false, PATIENCE_MS));
		assert_string_equal(port->last_error, "shared memory was taken away");
		guest_stop(&g);
		guest_step(&beside);
		assert_int_equal(fixture_receive(other, 0, &m, 1, PATIENCE_MS), 1);
		rte_pktmbuf_free(m);
		assert_int_equal(guest_start(&g, port->cfg.socket, false, 1), 0);
		assert_true(fixture_wait_link(port, true, PATIENCE_MS));
		drain(GUEST_RING);
		serves();
		assert_int_equal(lost_events(event), 1);
		disconnect_guest(state);
		assert_int_equal(lost_events(event), 1);
	}
	assert_true(other->link_up);
	assert_int_equal(other->peer_disconnects, 0);
	guest_stop(&beside);
	fixture_close(other);
}

// The front end goes as soon as a worker has found it.
static void memory_taken_away_at_the_end(void **state)
{
	uint64_t event;

	connect_one(1);
	guest_features(&g);
	event = event_last();
	guest_shrink_memory(&g);
	touched_by_rx();
	guest_stop(&g);
	assert_true(fixture_wait_link(port, false, PATIENCE_MS));
	assert_int_equal(lost_events(event), 1);
	fixture_close(port);
	assert_int_equal(lost_events(event), 1);
}

// A guest that does it again and again is reported less and less often.
static void memory_taken_away_often(void **state)
{
	enum { TIMES = 9 };
	uint64_t event;
	unsigned i;

	connect_one(1);
	event = event_last();
	for (i = 0; i < TIMES; i++) {
		guest_features(&g);
		guest_shrink_memory(&g);
		touched_by_rx();
		assert_true(fixture_wait_link(port, false, PATIENCE_MS));
		guest_stop(&g);
		assert_int_equal(guest_start(&g, port->cfg.socket, false, 1), 0);
		assert_true(fixture_wait_link(port, true, PATIENCE_MS));
		drain(GUEST_RING);
	}
	assert_int_equal(lost_events(event), 4); // the 1st, 2nd, 4th and 8th
	disconnect_guest(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_taken_away),
		cmocka_unit_test(memory_taken_away_at_the_end),
		cmocka_unit_test(memory_taken_away_often),
		cmocka_unit_test(memory_that_is_not_there),
	};

	fixture_require();
	return cmocka_run_group_tests(tests, start_hostile, stop_hostile);
}
