// SPDX-License-Identifier: Apache-2.0
// Neighbour discovery of the master thread.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/node_test.h"
#include "neighbor/adjacency.h"
#include "neighbor/arp_fixture.h"
#include "neighbor/nd_packet.h"
#include "neighbor/neighbor_private.h"
#include "worker/punt.h"

#define PEER "2001:db8::9"
#define PEER_MAC "02:00:00:00:09:09"
#define MOVED_MAC "02:00:00:00:08:08"
#define OWN "2001:db8::1"
#define OWN_LL "fe80::ff:fe00:1" // of 02:00:00:00:00:01

static void advert(uint16_t port, uint32_t flags, const char *target, const char *mac)
{
	fixture_punt(PUNT_ND, fixture_nd(port, ND_ADVERT, flags, PEER_MAC, target,
					 flags & ND_SOLICITED ? OWN : "ff02::1", target, mac));
}

static void assert_solicit(unsigned l3, uint16_t port, const char *eth_dst, const char *src, const char *dst,
			   const char *target)
{
	const struct ip_addr s = fixture_addr(src), d = fixture_addr(dst), t = fixture_addr(target);
	const struct rte_ether_addr to = fixture_mac(eth_dst);
	struct rte_mbuf *m = fixture_take();
	struct nd_packet p;

	assert_non_null(m);
	assert_int_equal(meta(m)->out_port, port);
	meta(m)->l3 = (uint8_t)l3;
	assert_true(nd_parse(m, &p)); // verifies the checksum, too
	assert_int_equal(m->pkt_len, l3 + 40 + 32);
	assert_int_equal(p.nd->type, ND_SOLICIT);
	assert_memory_equal(&p.eth->dst_addr, &to, 6);
	assert_memory_equal(p.ip->src_addr, s.bytes, 16);
	assert_memory_equal(p.ip->dst_addr, d.bytes, 16);
	assert_memory_equal(p.nd->target, t.bytes, 16);
	assert_non_null(p.mac);
	assert_memory_equal(p.mac, &port_table[port]->mac, 6);
	rte_pktmbuf_free(m);
}

static void send_solicit(uint16_t port, const char *target)
{
	const struct ip_addr a = fixture_addr(target);

	nd_send_solicit(port_table[port], &a);
}

static void solicits(void **state)
{
	struct port *p = port_table[FABRIC];
	uint32_t adj;

	send_solicit(FABRIC, "2001:db8::12:3456");
	assert_solicit(14, FABRIC, "33:33:ff:12:34:56", OWN, "ff02::1:ff12:3456", "2001:db8::12:3456");
	send_solicit(FABRIC, "fe80::9"); // a link-local target is asked from a link-local address
	assert_solicit(14, FABRIC, "33:33:ff:00:00:09", OWN_LL, "ff02::1:ff00:9", "fe80::9");
	send_solicit(TENANT, "fd00::9");
	assert_solicit(14, TENANT, "33:33:ff:00:00:09", "fd00::1", "ff02::1:ff00:9", "fd00::9");
	p->cfg.vlan = 100;
	p->cfg.n_addrs = 1; // IPv4 only
	fixture_publish(p);
	send_solicit(FABRIC, PEER);
	assert_memory_equal(rte_pktmbuf_mtod_offset(fixture_sent[0], void *, 12), "\x81\x00\x00\x64\x86\xdd", 6);
	assert_solicit(18, FABRIC, "33:33:ff:00:00:09", OWN_LL, "ff02::1:ff00:9", PEER);
	fixture_reset(NULL);
	adj = fixture_hold(FABRIC, PEER);
	advert(FABRIC, ND_SOLICITED | ND_OVERRIDE, PEER, PEER_MAC);
	fixture_wait(30100); // the probe is unicast
	assert_solicit(14, FABRIC, PEER_MAC, OWN, PEER, PEER);
	adjacency_put(adj);
}

static void adverts(void **state)
{
	uint32_t adj = fixture_hold(FABRIC, PEER);
	struct neighbor *n = fixture_find(FABRIC, PEER);

	advert(FABRIC, ND_SOLICITED | ND_OVERRIDE, PEER, NULL); // without a MAC it is ignored
	assert_int_equal(n->state, NEIGH_INCOMPLETE);
	advert(FABRIC, ND_SOLICITED, PEER, PEER_MAC);
	assert_int_equal(n->state, NEIGH_REACHABLE);
	assert_true(adjacency_table[adj]->resolved);
	advert(FABRIC, ND_SOLICITED, PEER, MOVED_MAC); // without override: stale, but the MAC stays
	assert_int_equal(n->state, NEIGH_STALE);
	assert_int_equal(n->mac.addr_bytes[5], 9);
	advert(FABRIC, ND_SOLICITED, PEER, NULL); // answers to a unicast solicitation may leave the option out
	assert_int_equal(n->state, NEIGH_REACHABLE);
	assert_int_equal(n->mac.addr_bytes[5], 9);
	advert(FABRIC, ND_OVERRIDE, PEER, MOVED_MAC); // unsolicited: moved
	assert_int_equal(n->state, NEIGH_STALE);
	assert_int_equal(n->mac.addr_bytes[5], 8);
	advert(FABRIC, ND_SOLICITED | ND_OVERRIDE, "2001:db8::10", PEER_MAC); // unknown: no entry is created
	assert_null(fixture_find(FABRIC, "2001:db8::10"));
	assert_int_equal(fixture_n_sent, 0);
	adjacency_put(adj);
}

static void answers_fabric(void **state)
{
	const struct ip_addr own = fixture_addr(OWN), peer = fixture_addr(PEER);
	struct nd_packet p;
	struct rte_mbuf *m;

	fixture_punt(PUNT_ND, fixture_nd(FABRIC, ND_SOLICIT, 0, PEER_MAC, PEER, "ff02::1:ff00:1", OWN, PEER_MAC));
	assert_int_equal(fixture_find(FABRIC, PEER)->state, NEIGH_STALE); // it is about to send
	m = fixture_take();
	assert_non_null(m);
	meta(m)->l3 = 14;
	assert_true(nd_parse(m, &p));
	assert_int_equal(p.nd->type, ND_ADVERT);
	assert_int_equal(meta(m)->out_port, FABRIC);
	assert_memory_equal(p.nd->target, own.bytes, 16);
	assert_memory_equal(p.ip->dst_addr, peer.bytes, 16);
	assert_memory_equal(p.mac, &port_table[FABRIC]->mac, 6);
	rte_pktmbuf_free(m);
	fixture_punt(PUNT_ND,
		     fixture_nd(FABRIC, ND_SOLICIT, 0, PEER_MAC, "fe80::9", "ff02::1:ff00:1", OWN_LL, PEER_MAC));
	assert_non_null(fixture_find(FABRIC, "fe80::9"));
	assert_int_equal(fixture_n_sent, 1);
	fixture_punt(PUNT_ND, fixture_nd(FABRIC, ND_SOLICIT, 0, PEER_MAC, "2001:db8:1::9", "ff02::1:ff00:1", OWN,
					 PEER_MAC)); // not of our subnet
	assert_null(fixture_find(FABRIC, "2001:db8:1::9"));
	fixture_punt(PUNT_ND,
		     fixture_nd(FABRIC, ND_SOLICIT, 0, PEER_MAC, "2001:db8::11", "ff02::1:ff00:12", "2001:db8::12",
				PEER_MAC)); // not for us
	assert_null(fixture_find(FABRIC, "2001:db8::11"));
	assert_int_equal(fixture_n_sent, 2);
}

static void refuses(void **state)
{
	struct port *p = port_table[TENANT];
	uint32_t adj = fixture_hold(TENANT, "fd00::2");

	advert(FABRIC, ND_OVERRIDE, OWN, PEER_MAC);
	fixture_punt(PUNT_ND,
		     fixture_nd(FABRIC, ND_SOLICIT, 0, PEER_MAC, OWN, "ff02::1:ff00:12", "2001:db8::12", PEER_MAC));
	assert_int_equal(fixture_drops("nd_address_conflict"), 2);
	advert(TENANT, ND_OVERRIDE, "fd00::1", PEER_MAC);
	fixture_punt(PUNT_ND, fixture_frame(FABRIC, "short", 5, 14));
	assert_int_equal(fixture_drops("nd_late"), 2);
	p->cfg.guest_mac = fixture_mac("02:00:00:00:01:02");
	p->cfg.guests[0].addr = fixture_addr("fd00::2");
	p->cfg.guests[0].len = 128;
	p->cfg.n_guests = 1;
	fixture_publish(p);
	advert(TENANT, ND_SOLICITED | ND_OVERRIDE, "fd00::2", PEER_MAC);
	assert_int_equal(fixture_drops("nd_wrong_guest_mac"), 1);
	assert_int_equal(fixture_find(TENANT, "fd00::2")->state, NEIGH_INCOMPLETE);
	advert(TENANT, ND_SOLICITED | ND_OVERRIDE, "fd00::2", "02:00:00:00:01:02");
	assert_int_equal(fixture_find(TENANT, "fd00::2")->state, NEIGH_REACHABLE);
	assert_int_equal(fixture_n_sent, 0);
	adjacency_put(adj);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(solicits, fixture_reset),
		cmocka_unit_test_setup(adverts, fixture_reset),
		cmocka_unit_test_setup(answers_fabric, fixture_reset),
		cmocka_unit_test_setup(refuses, fixture_reset),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
