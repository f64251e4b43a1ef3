// SPDX-License-Identifier: Apache-2.0
// DPDK devices as ports: PCI addresses and virtual devices, plugged in and out while traffic flows.
#include "port/dpdk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_malloc.h>

#include "base/system_calls.h"
#include "port/packet.h"
#include "port/tap_device.h"

#define DPDK_CHECK_MS 1000 // for drivers without link interrupt

static uint16_t dpdk_rx(struct port_queue *pq, struct rte_mbuf **pkts, uint16_t n)
{
	const struct dpdk_queue *q = pq->priv;

	return rte_eth_rx_burst(q->device, q->index, pkts, n);
}

static uint32_t dpdk_depth(struct port_queue *pq)
{
	const struct dpdk_queue *q = pq->priv;
	int n = rte_eth_rx_queue_count(q->device, q->index);

	return n >= 0 ? (uint32_t)n : DEPTH_UNKNOWN;
}

static uint16_t dpdk_send_plain(const struct dpdk_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t sent = 0, k;

	do { // some drivers end a burst at 32
		k = rte_eth_tx_burst(q->device, q->index, pkts + sent, (uint16_t)(n - sent));
		system_calls += q->sends_by_call;
		sent = (uint16_t)(sent + k);
	} while (k > 0 && sent < n);
	return sent;
}

// For a device that takes only single buffers. A packet that cannot be made one is dropped and counted.
static uint16_t dpdk_send_linear(struct dpdk_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i;

	for (i = 0; i < n; i++) {
		if (pkts[i]->nb_segs > 1 && (RTE_MBUF_CLONED(pkts[i]) || rte_mbuf_refcnt_read(pkts[i]) > 1 ||
					     rte_pktmbuf_linearize(pkts[i]) < 0)) {
			rte_pktmbuf_free(pkts[i]);
			q->tx_errors++;
		} else if (rte_eth_tx_burst(q->device, q->index, &pkts[i], 1) == 0) {
			break;
		}
	}
	return i;
}

static uint16_t dpdk_tx(struct port_queue *pq, struct rte_mbuf **pkts, uint16_t n)
{
	struct dpdk_queue *q = pq->priv;
	uint16_t i;

	if (unlikely(q->linear))
		for (i = 0; i < n; i++)
			if (pkts[i]->nb_segs > 1)
				return dpdk_send_linear(q, pkts, n);
	return dpdk_send_plain(q, pkts, n);
}

static void dpdk_check_link(void *arg)
{
	struct rte_eth_link link = {};
	struct dpdk *d = arg;
	bool up = rte_eth_link_get_nowait(d->dev.id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;

	if (d->netdev[0]) // the drivers of af_packet and af_xdp do not report the interface's state
		up = up && dpdk_netdev_up(d);
	if (up == d->up)
		return;
	d->up = up;
	port_link_changed(d->port, up, up);
}

// On EAL's interrupt thread.
static int dpdk_on_event(uint16_t id, enum rte_eth_event_type type, void *arg, void *ret)
{
	port_watch_kick(arg);
	return 0;
}

static void dpdk_unwatch(struct dpdk *d)
{
	if (d->callbacks)
		while (rte_eth_dev_callback_unregister(d->dev.id, RTE_ETH_EVENT_INTR_LSC, dpdk_on_event, d->watch) ==
		       -EAGAIN)
			; // it is running
	d->callbacks = false;
	port_watch_free(d->watch);
	d->watch = NULL;
}

static int dpdk_watch(struct dpdk *d, struct error *err)
{
	d->watch = port_watch_new(DPDK_CHECK_MS, dpdk_check_link, d);
	if (d->watch == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no timer for a DPDK port");
	d->callbacks = rte_eth_dev_callback_register(d->dev.id, RTE_ETH_EVENT_INTR_LSC, dpdk_on_event, d->watch) == 0;
	port_watch_kick(d->watch);
	return 0;
}

static int open_device(struct port *port, const struct port_config *cfg, struct error *err)
{
	struct dpdk *d = rte_zmalloc("dpdk", sizeof(*d), RTE_CACHE_LINE_SIZE);
	uint16_t i;
	int ret;

	if (d == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a DPDK port");
	d->port = port;
	d->ctl = -1;
	for (i = 0; i < PORT_MAX_QUEUES; i++)
		d->queues[i].wake_fd = -1;
	ret = dpdk_probe(d, cfg, err);
	if (ret < 0) {
		rte_free(d);
		return ret;
	}
	ret = dpdk_setup(d, cfg, err);
	if (ret == 0)
		ret = dpdk_watch(d, err);
	if (ret < 0) {
		dpdk_unwatch(d);
		dpdk_remove(d);
		port_pool_release(port);
		rte_free(d);
		return ret;
	}
	for (i = 0; i < port->n_queues; i++)
		port->queues[i].priv = &d->queues[i];
	port->priv = d;
	return 0;
}

static int dpdk_open(struct port *port, const struct port_config *cfg, struct error *err)
{
	int ret;

	if (packet_is_wanted(cfg)) {
		port->ops = &port_packet_ops;
		return port->ops->open(port, cfg, err);
	}
	port_rights.driver(true);
	ret = open_device(port, cfg, err);
	port_rights.driver(false);
	return ret;
}

static void dpdk_close(struct port *port)
{
	struct dpdk *d = port->priv;

	dpdk_unwatch(d);
	port_rights.driver(true);
	dpdk_remove(d);
	port_rights.driver(false);
	port_pool_release(port);
	rte_free(d);
	port->priv = NULL;
}

static int dpdk_set_mtu(struct port *port, uint16_t mtu, struct error *err)
{
	int ret;

	port_rights.driver(true);
	ret = dpdk_apply_mtu(port->priv, mtu, port->cfg.vlan, err);
	port_rights.driver(false);
	return ret;
}

static void dpdk_stats(struct port *port, struct port_stats *out)
{
	const struct dpdk *d = port->priv;
	struct rte_eth_stats stats = {};
	uint16_t i;

	rte_eth_stats_get(d->dev.id, &stats);
	out->rx_missed = stats.imissed + stats.rx_nombuf;
	out->tx_errors = stats.oerrors;
	for (i = 0; i < port->n_queues; i++)
		out->tx_errors += d->queues[i].tx_errors;
}

static void dpdk_xstats(struct port *port, void (*cb)(void *arg, const char *name, uint64_t value), void *arg)
{
	const struct dpdk *d = port->priv;
	int n = rte_eth_xstats_get_names(d->dev.id, NULL, 0), i;
	struct rte_eth_xstat_name *names;
	struct rte_eth_xstat *values;

	if (n <= 0)
		return;
	names = calloc((size_t)n, sizeof(*names));
	values = calloc((size_t)n, sizeof(*values));
	if (names != NULL && values != NULL && rte_eth_xstats_get_names(d->dev.id, names, (unsigned)n) == n &&
	    rte_eth_xstats_get(d->dev.id, values, (unsigned)n) == n)
		for (i = 0; i < n; i++)
			cb(arg, names[values[i].id].name, values[i].value);
	free(names);
	free(values);
}

const struct port_ops port_dpdk_ops = {
	.kind = "dpdk",
	.open = dpdk_open,
	.close = dpdk_close,
	.rx = dpdk_rx,
	.tx = dpdk_tx,
	.rx_least = 8, // of drivers with vector instructions
	.depth = dpdk_depth,
	.wakes = dpdk_wakes,
	.arm = dpdk_arm,
	.disarm = dpdk_disarm,
	.set_mtu = dpdk_set_mtu,
	.steer = dpdk_steer,
	.unsteer = dpdk_unsteer,
	.stats = dpdk_stats,
	.xstats = dpdk_xstats,
};
