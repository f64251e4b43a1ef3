// SPDX-License-Identifier: Apache-2.0
// A vhost-user guest whose rings are the fuzzer: it connects over a real socket, then each input is written over the
// rings of one pair while the port receives and sends. Connecting takes a millisecond, so one connection serves many
// inputs; each begins with empty memory, fresh rings and the device's positions at their begin. There are four guests,
// with or without large segments and checksums that they leave to the router.
//
// Input: a byte, whose two highest bits choose the guest (enum kind), and whose others say b: the port polls every
// 16 * (b + 1) bytes. Then bytes that are XORed over the guest's first frames and their headers if it may send large
// segments, then over the transmit ring's descriptors, its available and used rings, then over the same of the receive
// ring. What the port receives from such a guest is sent back to it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <rte_eal.h>
#include <rte_vhost.h>

#include "base/eth.h"
#include "base/loop.h"
#include "base/offload.h"
#include "base/rcu.h"
#include "offload/segment.h"
#include "port/vhost.h"
#include "port/vhost_guest.h"
#include "port/vnet.h"

#define ROOM 2048
#define BURST_BUFFERS (32 * 33) // that one frame may take all of
#define INPUTS 256              // of a connection
#define FRAMES 4                // whose bytes an input changes
#define FRAME_SIZE 72           // header included
#define BUFFER 2048

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum kind { LARGE = 2, KINDS = 4 }; // the lowest bit has no meaning any more

static struct peer {
	struct port *port;
	struct guest g;
	char path[64];
	unsigned inputs;
} peers[KINDS];

void port_link_changed(struct port *p, bool link_up, bool peer_connected)
{
	p->link_up = link_up;
}

void port_refused(const struct port *p, struct rte_mbuf *m, const struct drop_reason *why)
{
	rte_pktmbuf_free(m);
}

void port_no_buffer(const struct port *p)
{
}

void port_refused_too_long(const struct port *p)
{
}

static void add_port(enum kind kind)
{
	struct port_config cfg = {.name = "fuzz", .kind = "vhost", .role = PORT_TENANT, .queues = 1, .mtu = 1500};
	struct peer *p = &peers[kind];
	struct error err = {};

	snprintf(p->path, sizeof(p->path), "/tmp/fuzz_vhost.%d.%d", getpid(), kind);
	strcpy(cfg.socket, p->path);
	p->port = calloc(1, sizeof(*p->port));
	p->port->id = (uint16_t)(kind + 1);
	p->port->ops = &port_vhost_ops;
	p->port->queues[0].port = p->port;
	p->port->queues[0].owner = UINT32_MAX;
	if (p->port->ops->open(p->port, &cfg, &err) < 0)
		abort();
}

static void set_up(void)
{
	static char *argv[] = {"fuzz_vhost",  "--no-huge", "-m", "96",          "--no-pci", "--no-telemetry",
			       "--no-shconf", "-l",        "0",  "--log-level", "error"};
	unsigned i;

	if (rte_eal_init(RTE_DIM(argv), argv) < 0 || rcu_init() < 0)
		abort();
	port_pool_init(4096, 0);
	loop_set_base(event_base_new());
	for (i = 0; i < KINDS; i++)
		add_port((enum kind)i);
}

static void wait_link(const struct peer *p, bool up)
{
	unsigned tries;

	for (tries = 0; p->port->link_up != up; tries++) {
		event_base_loop(loop_base(), EVLOOP_NONBLOCK);
		usleep(20);
		if (tries == 200000)
			abort();
	}
}

static int start_guest(struct peer *p, enum kind kind)
{
	return kind & LARGE ? guest_start_large(&p->g, p->path) : guest_start(&p->g, p->path, false, 1);
}

// The library's thread may still be busy with the last guest.
static void connect_guest(struct peer *p, enum kind kind)
{
	unsigned tries;

	for (tries = 0; start_guest(p, kind) < 0; tries++) {
		if (tries == 1000)
			abort();
		if (p->g.sock >= 0)
			close(p->g.sock);
		usleep(200);
	}
	wait_link(p, true);
}

static void reset_guest(struct peer *p)
{
	const struct vhost_queue *q = p->port->queues[0].priv;
	int vid = VRING_VID(q->rx);

	guest_reset(&p->g);
	if (rte_vhost_set_vring_base(vid, 0, 0, 0) < 0 || rte_vhost_set_vring_base(vid, 1, 0, 0) < 0)
		abort();
}

static void send_one(struct peer *p, struct rte_mbuf *m)
{
	if (p->port->ops->tx(&p->port->queues[0], &m, 1) == 0)
		rte_pktmbuf_free(m);
}

// As the router does for a receiver that takes no large segments, or only those of the other family.
static void cut(struct rte_mbuf *m)
{
	struct rte_mbuf *out[OFFLOAD_SEGMENTS_MAX];
	unsigned l3 = frame_ip(m), want = offload_segments(m, l3);
	int n = segment(m, l3, out);

	if (n != (int)want)
		abort();
	rte_pktmbuf_free_bulk(out, (unsigned)n);
}

static void check_received(struct peer *p, enum kind kind, struct rte_mbuf *m)
{
	rte_mbuf_sanity_check(m, 1);
	if (m->nb_segs > (kind & LARGE ? BURST_BUFFERS : 1) || m->pkt_len > m->nb_segs * ROOM)
		abort();
	if (!(kind & LARGE) || m->pkt_len > VNET_LONGEST) // port_rx drops what is too long for the port
		rte_pktmbuf_free(m);
	else if (offload_is_large(m) && (m->ol_flags & RTE_MBUF_F_TX_UDP_SEG))
		cut(m);
	else
		send_one(p, m);
}

static void receive(struct peer *p, enum kind kind)
{
	struct rte_mbuf *pkts[BATCH];
	uint16_t n = p->port->ops->rx(&p->port->queues[0], pkts, BATCH);

	while (n > 0)
		check_received(p, kind, pkts[--n]);
}

static void transmit(struct peer *p, uint16_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(port_pool(SOCKET_ID_ANY));

	rte_pktmbuf_append(m, len);
	send_one(p, m);
}

// The byte of the guest's memory that the input's byte `at` changes.
static uint8_t *place(struct guest *g, enum kind kind, size_t at)
{
	const size_t descs = GUEST_RING * sizeof(struct vring_desc), avail = 4 + 2 * GUEST_RING + 2,
		     used = 4 + GUEST_RING * sizeof(struct vring_used_elem) + 2, all = descs + avail + used;
	struct guest_ring *r;

	if (kind & LARGE) {
		if (at < FRAMES * FRAME_SIZE)
			return g->rings[1].buffers + at / FRAME_SIZE * BUFFER + at % FRAME_SIZE;
		at -= FRAMES * FRAME_SIZE;
	}
	r = &g->rings[at / all % 2 == 0];
	at %= all;
	if (at < descs)
		return (uint8_t *)r->desc + at;
	at -= descs;
	return at < avail ? (uint8_t *)r->avail + at : (uint8_t *)r->used + at - avail;
}

static void begin(struct peer *p, enum kind kind)
{
	if (p->inputs++ % INPUTS != 0) {
		reset_guest(p);
		return;
	}
	if (p->inputs > 1) {
		guest_stop(&p->g);
		wait_link(p, false);
	}
	connect_guest(p, kind);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vring_desc last;
	unsigned total, in_use;
	enum kind kind;
	struct peer *p;
	size_t i, step;

	if (size < 1)
		return 0;
	if (peers[0].port == NULL)
		set_up();
	kind = data[0] >> 6;
	p = &peers[kind];
	begin(p, kind);
	if (!(kind & LARGE))
		receive(p, kind); // the guest's first frames
	step = 16u * ((data[0] & 63) + 1u);
	for (i = 1; i < size; i++) {
		*place(&p->g, kind, i - 1) ^= data[i];
		if (i % step != 0)
			continue;
		receive(p, kind);
		transmit(p, (uint16_t)(64 + i % 1400));
	}
	last = (struct vring_desc){.addr = (uint64_t)(p->g.rings[1].buffers - p->g.mem), .len = FRAME_SIZE};
	guest_post(&p->g, 1, &last, 1);
	receive(p, kind);
	transmit(p, 1400);
	port_pool_usage(&total, &in_use);
	if (in_use != 0)
		abort();
	return 0;
}
