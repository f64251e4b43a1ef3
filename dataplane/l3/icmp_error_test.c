// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <rte_ip.h>
#include <rte_tcp.h>

#include "base/clock.h"
#include "l3/icmp.h"
#include "testing/router_fixture.h"

static const struct packet v4 = {.src = "10.0.0.2", .dst = "10.9.9.9"}, v6 = {.src = "fd00::2", .dst = "fd09::9"};

static int setup(void **state)
{
	icmp_errors_per_second = 1000000;
	clock_stopped = rte_rdtsc(); // time stands still but for what a test lets pass
	return router_setup(state);
}

static const struct drop_reason *reason(void)
{
	return drop_reason_find("ip_no_route");
}

// Prepares the packet as a node does that drops a packet from this port.
static struct rte_mbuf *given_up(uint16_t port, const struct packet *p, enum icmp_what what, uint16_t mtu)
{
	struct rte_mbuf *m = router_frame(port, GATEWAY, "02:00:00:00:00:03", p);

	meta(m)->l3 = 14;
	meta(m)->vrf = port_fwds[port]->vrf;
	meta(m)->hash = 77;
	icmp_want(m, what, mtu, reason());
	return m;
}

static void assert_error(struct rte_mbuf *m, const char *edge, const char *header)
{
	uint8_t old[2048];
	char want[5000];
	unsigned i, len = m->data_len - 14u;

	memcpy(old, rte_pktmbuf_mtod_offset(m, void *, 14), len);
	strcpy(want, header);
	for (i = 0; i < len; i++)
		sprintf(want + strlen(want), "%02x", old[i]);
	assert_string_equal(node_test_one("icmp_error", m), edge);
	assert_bytes(m, want);
	assert_true(router_l4_ok(m, 0));
	assert_int_equal(meta(m)->flags, META_ANSWER);
	assert_int_equal(meta(m)->l3, 0);
	assert_int_equal(meta(m)->hash, 0);
	assert_int_equal(meta(m)->vrf, RED);
	rte_pktmbuf_free(m);
}

static void types(void **state)
{
	static const struct {
		enum icmp_what what;
		const char *icmp4, *icmp6;
	} all[] = {
		{ICMP_WHAT_TTL, "0b00", "0300"},  {ICMP_WHAT_NO_ROUTE, "0300", "0100"},
		{ICMP_WHAT_HOST, "0301", "0103"}, {ICMP_WHAT_PROHIBITED, "030d", "0101"},
		{ICMP_WHAT_PORT, "0303", "0104"}, {ICMP_WHAT_PROTOCOL, "0302", "0401"},
	};
	uint64_t before = router_drops(RED0, "ip_no_route");
	char header[256];
	unsigned i;

	for (i = 0; i < RTE_DIM(all); i++) {
		snprintf(header, sizeof(header), "45c0004a 0000 0000 4001 65f1 0a000001 0a000002 %s .... 00000000",
			 all[i].icmp4);
		assert_error(given_up(RED0, &v4, all[i].what, 0), "ip4_forward", header);
		snprintf(header, sizeof(header),
			 "60000000 004a 3a 40 fd000000000000000000000000000001 fd000000000000000000000000000002 %s "
			 ".... 00000000",
			 all[i].icmp6);
		assert_error(given_up(RED0, &v6, all[i].what, 0), "ip6_forward", header);
	}
	assert_int_equal(router_drops(RED0, "ip_no_route"), before + 2 * RTE_DIM(all));
}

static void mtu(void **state)
{
	assert_error(given_up(RED0, &v4, ICMP_WHAT_TOO_BIG, 1468), "ip4_forward",
		     "45c0004a 0000 0000 4001 65f1 0a000001 0a000002 0304 .... 0000 05bc");
	assert_error(given_up(RED0, &v6, ICMP_WHAT_TOO_BIG, 1448), "ip6_forward",
		     "60000000 004a 3a 40 fd000000000000000000000000000001 fd000000000000000000000000000002 0200 .... "
		     "0000 05a8");
}

static void quote(void **state)
{
	struct packet p4 = v4, p6 = v6;
	struct rte_mbuf *m;

	p4.payload = p6.payload = 1400;
	m = given_up(RED0, &p4, ICMP_WHAT_TTL, 0);
	assert_string_equal(node_test_one("icmp_error", m), "ip4_forward");
	assert_int_equal(m->pkt_len, 576);
	assert_true(router_l4_ok(m, 0));
	rte_pktmbuf_free(m);
	m = given_up(RED0, &p6, ICMP_WHAT_TTL, 0);
	assert_string_equal(node_test_one("icmp_error", m), "ip6_forward");
	assert_int_equal(m->pkt_len, 1280);
	assert_true(router_l4_ok(m, 0));
	rte_pktmbuf_free(m);
}

// An error quotes the first buffer of a jumbo frame that lies in several.
static void segments(void **state)
{
	struct packet p = v4;
	struct rte_mbuf *m, *tail = router_hex("");

	p.payload = 200;
	m = given_up(RED0, &p, ICMP_WHAT_TOO_BIG, 1400);
	rte_pktmbuf_append(tail, 1500);
	rte_pktmbuf_chain(m, tail);
	assert_string_equal(node_test_one("icmp_error", m), "ip4_forward");
	assert_int_equal(m->nb_segs, 1);
	assert_int_equal(m->pkt_len, 28 + 220);
	assert_true(router_l4_ok(m, 0));
	rte_pktmbuf_free(m);
}

static void count_free(void *addr, void *opaque)
{
	++*(unsigned *)opaque;
}

// External buffers, which some drivers use, are returned to them.
static void lent_buffer(void **state)
{
	static struct rte_mbuf_ext_shared_info shared;
	static uint8_t buffer[2048];
	static unsigned given_back;
	struct rte_mbuf *m = router_hex("");
	struct packet p = v4;
	struct rte_mbuf *from = given_up(RED0, &p, ICMP_WHAT_TTL, 0);

	shared.free_cb = count_free;
	shared.fcb_opaque = &given_back;
	rte_mbuf_ext_refcnt_set(&shared, 1);
	rte_pktmbuf_attach_extbuf(m, buffer, RTE_BAD_IOVA, sizeof(buffer), &shared);
	m->data_off = RTE_PKTMBUF_HEADROOM;
	memcpy(rte_pktmbuf_append(m, from->data_len), rte_pktmbuf_mtod(from, void *), from->data_len);
	m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	m->port = RED0;
	*meta(m) = *meta(from);
	rte_pktmbuf_free(from);
	assert_string_equal(node_test_one("icmp_error", m), "ip4_forward");
	assert_int_equal(m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK, 0); // the flag was about the old packet
	rte_pktmbuf_free(m);
	assert_int_equal(given_back, 1);
}

static void assert_silent(struct rte_mbuf *m)
{
	uint64_t before = router_drops(RED0, "ip_no_route");

	assert_string_equal(node_test_one("icmp_error", m), "drop");
	assert_string_equal(node_test_reason(m), "ip_no_route"); // the drop node counts it
	assert_int_equal(router_drops(RED0, "ip_no_route"), before);
	rte_pktmbuf_free(m);
}

static struct rte_mbuf *icmp(const struct packet *like, uint8_t type)
{
	struct packet p = *like;
	bool is6 = strchr(p.src, ':') != NULL;
	struct rte_mbuf *m;

	p.proto = is6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
	m = given_up(RED0, &p, ICMP_WHAT_TTL, 0);
	*rte_pktmbuf_mtod_offset(m, uint8_t *, is6 ? 54 : 34) = type;
	return m;
}

static void must_not(void **state)
{
	static const uint8_t errors4[] = {3, 4, 5, 11, 12, 42}, asks4[] = {0, 8, 13, 14};
	struct packet p = v4;
	struct rte_mbuf *m;
	unsigned i;

	for (i = 0; i < RTE_DIM(errors4); i++)
		assert_silent(icmp(&v4, errors4[i]));
	for (i = 0; i < RTE_DIM(asks4); i++) {
		m = icmp(&v4, asks4[i]);
		assert_string_equal(node_test_one("icmp_error", m), "ip4_forward");
		rte_pktmbuf_free(m);
	}
	assert_silent(icmp(&v6, 1));
	assert_silent(icmp(&v6, 127));
	m = icmp(&v6, 128);
	assert_string_equal(node_test_one("icmp_error", m), "ip6_forward");
	rte_pktmbuf_free(m);
	m = given_up(RED0, &v4, ICMP_WHAT_TTL, 0);
	meta(m)->flags = META_ANSWER;
	assert_silent(m);
	p.frag = 100; // not the first one
	assert_silent(given_up(RED0, &p, ICMP_WHAT_TTL, 0));
	p.frag = 0;
	p.src = "255.255.255.255";
	assert_silent(given_up(RED0, &p, ICMP_WHAT_TTL, 0));
	p = v6;
	p.src = "::";
	assert_silent(given_up(RED0, &p, ICMP_WHAT_TTL, 0));
	p.src = "ff02::1";
	assert_silent(given_up(RED0, &p, ICMP_WHAT_TTL, 0));
}

// The source is the gateway of the port, else one of the VRF. The underlay never answers for a tenant.
static void source(void **state)
{
	struct rte_mbuf *m = given_up(RED0, &v4, ICMP_WHAT_TTL, 0);

	m->port = FABRIC0;
	meta(m)->flags = META_FROM_TUNNEL;
	assert_string_equal(node_test_one("icmp_error", m), "ip4_forward");
	rte_pktmbuf_trim(m, (uint16_t)(m->pkt_len - 16));
	assert_bytes(m, "45c0004a 0000 0000 4001 65f1 0a000001");
	rte_pktmbuf_free(m);
	m = given_up(RED0, &v4, ICMP_WHAT_TTL, 0);
	meta(m)->vrf = 77; // without a port
	assert_silent(m);
	m = given_up(RED0, &v6, ICMP_WHAT_TTL, 0);
	meta(m)->vrf = 77;
	assert_silent(m);
	m = given_up(RED0, &v4, ICMP_WHAT_TTL, 0);
	m->port = FABRIC0;
	meta(m)->vrf = VRF_FABRIC; // a label led to a next hop of no VRF
	meta(m)->flags = META_FROM_TUNNEL | META_NEXTHOP;
	assert_silent(m);
}

static void pass_ms(unsigned ms)
{
	clock_stopped += ms * (rte_get_tsc_hz() / 1000);
}

// Sends 200 packets at once. Returns how many are answered.
static unsigned answered(void)
{
	struct rte_mbuf *pkts[200];
	unsigned i, told = 0;

	for (i = 0; i < RTE_DIM(pkts); i++)
		pkts[i] = given_up(RED0, &v4, ICMP_WHAT_TTL, 0);
	assert_int_equal(node_test_run("icmp_error", pkts, RTE_DIM(pkts)), RTE_DIM(pkts));
	for (i = 0; i < RTE_DIM(pkts); i++) {
		told += strcmp(node_test_outs[i].edge, "ip4_forward") == 0;
		rte_pktmbuf_free(node_test_outs[i].m);
	}
	return told;
}

static void rate(void **state)
{
	pass_ms(10000);
	icmp_errors_per_second = 20;
	assert_int_equal(answered(), 2); // one second's worth of a port
	assert_int_equal(answered(), 0);
	pass_ms(501);
	assert_int_equal(answered(), 1);
	icmp_errors_per_second = 0;
	assert_silent(given_up(RED0, &v4, ICMP_WHAT_TTL, 0));
	icmp_errors_per_second = 1000000;
}

// A guest that provokes errors continuously does not use up the budget of another one.
static void each_port_has_its_own_rate(void **state)
{
	unsigned i, red = 0, blue = 0;

	pass_ms(10000);
	icmp_errors_per_second = 20;
	for (i = 0; i < 200; i++) {
		struct rte_mbuf *m = given_up(RED1, &v4, ICMP_WHAT_TTL, 0);

		red += strcmp(node_test_one("icmp_error", m), "ip4_forward") == 0;
		rte_pktmbuf_free(m);
	}
	for (i = 0; i < 2; i++) {
		struct rte_mbuf *m = given_up(BLUE0, &v4, ICMP_WHAT_TTL, 0);

		meta(m)->vrf = BLUE;
		blue += strcmp(node_test_one("icmp_error", m), "ip4_forward") == 0;
		rte_pktmbuf_free(m);
	}
	assert_int_equal(red, 2);
	assert_int_equal(blue, 2);
	icmp_errors_per_second = 1000000;
}

// An error into the tunnel with the longest header fits the buffer.
static void room_for_tunnel(void **state)
{
	uint8_t before[sizeof(struct pkt_meta)];
	struct packet p = v6;
	struct rte_mbuf *m;

	p.src = "fd77::1"; // claims to be behind the tunnel
	p.payload = 1400;
	router_tunnel(FREE_ID, "vxlan", "2001:db8:f::9", 100);
	m = given_up(RED0, &p, ICMP_WHAT_TTL, 0);
	assert_string_equal(node_test_one("icmp_error", m), "ip6_forward");
	meta(m)->nexthop = nexthop_table[FREE_ID];
	memcpy(before, meta(m), sizeof(before)); // lies just below the buffer
	assert_string_equal(node_test_one("encap_vxlan6", m), "port_tx");
	meta(m)->out_port = ((struct pkt_meta *)before)->out_port;
	assert_memory_equal(meta(m), before, sizeof(before));
	assert_true(router_l4_ok(m, 14 + 70));
	rte_pktmbuf_free(m);
}

// --- Resets of TCP. ---

// A segment as a guest sends it, with this many bytes of data.
static struct rte_mbuf *segment(const struct packet *to, uint8_t flags, unsigned data)
{
	struct packet p = *to;
	struct rte_tcp_hdr *tcp;
	struct rte_mbuf *m;

	p.proto = IPPROTO_TCP;
	p.payload = (unsigned)sizeof(*tcp) + data;
	m = given_up(RED0, &p, ICMP_WHAT_RESET, 0);
	tcp = rte_pktmbuf_mtod_offset(m, struct rte_tcp_hdr *, strchr(p.src, ':') ? 54 : 34);
	*tcp = (struct rte_tcp_hdr){.src_port = rte_cpu_to_be_16(1000),
				    .dst_port = rte_cpu_to_be_16(2000),
				    .sent_seq = RTE_BE32(0xfffffff0),
				    .recv_ack = RTE_BE32(0x01020304),
				    .data_off = 5 << 4,
				    .tcp_flags = flags};
	return m;
}

static struct rte_tcp_hdr *segment_tcp(struct rte_mbuf *m, const struct packet *p)
{
	return rte_pktmbuf_mtod_offset(m, struct rte_tcp_hdr *, strchr(p->src, ':') ? 54 : 34);
}

static void assert_reset(struct rte_mbuf *m, const char *edge, const char *bytes)
{
	assert_string_equal(node_test_one("icmp_error", m), edge);
	assert_bytes(m, bytes);
	assert_true(router_l4_ok(m, 0));
	assert_int_equal(meta(m)->flags, META_ANSWER);
	assert_int_equal(meta(m)->l3, 0);
	rte_pktmbuf_free(m);
}

static void resets(void **state)
{
	static const struct {
		uint8_t flags;
		unsigned data;
		const char *tcp; // behind the ports
	} all[] = {
		// RFC 9293 3.10.7.1: what a segment with ACK expects, else the end of what it carries
		{RTE_TCP_SYN_FLAG, 0, "00000000 fffffff1 5014 0000 .... 0000"},
		{RTE_TCP_SYN_FLAG, 40, "00000000 00000019 5014 0000 .... 0000"},
		{RTE_TCP_FIN_FLAG, 1, "00000000 fffffff2 5014 0000 .... 0000"},
		{RTE_TCP_ACK_FLAG, 100, "01020304 00000000 5004 0000 .... 0000"},
		{RTE_TCP_SYN_FLAG | RTE_TCP_ACK_FLAG, 0, "01020304 00000000 5004 0000 .... 0000"},
	};
	uint64_t before = router_drops(RED0, "ip_no_route");
	char text[256];
	unsigned i;

	for (i = 0; i < RTE_DIM(all); i++) {
		snprintf(text, sizeof(text), "45000028 0000 4000 4006 .... 0a090909 0a000002 07d0 03e8 %s", all[i].tcp);
		assert_reset(segment(&v4, all[i].flags, all[i].data), "ip4_forward", text);
		snprintf(text, sizeof(text),
			 "60000000 0014 06 40 fd090000000000000000000000000009 fd000000000000000000000000000002 "
			 "07d0 03e8 %s",
			 all[i].tcp);
		assert_reset(segment(&v6, all[i].flags, all[i].data), "ip6_forward", text);
	}
	assert_int_equal(router_drops(RED0, "ip_no_route"), before + 2 * RTE_DIM(all));
}

static void no_resets(void **state)
{
	const struct packet *of[] = {&v4, &v6};
	struct packet later = v4;
	struct rte_mbuf *m;
	unsigned i;

	for (i = 0; i < 2; i++) {
		assert_silent(segment(of[i], RTE_TCP_RST_FLAG, 0));
		assert_silent(segment(of[i], RTE_TCP_RST_FLAG | RTE_TCP_ACK_FLAG, 0));
		m = segment(of[i], RTE_TCP_SYN_FLAG, 0);
		segment_tcp(m, of[i])->data_off = 4 << 4; // shorter than a header
		assert_silent(m);
		m = segment(of[i], RTE_TCP_SYN_FLAG, 0);
		segment_tcp(m, of[i])->data_off = 6 << 4; // longer than the packet
		assert_silent(m);
		m = segment(of[i], RTE_TCP_SYN_FLAG, 0);
		rte_pktmbuf_trim(m, 1);
		assert_silent(m);
		icmp_errors_per_second = 0;
		assert_silent(segment(of[i], RTE_TCP_SYN_FLAG, 0));
		icmp_errors_per_second = 1000000;
	}
	later.frag = 100;
	assert_silent(segment(&later, RTE_TCP_SYN_FLAG, 0));
	m = segment(&v6, RTE_TCP_SYN_FLAG, 0);
	rte_pktmbuf_mtod_offset(m, struct rte_ipv6_hdr *, 14)->proto = IPPROTO_UDP;
	assert_silent(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types),
		cmocka_unit_test(mtu),
		cmocka_unit_test(quote),
		cmocka_unit_test(segments),
		cmocka_unit_test(must_not),
		cmocka_unit_test(source),
		cmocka_unit_test(rate),
		cmocka_unit_test(each_port_has_its_own_rate),
		cmocka_unit_test(room_for_tunnel),
		cmocka_unit_test(lent_buffer),
		cmocka_unit_test(resets),
		cmocka_unit_test(no_resets),
	};

	return cmocka_run_group_tests(tests, setup, router_teardown);
}
