// SPDX-License-Identifier: Apache-2.0
// ARP of the master thread.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/node_test.h"
#include "neighbor/arp_fixture.h"
#include "neighbor/arp_packet.h"
#include "neighbor/neighbor_private.h"
#include "worker/punt.h"

#define PEER "192.0.2.9"
#define PEER_MAC "02:00:00:00:09:09"
#define OWN_MAC "02:00:00:00:00:01"
#define ALL "ff:ff:ff:ff:ff:ff"
#define REQUEST 1
#define REPLY 2

static void receive(uint16_t port, unsigned op, const char *smac, const char *sip, const char *tmac, const char *tip)
{
	fixture_punt(PUNT_ARP, fixture_arp(port, op, smac, sip, tmac, tip));
}

static void assert_request(struct rte_mbuf *m, unsigned l3, uint16_t port, const char *dst, const char *src_ip,
			   const char *target)
{
	const struct ip_addr s = fixture_addr(src_ip), t = fixture_addr(target);
	const struct rte_ether_addr to = fixture_mac(dst);
	const struct rte_arp_hdr *arp;

	assert_non_null(m);
	assert_int_equal(m->pkt_len, 60);
	assert_int_equal(meta(m)->out_port, port);
	meta(m)->l3 = (uint8_t)l3;
	arp = arp_parse(m);
	assert_non_null(arp);
	assert_memory_equal(rte_pktmbuf_mtod(m, void *), &to, 6);
	assert_memory_equal(rte_pktmbuf_mtod_offset(m, void *, 6), &port_table[port]->mac, 6);
	assert_memory_equal(&arp->arp_data.arp_sha, &port_table[port]->mac, 6);
	assert_int_equal(arp->arp_opcode, RTE_BE16(REQUEST));
	assert_int_equal(arp->arp_data.arp_sip, ip4_be(&s));
	assert_int_equal(arp->arp_data.arp_tip, ip4_be(&t));
	rte_pktmbuf_free(m);
}

static void send_request(uint16_t port, const char *target)
{
	const struct ip_addr a = fixture_addr(target);

	arp_send_request(port_table[port], &a);
}

static void requests(void **state)
{
	struct port *p = port_table[FABRIC];

	send_request(FABRIC, PEER);
	assert_request(fixture_take(), 14, FABRIC, ALL, "192.0.2.1", PEER);
	send_request(TENANT, "10.0.0.7");
	assert_request(fixture_take(), 14, TENANT, ALL, "10.0.0.1", "10.0.0.7");
	p->cfg.vlan = 100;
	p->cfg.addrs[1] = p->cfg.addrs[0];
	p->cfg.addrs[1].addr = fixture_addr("198.51.100.1");
	fixture_publish(p);
	send_request(FABRIC, "198.51.100.9"); // from the address in its subnet
	assert_memory_equal(rte_pktmbuf_mtod_offset(fixture_sent[0], void *, 12), "\x81\x00\x00\x64\x08\x06", 6);
	assert_request(fixture_take(), 18, FABRIC, ALL, "198.51.100.1", "198.51.100.9");
	send_request(FABRIC, "203.0.113.9"); // in no subnet of the port: from its first address
	assert_request(fixture_take(), 18, FABRIC, ALL, "192.0.2.1", "203.0.113.9");
	p->cfg.n_addrs = 0;
	fixture_publish(p);
	send_request(FABRIC, PEER);
	assert_request(fixture_take(), 18, FABRIC, ALL, "0.0.0.0", PEER);
}

static void learns_answers(void **state)
{
	const struct rte_ether_addr mac = fixture_mac(PEER_MAC);
	uint32_t adj = fixture_hold(FABRIC, PEER);

	receive(FABRIC, REPLY, PEER_MAC, PEER, OWN_MAC, "192.0.2.1");
	assert_int_equal(fixture_find(FABRIC, PEER)->state, NEIGH_REACHABLE);
	assert_memory_equal(&fixture_find(FABRIC, PEER)->mac, &mac, 6);
	receive(FABRIC, REPLY, PEER_MAC, "192.0.2.10", OWN_MAC, "192.0.2.1"); // unknown: no entry is created
	assert_null(fixture_find(FABRIC, "192.0.2.10"));
	receive(FABRIC, REPLY, "02:00:00:00:08:08", PEER, ALL, PEER); // gratuitous: moved
	assert_int_equal(fixture_find(FABRIC, PEER)->mac.addr_bytes[5], 8);
	assert_int_equal(fixture_find(FABRIC, PEER)->state, NEIGH_STALE);
	assert_int_equal(fixture_n_sent, 0);
	adjacency_put(adj);
}

static void answers_fabric(void **state)
{
	const struct rte_ether_addr peer = fixture_mac(PEER_MAC);
	const struct rte_arp_hdr *arp;
	struct rte_mbuf *m;

	receive(FABRIC, REQUEST, PEER_MAC, PEER, ALL, "192.0.2.1");
	assert_int_equal(fixture_find(FABRIC, PEER)->state, NEIGH_STALE); // it is about to send
	m = fixture_take();
	assert_non_null(m);
	arp = rte_pktmbuf_mtod_offset(m, const struct rte_arp_hdr *, 14);
	assert_int_equal(arp->arp_opcode, RTE_BE16(REPLY));
	assert_int_equal(meta(m)->out_port, FABRIC);
	assert_memory_equal(rte_pktmbuf_mtod(m, void *), &peer, 6);
	assert_memory_equal(&arp->arp_data.arp_sha, &port_table[FABRIC]->mac, 6);
	rte_pktmbuf_free(m);
	receive(FABRIC, REQUEST, PEER_MAC, "0.0.0.0", ALL, "192.0.2.1"); // a probe is answered, but not learnt
	assert_int_equal(fixture_n_sent, 1);
	receive(FABRIC, REQUEST, PEER_MAC, "203.0.113.9", ALL, "192.0.2.1"); // not of our subnet
	assert_null(fixture_find(FABRIC, "203.0.113.9"));
	receive(FABRIC, REQUEST, PEER_MAC, "192.0.2.11", ALL, "192.0.2.12"); // not for us
	assert_null(fixture_find(FABRIC, "192.0.2.11"));
	assert_int_equal(fixture_n_sent, 2);
	assert_int_equal(neighbor_count(), 1);
}

static void conflicts(void **state)
{
	receive(FABRIC, REQUEST, PEER_MAC, "192.0.2.1", ALL, "192.0.2.1");
	receive(FABRIC, REPLY, PEER_MAC, "192.0.2.1", OWN_MAC, "192.0.2.1");
	assert_int_equal(fixture_drops("arp_address_conflict"), 2);
	receive(TENANT, REPLY, PEER_MAC, "10.0.0.1", ALL, "10.0.0.1");
	fixture_punt(PUNT_ARP, fixture_frame(FABRIC, "short", 5, 14));
	assert_int_equal(fixture_drops("arp_late"), 2);
	assert_int_equal(neighbor_count(), 0);
	assert_int_equal(fixture_n_sent, 0);
}

static void guests(void **state)
{
	struct port *p = port_table[TENANT];
	uint32_t adj = fixture_hold(TENANT, "10.0.0.2");

	p->cfg.guest_mac = fixture_mac("02:00:00:00:01:02");
	p->cfg.guests[0].addr = fixture_addr("10.0.0.2");
	p->cfg.guests[0].len = 32;
	p->cfg.n_guests = 1;
	fixture_publish(p);
	receive(TENANT, REPLY, PEER_MAC, "10.0.0.2", "00:00:5e:00:01:01", "10.0.0.1");
	assert_int_equal(fixture_drops("arp_wrong_guest_mac"), 1);
	assert_int_equal(fixture_find(TENANT, "10.0.0.2")->state, NEIGH_INCOMPLETE);
	receive(TENANT, REPLY, PEER_MAC, "10.0.0.3", "00:00:5e:00:01:01", "10.0.0.1"); // unknown: no entry is created
	assert_null(fixture_find(TENANT, "10.0.0.3"));
	receive(TENANT, REPLY, "02:00:00:00:01:02", "10.0.0.2", "00:00:5e:00:01:01", "10.0.0.1");
	assert_int_equal(fixture_find(TENANT, "10.0.0.2")->state, NEIGH_REACHABLE);
	adjacency_put(adj);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(requests, fixture_reset),
		cmocka_unit_test_setup(learns_answers, fixture_reset),
		cmocka_unit_test_setup(answers_fabric, fixture_reset),
		cmocka_unit_test_setup(conflicts, fixture_reset),
		cmocka_unit_test_setup(guests, fixture_reset),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
