// SPDX-License-Identifier: Apache-2.0
// A vhost-user guest whose rings are the fuzzer: it connects over a real socket, then each input is written over the
// rings of one pair while the port receives and sends. Connecting takes a millisecond, so one connection serves many
// inputs; each begins with empty memory, fresh rings and the device's positions at their begin.
//
// Input: a byte b (the port polls every 16 * (b + 1) bytes), then bytes that are XORed over the transmit
// ring's descriptors, its available and used rings, then over the same of the receive ring.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <rte_eal.h>
#include <rte_vhost.h>

#include "base/loop.h"
#include "base/rcu.h"
#include "port/vhost.h"
#include "port/vhost_guest.h"

#define ROOM 2048
#define INPUTS 256 // of a connection

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct port *port;
static struct guest g;
static char path[64];

void port_link_changed(struct port *p, bool link_up, bool peer_connected)
{
	p->link_up = link_up;
}

void port_refused_too_long(const struct port *p)
{
}

static void set_up(void)
{
	static char *argv[] = {"fuzz_vhost",  "--no-huge", "-m", "96",          "--no-pci", "--no-telemetry",
			       "--no-shconf", "-l",        "0",  "--log-level", "error"};
	static struct port_config cfg = {
		.name = "fuzz", .kind = "vhost", .role = PORT_TENANT, .queues = 1, .mtu = 1500};
	struct error err = {};

	if (rte_eal_init(RTE_DIM(argv), argv) < 0 || rcu_init() < 0)
		abort();
	port_pool_init(4096, 0);
	loop_set_base(event_base_new());
	snprintf(path, sizeof(path), "/tmp/fuzz_vhost.%d", getpid());
	strcpy(cfg.socket, path);
	port = calloc(1, sizeof(*port));
	port->id = 1;
	port->ops = &port_vhost_ops;
	port->queues[0].port = port;
	port->queues[0].owner = UINT32_MAX;
	if (port->ops->open(port, &cfg, &err) < 0)
		abort();
}

static void turn(void)
{
	event_base_loop(loop_base(), EVLOOP_NONBLOCK);
}

static void wait_link(bool up)
{
	unsigned tries;

	for (tries = 0; port->link_up != up; tries++) {
		turn();
		usleep(20);
		if (tries == 200000)
			abort();
	}
}

// The library's thread may still be busy with the last guest.
static void connect_guest(void)
{
	unsigned tries;

	for (tries = 0; guest_start(&g, path, false, 1) < 0; tries++) {
		if (tries == 1000)
			abort();
		if (g.sock >= 0)
			close(g.sock);
		usleep(200);
	}
	wait_link(true);
}

static void disconnect_guest(void)
{
	guest_stop(&g);
	wait_link(false);
}

static void reset_guest(void)
{
	const struct vhost_queue *q = port->queues[0].priv;
	int vid = VRING_VID(q->rx);

	guest_reset(&g);
	if (rte_vhost_set_vring_base(vid, 0, 0, 0) < 0 || rte_vhost_set_vring_base(vid, 1, 0, 0) < 0)
		abort();
}

static void receive(void)
{
	struct rte_mbuf *pkts[BATCH];
	uint16_t n = port->ops->rx(&port->queues[0], pkts, BATCH);

	while (n > 0) {
		rte_mbuf_sanity_check(pkts[--n], 1);
		if (pkts[n]->nb_segs != 1 || pkts[n]->pkt_len != pkts[n]->data_len || pkts[n]->pkt_len > ROOM)
			abort();
		rte_pktmbuf_free(pkts[n]);
	}
}

static void transmit(uint16_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(port_pool(SOCKET_ID_ANY));

	rte_pktmbuf_append(m, len);
	if (port->ops->tx(&port->queues[0], &m, 1) == 0)
		rte_pktmbuf_free(m);
}

// The byte of the rings that the input's byte `at` changes.
static uint8_t *place(size_t at)
{
	const size_t descs = GUEST_RING * sizeof(struct vring_desc), avail = 4 + 2 * GUEST_RING + 2,
		     used = 4 + GUEST_RING * sizeof(struct vring_used_elem) + 2, all = descs + avail + used;
	struct guest_ring *r = &g.rings[at / all % 2 == 0];

	at %= all;
	if (at < descs)
		return (uint8_t *)r->desc + at;
	at -= descs;
	return at < avail ? (uint8_t *)r->avail + at : (uint8_t *)r->used + at - avail;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned inputs;
	unsigned total, in_use;
	size_t i, step;

	if (size < 1)
		return 0;
	if (port == NULL)
		set_up();
	if (inputs++ % INPUTS == 0) {
		if (inputs > 1)
			disconnect_guest();
		connect_guest();
	} else {
		reset_guest();
	}
	receive(); // the guest's first frames
	step = 16u * (data[0] + 1u);
	for (i = 1; i < size; i++) {
		*place(i - 1) ^= data[i];
		if (i % step != 0)
			continue;
		receive();
		transmit((uint16_t)(64 + i % 1400));
	}
	guest_post(&g, 1, g.rings[1].desc, 1);
	receive();
	transmit(1400);
	port_pool_usage(&total, &in_use);
	if (in_use != 0)
		abort();
	return 0;
}
