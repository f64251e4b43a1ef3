// SPDX-License-Identifier: Apache-2.0
// Ports on any DPDK device, which is plugged in by its device arguments.
#include "port_dpdk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>

#include "dpdk/dpdk_device.h"
#include "port_mbuf.h"

struct dpdk_port {
	struct mbuf_port m;
	struct dpdk_device dev;
};

static uint16_t port_dpdk_rx(struct mbuf_port *m, unsigned queue, struct rte_mbuf **pkts, uint16_t n)
{
	return rte_eth_rx_burst(((struct dpdk_port *)m)->dev.id, (uint16_t)queue, pkts, n);
}

static uint16_t port_dpdk_tx(struct mbuf_port *m, unsigned queue, struct rte_mbuf **pkts, uint16_t n)
{
	return rte_eth_tx_burst(((struct dpdk_port *)m)->dev.id, (uint16_t)queue, pkts, n);
}

static bool port_dpdk_is_up(const struct gen_port *p)
{
	const struct dpdk_port *d = (const struct dpdk_port *)p;
	struct rte_eth_link link = {0};

	return rte_eth_link_get_nowait(d->dev.id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

static int port_dpdk_plug(struct dpdk_port *d, const char *args, struct error *err)
{
	int ret = dpdk_device_parse(&d->dev, args, "port.devargs", err);

	if (ret == 0 && dpdk_device_find(&d->dev)) {
		d->dev.device = NULL; // the other port closes it
		return error_set(err, EEXIST, "port.devargs", args, "another device", "%s belongs to another port",
				 d->dev.name);
	}
	return ret < 0 ? ret : dpdk_device_plug(&d->dev, args, "port.devargs", err);
}

static struct rte_eth_conf conf_of(const struct dpdk_port *d, const struct rte_eth_dev_info *info)
{
	uint32_t mtu = d->m.port.cfg.room - RTE_ETHER_HDR_LEN;
	struct rte_eth_conf conf = {0};

	if (info->max_rx_pktlen > RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN) // net_af_packet says 1514, but takes more
		mtu = RTE_MIN(mtu, info->max_rx_pktlen - RTE_ETHER_HDR_LEN - RTE_ETHER_CRC_LEN);
	conf.rxmode.mtu = (uint16_t)RTE_MIN(mtu, (uint32_t)info->max_mtu);
	// A virtio-user device that is a server looks for its next client when its link changes, and only then.
	conf.intr_conf.lsc = info->dev_flags != NULL && (*info->dev_flags & RTE_ETH_DEV_INTR_LSC) != 0;
	conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE & info->tx_offload_capa; // one pool, no shared mbufs
	return conf;
}

static int set_up(struct dpdk_port *d, struct error *err)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf;
	uint16_t n_rx = (uint16_t)d->m.port.cfg.ring_size, n_tx = n_rx;
	int numa = rte_eth_dev_socket_id(d->dev.id), ret = rte_eth_dev_info_get(d->dev.id, &info);

	if (ret == 0) {
		conf = conf_of(d, &info);
		ret = rte_eth_dev_configure(d->dev.id, 1, 1, &conf);
	}
	if (ret == 0)
		ret = rte_eth_dev_adjust_nb_rx_tx_desc(d->dev.id, &n_rx, &n_tx);
	if (ret == 0 && mbuf_port_init(&d->m, RTE_MAX(n_rx, n_tx), numa, err) < 0)
		return -ENOMEM;
	if (ret == 0)
		ret = rte_eth_rx_queue_setup(d->dev.id, 0, n_rx, (unsigned)numa, NULL, d->m.rx_pool);
	if (ret == 0)
		ret = rte_eth_tx_queue_setup(d->dev.id, 0, n_tx, (unsigned)numa, NULL);
	if (ret == 0)
		ret = rte_eth_dev_start(d->dev.id);
	if (ret < 0)
		return error_set(err, -ret, "port.devargs", d->dev.name, NULL, "the device does not start: %s",
				 strerror(-ret));
	rte_eth_promiscuous_enable(d->dev.id); // not every driver supports it
	return 0;
}

static void port_dpdk_close(struct gen_port *p)
{
	struct dpdk_port *d = (struct dpdk_port *)p;

	if (d->dev.device != NULL) {
		mbuf_port_drop(&d->m);
		rte_eth_dev_stop(d->dev.id);
		rte_eth_dev_close(d->dev.id);
		rte_dev_remove(d->dev.device);
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
