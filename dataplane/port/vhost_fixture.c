// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "port/port_fixture.h"
#include "port/port_kinds.h"
#include "port/vhost_fixture.h"
#include "testing/wait_until.h"

char dir[] = "/tmp/corelane-hostile-XXXXXX";
struct guest g;
struct port *port;

void drain(unsigned wanted)
{
	struct rte_mbuf *pkts[BATCH];
	unsigned n = fixture_receive(port, 0, pkts, RTE_MIN(wanted, (unsigned)BATCH), PATIENCE_MS);

	assert_int_equal(n, wanted);
	rte_pktmbuf_free_bulk(pkts, n);
}

int connect_one(unsigned pairs)
{
	struct port_config cfg = fixture_config("vhost", PORT_TENANT, 1);

	snprintf(cfg.socket, sizeof(cfg.socket), "%s/hostile", dir);
	port = fixture_must_open(&cfg);
	assert_int_equal(guest_start(&g, cfg.socket, false, pairs), 0);
	assert_true(fixture_wait_link(port, true, PATIENCE_MS));
	drain(pairs * GUEST_RING);
	return 0;
}

int connect_guest(void **state)
{
	return connect_one(1);
}

int disconnect_guest(void **state)
{
	guest_stop(&g);
	fixture_loop_ms(100);
	fixture_close(port);
	assert_int_equal(fixture_mbufs(), 0);
	return 0;
}

void frame_arrives(struct port *p, struct guest *from)
{
	const struct vring_desc good = {.addr = 0x4000, .len = GUEST_HEADER + 60};
	struct rte_mbuf *m;

	guest_post(from, TX, &good, 1);
	assert_int_equal(fixture_receive(p, 0, &m, 1, PATIENCE_MS), 1);
	assert_int_equal(m->pkt_len, 60);
	assert_int_equal(m->nb_segs, 1);
	rte_pktmbuf_free(m);
}

void serves(void)
{
	frame_arrives(port, &g);
}

struct port *open_port(const char *name)
{
	struct port_config cfg = fixture_config("vhost", PORT_TENANT, 1);

	snprintf(cfg.name, sizeof(cfg.name), "%s", name);
	snprintf(cfg.socket, sizeof(cfg.socket), "%s/%s", dir, name);
	return fixture_must_open(&cfg);
}

int start_hostile(void **state)
{
	return mkdtemp(dir) == NULL ? -1 : fixture_start(state);
}

int stop_hostile(void **state)
{
	rmdir(dir);
	return fixture_stop(state);
}
