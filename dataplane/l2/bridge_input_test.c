// SPDX-License-Identifier: Apache-2.0
// bridge_input: frame in, edge out; and the MACs that it learns.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/node_test.h"
#include "l2/bridge_fixture.h"
#include "l3/icmp.h"

#define A "02:00:00:00:00:0a"
#define B "02:00:00:00:00:0b"
#define C "02:00:00:00:00:0c"
#define NONE UINT16_MAX

static struct bridge *lan; // ports 1 and 2, tunnels 101 and 102

static int setup(void **state)
{
	fixture_reset(state);
	lan = fixture_bridge("lan", 2);
	fixture_join(1, lan->id, NONE);
	fixture_join(2, lan->id, NONE);
	return 0;
}

static void assert_edge(struct rte_mbuf *m, const char *edge)
{
	assert_string_equal(node_test_one("bridge_input", m), edge);
	rte_pktmbuf_free(m);
}

static void assert_dropped(struct rte_mbuf *m, const char *reason)
{
	assert_string_equal(node_test_one("bridge_input", m), "drop");
	assert_string_equal(node_test_reason(m), reason);
	rte_pktmbuf_free(m);
}

static void assert_to_port(struct rte_mbuf *m, uint16_t port)
{
	assert_string_equal(node_test_one("bridge_input", m), "port_tx");
	assert_int_equal(meta(m)->out_port, port);
	assert_int_equal(meta(m)->l3, 0);
	rte_pktmbuf_free(m);
}

static void assert_to_tunnel(struct rte_mbuf *m, uint32_t id, const char *edge)
{
	assert_string_equal(node_test_one("bridge_input", m), edge);
	assert_ptr_equal(meta(m)->nexthop, nexthop_table[id]);
	assert_int_equal(meta(m)->l3, 0);
	assert_int_not_equal(meta(m)->hash, 0);
	rte_pktmbuf_free(m);
}

static void bad_frames(void **state)
{
	assert_dropped(fixture_frame_len(fixture_frame(lan->id, 1, HERE, B, A, IP), 13), "bridge_truncated");
	assert_dropped(fixture_frame(lan->id, 1, HERE, B, "03:00:00:00:00:01", IP), "bridge_bad_source");
	assert_dropped(fixture_frame(lan->id, 1, HERE, B, "00:00:00:00:00:00", IP), "bridge_bad_source");
	assert_dropped(fixture_frame(lan->id, 1, HERE, "01:80:c2:00:00:00", A, 0x0026), "bridge_link_local");
	assert_dropped(fixture_frame(lan->id, 1, HERE, "01:80:c2:00:00:0f", A, 0x88cc), "bridge_link_local");
	assert_edge(fixture_frame(lan->id, 1, HERE, "01:80:c2:00:00:10", A, 0x88cc), "bridge_flood");
	assert_dropped(fixture_frame(77, 1, HERE, B, A, IP), "bridge_gone");
	bridge_tick();
	assert_int_equal(mac_count(), 1); // of the one good frame
}

static void learn_local(void **state)
{
	struct mac_entry e;

	assert_edge(fixture_frame(lan->id, 1, HERE, B, A, IP), "bridge_flood"); // not known yet
	assert_int_equal(mac_count(), 0);                                       // the master decides
	bridge_tick();
	assert_true(fixture_find(lan->id, A, &e));
	assert_true(e.learnt);
	assert_int_equal(e.port, 1);
	assert_int_equal(e.nexthop, 0);
	assert_int_equal(lan->n_macs, 1);
	assert_int_equal(lan->n_learnt, 1);
	assert_to_port(fixture_frame(lan->id, 2, HERE, A, B, IP), 1);
	assert_dropped(fixture_frame(lan->id, 1, HERE, A, C, IP), "bridge_same_port");
}

// One MAC in two domains belongs to two stations.
static void domains_apart(void **state)
{
	struct bridge *other = fixture_bridge("other", 0);
	struct mac_entry e;

	fixture_join(3, other->id, NONE);
	fixture_learn(lan->id, 1, HERE, A);
	assert_edge(fixture_frame(other->id, 3, HERE, A, B, IP), "bridge_flood");
	fixture_learn(other->id, 3, HERE, A);
	assert_true(fixture_find(lan->id, A, &e) && e.port == 1);
	assert_true(fixture_find(other->id, A, &e) && e.port == 3);
	// Nothing is learnt from a frame whose port has left its domain meanwhile.
	fixture_learn(lan->id, 3, HERE, C);
	assert_false(fixture_find(lan->id, C, &e));
}

static void learn_remote(void **state)
{
	struct mac_entry e;
	struct ip_addr second = fixture_addr("192.0.2.2");

	fixture_learn(lan->id, FABRIC, "192.0.2.2", A);
	assert_true(fixture_find(lan->id, A, &e));
	assert_int_equal(e.nexthop, 102);
	assert_int_equal(e.port, 0);
	assert_true(ip_addr_eq(&e.remote, &second));
	assert_to_tunnel(fixture_frame(lan->id, 1, HERE, A, B, IP), 102, "encap_vxlan4");
	fixture_learn(lan->id, FABRIC, "192.0.2.3", C); // not a remote end of this domain
	assert_false(fixture_find(lan->id, C, &e));
	assert_int_equal(lan->learn_unreachable, 1);
}

static void learn_remote6(void **state)
{
	struct mac_entry e;

	fixture_tunnel(102, NH_TUNNEL, "2001:db8::2", 1430, "vxlan");
	fixture_learn(lan->id, FABRIC, "2001:db8::2", A);
	assert_true(fixture_find(lan->id, A, &e));
	assert_int_equal(e.nexthop, 102);
	fixture_learn(lan->id, FABRIC, "2001:db8::2", A); // stays
	assert_int_equal(lan->moves, 0);
}

// MACs are also learnt behind a tunnel that only configured MACs use, as long as they use it.
static void learn_by_static_tunnel(void **state)
{
	struct mac_entry by_hand = {.bridge = lan->id, .mac = fixture_mac(A), .nexthop = 105}, e;

	assert_int_equal(mac_set(&by_hand, NULL), 0);
	fixture_learn(lan->id, FABRIC, "192.0.2.5", B);
	assert_true(fixture_find(lan->id, B, &e));
	assert_int_equal(e.nexthop, 105);
	assert_int_equal(mac_unset(lan->id, &by_hand.mac, NULL), 0);
	assert_false(fixture_find(lan->id, B, &e));
	assert_int_equal(fixture_refs(105), 0);
}

static void moves(void **state)
{
	struct mac_entry e;

	fixture_learn(lan->id, 1, HERE, A);
	fixture_learn(lan->id, 2, HERE, A);
	assert_true(fixture_find(lan->id, A, &e) && e.port == 2);
	fixture_learn(lan->id, FABRIC, "192.0.2.1", A);
	assert_true(fixture_find(lan->id, A, &e) && e.nexthop == 101);
	fixture_learn(lan->id, FABRIC, "192.0.2.2", A); // the same fabric port, another host
	assert_true(fixture_find(lan->id, A, &e) && e.nexthop == 102);
	fixture_wait(1);
	fixture_learn(lan->id, 1, HERE, A);
	assert_true(fixture_find(lan->id, A, &e) && e.port == 1);
	assert_int_equal(lan->moves, 4);
	assert_int_equal(lan->n_learnt, 1);
}

static void by_hand_stays(void **state)
{
	struct mac_entry by_hand = {.bridge = lan->id, .mac = fixture_mac(A), .port = 1}, e;

	assert_int_equal(mac_set(&by_hand, NULL), 0);
	fixture_learn(lan->id, 2, HERE, A);
	fixture_learn(lan->id, FABRIC, "192.0.2.1", A);
	assert_true(fixture_find(lan->id, A, &e));
	assert_int_equal(e.port, 1);
	assert_false(e.learnt);
	assert_int_equal(lan->moves, 0);
	fixture_wait(400);
	assert_true(fixture_find(lan->id, A, &e));
}

static void limit(void **state)
{
	struct bridge_config c = lan->cfg;
	struct mac_entry e;

	c.mac_limit = 2;
	assert_int_equal(bridge_set(lan, &c, NULL), 0);
	fixture_learn(lan->id, 1, HERE, A);
	fixture_learn(lan->id, 1, HERE, B);
	fixture_learn(lan->id, 1, HERE, C);
	assert_false(fixture_find(lan->id, C, &e));
	assert_int_equal(lan->learn_refused, 1);
	fixture_learn(lan->id, 2, HERE, A); // moving needs no free entry
	assert_true(fixture_find(lan->id, A, &e) && e.port == 2);
	assert_int_equal(mac_unset(lan->id, &e.mac, NULL), 0);
	fixture_wait(1);
	fixture_learn(lan->id, 1, HERE, C);
	assert_true(fixture_find(lan->id, C, &e));
}

// A source that cannot be learnt is reported to the master once per tenth of a second, however many frames it sends.
static void asks_rarely(void **state)
{
	struct rte_mbuf *pkts[200];
	struct bridge_config c = lan->cfg;
	unsigned i;

	c.mac_limit = 1;
	bridge_set(lan, &c, NULL);
	fixture_learn(lan->id, 1, HERE, A);
	for (i = 0; i < 200; i++)
		pkts[i] = fixture_frame(lan->id, 1, HERE, A, B, IP);
	assert_int_equal(node_test_run("bridge_input", pkts, 200), 200);
	for (i = 0; i < 200; i++)
		assert_string_equal(node_test_outs[i].edge, "drop");
	rte_pktmbuf_free_bulk(pkts, 200);
	bridge_tick();
	assert_int_equal(lan->learn_refused, 1);
}

// Frames with n sources that nobody else has, from `first` on.
static void many_sources(uint16_t port, const char *remote, uint32_t first, unsigned n)
{
	struct rte_ether_hdr *eth;
	struct rte_mbuf *m;
	unsigned i;

	for (i = 0; i < n; i++) {
		m = fixture_frame(lan->id, port, remote, ALL, A, ARP);
		eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
		*(unaligned_uint32_t *)&eth->src_addr.addr_bytes[2] = rte_cpu_to_be_32(first + i);
		eth->src_addr.addr_bytes[1] = 0x77;
		node_test_one("bridge_input", m);
		rte_pktmbuf_free(m);
	}
}

// A port, or a tunnel, that invents addresses leaves others room in the ring to the master.
static void others_are_learnt_meanwhile(void **state)
{
	struct mac_entry e;
	unsigned i;

	mac_learn_begin_port(1);
	many_sources(1, HERE, 0, 20000); // the ring has room for 16,383
	many_sources(FABRIC, "192.0.2.1", 20000, 20000);
	fixture_learn(lan->id, 2, HERE, B);
	for (i = 0; i < 20; i++)
		bridge_tick();
	assert_true(fixture_find(lan->id, B, &e));
	assert_in_range(mac_count(), 1024, 16000);
	// Both had up to 1,024 reports at once; earlier tests may have used some of them.
	assert_in_range(mac_learn_too_many(lan->id), 20000, 40000 - 2 * 512);
	assert_in_range(mac_learn_too_many_of(1), 10000, 20000 - 512);
	assert_int_equal(mac_learn_too_many_of(2), 0);
}

// Nor does it take all the addresses of its domain.
static void others_have_room(void **state)
{
	struct bridge_config c = lan->cfg;
	struct mac_entry e;

	c.mac_limit = 80;
	bridge_set(lan, &c, NULL);
	many_sources(1, HERE, 0, 100);
	bridge_tick();
	assert_int_equal(lan->n_learnt, 70);
	assert_int_equal(lan->learn_refused, 30);
	fixture_learn(lan->id, 2, HERE, B);
	assert_true(fixture_find(lan->id, B, &e));
	fixture_learn(lan->id, FABRIC, "192.0.2.1", C);
	assert_true(fixture_find(lan->id, C, &e));
	many_sources(FABRIC, "192.0.2.1", 100, 100);
	bridge_tick();
	assert_int_equal(lan->n_learnt, 80);
	assert_int_equal(mac_learnt_at(lan, MAC_LEARNT | MAC_TUNNEL), 9);
	// Addresses that moved count where they are now.
	many_sources(2, HERE, 0, 60);
	bridge_tick();
	assert_int_equal(mac_learnt_at(lan, MAC_LEARNT | 1), 10);
	assert_int_equal(mac_learnt_at(lan, MAC_LEARNT | 2), 61);
	fixture_leave(2);
	assert_int_equal(lan->n_learnt, 19);
	assert_int_equal(mac_learnt_at(lan, MAC_LEARNT | 2), 0);
}

// A port that sends with the address of another one's guest does not get what is for that guest.
static void guests_keep_their_addresses(void **state)
{
	struct port *p = fixture_join(2, lan->id, UINT16_MAX);
	uint64_t refused = lan->learn_refused;
	struct mac_entry e;

	p->cfg.guest_mac = fixture_mac(B);
	fixture_join(2, lan->id, UINT16_MAX); // it has changed
	fixture_learn(lan->id, 1, HERE, B);   // also while it is unknown
	assert_false(fixture_find(lan->id, B, &e));
	fixture_learn(lan->id, 2, HERE, B);
	fixture_wait(1); // the same report is not repeated at once
	fixture_learn(lan->id, 1, HERE, B);
	assert_true(fixture_find(lan->id, B, &e));
	assert_int_equal(e.port, 2);
	assert_int_equal(lan->learn_refused, refused + 2);
	assert_int_equal(lan->moves, 0);
	fixture_learn(lan->id, 1, HERE, A); // others are learnt anywhere
	fixture_learn(lan->id, 2, HERE, A);
	assert_true(fixture_find(lan->id, A, &e));
	assert_int_equal(e.port, 2);
	fixture_learn(lan->id, FABRIC, "192.0.2.1", B); // it has moved to another host
	assert_true(fixture_find(lan->id, B, &e));
	assert_int_equal(e.port, 0);
	fixture_wait(1);
	fixture_learn(lan->id, 2, HERE, B); // and back
	fixture_join(1, lan->id, UINT16_MAX)->cfg.guest_mac = fixture_mac(B);
	fixture_join(1, lan->id, UINT16_MAX);
	fixture_wait(1);
	fixture_learn(lan->id, 1, HERE, B); // both have it
	assert_true(fixture_find(lan->id, B, &e));
	assert_int_equal(e.port, 1);
}

static void no_learning(void **state)
{
	struct bridge_config c = lan->cfg;
	struct mac_entry by_hand = {.bridge = lan->id, .mac = fixture_mac(B), .port = 2};

	fixture_learn(lan->id, 1, HERE, A);
	mac_set(&by_hand, NULL);
	c.no_learning = true;
	assert_int_equal(bridge_set(lan, &c, NULL), 0);
	assert_int_equal(mac_count(), 1); // the one set by hand
	fixture_learn(lan->id, 1, HERE, A);
	assert_int_equal(mac_count(), 1);
}

static void ageing(void **state)
{
	struct mac_entry e;
	unsigned i;

	mac_age_seconds = 30;
	fixture_learn(lan->id, 1, HERE, A);
	fixture_learn(lan->id, 1, HERE, B);
	for (i = 0; i < 25; i++) { // A continues to send
		fixture_wait(1);
		assert_edge(fixture_frame(lan->id, 1, HERE, ALL, A, ARP), "bridge_flood");
	}
	assert_true(fixture_find(lan->id, B, &e));
	fixture_wait(15);
	assert_false(fixture_find(lan->id, B, &e));
	assert_true(fixture_find(lan->id, A, &e));
	fixture_wait(30);
	assert_int_equal(mac_count(), 0);
	assert_int_equal(lan->n_learnt, 0);
}

static void split_horizon(void **state)
{
	fixture_learn(lan->id, FABRIC, "192.0.2.1", A);
	fixture_learn(lan->id, 1, HERE, B);
	assert_dropped(fixture_frame(lan->id, FABRIC, "192.0.2.2", A, C, IP), "bridge_split_horizon");
	assert_to_port(fixture_frame(lan->id, FABRIC, "192.0.2.2", B, C, IP), 1);
}

static void unknown_unicast(void **state)
{
	struct bridge_config c = lan->cfg;

	assert_edge(fixture_frame(lan->id, 1, HERE, C, A, IP), "bridge_flood");
	c.drop_unknown = true;
	assert_int_equal(bridge_set(lan, &c, NULL), 0);
	assert_dropped(fixture_frame(lan->id, 1, HERE, C, A, IP), "bridge_unknown_unicast");
	assert_edge(fixture_frame(lan->id, 1, HERE, ALL, A, ARP), "bridge_flood");
	assert_edge(fixture_frame(lan->id, 1, HERE, "33:33:00:00:00:01", A, IP6), "bridge_flood");
}

static void tunnel_down(void **state)
{
	fixture_learn(lan->id, FABRIC, "192.0.2.1", A);
	fixture_tunnel(101, NH_TUNNEL, "192.0.2.1", 0, "vxlan");
	assert_dropped(fixture_frame(lan->id, 1, HERE, A, B, IP), "bridge_tunnel_down");
	fixture_tunnel(101, NH_DISCARD, "192.0.2.1", 1500, "vxlan"); // replaced by something that is no tunnel
	assert_dropped(fixture_frame(lan->id, 1, HERE, A, B, IP), "bridge_tunnel_down");
	nexthop_table[101] = NULL;
	assert_dropped(fixture_frame(lan->id, 1, HERE, A, B, IP), "bridge_tunnel_down");
}

// VXLAN's overhead includes the frame's header, that of MPLS does not.
static void mtu(void **state)
{
	fixture_tunnel(102, NH_TUNNEL, "192.0.2.2", 1450, "mplsoudp");
	fixture_learn(lan->id, FABRIC, "192.0.2.1", A);
	fixture_learn(lan->id, FABRIC, "192.0.2.2", B);
	assert_to_tunnel(fixture_frame_len(fixture_frame(lan->id, 1, HERE, A, C, IP), 1464), 101, "encap_vxlan4");
	assert_dropped(fixture_frame_len(fixture_frame(lan->id, 1, HERE, A, C, IP), 1465), "bridge_too_big");
	assert_to_tunnel(fixture_frame_len(fixture_frame(lan->id, 1, HERE, B, C, IP), 1450), 102, "encap_mplsoudp4");
	assert_dropped(fixture_frame_len(fixture_frame(lan->id, 1, HERE, B, C, IP), 1451), "bridge_too_big");
	fixture_learn(lan->id, 1, HERE, C);
	assert_to_port(fixture_frame_len(fixture_frame(lan->id, FABRIC, "192.0.2.1", C, A, IP), 1518), 1);
	assert_dropped(fixture_frame_len(fixture_frame(lan->id, FABRIC, "192.0.2.1", C, A, IP), 1519),
		       "bridge_too_big");
}

static void gateway_routes(void **state)
{
	struct rte_mbuf *m;

	assert_non_null(fixture_join(2, lan->id, 7));
	m = fixture_frame(lan->id, FABRIC, "192.0.2.1", GATEWAY, A, IP);
	meta(m)->l3 = 0; // as decapsulation leaves it
	assert_string_equal(node_test_one("bridge_input", m), "ip4_forward");
	assert_int_equal(meta(m)->vrf, 7);
	assert_int_equal(meta(m)->l3, 14);
	assert_int_equal(meta(m)->bridge, BRIDGE_NONE);
	rte_pktmbuf_free(m);
	assert_edge(fixture_frame(lan->id, 1, HERE, GATEWAY, A, IP6), "ip6_forward");
	assert_dropped(fixture_frame(lan->id, FABRIC, "192.0.2.1", GATEWAY, A, ARP), "bridge_gateway_arp");
	assert_dropped(fixture_frame(lan->id, 1, HERE, GATEWAY, A, 0x88b5), "bridge_gateway_type");
	m = fixture_frame(lan->id, 1, HERE, GATEWAY, A, RTE_ETHER_TYPE_VLAN);
	memcpy(rte_pktmbuf_mtod(m, uint8_t *) + 14, "\xa0\0\x08", 4); // a priority, and IPv4 behind it
	assert_string_equal(node_test_one("bridge_input", m), "bridge_tagged");
	assert_string_equal(node_test_one("bridge_tagged", m), "ip4_forward");
	rte_pktmbuf_free(m);
	m = fixture_frame(lan->id, FABRIC, "192.0.2.1", GATEWAY, A, IP6);
	rte_pktmbuf_mtod(m, uint8_t *)[14 + 6] = 58; // ICMPv6
	rte_pktmbuf_mtod(m, uint8_t *)[14 + 40] = 135;
	assert_dropped(m, "bridge_gateway_arp");
	bridge_tick();
	assert_int_equal(lan->n_learnt, 1); // the sender of a frame to the gateway is learnt, too
	fixture_join(2, lan->id, NONE);
	assert_edge(fixture_frame(lan->id, 1, HERE, GATEWAY, A, IP), "bridge_flood"); // unknown now
}

static void gateway_spoofed(void **state)
{
	struct mac_entry e, by_hand = {.bridge = lan->id, .mac = fixture_mac(GATEWAY), .port = 1};

	fixture_learn(lan->id, 1, HERE, GATEWAY); // there is no gateway yet: a MAC like any other
	assert_true(fixture_find(lan->id, GATEWAY, &e));
	fixture_join(2, lan->id, 7);
	assert_false(fixture_find(lan->id, GATEWAY, &e));
	assert_dropped(fixture_frame(lan->id, 1, HERE, ALL, GATEWAY, ARP), "bridge_spoofed_gateway");
	assert_dropped(fixture_frame(lan->id, FABRIC, "192.0.2.1", ALL, GATEWAY, ARP), "bridge_spoofed_gateway");
	bridge_tick();
	assert_int_equal(mac_count(), 0);
	assert_int_equal(mac_set(&by_hand, NULL), -EINVAL);
}

static void gateway_tells_mtu(void **state)
{
	struct rte_mbuf *m;

	fixture_join(2, lan->id, 7);
	fixture_learn(lan->id, FABRIC, "192.0.2.1", A);
	m = fixture_frame_len(fixture_frame(lan->id, 2, HERE, A, B, IP), 1465);
	assert_dropped(m, "bridge_too_big"); // another node may fragment it
	m = fixture_frame_len(fixture_frame(lan->id, 2, HERE, A, B, IP), 1465);
	rte_pktmbuf_mtod(m, uint8_t *)[14 + 6] = 0x40; // DF
	assert_string_equal(node_test_one("bridge_input", m), "icmp_error");
	assert_int_equal(meta(m)->arg, ICMP_WHAT_TOO_BIG << 16 | 1450);
	assert_int_equal(meta(m)->vrf, 7);
	assert_int_equal(meta(m)->l3, 14);
	rte_pktmbuf_free(m);
	assert_edge(fixture_frame_len(fixture_frame(lan->id, 2, HERE, A, B, IP6), 1465), "icmp_error");
	assert_dropped(fixture_frame_len(fixture_frame(lan->id, 2, HERE, A, B, 0x88b5), 1465), "bridge_too_big");
}

static void port_removed(void **state)
{
	struct mac_entry by_hand = {.bridge = lan->id, .mac = fixture_mac(B), .port = 1}, e;

	fixture_learn(lan->id, 1, HERE, A);
	fixture_learn(lan->id, 2, HERE, C);
	mac_set(&by_hand, NULL);
	fixture_leave(1);
	assert_false(fixture_find(lan->id, A, &e));
	assert_false(fixture_find(lan->id, B, &e));
	assert_true(fixture_find(lan->id, C, &e));
	assert_int_equal(lan->n_macs, 1);
	assert_int_equal(lan->refs, 1);
	assert_edge(fixture_frame(lan->id, 2, HERE, A, C, IP), "bridge_flood");
}

// A MAC that a worker saw before its port was removed is not learnt afterwards.
static void late_learning(void **state)
{
	assert_edge(fixture_frame(lan->id, 1, HERE, ALL, A, ARP), "bridge_flood");
	fixture_leave(1);
	bridge_tick();
	assert_int_equal(mac_count(), 0);
	assert_edge(fixture_frame(lan->id, 2, HERE, ALL, B, ARP), "bridge_flood");
	fixture_leave(2);
	assert_int_equal(bridge_del("lan", NULL), 0);
	bridge_tick();
	assert_int_equal(mac_count(), 0);
}

static void big_batch(void **state)
{
	const struct rte_ether_addr known = fixture_mac(A);
	const struct rte_ether_hdr *eth;
	struct rte_mbuf *pkts[256];
	unsigned i;

	fixture_learn(lan->id, 1, HERE, A);
	for (i = 0; i < 256; i++)
		pkts[i] = fixture_frame(lan->id, 2, HERE, i % 3 ? A : i % 2 ? B : ALL, B, IP);
	assert_int_equal(node_test_run("bridge_input", pkts, 256), 256);
	for (i = 0; i < 256; i++) { // they come out by edge
		eth = rte_pktmbuf_mtod(node_test_outs[i].m, const struct rte_ether_hdr *);
		assert_string_equal(node_test_outs[i].edge,
				    rte_is_same_ether_addr(&eth->dst_addr, &known) ? "port_tx" : "bridge_flood");
	}
	rte_pktmbuf_free_bulk(pkts, 256);
}

// Frames that differ from the one before them in one respect only share nothing with it that they must not.
static void alike(void **state)
{
	struct bridge *other = fixture_bridge("other", 0);
	struct rte_mbuf *pkts[9];
	static const char *const edges[] = {"port_tx", "drop",    "port_tx", "bridge_flood", "drop",
					    "port_tx", "port_tx", "drop",    "port_tx"};
	static const char *const reasons[9] = {
		[1] = "bridge_truncated", [4] = "bridge_same_port", [7] = "bridge_too_big"};
	struct mac_entry e;
	unsigned i, k;

	fixture_join(3, other->id, NONE);
	fixture_learn(lan->id, 1, HERE, A);
	fixture_learn(lan->id, 2, HERE, B);
	for (i = 0; i < 9; i++)
		pkts[i] = fixture_frame(lan->id, 2, HERE, A, B, IP);
	rte_pktmbuf_trim(pkts[1], (uint16_t)(pkts[1]->data_len - 13));
	meta(pkts[3])->bridge = other->id;
	pkts[4]->port = 1;
	rte_pktmbuf_free_bulk(&pkts[5], 2);
	pkts[5] = fixture_frame(lan->id, FABRIC, "192.0.2.1", A, B, IP);
	pkts[6] = fixture_frame(lan->id, FABRIC, "192.0.2.2", A, B, IP);
	fixture_frame_len(pkts[7], 1519);
	assert_int_equal(node_test_run("bridge_input", pkts, 9), 9);
	for (i = 0; i < 9; i++) {
		for (k = 0; node_test_outs[k].m != pkts[i]; k++) // they come out by edge
			assert_true(k < 9);
		assert_string_equal(node_test_outs[k].edge, edges[i]);
		if (reasons[i])
			assert_string_equal(node_test_reason(pkts[i]), reasons[i]);
		else if (i != 3)
			assert_int_equal(meta(pkts[i])->out_port, 1);
	}
	rte_pktmbuf_free_bulk(pkts, 9);
	bridge_tick();
	assert_int_equal(lan->moves, 3); // to port 1, to each of the tunnels
	assert_true(fixture_find(lan->id, B, &e) && e.nexthop == 102);
	assert_false(fixture_find(other->id, B, &e)); // port 2 is not in that domain
}

// A sender's frames to several receivers share the lookup of their source, if one of them is looked up at all, and
// only while they come by the same way.
static void one_source_to_many(void **state)
{
	static const char *const to[] = {"01:80:c2:00:00:00", B, ALL, C, B};
	struct rte_mbuf *pkts[5];
	struct mac_entry e;
	unsigned i;

	for (i = 0; i < 4; i++)
		pkts[i] = fixture_frame(lan->id, 1, HERE, to[i], A, IP);
	pkts[4] = fixture_frame(lan->id, 2, HERE, to[4], A, IP);
	assert_int_equal(node_test_run("bridge_input", pkts, 4), 4);
	bridge_tick();
	assert_true(fixture_find(lan->id, A, &e) && e.port == 1 && e.learnt);
	assert_int_equal(node_test_run("bridge_input", pkts, 5), 5);
	rte_pktmbuf_free_bulk(pkts, 5);
	bridge_tick();
	assert_int_equal(lan->moves, 1);
	assert_true(fixture_find(lan->id, A, &e) && e.port == 2);
}

#define T(fn) cmocka_unit_test_setup(fn, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(bad_frames),
		T(learn_local),
		T(domains_apart),
		T(learn_remote),
		T(learn_remote6),
		T(learn_by_static_tunnel),
		T(moves),
		T(by_hand_stays),
		T(limit),
		T(asks_rarely),
		T(others_have_room),
		T(guests_keep_their_addresses),
		T(no_learning),
		T(ageing),
		T(split_horizon),
		T(unknown_unicast),
		T(tunnel_down),
		T(mtu),
		T(gateway_routes),
		T(gateway_spoofed),
		T(gateway_tells_mtu),
		T(port_removed),
		T(late_learning),
		T(big_batch),
		T(others_are_learnt_meanwhile),
		T(alike),
		T(one_source_to_many),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
