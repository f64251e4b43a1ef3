// SPDX-License-Identifier: Apache-2.0
// Makes a DPDK device ready: queues, RSS, MTU, filters.
#include "port/dpdk.h"

#include <errno.h>
#include <stdio.h>

#include "base/log.h"

#define DESCRIPTORS 1024
// The entropy of a tunnel is in its outer UDP source port.
#define RSS_FIELDS (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP)
#define RX_CHECKSUMS (RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM)

static unsigned overhead_of(const struct rte_eth_dev_info *info)
{
	return info->max_mtu != UINT16_MAX && info->max_rx_pktlen > info->max_mtu
		       ? info->max_rx_pktlen - info->max_mtu
		       : RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
}

// Many drivers count a VLAN tag among the overhead, others do not.
static unsigned device_mtu(const struct rte_eth_dev_info *info, uint16_t mtu, uint16_t vlan)
{
	return mtu + (vlan != 0 && overhead_of(info) < RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN + RTE_VLAN_HLEN
			      ? RTE_VLAN_HLEN
			      : 0);
}

// Checks that the device supports this MTU. Sets *scatter when its frames need more than one buffer.
static int dpdk_setup_check_mtu(const struct dpdk *d, const struct rte_eth_dev_info *info, uint16_t mtu, uint16_t vlan,
				bool *scatter, struct error *err)
{
	unsigned want = device_mtu(info, mtu, vlan), room = port_pool_data_room() - RTE_PKTMBUF_HEADROOM,
		 max = info->max_mtu;
	char value[8], valid[64];

	*scatter = false;
	if (d->netdev[0]) // the kernel decides; DPDK's drivers report the MTU of plain Ethernet
		return 0;
	if (info->max_rx_pktlen != UINT32_MAX && info->max_rx_pktlen > overhead_of(info) &&
	    max > info->max_rx_pktlen - overhead_of(info))
		max = info->max_rx_pktlen - overhead_of(info);
	snprintf(value, sizeof(value), "%u", mtu);
	if (want > max || want < info->min_mtu) {
		snprintf(valid, sizeof(valid), "%u..%u", info->min_mtu, max - (want - mtu));
		return error_set(err, EINVAL, "port.mtu", value, valid, "%s does not support it", d->dev.name);
	}
	// A driver without a limit delivers chains of buffers anyway.
	if (info->max_rx_pktlen == UINT32_MAX || want + overhead_of(info) <= room)
		return 0;
	*scatter = true;
	if (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER)
		return 0;
	snprintf(valid, sizeof(valid), "up to %u, or larger packet buffers", room - overhead_of(info) - (want - mtu));
	return error_set(err, EINVAL, "port.mtu", value, valid, "%s cannot spread a frame over several buffers",
			 d->dev.name);
}

int dpdk_apply_mtu(struct dpdk *d, uint16_t mtu, uint16_t vlan, struct error *err)
{
	struct rte_eth_dev_info info;
	char value[8];
	bool scatter;
	int ret;

	if (d->netdev[0])
		return dpdk_netdev_set_mtu(d, mtu, err);
	ret = rte_eth_dev_info_get(d->dev.id, &info);
	if (ret == 0)
		ret = dpdk_setup_check_mtu(d, &info, mtu, vlan, &scatter, err);
	if (ret < 0)
		return ret;
	ret = rte_eth_dev_set_mtu(d->dev.id, (uint16_t)device_mtu(&info, mtu, vlan));
	if (ret == 0 || ret == -ENOTSUP) // a virtual device without the operation has no limit
		return 0;
	snprintf(value, sizeof(value), "%u", mtu);
	return error_set(err, -ret, "port.mtu", value, NULL, "%s refuses it%s: %s", d->dev.name,
			 ret == -EBUSY ? " while it runs, remove the port and add it again" : "", strerror(-ret));
}

static uint16_t queues_of(const struct rte_eth_dev_info *info, uint16_t wanted)
{
	uint16_t n = wanted < PORT_MAX_QUEUES ? wanted : PORT_MAX_QUEUES;

	n = RTE_MIN(n, info->max_rx_queues);
	n = RTE_MIN(n, info->max_tx_queues);
	return n > 0 ? n : 1;
}

// Receive queues get the only interrupt of a device that has one. DPDK's drivers then leave out the link's and do not
// refuse it, and as DPDK takes it that the driver would report changes, the link would stay down.
static bool link_interrupts(const struct dpdk *d, const struct rte_eth_dev_info *info)
{
	char name[RTE_ETH_NAME_MAX_LEN];

	return info->dev_flags != NULL && (*info->dev_flags & RTE_ETH_DEV_INTR_LSC) != 0 &&
	       (rte_eth_dev_get_name_by_port(d->dev.id, name) < 0 || !dpdk_has_one_interrupt("", name));
}

static struct rte_eth_conf device_conf(const struct dpdk *d, const struct rte_eth_dev_info *info,
				       const struct port_config *cfg, uint16_t queues, bool scatter)
{
	struct rte_eth_conf conf = {};

	conf.rxmode.mtu = (uint16_t)device_mtu(info, cfg->mtu, cfg->vlan);
	if (d->netdev[0] && conf.rxmode.mtu > RTE_ETHER_MTU)
		conf.rxmode.mtu = RTE_ETHER_MTU;
	if (scatter)
		conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_SCATTER;
	if (strncmp(d->dev.name, "net_", 4) != 0) // virtual drivers compute them in software
		conf.rxmode.offloads |= RX_CHECKSUMS & info->rx_offload_capa;
	conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS & (info->tx_offload_capa | info->tx_queue_offload_capa);
	conf.rx_adv_conf.rss_conf.rss_hf = RSS_FIELDS & info->flow_type_rss_offloads;
	if (queues > 1 && conf.rx_adv_conf.rss_conf.rss_hf != 0)
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	else
		conf.rx_adv_conf.rss_conf.rss_hf = 0;
	conf.intr_conf.rxq = 1; // for workers that wait; costs nothing until they are enabled
	conf.intr_conf.lsc = link_interrupts(d, info);
	return conf;
}

static int setup_queues(struct dpdk *d, const struct rte_eth_dev_info *info, const struct rte_eth_conf *conf,
			uint16_t queues)
{
	int numa = rte_eth_dev_socket_id(d->dev.id), ret;
	struct rte_eth_rxconf rx = info->default_rxconf;
	struct rte_eth_txconf tx = info->default_txconf;
	bool sends_by_call = info->driver_name && strcmp(info->driver_name, "net_af_packet") == 0;
	uint16_t rx_desc = DESCRIPTORS, tx_desc = DESCRIPTORS, i;

	ret = rte_eth_dev_configure(d->dev.id, queues, queues, conf);
	if (ret == 0)
		ret = rte_eth_dev_adjust_nb_rx_tx_desc(d->dev.id, &rx_desc, &tx_desc);
	rx.offloads = conf->rxmode.offloads;
	tx.offloads = conf->txmode.offloads;
	for (i = 0; i < queues && ret == 0; i++) {
		ret = rte_eth_rx_queue_setup(d->dev.id, i, rx_desc, (unsigned)numa, &rx, port_pool(numa));
		if (ret == 0)
			ret = rte_eth_tx_queue_setup(d->dev.id, i, tx_desc, (unsigned)numa, &tx);
		d->queues[i] =
			(struct dpdk_queue){.device = d->dev.id,
					    .index = i,
					    .wake_fd = -1,
					    .sends_by_call = sends_by_call,
					    .linear = (conf->txmode.offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) == 0};
	}
	return ret;
}

// Notes how many buffers the device keeps in its rings. The drivers that copy keep none.
static int dpdk_setup_keep(const struct dpdk *d, const struct rte_eth_dev_info *info, struct error *err)
{
	static const char *const copying[] = {"net_af_packet", "net_null", "net_pcap"};
	uint16_t rx = DESCRIPTORS, tx = DESCRIPTORS;
	unsigned i;

	for (i = 0; i < RTE_DIM(copying); i++)
		if (strcmp(info->driver_name, copying[i]) == 0)
			return 0;
	rte_eth_dev_adjust_nb_rx_tx_desc(d->dev.id, &rx, &tx);
	return port_pool_keep(d->port, d->port->n_queues, (unsigned)rx + tx, err);
}

// A fabric port receives its own address and all multicast (ARP is broadcast, ND is multicast). Tenant ports, whose
// guests talk to the virtual gateway and to each other, and host ports receive everything.
static void set_filters(struct dpdk *d, const struct port_config *cfg)
{
	struct rte_ether_addr own;
	bool all = cfg->role != PORT_FABRIC;

	if (!all && !rte_is_zero_ether_addr(&cfg->mac)) {
		rte_eth_macaddr_get(d->dev.id, &own);
		if (!rte_is_same_ether_addr(&own, &cfg->mac)) {
			own = cfg->mac;
			all = rte_eth_dev_default_mac_addr_set(d->dev.id, &own) < 0;
		}
	}
	if (!all && rte_eth_allmulticast_enable(d->dev.id) < 0)
		all = true;
	if (all && rte_eth_promiscuous_enable(d->dev.id) < 0)
		LOG(DEBUG, "%s has no filters to open", d->dev.name);
}

// The kernel's interface behind the device gets the device's MAC (virtio-user), which must be the fabric port's MAC.
static int check_host_mac(const struct dpdk *d, struct error *err)
{
	struct rte_ether_addr own = {};
	char text[18], valid[64], want[18];

	rte_eth_macaddr_get(d->dev.id, &own);
	if (rte_is_same_ether_addr(&own, &d->port->mac))
		return 0;
	snprintf(valid, sizeof(valid), "mac=%s, that of the fabric port", mac_format(&d->port->mac, want));
	return error_set(err, EINVAL, "dpdk.devargs", mac_format(&own, text), valid,
			 "is not the MAC that the kernel's neighbours know");
}

static int dpdk_setup_start(struct dpdk *d, const struct rte_eth_dev_info *info, const struct rte_eth_conf *conf,
			    const struct port_config *cfg, struct error *err)
{
	int ret = setup_queues(d, info, conf, d->port->n_queues);

	if (ret < 0)
		return error_set(err, -ret, "dpdk.devargs", d->dev.name, NULL, "the device cannot be configured: %s",
				 strerror(-ret));
	ret = dpdk_apply_mtu(d, cfg->mtu, cfg->vlan, err);
	if (ret < 0)
		return ret;
	ret = rte_eth_dev_start(d->dev.id);
	if (ret < 0)
		return error_set(err, -ret, "dpdk.devargs", d->dev.name, NULL, "the device does not start: %s",
				 strerror(-ret));
	return 0;
}

int dpdk_setup(struct dpdk *d, const struct port_config *cfg, struct error *err)
{
	struct port *port = d->port;
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf;
	bool scatter;
	int ret = rte_eth_dev_info_get(d->dev.id, &info);

	if (ret == 0)
		ret = dpdk_setup_check_mtu(d, &info, cfg->mtu, cfg->vlan, &scatter, err);
	else
		error_set(err, -ret, "dpdk.devargs", d->dev.name, NULL, "the device's information cannot be read: %s",
			  strerror(-ret));
	if (ret < 0)
		return ret;
	port->n_queues = queues_of(&info, cfg->queues);
	port->numa = rte_eth_dev_socket_id(d->dev.id);
	if (port_pool(port->numa) == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for packet buffers");
	ret = dpdk_setup_keep(d, &info, err);
	if (ret < 0)
		return ret;
	// analyzer: core.CallAndMessage: scatter is set with the MTU
	conf = device_conf(d, &info, cfg, port->n_queues, scatter);
	ret = dpdk_setup_start(d, &info, &conf, cfg, err);
	if (ret < 0) { // perhaps because there are fewer interrupt vectors than queues
		conf.intr_conf.rxq = 0;
		ret = dpdk_setup_start(d, &info, &conf, cfg, err);
	}
	if (ret < 0)
		return ret;
	if (conf.intr_conf.rxq)
		dpdk_wake_open(d->queues, port->n_queues, &info);
	set_filters(d, cfg);
	snprintf(port->driver, sizeof(port->driver), "%s", info.driver_name);
	if (cfg->role == PORT_HOST)
		return check_host_mac(d, err);
	if (rte_is_zero_ether_addr(&cfg->mac) &&
	    (rte_eth_macaddr_get(d->dev.id, &port->mac) < 0 || rte_is_zero_ether_addr(&port->mac)))
		rte_eth_random_addr(port->mac.addr_bytes);
	return 0;
}
