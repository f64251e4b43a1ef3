// SPDX-License-Identifier: Apache-2.0
// A vhost-user guest that describes frames of any length in any way. The port passes on no frame longer than a
// packet buffer, never takes more buffers than a burst has packets, and counts what it drops.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "port/port_fixture.h"
#include "port/port_kinds.h"
#include "port/vhost_guest.h"

#define TX 1 // the guest's first transmit ring
#define ROOM 2048
#define UNTOUCHED 0xee
#define MAX_BUFFERS (64 * 1024)
#define MIB (1u << 20)

static char dir[] = "/tmp/corelane-hostile-XXXXXX";
static struct rte_mbuf *all[MAX_BUFFERS];
static struct guest g;
static struct port *port;

static void drain(unsigned wanted)
{
	struct rte_mbuf *pkts[BATCH];
	unsigned n = fixture_receive(port, 0, pkts, RTE_MIN(wanted, (unsigned)BATCH), 1000);

	assert_int_equal(n, wanted);
	rte_pktmbuf_free_bulk(pkts, n);
}

// A guest whose first frames have been received.
static int connect_one(bool packed, unsigned pairs)
{
	struct port_config cfg = fixture_config("vhost", PORT_TENANT, 1);

	snprintf(cfg.socket, sizeof(cfg.socket), "%s/hostile", dir);
	port = fixture_must_open(&cfg);
	assert_int_equal(packed ? guest_start_packed(&g, cfg.socket, pairs) : guest_start(&g, cfg.socket, false, pairs),
			 0);
	assert_true(fixture_wait_link(port, true, 5000));
	drain(pairs * GUEST_RING);
	return 0;
}

static int connect_guest(void **state)
{
	return connect_one(false, 1);
}

static int connect_packed(void **state)
{
	return connect_one(true, 1);
}

static int connect_two_pairs(void **state)
{
	return connect_one(false, 2);
}

static int disconnect_guest(void **state)
{
	guest_stop(&g);
	fixture_loop_ms(100);
	fixture_close(port);
	assert_int_equal(fixture_mbufs(), 0);
	return 0;
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

// The port still works: a frame of 60 bytes arrives.
static void serves(void)
{
	const struct vring_desc good = {.addr = 0x4000, .len = GUEST_HEADER + 60};
	struct rte_mbuf *m;

	guest_post(&g, TX, &good, 1);
	assert_int_equal(fixture_receive(port, 0, &m, 1, 1000), 1);
	assert_int_equal(m->pkt_len, 60);
	assert_int_equal(m->nb_segs, 1);
	rte_pktmbuf_free(m);
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
// reconnects. From a packed ring it drops them.
static void stuck(const struct vring_desc *chain, unsigned n)
{
	refused(chain, n, g.packed ? 1 : 0);
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
static void rings_that_lie(void **state)
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
			assert_in_range(pkts[--n]->pkt_len, 1, ROOM);
			rte_pktmbuf_free(pkts[n]);
		}
	}
	assert_int_equal(fixture_mbufs(), 0);
}

// The same chains, in a packed ring.
static void chain_without_an_end(void **state)
{
	struct vring_desc chain[GUEST_RING];
	unsigned i;

	for (i = 0; i < GUEST_RING; i++)
		chain[i] = (struct vring_desc){.addr = 0x4000, .len = 64, .flags = VRING_DESC_F_NEXT};
	guest_post(&g, TX, chain, GUEST_RING);
	assert_int_equal(fixture_receive(port, 0, all, BATCH, 10), 0);
	assert_int_equal(fixture_mbufs(), 0);
}

// Descriptors change at random, also those that are not available.
static void packed_rings_that_lie(void **state)
{
	struct guest_ring *r = &g.rings[TX];
	struct rte_mbuf *pkts[BATCH];
	unsigned i, k, n, seed = 1;

	for (i = 0; i < 400; i++) {
		for (k = 0; k < 8; k++) {
			struct vring_packed_desc *d = &r->packed[(unsigned)rand_r(&seed) % GUEST_RING];

			d->addr = rand_r(&seed) % 2 ? 0x4000 : (uint64_t)rand_r(&seed) << 20;
			d->len = (uint32_t)rand_r(&seed) >> (unsigned)rand_r(&seed) % 31;
			d->id = (uint16_t)rand_r(&seed);
			__atomic_store_n(&d->flags, (uint16_t)rand_r(&seed), __ATOMIC_RELEASE);
		}
		n = fixture_receive(port, 0, pkts, BATCH, 1);
		while (n > 0) {
			assert_in_range(pkts[--n]->pkt_len, 1, ROOM);
			rte_pktmbuf_free(pkts[n]);
		}
	}
	assert_int_equal(fixture_mbufs(), 0);
}

static void mtu_against_buffers(void **state)
{
	struct port_config cfg = fixture_config("vhost", PORT_TENANT, 1);
	struct error err = {};
	struct port *p;

	snprintf(cfg.socket, sizeof(cfg.socket), "%s/mtu", dir);
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
}

// One thread serves the connections of all guests. A front end that stops in the middle of a message, or does not read
// its answers, must not hold it.
static void half_a_message(void **state)
{
	static const uint32_t set_features[] = {2, 1,
						8}; // request, version, length of the payload, which does not follow
	struct port_config cfg = fixture_config("vhost", PORT_TENANT, 1);
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct port *held;

	snprintf(cfg.name, sizeof(cfg.name), "held");
	snprintf(cfg.socket, sizeof(cfg.socket), "%s/held", dir);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/held", dir);
	held = fixture_must_open(&cfg);
	assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(write(fd, set_features, sizeof(set_features)), sizeof(set_features));
	fixture_loop_ms(50);
	connect_guest(state); // on another port
	serves();
	disconnect_guest(state);
	close(fd);
	fixture_loop_ms(50);
	fixture_close(held);
}

static int stop(void **state)
{
	rmdir(dir);
	return fixture_stop(state);
}

#define with_guest(test) cmocka_unit_test_setup_teardown(test, connect_guest, disconnect_guest)
#define with_packed(test) cmocka_unit_test_setup_teardown(test, connect_packed, disconnect_guest)
#define with_two_pairs(test) cmocka_unit_test_setup_teardown(test, connect_two_pairs, disconnect_guest)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_guest(one_descriptor),         with_guest(long_chains),
		with_guest(lengths_that_wrap),      with_guest(circle),
		with_guest(outside_memory),         with_guest(across_the_end),
		with_guest(past_the_table),         with_guest(indirect),
		with_guest(rings_that_lie),         cmocka_unit_test(mtu_against_buffers),
		with_packed(one_descriptor),        with_packed(long_chains),
		with_packed(lengths_that_wrap),     with_packed(outside_memory),
		with_packed(across_the_end),        with_packed(indirect),
		with_packed(chain_without_an_end),  with_packed(packed_rings_that_lie),
		with_guest(long_frames_end_a_poll), with_two_pairs(long_frames_end_a_poll),
		cmocka_unit_test(half_a_message),
	};

	fixture_require();
	if (mkdtemp(dir) == NULL)
		return 1;
	return cmocka_run_group_tests(tests, fixture_start, stop);
}
