// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_ethdev.h>

#include "port/dpdk.h"
#include "port/port_fixture.h"

// libxdp leaks 80 bytes of each umem; leak checkers call this to learn what to ignore.
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:xsk_umem__create\n";
}

static struct port_config config(const char *devargs, uint16_t queues)
{
	struct port_config cfg = fixture_config("dpdk", PORT_FABRIC, queues);

	snprintf(cfg.devargs, sizeof(cfg.devargs), "%s", devargs);
	return cfg;
}

// Sends one packet to a port and expects it from another one (or the same). Skips packets of the kernel itself.
static void expect_through(struct port *from, struct port *to, unsigned len)
{
	struct rte_mbuf *m = fixture_packet(len, 0x77);
	unsigned tries, i;

	assert_int_equal(from->ops->tx(&from->queues[0], &m, 1), 1);
	for (tries = 0, m = NULL; tries < 500 && m == NULL; tries++) {
		for (i = 0; i < to->n_queues && m == NULL; i++) {
			if (fixture_receive(to, (uint16_t)i, &m, 1, 1) == 0 ||
			    rte_pktmbuf_mtod(m, uint8_t *)[13] == 0xb5)
				continue;
			rte_pktmbuf_free(m);
			m = NULL;
		}
	}
	if (m == NULL)
		fail_msg("a packet of %u bytes from %s has not arrived at %s", len, from->cfg.devargs, to->cfg.devargs);
	assert_int_equal(m->pkt_len, len);
	assert_int_equal(
		*rte_pktmbuf_mtod_offset(rte_pktmbuf_lastseg(m), uint8_t *, rte_pktmbuf_lastseg(m)->data_len - 1),
		0x77);
	rte_mbuf_sanity_check(m, 1);
	rte_pktmbuf_free(m);
}

static void null(void **state)
{
	struct port_config cfg = config("net_null0,size=64", 2);
	unsigned fds = fixture_fds(), devices = rte_eth_dev_count_total(), n;
	struct rte_mbuf *pkts[32];
	struct port *p = fixture_must_open(&cfg);

	assert_true(p->n_queues >= 1 && p->n_queues <= 2);
	assert_string_equal(p->driver, "net_null");
	assert_true(fixture_wait_link(p, true, 2000));
	n = fixture_receive(p, 0, pkts, 32, 100);
	assert_int_equal(n, 32);
	assert_int_equal(p->ops->tx(&p->queues[0], pkts, 32), 32);
	fixture_close(p);
	assert_int_equal(rte_eth_dev_count_total(), devices);
	assert_true(fixture_fds() <= fds + 1); // DPDK keeps one descriptor
}

static void ring(void **state)
{
	struct port_config cfg = config("net_ring0", 4);
	struct port *p = fixture_must_open(&cfg);

	assert_int_equal(p->n_queues, 4);
	expect_through(p, p, 60);
	expect_through(p, p, 9000); // a chain
	fixture_close(p);
	p = fixture_must_open(&cfg); // a second time
	expect_through(p, p, 60);
	fixture_close(p);
}

static void pcap(void **state)
{
	char path[] = "/tmp/corelane-port-XXXXXX";
	struct port_config cfg = config("", 1);
	struct rte_mbuf *m = fixture_packet(100, 1);
	struct port *p;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	snprintf(cfg.devargs, sizeof(cfg.devargs), "net_pcap0,rx_iface=lo,tx_pcap=%s", path);
	p = fixture_must_open(&cfg);
	assert_int_equal(p->ops->tx(&p->queues[0], &m, 1), 1);
	fixture_close(p);
	snprintf(cfg.devargs, sizeof(cfg.devargs), "net_pcap1,rx_pcap=%s", path);
	p = fixture_must_open(&cfg);
	assert_int_equal(fixture_receive(p, 0, &m, 1, 200), 1);
	assert_int_equal(m->pkt_len, 100);
	rte_pktmbuf_free(m);
	fixture_close(p);
	unlink(path);
}

static void add_veth(const char *a, const char *b)
{
	assert_int_equal(fixture_run("ip link add %s type veth peer name %s", a, b), 0);
}

static void af_packet(void **state)
{
	struct port_config cfg_a = config("net_af_packet0,iface=pv0", 2),
			   cfg_b = config("net_af_packet1,iface=pv1,blocksz=65536", 1);
	struct port_stats stats;
	struct port *a, *b;
	struct error err;

	add_veth("pv0", "pv1");
	cfg_a.mtu = cfg_b.mtu = 1600; // an underlay for tunnels, without larger buffers
	a = fixture_must_open(&cfg_a);
	b = fixture_must_open(&cfg_b);
	assert_int_equal(a->n_queues, 2); // qpairs= was added
	assert_true(fixture_wait_link(a, true, 3000));
	assert_int_equal(fixture_run("ip -o link show pv0 | grep -q 'mtu 1600'"), 0);
	expect_through(a, b, 60);
	expect_through(b, a, 1614);
	assert_int_equal(a->ops->set_mtu(a, 1500, &err), 0);
	assert_int_equal(a->ops->set_mtu(a, 9000, &err), -EINVAL); // beyond the ring's frames
	assert_string_equal(err.field, "port.mtu");
	a->ops->stats(a, &stats);
	assert_int_equal(stats.tx_errors, 0);
	fixture_run("ip link set pv1 down");
	assert_true(fixture_wait_link(a, false, 3000));
	fixture_close(a);
	fixture_close(b);
	assert_int_equal(fixture_run("ip -o link show pv0 | grep -v -w UP | grep -q 'mtu 1500'"), 0); // restored
	fixture_run("ip link del pv0");
}

static void own_mac(void **state)
{
	struct port_config cfg = config("net_af_packet2,iface=pv2", 1);
	struct port *p;
	char mac[18];

	add_veth("pv2", "pv3");
	p = fixture_must_open(&cfg);
	mac_format(&p->mac, mac);
	assert_int_equal(fixture_run("ip -o link show pv2 | grep -q %s", mac), 0);
	fixture_close(p);
	mac_parse("02:00:00:00:12:34", NULL, &cfg.mac, NULL);
	p = fixture_must_open(&cfg);
	assert_int_equal(fixture_run("ip -o link show pv2 | grep -q 02:00:00:00:12:34"), 0);
	fixture_close(p);
	cfg = config("net_af_packet2,iface=pv2", 1);
	cfg.role = PORT_TENANT; // receives whatever the guest sends
	p = fixture_must_open(&cfg);
	assert_int_equal(rte_eth_promiscuous_get(0), 1);
	fixture_close(p);
	fixture_run("ip link del pv2");
}

static void tap(void **state)
{
	struct port_config cfg = config("net_tap0,iface=ptap0", 1);
	struct error err = {};
	struct port *p = fixture_open(&cfg, &err);

	if (p == NULL) { // net_tap needs features that some kernels lack
		print_message("net_tap is refused here: %s\n", err.message);
		assert_string_equal(err.field, "dpdk.devargs");
		skip();
	}
	assert_int_equal(fixture_run("ip link show ptap0 >/dev/null"), 0);
	fixture_close(p);
	assert_int_not_equal(fixture_run("ip link show ptap0 2>/dev/null"), 0);
}

static void af_xdp(void **state)
{
	struct port_config cfg_a = config("net_af_xdp0,iface=px0", 1), cfg_b = config("net_af_packet3,iface=px1", 1);
	struct error err = {};
	struct port *a, *b;

	add_veth("px0", "px1");
	a = fixture_open(&cfg_a, &err);
	if (a == NULL) {
		fixture_run("ip link del px0");
		print_message("net_af_xdp is refused here: %s\n", err.message);
		assert_string_equal(err.field, "dpdk.devargs");
		skip();
	}
	b = fixture_must_open(&cfg_b);
	assert_true(fixture_wait_link(b, true, 3000));
	expect_through(b, a, 200);
	expect_through(a, b, 200);
	fixture_close(b);
	fixture_close(a);
	fixture_run("ip link del px0");
}

static void refused(void **state)
{
	static const char *const bad[] = {"",
					  "nonsense",
					  "0000:ff:1f.7",
					  "net_null0 ",
					  "net_nosuch0",
					  "net_af_packet0",
					  "net_af_packet0,iface=nosuch0",
					  "net_memif0,role=client",
					  "net_memif",
					  "net_af_packet0,iface=lo,framesz=1000",
					  "net_af_packet0,iface=lo,qpairs=17",
					  "net_af_packet0,iface=lo,blocksz=5000",
					  "net_af_packet0,iface=lo,framesz=x",
					  "net_pcap0,rx_pcap=/no/such.pcap",
					  "net_null0,size=junk"};
	unsigned devices = rte_eth_dev_count_total(), fds = fixture_fds(), i;
	struct port_config cfg;
	struct port *p;
	struct error err;

	for (i = 0; i < RTE_DIM(bad); i++) {
		cfg = config(bad[i], 1);
		err = (struct error){};
		p = fixture_open(&cfg, &err);
		if (p != NULL)
			fail_msg("%s was accepted", bad[i]);
		assert_string_equal(err.field, "dpdk.devargs");
		assert_true(err.code > 0 && err.message[0] != '\0');
	}
	cfg = config("net_memif0", 1);
	fixture_open(&cfg, &err);
	assert_string_equal(err.valid, "kind memif");
	cfg = config("net_ring7", 1);
	p = fixture_must_open(&cfg);
	assert_null(fixture_open(&cfg, &err));
	assert_int_equal(err.code, EEXIST);
	fixture_close(p);
	cfg = config("net_af_packet0,iface=lo", 1);
	cfg.mtu = 9000; // needs larger packet buffers
	assert_null(fixture_open(&cfg, &err));
	assert_string_equal(err.field, "port.mtu");
	assert_int_equal(rte_eth_dev_count_total(), devices);
	assert_true(fixture_fds() <= fds);
}

// Devices may keep three quarters of the packet buffers in their rings: 12,285 of the 16,383 without hugepages.
static void more_descriptors_than_buffers(void **state)
{
	struct port_config cfg = config("net_ring3", 4), second = config("net_ring4", 3);
	struct port *p = fixture_must_open(&cfg), *other;
	struct error err = {};

	assert_null(fixture_open(&second, &err));
	assert_int_equal(err.code, ENOBUFS);
	assert_string_equal(err.field, "port.queues");
	assert_string_equal(err.value, "3");
	assert_string_equal(err.valid, "up to 1, or corelaned with --mbufs 32768");
	assert_non_null(strstr(err.message, "need 6144 packet buffers for their descriptors; other devices keep 8192, "
					    "and all of them may keep 12285 of the 16383 that there are"));
	second.queues = 1;
	other = fixture_must_open(&second);
	fixture_close(other);
	fixture_close(p);
	second.queues = 4; // what was kept has returned
	fixture_close(fixture_must_open(&second));
}

static void reopened_many_times(void **state)
{
	struct port_config cfg = config("net_af_packet0,iface=pv4,framecnt=64", 1);
	unsigned fds, mbufs, i;

	add_veth("pv4", "pv5");
	fixture_close(fixture_must_open(&cfg));
	fds = fixture_fds();
	mbufs = fixture_mbufs();
	for (i = 0; i < 50; i++)
		fixture_close(fixture_must_open(&cfg));
	assert_int_equal(fixture_fds(), fds);
	assert_int_equal(fixture_mbufs(), mbufs);
	fixture_run("ip link del pv4");
}

// As uio does, in whose descriptor DPDK waits for all interrupts of a device.
static void one_interrupt(void **state)
{
	char root[] = "/tmp/corelane-test-XXXXXX";

	assert_non_null(mkdtemp(root));
	assert_int_equal(fixture_run("cd %s && mkdir -p sys/bus/pci/devices && cd sys/bus/pci/devices && "
				     "mkdir 0000:00:01.0 0000:00:02.0 0000:00:03.0 && "
				     "ln -s ../../drivers/uio_pci_generic 0000:00:01.0/driver && "
				     "ln -s ../../drivers/vfio-pci 0000:00:02.0/driver",
				     root),
			 0);
	assert_true(dpdk_has_one_interrupt(root, "0000:00:01.0"));
	assert_false(dpdk_has_one_interrupt(root, "0000:00:02.0"));
	assert_false(dpdk_has_one_interrupt(root, "0000:00:03.0"));
	assert_false(dpdk_has_one_interrupt(root, "net_ring0"));
	fixture_run("rm -r %s", root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(null),
					   cmocka_unit_test(ring),
					   cmocka_unit_test(pcap),
					   cmocka_unit_test(af_packet),
					   cmocka_unit_test(own_mac),
					   cmocka_unit_test(tap),
					   cmocka_unit_test(af_xdp),
					   cmocka_unit_test(refused),
					   cmocka_unit_test(reopened_many_times),
					   cmocka_unit_test(more_descriptors_than_buffers),
					   cmocka_unit_test(one_interrupt)};

	fixture_require();
	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
