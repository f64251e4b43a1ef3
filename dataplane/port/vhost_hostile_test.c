// SPDX-License-Identifier: Apache-2.0
// A vhost-user guest that describes frames of any length in any way. The port passes on no frame longer than a
// packet buffer, never takes more buffers than a burst has packets, and counts what it drops.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_cycles.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_vhost.h>

#include "base/clock.h"
#include "base/event.h"
#include "base/rcu.h"
#include "port/port_fixture.h"
#include "port/port_kinds.h"
#include "port/vhost.h"
#include "port/vhost_debt.h"
#include "port/vhost_guest.h"
#include "port/vhost_message.h"
#include "port/vnet.h"
#include "testing/wait_until.h"

#define RX 0 // the guest's first rings
#define TX 1
#define ROOM 2048
#define LARGE_BUFFERS (32 * 33) // of a burst
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
static int connect_one(unsigned pairs)
{
	struct port_config cfg = fixture_config("vhost", PORT_TENANT, 1);

	snprintf(cfg.socket, sizeof(cfg.socket), "%s/hostile", dir);
	port = fixture_must_open(&cfg);
	assert_int_equal(guest_start(&g, cfg.socket, false, pairs), 0);
	assert_true(fixture_wait_link(port, true, 5000));
	drain(pairs * GUEST_RING);
	return 0;
}

static int connect_guest(void **state)
{
	return connect_one(1);
}

// A guest that may send large segments.
static int connect_large(void **state)
{
	struct port_config cfg = fixture_config("vhost", PORT_TENANT, 1);

	snprintf(cfg.socket, sizeof(cfg.socket), "%s/hostile", dir);
	port = fixture_must_open(&cfg);
	assert_int_equal(guest_start_large(&g, cfg.socket), 0);
	assert_true(fixture_wait_link(port, true, 5000));
	drain(GUEST_RING);
	assert_int_equal(port->takes, PORT_TAKES_CHECKSUM | PORT_TAKES_TCP4 | PORT_TAKES_TCP6);
	return 0;
}

static int connect_two_pairs(void **state)
{
	return connect_one(2);
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

// A frame of 60 bytes arrives.
static void frame_arrives(struct port *p, struct guest *from)
{
	const struct vring_desc good = {.addr = 0x4000, .len = GUEST_HEADER + 60};
	struct rte_mbuf *m;

	guest_post(from, TX, &good, 1);
	assert_int_equal(fixture_receive(p, 0, &m, 1, PATIENCE_MS), 1);
	assert_int_equal(m->pkt_len, 60);
	assert_int_equal(m->nb_segs, 1);
	rte_pktmbuf_free(m);
}

// The port still works.
static void serves(void)
{
	frame_arrives(port, &g);
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

static int connect_socket(const char *name)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s/%s", dir, name);
	assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	return fd;
}

static struct port *open_port(const char *name)
{
	struct port_config cfg = fixture_config("vhost", PORT_TENANT, 1);

	snprintf(cfg.name, sizeof(cfg.name), "%s", name);
	snprintf(cfg.socket, sizeof(cfg.socket), "%s/%s", dir, name);
	return fixture_must_open(&cfg);
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

// One thread serves the front ends of all ports. One that stops in the middle of a message does not hold it, and may go
// on with the message later.
static void half_a_message(void **state)
{
	static const uint32_t get_features[] = {1, 1, 0}; // request, version, length of the payload
	uint32_t answer[5];
	struct port *held = open_port("held");
	int fd = connect_socket("held");
	size_t some;

	for (some = 1; some < sizeof(get_features); some++) {
		assert_int_equal(write(fd, get_features, some), some);
		connect_guest(state); // on another port
		serves();
		disconnect_guest(state);
		assert_int_equal(recv(fd, answer, sizeof(answer), MSG_DONTWAIT), -1);
		assert_int_equal(errno, EAGAIN); // it is still connected
		assert_int_equal(write(fd, (const char *)get_features + some, sizeof(get_features) - some),
				 sizeof(get_features) - some);
		assert_int_equal(recv(fd, answer, sizeof(answer), MSG_WAITALL), sizeof(answer));
		assert_int_equal(answer[0], get_features[0]);
	}
	close(fd);
	fixture_close(held);
}

// The latest front end of a port wins, whatever the one before has left unsaid.
static void half_a_message_before(void **state)
{
	static const uint32_t half[] = {2, 1, 8}; // SET_FEATURES without the features
	struct port_config cfg = fixture_config("vhost", PORT_TENANT, 1);
	char byte;
	int fd;

	snprintf(cfg.socket, sizeof(cfg.socket), "%s/hostile", dir);
	port = fixture_must_open(&cfg);
	fd = connect_socket("hostile");
	assert_int_equal(write(fd, half, sizeof(half)), sizeof(half));
	assert_int_equal(guest_start(&g, cfg.socket, false, 1), 0);
	assert_true(fixture_wait_link(port, true, PATIENCE_MS));
	drain(GUEST_RING);
	serves();
	assert_true(recv(fd, &byte, 1, 0) <= 0); // it was disconnected
	close(fd);
	disconnect_guest(state);
}

// Whoever sends requests and reads no answer is disconnected when the socket is full.
static void answers_that_are_not_read(void **state)
{
	static const uint32_t get_features[] = {1, 1, 0};
	uint64_t event = event_last();
	struct port *full = open_port("full");
	int fd = connect_socket("full");

	while (send(fd, get_features, sizeof(get_features), MSG_NOSIGNAL) == sizeof(get_features))
		;
	assert_true(errno == EPIPE || errno == ECONNRESET);
	close(fd);
	connect_guest(state);
	serves();
	disconnect_guest(state);
	fixture_loop_ms(1);
	assert_string_equal(event_after(event)->kind->name, "vhost_message_refused");
	fixture_close(full);
}

// Front ends that come and go in any order, some after a part of a message.
static void storm_of_connections(void **state)
{
	enum { AT_ONCE = 8, CONNECTIONS = 150 };
	static const uint32_t get_features[] = {1, 1, 0};
	unsigned i, k, fds, seed = 1;
	int sockets[AT_ONCE];

	connect_guest(state); // for what is opened only once
	disconnect_guest(state);
	port = open_port("hostile");
	fds = fixture_fds();
	memset(sockets, -1, sizeof(sockets));
	for (i = 0; i < CONNECTIONS; i++) {
		k = (unsigned)rand_r(&seed) % AT_ONCE;
		if (sockets[k] >= 0)
			close(sockets[k]);
		sockets[k] = connect_socket("hostile");
		send(sockets[k], get_features, (unsigned)rand_r(&seed) % (sizeof(get_features) + 1), MSG_NOSIGNAL);
	}
	for (k = 0; k < AT_ONCE; k++)
		close(sockets[k]);
	assert_int_equal(guest_start(&g, port->cfg.socket, false, 1), 0);
	assert_true(fixture_wait_link(port, true, PATIENCE_MS));
	drain(GUEST_RING);
	serves();
	guest_stop(&g);
	assert_true(fixture_wait_link(port, false, PATIENCE_MS));
	assert_true(wait_until(fixture_fds() <= fds));
	fixture_close(port);
}

static uint64_t drain_calls(int fd)
{
	eventfd_t n = 0;

	return eventfd_read(fd, &n) < 0 ? 0 : n;
}

static void frame_leaves(void)
{
	struct rte_mbuf *m = fixture_packet(60, 0);

	assert_true(wait_until(port->ops->tx(&port->queues[0], &m, 1) == 1));
}

// Neither ring's driver polls: the router is to notify it.
static void ask_for_calls(void)
{
	unsigned ring;

	for (ring = 0; ring < 2; ring++)
		__atomic_store_n(&g.rings[ring].avail->flags, 0, __ATOMIC_SEQ_CST);
}

// The front end makes its file blocking again and fills it. The worker, here the test itself, would sleep in a write
// for ever, and its other ports with it.
static void notification_that_would_block(void **state)
{
	struct port *other = open_port("other");
	int full = eventfd(0, EFD_NONBLOCK);
	struct guest neighbor;
	unsigned i;

	assert_int_equal(guest_start(&neighbor, other->cfg.socket, false, 1), 0);
	assert_true(fixture_wait_link(other, true, PATIENCE_MS));
	for (i = 0; i < 2; i++)
		guest_set_call(&g, i, full);
	assert_int_not_equal(guest_features(&g), 0); // the messages before it were handled
	drain_calls(full);
	assert_int_equal(fcntl(full, F_SETFL, 0), 0);
	assert_int_equal(eventfd_write(full, UINT64_MAX - 1), 0);
	ask_for_calls();
	alarm(PATIENCE_MS / 1000);
	for (i = 0; i < 3; i++) {
		serves();
		frame_leaves();
		frame_arrives(other, &neighbor);
	}
	assert_true(drain_calls(full) == UINT64_MAX); // it was signalled, and stays at its maximum
	serves();
	assert_int_equal(drain_calls(full), 1);
	frame_leaves();
	assert_int_equal(drain_calls(full), 1);
	alarm(0);
	close(full);
	guest_stop(&neighbor);
	assert_true(fixture_wait_link(other, false, PATIENCE_MS));
	fixture_close(other);
}

static void take_one(void)
{
	struct rte_mbuf *m;

	assert_int_equal(fixture_receive(port, 0, &m, 1, PATIENCE_MS), 1);
	rte_pktmbuf_free(m);
}

// A worker and a guest exchange frames while the front end replaces the descriptors of both rings. Nothing is lost:
// the new ones are signalled at once, because the old ones may just have been, and then for each burst.
static void notification_after_a_replacement(void **state)
{
	enum { ROUNDS = 50 };
	int calls[2] = {-1, -1}, before[2];
	unsigned round, i;

	ask_for_calls();
	for (round = 0; round < ROUNDS; round++) {
		fixture_poll(port, true);
		for (i = 0; i < 2; i++) {
			before[i] = calls[i];
			calls[i] = eventfd(0, EFD_NONBLOCK);
			guest_step(&g);
			guest_set_call(&g, i, calls[i]);
			guest_step(&g);
		}
		assert_int_not_equal(guest_features(&g), 0);
		for (i = 0; i < 2; i++)
			assert_true(drain_calls(calls[i]) > 0);
		fixture_poll(NULL, false);
		for (i = 0; i < 2; i++) {
			drain_calls(calls[i]);
			drain_calls(before[i]);
		}
		guest_step(&g); // all frames and buffers are the router's now
		take_one();
		assert_int_equal(drain_calls(calls[TX]), 1);
		frame_leaves();
		assert_int_equal(drain_calls(calls[RX]), 1);
		for (i = 0; i < 2; i++) {
			assert_int_equal(drain_calls(before[i]), 0);
			close(before[i]);
		}
	}
	for (i = 0; i < 2; i++)
		close(calls[i]);
}

static void notification_of_no_eventfd(void **state)
{
	int pipes[2], files[2];
	uint64_t event;
	unsigned i;

	assert_int_equal(pipe2(pipes, O_NONBLOCK), 0);
	while (write(pipes[1], dir, sizeof(dir)) > 0)
		;
	fcntl(pipes[1], F_SETFL, 0);
	files[0] = pipes[1];
	files[1] = memfd_create("file", 0);
	for (i = 0; i < RTE_DIM(files); i++) {
		connect_guest(state);
		event = event_last();
		guest_set_call(&g, TX, files[i]);
		assert_true(fixture_wait_link(port, false, 60000));
		if (i == 0)
			assert_string_equal(event_after(event)->kind->name, "vhost_message_refused");
		disconnect_guest(state);
	}
	assert_int_equal(lseek(files[1], 0, SEEK_END), 0); // nothing was written
	close(pipes[0]);
	close(pipes[1]);
	close(files[1]);
	connect_guest(state);
	serves();
	disconnect_guest(state);
}

// Returns false if the router has ended the connection already.
static bool send_message(int sock, uint32_t request, uint64_t size, uint16_t queues, uint16_t queue_size, int fd,
			 unsigned n)
{
	struct {
		uint32_t request, flags, size;
		uint64_t mmap_size, offset;
		uint16_t queues, queue_size;
		uint32_t padding;
	} __attribute__((packed)) m = {.request = request,
				       .flags = 1 | 8,
				       .size = 24,
				       .mmap_size = size,
				       .queues = queues,
				       .queue_size = queue_size};
	char control[CMSG_SPACE(8 * sizeof(int))] = {};
	struct iovec iov = {.iov_base = &m, .iov_len = sizeof(m)};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c = (struct cmsghdr *)control;
	unsigned i;

	if (n > 0) {
		h.msg_control = control;
		h.msg_controllen = CMSG_SPACE(n * sizeof(int));
		*c = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n * sizeof(int))};
		for (i = 0; i < n; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(int));
	}
	if (sendmsg(sock, &h, MSG_NOSIGNAL) == sizeof(m))
		return true;
	assert_int_equal(errno, EPIPE);
	return false;
}

#define GET_INFLIGHT 31
#define SET_INFLIGHT 32
#define SET_VRING_NUM 8

// Of a feature that is never offered: GET would allocate what it says, SET would write to a file of the guest for as
// many queues as it says, and keep descriptors. The connection ends, with an event, and the next guest is served.
static void messages_of_inflight_buffers(void **state)
{
	const struct {
		uint32_t request;
		uint64_t size;
		uint16_t queues, queue_size;
		bool empty;
		unsigned fds;
	} cases[] = {
		{SET_INFLIGHT, 4096, 2, 64, true, 1},   // the file is shorter than the mapping
		{SET_INFLIGHT, 4096, 200, 1, false, 1}, // more than the file has room for
		{SET_INFLIGHT, UINT64_MAX / 2, 1, 1, false, 1},
		{SET_INFLIGHT, 4096, 1, 64, false, 8},
		{SET_INFLIGHT, 4096, 1, 64, false, 0},
		{GET_INFLIGHT, 0, UINT16_MAX, 1024, false, 0},
		{GET_INFLIGHT, 0, 1, 64, false, 3},
	};
	int files[2] = {memfd_create("empty", 0), memfd_create("page", 0)};
	unsigned i, fds;
	uint64_t event;

	assert_int_equal(ftruncate(files[1], 4096), 0);
	for (i = 0; i < RTE_DIM(cases); i++) {
		connect_guest(state);
		fds = fixture_fds();
		event = event_last();
		send_message(g.sock, cases[i].request, cases[i].size, cases[i].queues, cases[i].queue_size,
			     files[!cases[i].empty], cases[i].fds);
		assert_true(fixture_wait_link(port, false, 1000));
		assert_string_equal(event_after(event)->kind->name, "vhost_message_refused");
		assert_true(wait_until(fixture_fds() <= fds)); // those of the connection are closed as well
		disconnect_guest(state);
	}
	close(files[0]);
	close(files[1]);
	connect_guest(state);
	serves();
	disconnect_guest(state);
}

// The descriptors of messages that are refused do not stay open, however many they are, and the port serves its guest
// when it behaves.
static void descriptors_that_are_refused(void **state)
{
	struct port *p = open_port("lost");
	int pipes[2], sock;
	unsigned i, fds;
	char byte;

	assert_int_equal(pipe(pipes), 0);
	fds = fixture_fds();
	for (i = 0; i < 100; i++) {
		sock = connect_socket("lost");
		send_message(sock, i % 2 == 0 ? SET_INFLIGHT : SET_VRING_NUM, 4096, 1, 64, pipes[0], 1 + i % 8);
		while (recv(sock, &byte, 1, 0) > 0)
			;
		close(sock);
	}
	assert_true(wait_until(fixture_fds() <= fds));
	close(pipes[0]);
	close(pipes[1]);
	assert_int_equal(guest_start(&g, p->cfg.socket, false, 1), 0);
	assert_true(fixture_wait_link(p, true, PATIENCE_MS));
	guest_stop(&g);
	assert_true(fixture_wait_link(p, false, PATIENCE_MS));
	fixture_close(p);
}

// A TCP socket that waits at its end until its peer, peers[1], has read what is on its way.
static void lingering_socket(int peers[2])
{
	const struct linger waits = {.l_onoff = 1, .l_linger = 3600};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static const char bytes[65536];
	socklen_t len = sizeof(in);

	assert_int_equal(bind(listener, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(listener, 1), 0);
	getsockname(listener, (struct sockaddr *)&in, &len);
	peers[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(peers[0], (struct sockaddr *)&in, sizeof(in)), 0);
	peers[1] = accept(listener, NULL, NULL);
	close(listener);
	setsockopt(peers[0], SOL_SOCKET, SO_LINGER, &waits, sizeof(waits));
	while (send(peers[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static void *close_one(void *fd)
{
	close(*(int *)fd);
	return NULL;
}

// The descriptors of a message end on no thread that others need. Some are read with the message, some never. The
// test's own are closed by threads, because the router may have closed its own already.
static void descriptors_that_linger(void **state)
{
	struct port *p = open_port("lingers");
	int peers[4][2], sock = connect_socket("lingers");
	pthread_t closers[RTE_DIM(peers)];
	unsigned i, fds = fixture_fds();
	char byte;

	for (i = 0; i < RTE_DIM(peers); i++) {
		lingering_socket(peers[i]);
		send_message(sock, SET_INFLIGHT, 4096, 1, 64, peers[i][0], 1 + i % 8);
		assert_int_equal(pthread_create(&closers[i], NULL, close_one, &peers[i][0]), 0);
	}
	while (recv(sock, &byte, 1, 0) > 0)
		;
	close(sock);
	connect_guest(state); // on another port
	serves();
	disconnect_guest(state);
	for (i = 0; i < RTE_DIM(peers); i++) {
		close(peers[i][1]);
		pthread_join(closers[i], NULL);
	}
	assert_true(wait_until(fixture_fds() <= fds));
	assert_int_equal(guest_start(&g, p->cfg.socket, false, 1), 0);
	assert_true(fixture_wait_link(p, true, PATIENCE_MS));
	guest_stop(&g);
	assert_true(fixture_wait_link(p, false, PATIENCE_MS));
	fixture_close(p);
}

// Of 32,768 entries, one frame of no bytes would take the worker seconds.
static void rings_of_bad_length(void **state)
{
	uint64_t event = event_last();

	connect_guest(state);
	assert_int_equal(guest_move_ring(&g, TX, VHOST_LONGEST_RING, 16 * MIB), 0);
	assert_int_equal(guest_move_ring(&g, TX, 2 * VHOST_LONGEST_RING, 16 * MIB), -EPIPE);
	assert_true(fixture_wait_link(port, false, 1000));
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

enum {
	GET_FEATURES = 1,
	SET_FEATURES,
	SET_OWNER,
	RESET_OWNER,
	SET_MEM_TABLE,
	SET_LOG_BASE,
	SET_LOG_FD,
	SET_VRING_ADDR = 9,
	GET_VRING_BASE = 11,
	SET_VRING_KICK = 12,
	SET_VRING_CALL,
	SET_VRING_ERR
};
#define MESSAGE_WORDS 80
#define FILES 5

struct any_message {
	uint32_t request, flags, size;
	uint32_t words[MESSAGE_WORDS];
};

static void say(const struct any_message *m, unsigned bytes, const int *fds, unsigned n)
{
	char control[CMSG_SPACE(8 * sizeof(int))] = {};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)m, .iov_len = bytes};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c = (struct cmsghdr *)control;

	if (n > 0) {
		h.msg_control = control;
		h.msg_controllen = CMSG_SPACE(n * sizeof(int));
		*c = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n * sizeof(int))};
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	sendmsg(g.sock, &h, MSG_NOSIGNAL | MSG_DONTWAIT); // the router may have ended the connection
}

// Returns an eventfd's number in the kernel, or "" of another file.
static const char *eventfd_id(const char *fd)
{
	static char line[128];
	bool found = false;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", fd);
	f = fopen(path, "r");
	while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL)
		found = strncmp(line, "eventfd-id:", 11) == 0;
	if (f != NULL)
		fclose(f);
	return found ? line : "";
}

// How many descriptors of this process, the front end's and the router's, refer to the eventfd.
static unsigned holders(int fd)
{
	DIR *all_fds = opendir("/proc/self/fd");
	const struct dirent *e;
	char id[128], own[16];
	unsigned n = 0;

	snprintf(own, sizeof(own), "%d", fd);
	snprintf(id, sizeof(id), "%s", eventfd_id(own));
	assert_int_not_equal(id[0], '\0');
	while ((e = readdir(all_fds)) != NULL)
		n += strcmp(eventfd_id(e->d_name), id) == 0;
	closedir(all_fds);
	return n;
}

// The router keeps a front end's descriptor as long as the ring has it.
static void descriptors_of_notifications(void **state)
{
	const struct any_message none = {
		.request = SET_VRING_CALL, .flags = 1, .size = 8, .words = {TX | VHOST_MESSAGE_NO_FD}};
	const struct any_message halt = {.request = GET_VRING_BASE, .flags = 1, .size = 8, .words = {RX}};
	int first = eventfd(0, EFD_NONBLOCK), second = eventfd(0, EFD_NONBLOCK);
	char answer[20];

	connect_guest(state);
	ask_for_calls();
	guest_set_call(&g, TX, first);
	assert_int_not_equal(guest_features(&g), 0);
	assert_int_equal(holders(first), 2);
	guest_set_call(&g, TX, second);
	assert_int_not_equal(guest_features(&g), 0);
	assert_int_equal(holders(first), 1);
	assert_int_equal(holders(second), 2);
	say(&none, 20, NULL, 0);
	assert_int_not_equal(guest_features(&g), 0);
	assert_int_equal(holders(second), 1);
	drain_calls(second);
	serves();
	assert_int_equal(drain_calls(second), 0);
	guest_set_call(&g, TX, first);
	guest_set_call(&g, RX, second);
	assert_int_not_equal(guest_features(&g), 0);
	drain_calls(first);
	serves();
	assert_int_equal(drain_calls(first), 1);
	say(&halt, 20, NULL, 0);
	assert_int_equal(recv(g.sock, answer, sizeof(answer), MSG_WAITALL), sizeof(answer));
	assert_int_not_equal(guest_features(&g), 0);
	assert_int_equal(holders(second), 1);
	assert_int_equal(holders(first), 2);
	disconnect_guest(state);
	assert_int_equal(holders(first), 1);
	close(first);
	close(second);
}

// A table of memory that no file has, while the rings run and a worker polls them.
static void memory_that_cannot_be_mapped(void **state)
{
	static const char *const files[] = {"/dev/null", "/proc/self/cmdline", "/dev/zero"};
	struct any_message m = {.request = SET_MEM_TABLE, .flags = 1, .size = 40, .words = {1}};
	uint64_t event;
	unsigned i;
	int fd;

	m.words[4] = 256 * MIB;
	for (i = 0; i < RTE_DIM(files); i++) {
		connect_guest(state);
		event = event_last();
		fixture_poll(port, true);
		fd = open(files[i], i == 1 ? O_RDONLY : O_RDWR);
		say(&m, 12 + 40, &fd, 1);
		close(fd);
		assert_true(fixture_wait_link(port, false, PATIENCE_MS));
		assert_string_equal(event_after(event)->kind->name, "vhost_message_refused");
		fixture_poll(NULL, false);
		disconnect_guest(state);
	}
	connect_guest(state);
	serves();
	disconnect_guest(state);
}

static uint32_t any_word(unsigned *seed)
{
	static const uint32_t words[] = {0,          1,          2,      32,     64,         255,       256,
					 257,        0x7fff,     0xffff, 0x1000, 0x10000,    0x4000000, 0x10000000,
					 0x7fffffff, 0xffffffff, 40,     72,     0x80000000, 1024};
	unsigned i = (unsigned)rand_r(seed) % (RTE_DIM(words) + 1);

	return i < RTE_DIM(words) ? words[i] : (uint32_t)rand_r(seed) * 2u;
}

static void put_word64(uint32_t *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

// What an ordinary front end would say about its memory, a ring or itself.
static void ordinary_message(struct any_message *m, unsigned *seed)
{
	unsigned ring = (unsigned)rand_r(seed) % 2;

	m->size = 8;
	m->words[0] = ring;
	m->words[1] = (uint32_t)rand_r(seed) % 2 * GUEST_RING;
	if (m->request == SET_MEM_TABLE) {
		m->size = 40;
		put_word64(&m->words[0], 1);
		put_word64(&m->words[4], (2u + (unsigned)rand_r(seed) % 127) * MIB);
		put_word64(&m->words[6], (uintptr_t)g.mem);
	} else if (m->request == SET_VRING_ADDR) {
		m->size = 40;
		put_word64(&m->words[2], (uintptr_t)g.rings[ring].desc);
		put_word64(&m->words[4], (uintptr_t)g.rings[ring].used);
		put_word64(&m->words[6], (uintptr_t)g.rings[ring].avail);
	} else if (m->request == SET_LOG_BASE) {
		m->size = 16;
		put_word64(&m->words[0], MIB);
	} else if (m->request == GET_FEATURES || m->request == SET_OWNER || m->request == SET_LOG_FD ||
		   m->request == 15 || m->request == 17 || m->request == 40) {
		m->size = 0;
	} else if (m->request == 18) {
		m->words[1] = (uint32_t)rand_r(seed) % 2;
	} else if (m->request != SET_VRING_NUM && m->request != 10) {
		m->words[1] = 0;
	}
}

static unsigned ordinary_files(const struct any_message *m, const int *files, int *fds)
{
	if (m->request == SET_MEM_TABLE)
		fds[0] = g.mem_fd;
	else if (m->request == SET_LOG_BASE)
		fds[0] = files[1];
	else
		fds[0] = files[0];
	return m->request == SET_MEM_TABLE || m->request == SET_LOG_BASE || m->request == SET_LOG_FD ||
	       (m->request >= SET_VRING_KICK && m->request <= SET_VRING_ERR);
}

// Changes words, the length, flags or descriptors. Returns the bytes to send.
static unsigned spoil(struct any_message *m, const int *files, int *fds, unsigned *n_fds, unsigned *seed)
{
	static const uint32_t sizes[] = {0, 4, 8, 12, 16, 20, 40, 72, 256, 264, 272, 4096, UINT32_MAX};
	static const uint32_t flags[] = {1, 1, 1, 1, 9, 9, 5, 0, 2};
	unsigned i, bytes;

	if (rand_r(seed) % 4 == 0)
		m->request = (uint32_t)rand_r(seed) % 45;
	m->flags = flags[(unsigned)rand_r(seed) % RTE_DIM(flags)];
	for (i = (unsigned)rand_r(seed) % 3; i > 0; i--)
		m->words[(unsigned)rand_r(seed) % 12] = any_word(seed);
	bytes = 12 + m->size;
	if (rand_r(seed) % 4 == 0)
		m->size = sizes[(unsigned)rand_r(seed) % RTE_DIM(sizes)];
	if (rand_r(seed) % 4 == 0)
		bytes = 12 + RTE_MIN(m->size, 4u * MESSAGE_WORDS);
	if (rand_r(seed) % 4 == 0)
		*n_fds = (unsigned)rand_r(seed) % 9;
	for (i = 0; i < *n_fds; i++)
		if (i > 0 || rand_r(seed) % 4 == 0)
			fds[i] = files[(unsigned)rand_r(seed) % FILES];
	return bytes;
}

// One message: an ordinary one, or one that is spoilt. Returns whether it is as long as it says.
static bool random_message(const int *files, unsigned *seed)
{
	static const uint32_t requests[] = {GET_FEATURES,
					    SET_OWNER,
					    SET_MEM_TABLE,
					    SET_MEM_TABLE,
					    SET_LOG_BASE,
					    SET_LOG_FD,
					    SET_VRING_NUM,
					    SET_VRING_ADDR,
					    SET_VRING_ADDR,
					    10,
					    11,
					    SET_VRING_KICK,
					    13,
					    SET_VRING_ERR,
					    15,
					    17,
					    18,
					    18,
					    19,
					    40};
	struct any_message m = {.request = requests[(unsigned)rand_r(seed) % RTE_DIM(requests)],
				.flags = rand_r(seed) % 2 == 0 ? 1 : 9};
	unsigned n, bytes;
	int fds[8];

	ordinary_message(&m, seed);
	n = ordinary_files(&m, files, fds);
	bytes = rand_r(seed) % 8 == 0 ? spoil(&m, files, fds, &n, seed) : 12 + m.size;
	say(&m, bytes, fds, n);
	return bytes == 12 + m.size;
}

static void random_front_end(const int *files, unsigned seed)
{
	char answers[4096];
	bool whole = true;
	unsigned n;

	assert_int_equal(guest_start(&g, port->cfg.socket, false, 1), 0);
	for (n = 1 + (unsigned)rand_r(&seed) % 60; n > 0; n--) {
		whole = random_message(files, &seed) && whole;
		if (rand_r(&seed) % 4 == 0)
			guest_step(&g);
		if (whole && rand_r(&seed) % 16 == 0)
			guest_features(&g); // waits until the messages before it were handled
		while (recv(g.sock, answers, sizeof(answers), MSG_DONTWAIT) > 0)
			;
	}
	if (rand_r(&seed) % 8 == 0)
		guest_shrink_memory(&g);
	guest_stop(&g);
}

// Front ends that say anything once their rings run, while a worker polls the rings.
static void random_messages(void **state)
{
	enum { SEEDS = 200, PORT_SEEDS = 10 };            // more messages of one port would have to wait
	const char *only = getenv("CORELANE_VHOST_SEED"); // the first of 10
	int files[FILES] = {eventfd(0, 0), memfd_create("log", 0), open("/dev/null", O_RDWR)};
	unsigned i, first = only ? (unsigned)atoi(only) : 0, end = only ? first + PORT_SEEDS : SEEDS;

	assert_int_equal(ftruncate(files[1], MIB), 0);
	assert_int_equal(pipe2(files + 3, O_NONBLOCK), 0);
	for (i = first; i < end; i++) {
		if (i % PORT_SEEDS == 0 || i == first) {
			port = open_port("hostile");
			fixture_poll(port, true);
		}
		random_front_end(files, i);
		fixture_loop_ms(1);
		if ((i + 1) % PORT_SEEDS == 0 || i + 1 == end)
			fixture_close(port);
	}
	for (i = 0; i < FILES; i++)
		close(files[i]);
	connect_guest(state);
	serves();
	disconnect_guest(state);
}

static int stop(void **state)
{
	rmdir(dir);
	return fixture_stop(state);
}

#define with_guest(test) cmocka_unit_test_setup_teardown(test, connect_guest, disconnect_guest)
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
		cmocka_unit_test(memory_taken_away),
		cmocka_unit_test(memory_taken_away_at_the_end),
		cmocka_unit_test(memory_taken_away_often),
		cmocka_unit_test(memory_that_is_not_there),
		cmocka_unit_test(half_a_message),
		cmocka_unit_test(half_a_message_before),
		cmocka_unit_test(answers_that_are_not_read),
		cmocka_unit_test(storm_of_connections),
		cmocka_unit_test(memory_that_cannot_be_mapped),
		cmocka_unit_test(random_messages),
		with_guest(notification_that_would_block),
		with_guest(notification_after_a_replacement),
		cmocka_unit_test(descriptors_of_notifications),
		cmocka_unit_test(notification_of_no_eventfd),
		cmocka_unit_test(messages_of_inflight_buffers),
		cmocka_unit_test(descriptors_that_are_refused),
		cmocka_unit_test(descriptors_that_linger),
		with_guest(packed_rings),
		with_guest(room_of_nothing),
		with_guest(more_buffers_than_entries),
		cmocka_unit_test(rings_of_bad_length),
		cmocka_unit_test(rings_of_no_length),
	};

	fixture_require();
	if (mkdtemp(dir) == NULL)
		return 1;
	return cmocka_run_group_tests(tests, fixture_start, stop);
}
