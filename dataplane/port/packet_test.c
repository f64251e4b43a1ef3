// SPDX-License-Identifier: Apache-2.0
// Two packet sockets at the ends of a veth pair, which carries large datagrams, or cuts them.
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_cycles.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "base/eth.h"
#include "base/system_calls.h"
#include "offload/checksum.h"
#include "port/port_fixture.h"

#define MOST 200 // packets of a case
#define WAIT_MS 60000

static struct port *ends[2];

static struct port_config config(const char *devargs, uint16_t queues)
{
	struct port_config cfg = fixture_config("dpdk", PORT_FABRIC, queues);

	snprintf(cfg.devargs, sizeof(cfg.devargs), "%s", devargs);
	cfg.mtu = 1600;
	return cfg;
}

static void open_ends(uint16_t queues)
{
	struct port_config a = config("net_af_packet0,iface=ps0,vnet=1", queues),
			   b = config("net_af_packet0,iface=ps1,vnet=1", queues);

	assert_int_equal(fixture_run("ip link add ps0 type veth peer name ps1"), 0);
	// The kernel's own router solicitations would come between.
	fixture_run("echo 1 | tee /proc/sys/net/ipv6/conf/ps[01]/disable_ipv6 >/dev/null");
	ends[0] = fixture_must_open(&a);
	ends[1] = fixture_must_open(&b);
	assert_true(fixture_wait_link(ends[0], true, WAIT_MS) && fixture_wait_link(ends[1], true, WAIT_MS));
}

static void close_ends(void)
{
	fixture_close(ends[0]);
	fixture_close(ends[1]);
	fixture_run("ip link del ps0");
}

// The segmentation of the sending end; without it the kernel cuts before the packets cross.
static void segmentation(bool on)
{
	assert_int_equal(fixture_run("ethtool -K ps0 tx-udp-segmentation %s tx-generic-segmentation %s >/dev/null",
				     on ? "on" : "off", on ? "on" : "off"),
			 0);
}

struct datagram {
	bool v6, checksum;
	uint16_t port, size; // destination port; bytes of the payload
	uint16_t flags;      // of the IPv4 header
	uint8_t tos;
};

static void finish(struct rte_mbuf *m, const struct datagram *d)
{
	struct rte_ipv4_hdr *ip4 = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, 14);
	struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(m, struct rte_udp_hdr *, d->v6 ? 54 : 34);
	unsigned len = m->pkt_len - (d->v6 ? 54 : 34);

	if (!d->v6)
		ip4_checksum_set(ip4);
	udp->dgram_cksum = 0;
	if (d->checksum)
		checksum_write(udp, false,
			       checksum_pseudo(ip4, d->v6, IPPROTO_UDP, len) + checksum_data(m, d->v6 ? 54 : 34, len));
}

static struct rte_mbuf *make(const struct datagram *d, uint8_t fill)
{
	unsigned l4 = d->v6 ? 54 : 34;
	struct rte_mbuf *m = fixture_packet(l4 + 8 + d->size, fill);
	uint8_t *data = rte_pktmbuf_mtod(m, uint8_t *);
	struct rte_ipv4_hdr *ip4 = (struct rte_ipv4_hdr *)(data + 14);
	struct rte_ipv6_hdr *ip6 = (struct rte_ipv6_hdr *)ip4;
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(data + l4);

	memset(data + 14, 0, l4 - 14);
	*(unaligned_uint16_t *)(data + 12) = d->v6 ? RTE_BE16(RTE_ETHER_TYPE_IPV6) : RTE_BE16(RTE_ETHER_TYPE_IPV4);
	if (d->v6) {
		*ip6 = (struct rte_ipv6_hdr){.vtc_flow = rte_cpu_to_be_32(6u << 28 | (uint32_t)d->tos << 20 | 0x12345),
					     .payload_len = rte_cpu_to_be_16((uint16_t)(8 + d->size)),
					     .proto = IPPROTO_UDP,
					     .hop_limits = 60};
		ip6->src_addr[15] = 1;
		ip6->dst_addr[15] = 2;
	} else {
		*ip4 = (struct rte_ipv4_hdr){.version_ihl = 0x45,
					     .type_of_service = d->tos,
					     .total_length = rte_cpu_to_be_16((uint16_t)(28 + d->size)),
					     .fragment_offset = rte_cpu_to_be_16(d->flags),
					     .time_to_live = 60,
					     .next_proto_id = IPPROTO_UDP,
					     .src_addr = RTE_BE32(0xc0000201),
					     .dst_addr = RTE_BE32(0xc0000202)};
	}
	*udp = (struct rte_udp_hdr){.src_port = RTE_BE16(50000),
				    .dst_port = rte_cpu_to_be_16(d->port),
				    .dgram_len = rte_cpu_to_be_16((uint16_t)(8 + d->size))};
	finish(m, d);
	return m;
}

static unsigned receive(struct port *p, struct rte_mbuf **pkts, unsigned n)
{
	uint64_t end = rte_rdtsc() + rte_get_tsc_hz() / 1000 * WAIT_MS;
	unsigned got = 0;
	uint16_t i;

	while (got < n && rte_rdtsc() < end)
		for (i = 0; i < p->n_queues && got < n; i++)
			got += p->ops->rx(&p->queues[i], pkts + got, (uint16_t)(n - got));
	return got;
}

static void expect_datagram(const struct rte_mbuf *m, const struct rte_mbuf *sent, const struct datagram *d)
{
	unsigned l4 = d->v6 ? 54 : 34, i;
	const uint8_t *x = rte_pktmbuf_mtod(m, const uint8_t *), *y = rte_pktmbuf_mtod(sent, const uint8_t *);
	const struct rte_ipv4_hdr *ip4 = (const struct rte_ipv4_hdr *)(x + 14);
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(x + l4);

	rte_mbuf_sanity_check(m, 1);
	assert_int_equal(m->pkt_len, sent->pkt_len);
	for (i = 0; i < m->pkt_len; i++) // apart from the IPv4 id, and from checksums
		if (x[i] != y[i] && (d->v6 || (i / 2 != 9 && i / 2 != 12)) && i / 2 != (l4 + 6) / 2)
			fail_msg("byte %u of %u: %#x, not %#x", i, m->pkt_len, x[i], y[i]);
	assert_true(d->v6 || ip_fold(ip_sum(ip4, sizeof(*ip4))) == 0xffff);
	assert_false(offload_is_unfinished(m) || offload_is_large(m));
	if (udp->dgram_cksum != 0 || d->v6)
		assert_int_equal(ip_fold(checksum_pseudo(ip4, d->v6, IPPROTO_UDP, m->pkt_len - l4) +
					 checksum_data(m, l4, m->pkt_len - l4)),
				 0xffff);
}

// Sends one burst and expects it. Returns the system calls of the sender.
static unsigned expect_burst(const struct datagram *d, unsigned n)
{
	struct rte_mbuf *pkts[MOST], *sent[MOST], *got[MOST];
	uint64_t before;
	unsigned i;

	for (i = 0; i < n; i++) {
		pkts[i] = make(&d[i], (uint8_t)i);
		sent[i] = rte_pktmbuf_copy(pkts[i], pkts[i]->pool, 0, UINT32_MAX);
	}
	before = system_calls;
	assert_int_equal(ends[0]->ops->tx(&ends[0]->queues[0], pkts, (uint16_t)n), n);
	before = system_calls - before;
	assert_int_equal(receive(ends[1], got, n), n);
	for (i = 0; i < n; i++) {
		expect_datagram(got[i], sent[i], &d[i]);
		rte_pktmbuf_free(got[i]);
		rte_pktmbuf_free(sent[i]);
	}
	return (unsigned)before;
}

static void tunnel(bool v6, bool checksum)
{
	struct datagram d[100];
	unsigned i;

	for (i = 0; i < RTE_DIM(d); i++)
		d[i] = (struct datagram){v6, checksum, 4789, i % 45 == 44 ? 300 : 1500, RTE_IPV4_HDR_DF_FLAG, 2};
	assert_int_equal(expect_burst(d, RTE_DIM(d)), 1); // three large datagrams in one call
}

static void tunnels(void **state)
{
	open_ends(1);
	tunnel(false, false);
	tunnel(false, true);
	tunnel(true, true);
	segmentation(false);
	tunnel(false, false);
	tunnel(false, true);
	tunnel(true, true);
	close_ends();
}

// One thing differs in the middle of a burst: what comes behind it must not be put in front.
static void apart(void **state)
{
	const struct datagram same = {false, false, 4789, 1000, RTE_IPV4_HDR_DF_FLAG, 0};
	struct datagram d[9];
	unsigned i, k;

	open_ends(1);
	for (k = 0; k < 6; k++) {
		for (i = 0; i < RTE_DIM(d); i++)
			d[i] = same;
		d[4].port = k == 0 ? 6081 : same.port;
		d[4].size = k == 1 ? 1001 : k == 2 ? 999 : same.size;
		d[4].flags = k == 3 ? 0 : same.flags;
		d[4].tos = k == 4 ? 1 : 0;
		if (k == 5)
			d[4] = (struct datagram){true, true, 4789, 1000, 0, 0};
		expect_burst(d, RTE_DIM(d));
	}
	close_ends();
}

// A datagram that was damaged before stays damaged: its checksum is not made right.
static void damaged(void **state)
{
	const struct datagram d = {true, true, 4789, 1200, 0, 0};
	struct rte_mbuf *pkts[3], *got[3];
	uint16_t sums[3];
	unsigned i;

	open_ends(1);
	for (i = 0; i < 3; i++) {
		pkts[i] = make(&d, (uint8_t)i);
		*rte_pktmbuf_mtod_offset(pkts[i], uint8_t *, 700) ^= i == 1;
		sums[i] = rte_pktmbuf_mtod_offset(pkts[i], struct rte_udp_hdr *, 54)->dgram_cksum;
	}
	assert_int_equal(ends[0]->ops->tx(&ends[0]->queues[0], pkts, 3), 3);
	assert_int_equal(receive(ends[1], got, 3), 3);
	for (i = 0; i < 3; i++) {
		assert_int_equal(rte_pktmbuf_mtod_offset(got[i], struct rte_udp_hdr *, 54)->dgram_cksum, sums[i]);
		assert_int_equal(got[i]->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK, 0);
		rte_pktmbuf_free(got[i]);
	}
	close_ends();
}

static void expect_frame(const struct port *from, struct port *to, unsigned len, rte_be32_t tag)
{
	struct rte_mbuf *m = fixture_packet(len, 0x77), *got;

	if (tag != 0)
		memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, 12), &tag, 4);
	assert_int_equal(from->ops->tx((struct port_queue *)(uintptr_t)&from->queues[0], &m, 1), 1);
	assert_int_equal(receive(to, &got, 1), 1);
	assert_int_equal(got->pkt_len, len);
	if (tag != 0)
		assert_memory_equal(rte_pktmbuf_mtod_offset(got, uint8_t *, 12), &tag, 4);
	assert_int_equal(
		*rte_pktmbuf_mtod_offset(rte_pktmbuf_lastseg(got), uint8_t *, rte_pktmbuf_lastseg(got)->data_len - 1),
		0x77);
	rte_mbuf_sanity_check(got, 1);
	rte_pktmbuf_free(got);
}

static void frames(void **state)
{
	struct error err = {};

	open_ends(2);
	expect_frame(ends[0], ends[1], 60, 0);
	expect_frame(ends[1], ends[0], 1614, 0);
	expect_frame(ends[0], ends[1], 100, RTE_BE32(0x81000123)); // the kernel takes the tag off
	expect_frame(ends[0], ends[1], 100, RTE_BE32(0x88a80fff));
	assert_int_equal(ends[0]->ops->set_mtu(ends[0], 9000, &err), 0);
	assert_int_equal(ends[1]->ops->set_mtu(ends[1], 9000, &err), 0);
	expect_frame(ends[0], ends[1], 9014, 0); // more than a buffer, and it leaves the socket's own memory
	expect_frame(ends[0], ends[1], 9014, 0);
	fixture_run("ip link set ps1 down");
	assert_true(fixture_wait_link(ends[0], false, WAIT_MS));
	fixture_run("ip link set ps1 up");
	assert_true(fixture_wait_link(ends[0], true, WAIT_MS));
	expect_frame(ends[0], ends[1], 60, 0);
	fixture_close(ends[0]);
	assert_int_equal(fixture_run("ip -o link show ps0 | grep -v -w UP | grep -q 'mtu 1500'"), 0); // restored
	fixture_close(ends[1]);
	fixture_run("ip link del ps0");
}

// The interface gets another name, and another interface gets its name, whose state and MTU are none of the port's.
static void renamed(void **state)
{
	struct rte_mbuf *m = fixture_packet(60, 1);
	struct error err = {};

	open_ends(1);
	fixture_run(
		"ip link set ps0 down && ip link set ps0 name ps2 && ip link add ps0 mtu 1400 type veth peer name ps3");
	assert_true(fixture_wait_link(ends[0], false, WAIT_MS));
	fixture_run("ip link set ps2 up");
	assert_true(fixture_wait_link(ends[0], true, WAIT_MS));
	assert_int_equal(ends[0]->ops->tx(&ends[0]->queues[0], &m, 1),
			 0); // it is told once that the interface was down
	rte_pktmbuf_free(m);
	expect_frame(ends[0], ends[1], 60, 0);
	assert_int_equal(ends[0]->ops->set_mtu(ends[0], 9000, &err), 0);
	assert_int_equal(fixture_run("ip -o link show ps2 | grep -q 'mtu 9000'"), 0);
	fixture_close(ends[0]);
	assert_int_equal(fixture_run("ip -o link show ps2 | grep -q 'mtu 1500'"), 0);
	assert_int_equal(fixture_run("ip -o link show ps0 | grep -q 'mtu 1400'"), 0);
	fixture_close(ends[1]);
	fixture_run("ip link del ps0; ip link del ps2");
}

static void wakes(void **state)
{
	struct rte_mbuf *m = fixture_packet(60, 1), *got;
	struct port_queue *q;
	struct pollfd p;

	open_ends(1);
	q = &ends[1]->queues[0];
	assert_true(port_queue_wakes(q));
	p = (struct pollfd){.fd = ends[1]->ops->arm(q), .events = POLLIN};
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(ends[0]->ops->tx(&ends[0]->queues[0], &m, 1), 1);
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(ends[1]->ops->disarm(q, true), 0);
	assert_int_equal(receive(ends[1], &got, 1), 1);
	rte_pktmbuf_free(got);
	close_ends();
}

static void refused(void **state)
{
	static const char *const bad[] = {"net_af_packet0,vnet=1", "net_af_packet0,iface=nosuch0,vnet=1",
					  "net_af_packet0,iface=lo,vnet=1,framesz=4096",
					  "net_af_packet0,iface=lo,vnet=2",
					  "net_af_packet0,iface=a-name-that-is-too-long,vnet=1"};
	unsigned fds = fixture_fds(), mbufs = fixture_mbufs(), i;
	struct port_config cfg;
	struct error err;

	for (i = 0; i < RTE_DIM(bad); i++) {
		cfg = config(bad[i], 1);
		err = (struct error){};
		assert_null(fixture_open(&cfg, &err));
		assert_string_equal(err.field, "dpdk.devargs");
	}
	assert_int_equal(fixture_fds(), fds);
	assert_int_equal(fixture_mbufs(), mbufs);
}

static void nothing_is_left(void **state)
{
	unsigned fds, mbufs, i;

	open_ends(2);
	close_ends();
	fds = fixture_fds();
	mbufs = fixture_mbufs();
	for (i = 0; i < 5; i++) {
		struct rte_mbuf *m[20];
		const struct datagram d = {false, false, 4789, 1400, RTE_IPV4_HDR_DF_FLAG, 0};
		unsigned k;

		open_ends(2);
		for (k = 0; k < RTE_DIM(m); k++)
			m[k] = make(&d, 1);
		assert_int_equal(ends[0]->ops->tx(&ends[0]->queues[0], m, RTE_DIM(m)), RTE_DIM(m));
		assert_int_equal(receive(ends[1], m, 3), 3); // the others are held when the port is closed
		rte_pktmbuf_free_bulk(m, 3);
		close_ends();
	}
	assert_int_equal(fixture_fds(), fds);
	assert_int_equal(fixture_mbufs(), mbufs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(tunnels), cmocka_unit_test(apart),
					   cmocka_unit_test(damaged), cmocka_unit_test(frames),
					   cmocka_unit_test(renamed), cmocka_unit_test(wakes),
					   cmocka_unit_test(refused), cmocka_unit_test(nothing_is_left)};

	fixture_require();
	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
