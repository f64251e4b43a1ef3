// SPDX-License-Identifier: Apache-2.0
// Packet sockets: their queues, filters, state of the interface. They send through the interface's queue: past it
// (PACKET_QDISC_BYPASS) the kernel drops what it would have to cut. A device "net_af_packet0,iface=NAME,vnet=1".
#include "port/packet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rte_malloc.h>
#include <rte_string_fns.h>

#include "base/wake_fd.h"
#include "port/tap_device.h"

#define PACKET_CHECK_MS 1000     // how soon a change of the link is noticed
#define PACKET_BUFFER (16 << 20) // bytes of frames that wait in a socket
#define PACKET_NAME "net_af_packet"
#define PACKET_VALID "net_af_packet and a number, iface=NAME, vnet=1, and nothing else"

bool packet_is_wanted(const struct port_config *cfg)
{
	const char *vnet = strstr(cfg->devargs, ",vnet=");

	return strncmp(cfg->devargs, PACKET_NAME, strlen(PACKET_NAME)) == 0 && vnet != NULL;
}

static int packet_device_parse(struct packet *p, const struct port_config *cfg, struct error *err)
{
	char args[sizeof(cfg->devargs)], *next = args, *arg;

	rte_strscpy(args, cfg->devargs, sizeof(args));
	strsep(&next, ",");
	while ((arg = strsep(&next, ",")) != NULL) {
		if (strcmp(arg, "vnet=1") == 0)
			continue;
		if (strncmp(arg, "iface=", 6) != 0 || strlen(arg + 6) >= sizeof(p->netdev.netdev))
			return error_set(err, EINVAL, "dpdk.devargs", cfg->devargs, PACKET_VALID,
					 "does not describe a packet socket");
		rte_strscpy(p->netdev.netdev, arg + 6, sizeof(p->netdev.netdev));
	}
	return p->netdev.netdev[0] ? 0
				   : error_set(err, EINVAL, "dpdk.devargs", cfg->devargs, PACKET_VALID,
					       "does not name an interface");
}

static int packet_fail(const struct packet *p, int code, const char *what, struct error *err)
{
	return error_set(err, code, "dpdk.devargs", p->netdev.netdev, NULL, "%s: %s", what, strerror(code));
}

static int packet_set(int fd, int option, int value)
{
	return setsockopt(fd, SOL_PACKET, option, &value, sizeof(value));
}

// The kernel spreads over the sockets of a group by the addresses and ports.
static int packet_join_group(const struct packet *p, int fd)
{
	return packet_set(fd, PACKET_FANOUT,
			  (int)(((unsigned)getpid() ^ (unsigned)p->netdev.index) & 0xffff) |
				  (PACKET_FANOUT_HASH << 16));
}

static void packet_enlarge(int fd)
{
	const int size = PACKET_BUFFER;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

static int packet_open_queue(struct packet *p, struct packet_queue *q, struct error *err)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = p->netdev.index};
	int ret;

	q->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (q->fd < 0)
		return packet_fail(p, errno, "no packet socket", err);
	packet_enlarge(q->fd);
	if (packet_set(q->fd, PACKET_VNET_HDR, 1) < 0 || packet_set(q->fd, PACKET_AUXDATA, 1) < 0 ||
	    packet_set(q->fd, PACKET_IGNORE_OUTGOING, 1) < 0 || bind(q->fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    (p->n_queues > 1 && packet_join_group(p, q->fd) < 0))
		return packet_fail(p, errno, "the packet socket cannot be used", err);
	ret = q->wake_fd = wake_fd_new();
	if (ret >= 0)
		ret = wake_fd_watch(q->wake_fd, q->fd, false);
	return ret < 0 ? packet_fail(p, -ret, "no descriptor", err) : 0;
}

static int packet_member(const struct packet *p, int type)
{
	struct packet_mreq m = {.mr_ifindex = p->netdev.index, .mr_type = (unsigned short)type};

	return setsockopt(p->queues[0].fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof(m));
}

// As dpdk_setup.c does it for devices: a fabric port receives its own address and all multicast, others everything.
static int packet_filters(struct port *port, const struct packet *p, const struct port_config *cfg, struct error *err)
{
	struct ifreq ifr = {};
	bool all = cfg->role != PORT_FABRIC;

	rte_strscpy(ifr.ifr_name, p->netdev.netdev, sizeof(ifr.ifr_name));
	if (ioctl(p->netdev.ctl, SIOCGIFHWADDR, &ifr) < 0)
		return packet_fail(p, errno, "its MAC cannot be read", err);
	if (rte_is_zero_ether_addr(&cfg->mac)) {
		memcpy(&port->mac, ifr.ifr_hwaddr.sa_data, sizeof(port->mac));
	} else if (!all && memcmp(&cfg->mac, ifr.ifr_hwaddr.sa_data, sizeof(cfg->mac)) != 0) {
		memcpy(ifr.ifr_hwaddr.sa_data, &cfg->mac, sizeof(cfg->mac));
		all = ioctl(p->netdev.ctl, SIOCSIFHWADDR, &ifr) < 0;
	}
	if (packet_member(p, all ? PACKET_MR_PROMISC : PACKET_MR_ALLMULTI) < 0)
		return packet_fail(p, errno, "its filters cannot be opened", err);
	return 0;
}

static void packet_check_link(void *arg)
{
	struct packet *p = arg;
	bool up = dpdk_netdev_up(&p->netdev);

	if (up == p->netdev.up)
		return;
	p->netdev.up = up;
	port_link_changed(p->netdev.port, up, up);
}

static void packet_free(struct packet *p)
{
	uint16_t i;

	port_watch_free(p->netdev.watch);
	for (i = 0; i < p->n_queues; i++) {
		packet_io_free(&p->queues[i]);
		if (p->queues[i].fd >= 0)
			close(p->queues[i].fd);
		if (p->queues[i].wake_fd >= 0)
			close(p->queues[i].wake_fd);
		free(p->queues[i].rest);
	}
	dpdk_netdev_release(&p->netdev);
	rte_free(p);
}

static struct packet *packet_new(struct port *port, const struct port_config *cfg)
{
	struct packet *p = rte_zmalloc("packet", sizeof(*p) + cfg->queues * sizeof(p->queues[0]), RTE_CACHE_LINE_SIZE);
	bool whole = true;
	uint16_t i;

	if (p == NULL)
		return NULL;
	p->netdev.port = port;
	p->netdev.ctl = -1;
	p->n_queues = cfg->queues;
	for (i = 0; i < p->n_queues; i++) {
		p->queues[i].fd = p->queues[i].wake_fd = -1;
		p->queues[i].pool = port_pool(SOCKET_ID_ANY);
		p->queues[i].most = PACKET_READS;
		p->queues[i].rest = malloc(PACKET_READS * (size_t)PACKET_REST);
		whole = whole && p->queues[i].rest != NULL;
	}
	if (whole)
		return p;
	packet_free(p);
	return NULL;
}

static int packet_start(struct port *port, struct packet *p, const struct port_config *cfg, struct error *err)
{
	int ret = packet_device_parse(p, cfg, err);
	uint16_t i;

	if (ret == 0)
		ret = dpdk_netdev_take(&p->netdev, err);
	if (ret == 0)
		ret = dpdk_netdev_set_mtu(&p->netdev, cfg->mtu, err);
	for (i = 0; i < p->n_queues && ret == 0; i++)
		ret = packet_open_queue(p, &p->queues[i], err);
	if (ret == 0)
		ret = packet_filters(port, p, cfg, err);
	if (ret == 0 && (p->netdev.watch = port_watch_new(PACKET_CHECK_MS, packet_check_link, p)) == NULL)
		ret = error_set(err, ENOMEM, NULL, NULL, NULL, "no timer for a port");
	return ret;
}

static int packet_open(struct port *port, const struct port_config *cfg, struct error *err)
{
	struct packet *p;
	uint16_t i;
	int ret;

	if (port_pool(SOCKET_ID_ANY) == NULL || (p = packet_new(port, cfg)) == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a port");
	ret = port_pool_keep(port, p->n_queues, PACKET_READS, err);
	port_rights.driver(true);
	if (ret == 0)
		ret = packet_start(port, p, cfg, err);
	if (ret < 0)
		packet_free(p);
	port_rights.driver(false);
	if (ret < 0) {
		port_pool_release(port);
		return ret;
	}
	for (i = 0; i < p->n_queues; i++)
		port->queues[i].priv = &p->queues[i];
	port->n_queues = p->n_queues;
	port->priv = p;
	snprintf(port->driver, sizeof(port->driver), "packet socket");
	port_watch_kick(p->netdev.watch);
	return 0;
}

static void packet_close(struct port *port)
{
	port_rights.driver(true);
	packet_free(port->priv);
	port_rights.driver(false);
	port_pool_release(port);
	port->priv = NULL;
}

// Polled at once: what arrived before may not signal.
static int packet_arm(struct port_queue *pq)
{
	struct packet_queue *q = pq->priv;

	q->pause.cycles = 0;
	return q->wake_fd;
}

static int packet_disarm(struct port_queue *pq, bool signalled)
{
	const struct packet_queue *q = pq->priv;

	if (signalled)
		wake_fd_rest(q->wake_fd); // an error is that of an interface that went down, which may come up again
	return 0;
}

static int packet_set_mtu(struct port *port, uint16_t mtu, struct error *err)
{
	const struct packet *p = port->priv;
	int ret;

	port_rights.driver(true);
	ret = dpdk_netdev_set_mtu(&p->netdev, mtu, err);
	port_rights.driver(false);
	return ret;
}

static void packet_stats(struct port *port, struct port_stats *out)
{
	struct packet *p = port->priv;
	struct tpacket_stats s;
	socklen_t len;
	uint16_t i;

	*out = (struct port_stats){};
	for (i = 0; i < p->n_queues; i++) {
		len = sizeof(s);
		if (getsockopt(p->queues[i].fd, SOL_PACKET, PACKET_STATISTICS, &s, &len) == 0) // resets them
			p->missed += s.tp_drops;
		out->rx_missed += p->queues[i].no_buffer + p->queues[i].rx_errors;
		out->tx_errors += p->queues[i].tx_errors;
	}
	out->rx_missed += p->missed;
}

static void packet_xstats(struct port *port, void (*cb)(void *arg, const char *name, uint64_t value), void *arg)
{
	const struct packet *p = port->priv;
	char name[32];
	uint16_t i;

	for (i = 0; i < p->n_queues; i++) {
		snprintf(name, sizeof(name), "rx_q%u_no_buffer", i);
		cb(arg, name, p->queues[i].no_buffer);
		snprintf(name, sizeof(name), "rx_q%u_errors", i);
		cb(arg, name, p->queues[i].rx_errors);
		snprintf(name, sizeof(name), "tx_q%u_errors", i);
		cb(arg, name, p->queues[i].tx_errors);
	}
}

const struct port_ops port_packet_ops = {
	.kind = "dpdk",
	.open = packet_open,
	.close = packet_close,
	.rx = packet_rx,
	.tx = packet_tx,
	.arm = packet_arm,
	.disarm = packet_disarm,
	.set_mtu = packet_set_mtu,
	.stats = packet_stats,
	.xstats = packet_xstats,
};
