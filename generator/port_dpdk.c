// SPDX-License-Identifier: Apache-2.0
// Ports on any DPDK device, which is plugged in by its device arguments.
#include "port_dpdk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_devargs.h>
#include <rte_ethdev.h>

#include "port_mbuf.h"

#define VALID "a PCI address bound to a DPDK driver (0000:3b:00.0), or a virtual device (net_af_packet0,iface=eth1)"

struct dpdk_port {
	struct mbuf_port m;
	struct rte_device *device;
	uint16_t id;
	char name[RTE_DEV_NAME_MAX_LEN];
};

static uint16_t port_dpdk_rx(struct mbuf_port *m, unsigned queue, struct rte_mbuf **pkts, uint16_t n)
{
	return rte_eth_rx_burst(((struct dpdk_port *)m)->id, (uint16_t)queue, pkts, n);
}

static uint16_t port_dpdk_tx(struct mbuf_port *m, unsigned queue, struct rte_mbuf **pkts, uint16_t n)
{
	return rte_eth_tx_burst(((struct dpdk_port *)m)->id, (uint16_t)queue, pkts, n);
}

static bool port_dpdk_is_up(const struct gen_port *p)
{
	const struct dpdk_port *d = (const struct dpdk_port *)p;
	struct rte_eth_link link = {0};

	return rte_eth_link_get_nowait(d->id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

static bool port_dpdk_find_device(struct dpdk_port *d)
{
	struct rte_eth_dev_info info;
	uint16_t id;

	RTE_ETH_FOREACH_DEV(id)
	{
		if (rte_eth_dev_info_get(id, &info) == 0 && info.device != NULL &&
		    strcmp(rte_dev_name(info.device), d->name) == 0) {
			d->id = id;
			d->device = info.device;
			return true;
		}
	}
	return false;
}

static int port_dpdk_plug(struct dpdk_port *d, const char *args, struct error *err)
{
	struct rte_devargs da = {0};
	int ret;

	if (args[strcspn(args, " \t\n")] != '\0' || rte_devargs_parse(&da, args) < 0)
		return error_set(err, EINVAL, "port.devargs", args, VALID, "is not a device that DPDK knows");
	snprintf(d->name, sizeof(d->name), "%s", da.name);
	rte_devargs_reset(&da);
	if (port_dpdk_find_device(d))
		return error_set(err, EEXIST, "port.devargs", args, "another device", "%s belongs to another port",
				 d->name);
	ret = rte_dev_probe(args);
	if (ret < 0)
		return error_set(err, -ret, "port.devargs", args, VALID,
				 "DPDK cannot take the device: %s (its log says more)", strerror(-ret));
	if (!port_dpdk_find_device(d))
		return error_set(err, ENODEV, "port.devargs", args, VALID, "is not a network device");
	return 0;
}

static struct rte_eth_conf conf_of(const struct dpdk_port *d, const struct rte_eth_dev_info *info)
{
	uint32_t mtu = d->m.port.cfg.room - RTE_ETHER_HDR_LEN;
	struct rte_eth_conf conf = {0};

	if (info->max_rx_pktlen > RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN) // net_af_packet says 1514, but takes more
		mtu = RTE_MIN(mtu, info->max_rx_pktlen - RTE_ETHER_HDR_LEN - RTE_ETHER_CRC_LEN);
	conf.rxmode.mtu = (uint16_t)RTE_MIN(mtu, (uint32_t)info->max_mtu);
	conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE & info->tx_offload_capa; // one pool, no shared mbufs
	return conf;
}

static int set_up(struct dpdk_port *d, struct error *err)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf;
	uint16_t n_rx = (uint16_t)d->m.port.cfg.ring_size, n_tx = n_rx;
	int numa = rte_eth_dev_socket_id(d->id), ret = rte_eth_dev_info_get(d->id, &info);

	if (ret == 0) {
		conf = conf_of(d, &info);
		ret = rte_eth_dev_configure(d->id, 1, 1, &conf);
	}
	if (ret == 0)
		ret = rte_eth_dev_adjust_nb_rx_tx_desc(d->id, &n_rx, &n_tx);
	if (ret == 0 && mbuf_port_init(&d->m, RTE_MAX(n_rx, n_tx), numa, err) < 0)
		return -ENOMEM;
	if (ret == 0)
		ret = rte_eth_rx_queue_setup(d->id, 0, n_rx, (unsigned)numa, NULL, d->m.rx_pool);
	if (ret == 0)
		ret = rte_eth_tx_queue_setup(d->id, 0, n_tx, (unsigned)numa, NULL);
	if (ret == 0)
		ret = rte_eth_dev_start(d->id);
	if (ret < 0)
		return error_set(err, -ret, "port.devargs", d->name, NULL, "the device does not start: %s",
				 strerror(-ret));
	rte_eth_promiscuous_enable(d->id); // not every driver supports it
	return 0;
}

static void port_dpdk_close(struct gen_port *p)
{
	struct dpdk_port *d = (struct dpdk_port *)p;

	if (d->device != NULL) {
		mbuf_port_drop(&d->m);
		rte_eth_dev_stop(d->id);
		rte_eth_dev_close(d->id);
		rte_dev_remove(d->device);
	}
	mbuf_port_fini(&d->m);
	free(d);
}

static const struct gen_port_ops ops = {.reserve = mbuf_port_reserve,
					.commit = mbuf_port_commit,
					.peek = mbuf_port_peek,
					.release = mbuf_port_release,
					.up = port_dpdk_is_up,
					.lay = mbuf_port_lay,
					.close = port_dpdk_close};

int dpdk_port_open(struct gen_port **port, const struct port_config *cfg, struct error *err)
{
	struct dpdk_port *d = port_new(sizeof(*d));
	int ret;

	if (d == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "out of memory");
	d->m.port = (struct gen_port){.ops = &ops, .cfg = *cfg, .n_tx = 1, .n_rx = 1};
	d->m.rx = port_dpdk_rx;
	d->m.tx = port_dpdk_tx;
	ret = port_dpdk_plug(d, cfg->devargs, err);
	if (ret == 0)
		ret = set_up(d, err);
	if (ret < 0) {
		port_dpdk_close(&d->m.port);
		return ret;
	}
	*port = &d->m.port;
	return 0;
}
