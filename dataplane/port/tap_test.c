// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <linux/if_ether.h>
#include <rte_cycles.h>
#include <rte_ip.h>
#include <rte_tcp.h>

#include "base/offload.h"
#include "base/system_calls.h"
#include "port/port_fixture.h"
#include "port/vnet.h"

#define NETNS "portstest"

static struct port_config config(const char *ifname, uint16_t queues)
{
	struct port_config cfg = fixture_config("tap", PORT_TENANT, queues);

	snprintf(cfg.ifname, sizeof(cfg.ifname), "%s", ifname);
	return cfg;
}

// The other side, which receives the frames that the kernel's stack would get.
static int packet_socket_of(const char *ifname, uint16_t protocol)
{
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET, .sll_protocol = htons(protocol), .sll_ifindex = (int)if_nametoindex(ifname)};
	struct timeval tv = {.tv_sec = 2};
	int fd = socket(AF_PACKET, SOCK_RAW, htons(protocol));

	assert_true(fd >= 0 && ll.sll_ifindex > 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&ll, sizeof(ll)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	return fd;
}

static int packet_socket(const char *ifname)
{
	return packet_socket_of(ifname, 0x88b5);
}

static void expect_from_port(struct port *p, uint16_t queue, int fd, unsigned len)
{
	struct rte_mbuf *m = fixture_packet(len, 0xa5);
	uint8_t *buf = malloc(len + 64);

	assert_int_equal(p->ops->tx(&p->queues[queue], &m, 1), 1);
	assert_int_equal(recv(fd, buf, len + 64, 0), len);
	assert_int_equal(buf[14], 0xa5);
	assert_int_equal(buf[len - 1], 0xa5);
	free(buf);
}

// Any queue may get it, because the kernel spreads by hash. Drains packets of the stack itself (router solicitations).
static void expect_from_kernel(struct port *p, int fd, unsigned len)
{
	uint8_t *buf = malloc(len), *end;
	struct rte_mbuf *m;
	unsigned i, tries;

	memset(buf, 0x5a, len);
	memset(buf, 0xff, 6);
	buf[6] = 2;
	buf[12] = 0x88;
	buf[13] = 0xb5;
	assert_int_equal(send(fd, buf, len, 0), len);
	for (tries = 0, m = NULL; tries < 1000 && m == NULL; tries++) {
		for (i = 0; i < p->n_queues && m == NULL; i++) {
			if (fixture_receive(p, (uint16_t)i, &m, 1, 1) == 0)
				continue;
			if (rte_pktmbuf_mtod(m, uint8_t *)[12] == 0x88 && rte_pktmbuf_mtod(m, uint8_t *)[13] == 0xb5)
				break;
			rte_pktmbuf_free(m);
			m = NULL;
		}
	}
	assert_non_null(m);
	assert_int_equal(m->pkt_len, len);
	rte_mbuf_sanity_check(m, 1);
	end = rte_pktmbuf_mtod_offset(rte_pktmbuf_lastseg(m), uint8_t *, rte_pktmbuf_lastseg(m)->data_len - 1);
	assert_int_equal(*end, 0x5a);
	rte_pktmbuf_free(m);
	free(buf);
}

static void both_ways(void **state)
{
	struct port_config cfg = config("ports-t0", 2);
	unsigned fds = fixture_fds(), mbufs;
	struct port *p;
	int fd;

	mac_parse("02:00:00:00:77:01", NULL, &cfg.guest_mac, NULL);
	p = fixture_must_open(&cfg);
	mbufs = fixture_mbufs();
	assert_int_equal(p->n_queues, 2);
	assert_true(fixture_wait_link(p, true, 1000));
	assert_int_equal(fixture_run("ip -o link show ports-t0 | grep -q 'mtu 1500.*02:00:00:00:77:01'"), 0);
	fd = packet_socket("ports-t0");
	expect_from_port(p, 0, fd, 60);
	expect_from_port(p, 1, fd, 1514);
	expect_from_kernel(p, fd, 60);
	expect_from_kernel(p, fd, 1514);
	close(fd);
	fixture_close(p);
	assert_int_equal(if_nametoindex("ports-t0"), 0);
	assert_int_equal(fixture_fds(), fds);
	assert_true(fixture_mbufs() <= mbufs);
}

static void jumbo(void **state)
{
	struct port_config cfg = config("ports-t1", 1);
	struct port *p;
	static uint8_t big[20000];
	struct port_stats stats;
	struct error err;
	struct rte_mbuf *m, *pkts[BATCH];
	unsigned i, n;
	int fd;

	cfg.offload = PORT_OFFLOAD_NONE;
	p = fixture_must_open(&cfg);
	memset(big, 0xff, sizeof(big));
	assert_int_equal(p->ops->set_mtu(p, 9000, &err), 0);
	assert_int_equal(fixture_run("ip -o link show ports-t1 | grep -q 'mtu 9000'"), 0);
	fd = packet_socket("ports-t1");
	expect_from_port(p, 0, fd, 9014);
	expect_from_kernel(p, fd, 9014);
	expect_from_kernel(p, fd, 4096);
	for (i = 0; i < 20; i++) // a poll ends after 64 KiB
		assert_int_equal(send(fd, big, 9014, 0), 9014);
	for (i = 0; i < 20; i += n) {
		n = p->ops->rx(&p->queues[0], pkts, BATCH);
		assert_in_range(n, 0, 8);
		rte_pktmbuf_free_bulk(pkts, n);
	}
	// The guest raises its own MTU: longer frames are counted, not delivered.
	assert_int_equal(fixture_run("ip link set ports-t1 mtu 30000"), 0);
	assert_int_equal(send(fd, big, sizeof(big), 0), sizeof(big));
	while (fixture_receive(p, 0, &m, 1, 20) == 1) {
		assert_true(m->pkt_len <= 9022);
		rte_pktmbuf_free(m);
	}
	p->ops->stats(p, &stats);
	assert_int_equal(stats.rx_missed, 1);
	assert_int_equal(p->ops->set_mtu(p, 10, &err), -EINVAL);
	assert_string_equal(err.field, "port.mtu");
	close(fd);
	fixture_close(p);
}

#define PAYLOAD 6000
#define SIZE 1400

struct large { // what a socket with PACKET_VNET_HDR sends and receives
	struct virtio_net_hdr h;
	struct rte_ether_hdr eth;
	struct rte_ipv4_hdr ip;
	struct rte_tcp_hdr tcp;
	uint8_t payload[PAYLOAD];
} __attribute__((packed));

static struct large large_segment(void)
{
	struct large l = {.h = {VIRTIO_NET_HDR_F_NEEDS_CSUM, VIRTIO_NET_HDR_GSO_TCPV4, 54, SIZE, 34, 16},
			  .eth = {.dst_addr.addr_bytes = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
				  .src_addr.addr_bytes = {2},
				  .ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4)},
			  .ip = {.version_ihl = 0x45,
				 .total_length = RTE_BE16(40 + PAYLOAD),
				 .time_to_live = 64,
				 .next_proto_id = IPPROTO_TCP,
				 .src_addr = RTE_BE32(0x0a000001),
				 .dst_addr = RTE_BE32(0x0a000002)},
			  .tcp = {.src_port = 1, .dst_port = 2, .data_off = 0x50, .tcp_flags = RTE_TCP_ACK_FLAG}};

	memset(l.payload, 0x77, sizeof(l.payload));
	l.ip.hdr_checksum = rte_ipv4_cksum(&l.ip);
	l.tcp.cksum = rte_ipv4_phdr_cksum(&l.ip, 0);
	return l;
}

static int large_socket(const char *ifname)
{
	int fd = packet_socket_of(ifname, ETH_P_IP), on = 1;

	assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)), 0);
	return fd;
}

static struct rte_mbuf *receive_ip(struct port *p)
{
	struct rte_mbuf *m;

	while (fixture_receive(p, 0, &m, 1, 1000) == 1) {
		if (rte_pktmbuf_mtod(m, const struct rte_ether_hdr *)->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4))
			return m;
		rte_pktmbuf_free(m);
	}
	return NULL;
}

// A large segment passes whole in both directions, and the checksum's field holds the sum of the pseudo header.
static void large_segments(void **state)
{
	struct port_config cfg = config("ports-t7", 1);
	struct port *p = fixture_must_open(&cfg);
	struct large l = large_segment(), got;
	struct rte_mbuf *m;
	int fd;

	assert_int_equal(p->takes & PORT_TAKES_TCP4, PORT_TAKES_TCP4);
	assert_true(fixture_wait_link(p, true, 1000));
	fd = large_socket("ports-t7");
	assert_int_equal(send(fd, &l, sizeof(l), 0), sizeof(l));
	m = receive_ip(p);
	assert_non_null(m);
	rte_mbuf_sanity_check(m, 1);
	assert_int_equal(m->pkt_len, sizeof(l) - sizeof(l.h));
	assert_int_equal(m->ol_flags, RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_TCP_CKSUM | RTE_MBUF_F_TX_IPV4);
	assert_int_equal(m->tso_segsz, SIZE);
	assert_int_equal(p->ops->tx(&p->queues[0], &m, 1), 1);
	assert_int_equal(recv(fd, &got, sizeof(got), 0), sizeof(got));
	assert_int_equal(got.h.gso_size, SIZE);
	assert_memory_equal(&got.eth, &l.eth, sizeof(l) - sizeof(l.h));
	// What its header says is a lie: the frame is dropped with a reason.
	l.h.gso_size = 1; // 6,000 packets
	fixture_refused = NULL;
	if (send(fd, &l, sizeof(l), 0) == sizeof(l)) { // the kernel may refuse it first
		assert_null(receive_ip(p));
		assert_string_equal(fixture_refused->name, "offload_pieces");
	}
	close(fd);
	fixture_close(p);
}

// With --offload none the kernel cuts the segment and computes the checksums; with checksum it only cuts.
static void offered(void **state)
{
	static const enum port_offload offload[] = {PORT_OFFLOAD_NONE, PORT_OFFLOAD_CHECKSUM};
	struct port_config cfg = config("ports-t8", 1);
	struct large l = large_segment();
	struct rte_mbuf *m;
	struct port *p;
	unsigned i, k;
	int fd;

	for (i = 0; i < RTE_DIM(offload); i++) {
		cfg.offload = offload[i];
		p = fixture_must_open(&cfg);
		assert_int_equal(p->takes, i == 0 ? 0 : PORT_TAKES_CHECKSUM);
		assert_true(fixture_wait_link(p, true, 1000));
		fd = large_socket("ports-t8");
		assert_int_equal(send(fd, &l, sizeof(l), 0), sizeof(l));
		for (k = 0; k < 5; k++) {
			m = receive_ip(p);
			assert_non_null(m);
			assert_int_equal(m->pkt_len, k < 4 ? 54 + SIZE : 54 + PAYLOAD - 4 * SIZE);
			assert_false(offload_is_large(m));
			if (!offload_is_unfinished(m))
				assert_int_equal(rte_ipv4_udptcp_cksum_verify(rte_pktmbuf_mtod_offset(m, void *, 14),
									      rte_pktmbuf_mtod_offset(m, void *, 34)),
						 0);
			assert_true(i == 1 || !offload_is_unfinished(m));
			rte_pktmbuf_free(m);
		}
		close(fd);
		fixture_close(p);
	}
}

static void other_namespace(void **state)
{
	struct port_config cfg = config("ports-t2", 1);
	struct port *p;

	fixture_run("ip netns del " NETNS " 2>/dev/null; ip netns add " NETNS);
	snprintf(cfg.netns, sizeof(cfg.netns), NETNS);
	p = fixture_must_open(&cfg);
	assert_int_equal(if_nametoindex("ports-t2"), 0);
	assert_int_equal(fixture_run("ip -n " NETNS " link show ports-t2 >/dev/null"), 0);
	assert_true(fixture_wait_link(p, true, 1000));
	// The guest's side goes down, then up with another name.
	fixture_run("ip -n " NETNS " link set ports-t2 down");
	assert_true(fixture_wait_link(p, false, 1000));
	fixture_run("ip -n " NETNS " link set ports-t2 name guest0 up");
	assert_true(fixture_wait_link(p, true, 1000));
	fixture_close(p);
	assert_int_not_equal(fixture_run("ip -n " NETNS " link show guest0 2>/dev/null"), 0);
	fixture_run("ip netns del " NETNS);
}

static void moved(void **state)
{
	struct port_config cfg = config("ports-t4", 1);
	struct port *p = fixture_must_open(&cfg);
	struct error err;

	fixture_run("ip netns del " NETNS " 2>/dev/null; ip netns add " NETNS "; ip link set ports-t4 netns " NETNS);
	assert_true(fixture_wait_link(p, false, 1000)); // an interface that is moved goes down
	fixture_run("ip -n " NETNS " link set ports-t4 up");
	assert_true(fixture_wait_link(p, true, 1000));
	assert_int_equal(p->ops->set_mtu(p, 1400, &err), 0);
	assert_int_equal(fixture_run("ip -n " NETNS " -o link show ports-t4 | grep -q 'mtu 1400'"), 0);
	fixture_run("ip netns del " NETNS); // deletes its interfaces, too
	assert_true(fixture_wait_link(p, false, 3000));
	fixture_close(p);
}

static void deleted(void **state)
{
	struct port_config cfg = config("ports-t5", 2);
	struct port *p = fixture_must_open(&cfg);
	struct rte_mbuf *m = fixture_packet(60, 0);
	struct error err;

	assert_true(fixture_wait_link(p, true, 1000));
	fixture_poll(p, true);
	assert_int_equal(fixture_run("ip link del ports-t5"), 0);
	assert_true(fixture_wait_link(p, false, 1000));
	assert_true(p->last_error[0] != '\0');
	fixture_poll(NULL, false);
	assert_int_equal(p->ops->tx(&p->queues[0], &m, 1), 0);
	rte_pktmbuf_free(m);
	assert_int_equal(p->ops->set_mtu(p, 1400, &err), -ENODEV);
	fixture_close(p);
}

#define IDLE_TAPS 12
#define IDLE_READS 1000

static void idle_poll_all(struct port **ports)
{
	struct rte_mbuf *m;
	unsigned i;

	for (i = 0; i < IDLE_TAPS; i++)
		if (ports[i]->ops->rx(&ports[i]->queues[0], &m, 1) == 1)
			rte_pktmbuf_free(m);
}

// However many idle queues a worker polls, they take a part of its time: one empty read in 8 us.
static void idle_taps_take_turns(void **state)
{
	uint64_t begin, us = rte_get_tsc_hz() / 1000000, calls;
	struct port *ports[IDLE_TAPS];
	struct port_config cfg;
	char name[16];
	unsigned i;

	for (i = 0; i < IDLE_TAPS; i++) {
		snprintf(name, sizeof(name), "ports-i%u", i);
		cfg = config(name, 1);
		snprintf(cfg.name, sizeof(cfg.name), "idle%u", i);
		ports[i] = fixture_must_open(&cfg);
	}
	for (begin = rte_rdtsc(); rte_rdtsc() - begin < 20000 * us;) // the kernel greets a new interface's link
		idle_poll_all(ports);
	begin = rte_rdtsc();
	for (calls = system_calls; system_calls - calls < IDLE_READS;)
		idle_poll_all(ports);
	assert_true(rte_rdtsc() - begin > 6 * us * IDLE_READS);
	for (i = 0; i < IDLE_TAPS; i++)
		fixture_close(ports[i]);
}

static void refused(void **state)
{
	struct port_config cfg = config("lo", 1);
	unsigned fds;
	struct error err = {};
	struct port *p;

	fixture_close(
		fixture_must_open(&(struct port_config){.name = "ports-t6", .kind = "tap", .queues = 1, .mtu = 1500}));
	fds = fixture_fds();
	assert_null(fixture_open(&cfg, &err));
	assert_string_equal(err.field, "tap.ifname");
	assert_int_equal(err.code, EEXIST);
	cfg = config("ports-t6", 1);
	p = fixture_must_open(&cfg);
	assert_null(fixture_open(&cfg, &err)); // another port's tap, even one with several queues
	assert_int_equal(err.code, EEXIST);
	fixture_close(p);
	cfg = config("", 1);
	snprintf(cfg.name, sizeof(cfg.name), "name-of-sixteen-");
	assert_null(fixture_open(&cfg, &err));
	assert_string_equal(err.field, "tap.ifname");
	cfg = config("a%d", 1);
	assert_null(fixture_open(&cfg, &err));
	assert_string_equal(err.field, "tap.ifname");
	cfg = config("ports-t6", 1);
	snprintf(cfg.netns, sizeof(cfg.netns), "no-such-netns");
	assert_null(fixture_open(&cfg, &err));
	assert_string_equal(err.field, "tap.netns");
	snprintf(cfg.netns, sizeof(cfg.netns), "/etc/passwd");
	assert_null(fixture_open(&cfg, &err));
	assert_string_equal(err.field, "tap.netns");
	assert_int_equal(fixture_fds(), fds);
	assert_int_equal(if_nametoindex("ports-t6"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ways),      cmocka_unit_test(jumbo),   cmocka_unit_test(other_namespace),
		cmocka_unit_test(moved),          cmocka_unit_test(deleted), cmocka_unit_test(refused),
		cmocka_unit_test(large_segments), cmocka_unit_test(offered), cmocka_unit_test(idle_taps_take_turns)};

	fixture_require();
	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
