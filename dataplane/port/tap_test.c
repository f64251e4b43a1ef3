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

#include "port/port_fixture.h"

#define NETNS "portstest"

static struct port_config config(const char *ifname, uint16_t queues)
{
	struct port_config cfg = fixture_config("tap", PORT_TENANT, queues);

	snprintf(cfg.ifname, sizeof(cfg.ifname), "%s", ifname);
	return cfg;
}

// The other side, which receives the frames that the kernel's stack would get.
static int packet_socket(const char *ifname)
{
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET, .sll_protocol = htons(0x88b5), .sll_ifindex = (int)if_nametoindex(ifname)};
	struct timeval tv = {.tv_sec = 2};
	int fd = socket(AF_PACKET, SOCK_RAW, htons(0x88b5));

	assert_true(fd >= 0 && ll.sll_ifindex > 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&ll, sizeof(ll)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	return fd;
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
	struct port *p = fixture_must_open(&cfg);
	static uint8_t big[20000];
	struct port_stats stats;
	struct error err;
	struct rte_mbuf *m, *pkts[BATCH];
	unsigned i, n;
	int fd;

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
	const struct CMUnitTest tests[] = {cmocka_unit_test(both_ways),       cmocka_unit_test(jumbo),
					   cmocka_unit_test(other_namespace), cmocka_unit_test(moved),
					   cmocka_unit_test(deleted),         cmocka_unit_test(refused)};

	fixture_require();
	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
