// SPDX-License-Identifier: Apache-2.0
// A vhost-user guest that describes frames of any length in any way. The port passes on no frame longer than a
// packet buffer, never takes more buffers than a burst has packets, and counts what it drops.
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_cycles.h>
#include <rte_ip.h>
#include <rte_tcp.h>

#include "base/clock.h"
#include "base/event.h"
#include "base/offload.h"
#include "port/port_fixture.h"
#include "port/port_kinds.h"
#include "port/vhost.h"
#include "port/vhost_debt.h"
#include "port/vhost_fixture.h"
#include "port/vnet.h"
#include "testing/wait_until.h"

#define ROOM 2048
#define LARGE_BUFFERS (32 * 33) // of a burst
#define UNTOUCHED 0xee
#define MAX_BUFFERS (64 * 1024)

static struct rte_mbuf *all[MAX_BUFFERS];

// A guest that may send large segments.
static int connect_large(void **state)
{
	struct port_config cfg = fixture_config("vhost", PORT_TENANT, 1);

	snprintf(cfg.socket, sizeof(cfg.socket), "%s/hostile", dir);
	port = fixture_must_open(&cfg);
	assert_int_equal(guest_start_large(&g, cfg.socket), 0);
	assert_true(fixture_wait_link(port, true, PATIENCE_MS));
	drain(GUEST_RING);
	assert_int_equal(port->takes, PORT_TAKES_CHECKSUM | PORT_TAKES_TCP4 | PORT_TAKES_TCP6);
	return 0;
}

static int connect_two_pairs(void **state)
{
	return connect_one(2);
}

static unsigned take_all(void)
{
	unsigned n = 0;

	while (n < MAX_BUFFERS && (all[n] = rte_pktmbuf_alloc(port_pool(SOCKET_ID_ANY))) != NULL)
		n++;
	return n;
}

static void mark_buffers(void)
{
	unsigned n = take_all(), i;

	for (i = 0; i < n; i++)
		memset(rte_pktmbuf_mtod(all[i], void *), UNTOUCHED, ROOM);
	rte_pktmbuf_free_bulk(all, n);
}

static unsigned written_buffers(void)
{
	unsigned n = take_all(), i, k, written = 0;

	for (i = 0; i < n; i++) {
		for (k = 0; k < ROOM && *rte_pktmbuf_mtod_offset(all[i], uint8_t *, k) == UNTOUCHED; k++)
			;
		written += k < ROOM;
	}
	rte_pktmbuf_free_bulk(all, n);
	return written;
}

// Posts a chain a few times: no frame may arrive, and few buffers may have been written to.
static void refused(const struct vring_desc *chain, unsigned n, unsigned counted)
{
	unsigned i, before = fixture_too_long;
	struct rte_mbuf *pkts[BATCH];

	mark_buffers();
	for (i = 0; i < 4; i++) {
		guest_post(&g, TX, chain, n);
		assert_int_equal(fixture_receive(port, 0, pkts, BATCH, 2), 0);
	}
	assert_int_equal(fixture_too_long, before + 4 * counted);
	assert_in_range(written_buffers(), 0, 64);
	assert_int_equal(fixture_mbufs(), 0);
}

// Its frames get buffers, but no more than a burst of the largest ones needs.
static void much_too_long(void **state)
{
	static const uint32_t lengths[] = {256 * 1024, 4 * MIB, 64 * MIB, 128 * MIB};
	struct vring_desc d = {.addr = 0x4000};
	struct rte_mbuf *pkts[BATCH];
	unsigned i, k, n, before;

	for (i = 0; i < RTE_DIM(lengths); i++) {
		before = fixture_too_long;
		mark_buffers();
		d.len = lengths[i];
		for (k = 0; k < 4; k++) {
			guest_post(&g, TX, &d, 1);
			n = fixture_receive(port, 0, pkts, 1, 5); // what fits is for port_rx to drop
			assert_true(n == 0 || pkts[0]->nb_segs <= LARGE_BUFFERS);
			rte_pktmbuf_free_bulk(pkts, n);
		}
		assert_in_range(written_buffers(), 0, LARGE_BUFFERS);
		assert_int_equal(fixture_mbufs(), 0);
		assert_true(lengths[i] < 4 * MIB || fixture_too_long == before + 4);
	}
}

// A poll that finds no buffer is counted, and what waits is not lost.
static void no_buffer(void **state)
{
	const struct vring_desc d = {.addr = 0x4000, .len = GUEST_HEADER + 60};
	unsigned before = fixture_no_buffer, n = take_all();
	struct rte_mbuf *pkts[BATCH];

	guest_post(&g, TX, &d, 1);
	assert_int_equal(fixture_receive(port, 0, pkts, 1, 5), 0);
	assert_true(fixture_no_buffer > before);
	rte_pktmbuf_free_bulk(all, n);
	before = fixture_no_buffer;
	assert_int_equal(fixture_receive(port, 0, pkts, 1, 1000), 1);
	assert_int_equal(fixture_no_buffer, before);
	rte_pktmbuf_free_bulk(pkts, 1);
}

struct large {
	uint8_t header[GUEST_HEADER];
	struct rte_ether_hdr eth;
	struct rte_ipv6_hdr ip;
	struct rte_tcp_hdr tcp;
} __attribute__((packed));

// A large segment of a guest in one descriptor, from its memory; size: of its packets.
static void post_large(unsigned payload, uint16_t size)
{
	const struct virtio_net_hdr h = {VIRTIO_NET_HDR_F_NEEDS_CSUM, VIRTIO_NET_HDR_GSO_TCPV6, 74, size, 54, 16};
	const struct vring_desc d = {.addr = 0x100000, .len = (uint32_t)(sizeof(struct large) + payload)};
	struct large *l = (struct large *)(g.mem + d.addr);

	*l = (struct large){.eth.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV6),
			    .ip = {.vtc_flow = RTE_BE32(0x60000000),
				   .proto = IPPROTO_TCP,
				   .hop_limits = 64,
				   .payload_len = rte_cpu_to_be_16((uint16_t)(20 + payload))},
			    .tcp.data_off = 0x50};
	memcpy(l->header, &h, sizeof(h));
	guest_post(&g, TX, &d, 1);
}

static void large_segment(void **state)
{
	struct rte_mbuf *m;
	unsigned i;

	for (i = 0; i < 100; i++) {
		post_large(60000, 1400);
		assert_int_equal(fixture_receive(port, 0, &m, 1, 1000), 1);
		rte_mbuf_sanity_check(m, 1);
		assert_int_equal(m->pkt_len, 74 + 60000);
		assert_int_equal(m->ol_flags, RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_TCP_CKSUM | RTE_MBUF_F_TX_IPV6);
		assert_int_equal(m->tso_segsz, 1400);
		assert_int_equal(m->l4_len, 20);
		if (port->ops->tx(&port->queues[0], &m, 1) == 0)
			rte_pktmbuf_free(m); // its receive ring is full
	}
	post_large(60000, 60);
	assert_int_equal(fixture_receive(port, 0, &m, 1, 10), 0);
	assert_string_equal(fixture_refused->name, "offload_pieces");
	assert_int_equal(fixture_mbufs(), 0);
}

static void one_descriptor(void **state)
{
	static const uint32_t lengths[] = {
		1, GUEST_HEADER, GUEST_HEADER + ROOM + 1, 65535, 65536, 65537, 14 + 105556, 64 * MIB, 128 * MIB};
	struct vring_desc d = {.addr = 0x4000};
	struct rte_mbuf *m;
	unsigned i;

	for (i = 0; i < RTE_DIM(lengths); i++) {
		d.len = lengths[i];
		refused(&d, 1, 1);
		serves();
	}
	d.len = GUEST_HEADER + ROOM; // the largest that fits
	guest_post(&g, TX, &d, 1);
	assert_int_equal(fixture_receive(port, 0, &m, 1, 1000), 1);
	assert_int_equal(m->pkt_len, ROOM);
	assert_int_equal(m->nb_segs, 1);
	rte_pktmbuf_free(m);
}

// Copying is what costs time: a poll ends after as many bytes as a batch of short frames has, however many frames wait.
static void long_frames_end_a_poll(void **state)
{
	const struct vring_desc d = {.addr = 0x4000, .len = GUEST_HEADER + ROOM};
	struct rte_mbuf *pkts[BATCH];
	unsigned i, n, left = g.pairs * GUEST_RING;

	for (i = 0; i < left; i++)
		guest_post(&g, TX + 2 * (i % g.pairs), &d, 1);
	for (; left > 0; left -= n) {
		n = port->ops->rx(&port->queues[0], pkts, BATCH);
		assert_int_equal(n, PORT_TURN_BYTES / ROOM);
		rte_pktmbuf_free_bulk(pkts, n);
	}
}

static void long_chains(void **state)
{
	struct vring_desc chain[GUEST_RING];
	unsigned i;

	for (i = 0; i < GUEST_RING; i++)
		chain[i] = (struct vring_desc){
			.addr = 0x4000, .len = 64, .flags = VRING_DESC_F_NEXT, .next = (uint16_t)(i + 1)};
	chain[GUEST_RING - 1].flags = 0;
	refused(chain, GUEST_RING, 1);
	serves();
}

// 32 times 128 MiB are 4 GiB, which is 0 in 32 bits.
static void lengths_that_wrap(void **state)
{
	struct vring_desc chain[33];
	unsigned i;

	for (i = 0; i < 32; i++)
		chain[i] = (struct vring_desc){
			.addr = 0, .len = 128 * MIB, .flags = VRING_DESC_F_NEXT, .next = (uint16_t)(i + 1)};
	chain[32] = (struct vring_desc){.addr = 0x4000, .len = GUEST_HEADER + 60};
	refused(chain, 33, 1);
	serves();
}

// The library cannot follow these chains to their end and leaves them in the ring: the guest blocks itself until it
// reconnects.
static void stuck(const struct vring_desc *chain, unsigned n)
{
	refused(chain, n, 0);
}

static void circle(void **state)
{
	const struct vring_desc chain[] = {{.addr = 0x4000, .len = 64, .flags = VRING_DESC_F_NEXT, .next = 1},
					   {.addr = 0x4000, .len = 64, .flags = VRING_DESC_F_NEXT, .next = 0}};

	stuck(chain, 2);
}

static void outside_memory(void **state)
{
	const struct vring_desc d = {.addr = 1ull << 40, .len = 64};

	stuck(&d, 1);
}

static void across_the_end(void **state)
{
	const struct vring_desc d = {.addr = 128 * MIB, .len = UINT32_MAX};

	stuck(&d, 1);
}

static void past_the_table(void **state)
{
	const struct vring_desc d = {.addr = 0x4000, .len = 64, .flags = VRING_DESC_F_NEXT, .next = 1000};

	stuck(&d, 1);
}

static void indirect(void **state)
{
	static const struct vring_desc tables[] = {
		// more entries than a 16-bit counter holds
		{.addr = 0x4000, .len = 16 * 1024 * 1024, .flags = VRING_DESC_F_INDIRECT},
		{.addr = 1ull << 40, .len = 32, .flags = VRING_DESC_F_INDIRECT},
		{.addr = 0x4000, .len = 0, .flags = VRING_DESC_F_INDIRECT},
		{.addr = 0x4000, .len = 7, .flags = VRING_DESC_F_INDIRECT | VRING_DESC_F_NEXT, .next = 0},
	};
	unsigned i;

	for (i = 0; i < RTE_DIM(tables); i++) {
		struct rte_mbuf *pkts[BATCH];

		guest_post(&g, TX, &tables[i], 1);
		assert_int_equal(fixture_receive(port, 0, pkts, BATCH, 2), 0);
	}
	assert_int_equal(fixture_mbufs(), 0);
}

// The index of available frames changes at random.
static void rings_lie(unsigned longest)
{
	struct guest_ring *r = &g.rings[TX];
	struct rte_mbuf *pkts[BATCH];
	unsigned i, n, seed = 1;

	for (i = 0; i < 200; i++) {
		__atomic_store_n(&r->avail->idx, (uint16_t)rand_r(&seed), __ATOMIC_RELEASE);
		r->avail->ring[(unsigned)rand_r(&seed) % GUEST_RING] = (uint16_t)rand_r(&seed);
		r->used->idx = (uint16_t)rand_r(&seed);
		n = fixture_receive(port, 0, pkts, BATCH, 1);
		while (n > 0) {
			assert_in_range(pkts[--n]->pkt_len, 1, longest);
			rte_pktmbuf_free(pkts[n]);
		}
	}
	assert_int_equal(fixture_mbufs(), 0);
}

static void rings_that_lie(void **state)
{
	rings_lie(ROOM);
}

static void rings_that_lie_large(void **state)
{
	rings_lie(LARGE_BUFFERS * ROOM);
}

static void mtu_against_buffers(void **state)
{
	struct port_config cfg = fixture_config("vhost", PORT_TENANT, 1);
	struct error err = {};
	struct port *p;

	snprintf(cfg.socket, sizeof(cfg.socket), "%s/mtu", dir);
	cfg.offload = PORT_OFFLOAD_NONE;
	cfg.mtu = ROOM - PORT_L2_OVERHEAD + 1;
	assert_null(fixture_open(&cfg, &err));
	assert_string_equal(err.field, "port.mtu");
	assert_non_null(strstr(err.message, "--mbuf-size 2049"));
	cfg.mtu--;
	p = fixture_must_open(&cfg);
	assert_int_equal(p->ops->set_mtu(p, 1500, &err), 0);
	assert_int_equal(p->ops->set_mtu(p, 9000, &err), -ERANGE);
	assert_string_equal(err.field, "port.mtu");
	fixture_close(p);
	cfg.offload = PORT_OFFLOAD_ALL; // frames may have several buffers
	cfg.mtu = 9000;
	p = fixture_must_open(&cfg);
	assert_int_equal(p->ops->set_mtu(p, 1500, &err), 0);
	fixture_close(p);
}

// Of 32,768 entries, one frame of no bytes would take the worker seconds.
static void rings_of_bad_length(void **state)
{
	uint64_t event = event_last();

	connect_guest(state);
	assert_int_equal(guest_move_ring(&g, TX, VHOST_LONGEST_RING, 16 * MIB), 0);
	assert_int_equal(guest_move_ring(&g, TX, 2 * VHOST_LONGEST_RING, 16 * MIB), -EPIPE);
	assert_true(fixture_wait_link(port, false, PATIENCE_MS));
	assert_string_equal(event_after(event)->kind->name, "vhost_ring_refused");
	disconnect_guest(state);
	connect_guest(state);
	serves();
	assert_int_equal(guest_move_ring(&g, TX, VHOST_SHORTEST_RING / 2, 16 * MIB), -EPIPE);
	disconnect_guest(state);
}

// The library would use a ring whose length it was never told as one of no entries, whose indexes nothing bounds.
static void rings_of_no_length(void **state)
{
	struct port_config cfg = fixture_config("vhost", PORT_TENANT, 1);
	const struct vhost_queue *q;
	uint64_t event;
	uint32_t untold;

	snprintf(cfg.socket, sizeof(cfg.socket), "%s/hostile", dir);
	for (untold = RX; untold <= TX; untold++) {
		event = event_last();
		port = fixture_must_open(&cfg);
		guest_start_untold(&g, cfg.socket, untold);
		assert_int_equal(guest_features(&g), 0); // the router has ended the connection
		q = port->queues[0].priv;
		assert_true(q->rx == VRING_NONE && q->tx == VRING_NONE);
		fixture_loop_ms(1);
		assert_string_equal(event_after(event)->kind->name, "vhost_message_refused");
		disconnect_guest(state);
	}
	connect_guest(state);
	serves();
	disconnect_guest(state);
}

// librte_vhost's work for one frame in packed rings has no useful bound.
static void packed_rings(void **state)
{
	assert_true(guest_features(&g) >> VIRTIO_NET_F_MRG_RXBUF & 1);
	assert_int_equal(guest_features(&g) >> VIRTIO_F_RING_PACKED & 1, 0);
}

// A frame for a guest that offers the longest chain of descriptors without a byte in each entry of its longest ring.
// The library follows a million of them, which takes milliseconds, and then there is no room. So the router leaves the
// ring alone until the time that this took is paid.
static void room_of_nothing(void **state)
{
	struct vhost_debt *debt = &((struct vhost_queue *)port->queues[0].priv)->tx_debt;
	const uint64_t rest = VHOST_DEBT_SHARE * vhost_debt_cycles(VHOST_DEBT_MOST_US, rte_get_tsc_hz());
	struct guest_ring *r = &g.rings[RX];
	struct rte_mbuf *m = fixture_packet(60, 0);
	unsigned i;

	assert_int_equal(guest_move_ring(&g, RX, VHOST_LONGEST_RING, 16 * MIB), 0);
	for (i = 0; i < VHOST_LONGEST_RING; i++)
		r->desc[i] = (struct vring_desc){
			.addr = 0x4000, .flags = VRING_DESC_F_WRITE | VRING_DESC_F_NEXT, .next = (uint16_t)(i + 1)};
	r->desc[VHOST_LONGEST_RING - 1].flags = VRING_DESC_F_WRITE;
	__atomic_store_n(&r->avail->idx, VHOST_LONGEST_RING, __ATOMIC_RELEASE);
	do
		assert_int_equal(port->ops->tx(&port->queues[0], &m, 1), 0);
	while (debt->paid_at <= rte_rdtsc() + rest);

	r->desc[0] = (struct vring_desc){.addr = 0x4000, .len = ROOM, .flags = VRING_DESC_F_WRITE};
	clock_stopped = debt->paid_at - rest - 1;
	assert_int_equal(port->ops->tx(&port->queues[0], &m, 1), 0);
	clock_stopped++;
	assert_int_equal(port->ops->tx(&port->queues[0], &m, 1), 1);
	clock_stopped = 0;
}

// The guest says that the ring has sixteen times as many buffers as entries, and each frame takes half of the entries.
// The library would note 32 frames in an array of 1,024, and report all that it notes.
static void more_buffers_than_entries(void **state)
{
	enum { LIE = 16, FRAMES = 32, BEHIND = 256 << 10 };
	struct guest_ring *r = &g.rings[RX];
	struct rte_mbuf *pkts[FRAMES];
	uint8_t *behind;
	unsigned i, sent;

	assert_int_equal(guest_move_ring(&g, RX, VHOST_LONGEST_RING, 16 * MIB), 0);
	for (i = 0; i < VHOST_LONGEST_RING; i++) {
		r->desc[i] = (struct vring_desc){
			.addr = 0x4000, .len = i % 512 == 511 ? ROOM : 0, .flags = VRING_DESC_F_WRITE};
		r->avail->ring[i] = (uint16_t)i;
	}
	behind = (uint8_t *)&r->used->ring[VHOST_LONGEST_RING] + sizeof(uint16_t);
	memset(behind, UNTOUCHED, BEHIND);
	__atomic_store_n(&r->avail->idx, LIE * VHOST_LONGEST_RING, __ATOMIC_RELEASE);
	for (i = 0; i < FRAMES; i++)
		pkts[i] = fixture_packet(60, 0);
	sent = port->ops->tx(&port->queues[0], pkts, FRAMES);
	rte_pktmbuf_free_bulk(pkts + sent, FRAMES - sent);
	assert_true(sent > 0);
	for (i = 0; i < BEHIND; i++)
		assert_int_equal(behind[i], UNTOUCHED);
}

#define with_large(test) cmocka_unit_test_setup_teardown(test, connect_large, disconnect_guest)
#define with_two_pairs(test) cmocka_unit_test_setup_teardown(test, connect_two_pairs, disconnect_guest)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_guest(one_descriptor),
		with_guest(long_chains),
		with_guest(lengths_that_wrap),
		with_guest(circle),
		with_guest(outside_memory),
		with_guest(across_the_end),
		with_guest(past_the_table),
		with_guest(indirect),
		with_guest(rings_that_lie),
		cmocka_unit_test(mtu_against_buffers),
		with_guest(no_buffer),
		with_guest(long_frames_end_a_poll),
		with_two_pairs(long_frames_end_a_poll),
		with_large(much_too_long),
		with_large(large_segment),
		with_large(rings_that_lie_large),
		with_guest(packed_rings),
		with_guest(room_of_nothing),
		with_guest(more_buffers_than_entries),
		cmocka_unit_test(rings_of_bad_length),
		cmocka_unit_test(rings_of_no_length),
	};

	fixture_require();
	return cmocka_run_group_tests(tests, start_hostile, stop_hostile);
}
