// SPDX-License-Identifier: Apache-2.0
// Tap ports: creation in any network namespace, link state, removal.
//
// The kernel delivers whole frames with complete checksums, because no offload is offered (no IFF_VNET_HDR). The descriptors
// keep working when the interface is renamed or moved to another namespace; TUNGETDEVNETNS finds it again.
#include "port/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_malloc.h>
#include <rte_string_fns.h>

#include "base/log.h"

#define TAP_CHECK_MS 250 // how soon a change of the link is noticed

static int open_socket(void *arg)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*(int *)arg = fd;
	return fd < 0 ? -errno : 0;
}

struct tap_create {
	struct tap *tap;
	const struct port_config *cfg;
	struct error *err;
};

static int open_queue(struct tap *t, uint16_t i, struct error *err)
{
	struct ifreq ifr = {.ifr_flags = (short)(IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE | (i == 0 ? IFF_TUN_EXCL : 0))};
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	t->queues[i].fd = fd;
	if (fd < 0)
		return error_set(err, errno, "port.kind", "tap", "a kernel with the tun module (modprobe tun), and root's rights",
				 "/dev/net/tun cannot be opened: %s", strerror(errno));
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", t->ifname);
	if (ioctl(fd, TUNSETIFF, &ifr) == 0)
		return 0;
	if (errno == EBUSY || errno == EEXIST || errno == EINVAL)
		return error_set(err, EEXIST, "tap.ifname", t->ifname, "a name that no interface of the namespace has", "exists already");
	return error_set(err, errno, "tap.ifname", t->ifname, "CAP_NET_ADMIN in the namespace", "cannot be created: %s", strerror(errno));
}

static int set_if_mtu(struct tap *t, uint16_t mtu, struct error *err)
{
	struct ifreq ifr = {.ifr_mtu = mtu};
	char value[8];

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", t->ifname);
	snprintf(value, sizeof(value), "%u", mtu);
	if (ioctl(t->ctl, SIOCSIFMTU, &ifr) < 0)
		return error_set(err, errno, "port.mtu", value, "68..9600", "%s does not take it: %s", t->ifname, strerror(errno));
	return 0;
}

static int set_if_mac(struct tap *t, const struct rte_ether_addr *mac, struct error *err)
{
	struct ifreq ifr = {.ifr_hwaddr.sa_family = ARPHRD_ETHER};
	char text[18];

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", t->ifname);
	memcpy(ifr.ifr_hwaddr.sa_data, mac, sizeof(*mac));
	if (ioctl(t->ctl, SIOCSIFHWADDR, &ifr) < 0)
		return error_set(err, errno, "port.guest_mac", mac_format(mac, text), "a unicast address", "%s does not take it: %s", t->ifname,
				 strerror(errno));
	return 0;
}

static int set_if_up(struct tap *t, struct error *err)
{
	struct ifreq ifr = {};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", t->ifname);
	if (ioctl(t->ctl, SIOCGIFFLAGS, &ifr) == 0) {
		ifr.ifr_flags |= IFF_UP;
		if (ioctl(t->ctl, SIOCSIFFLAGS, &ifr) == 0)
			return 0;
	}
	return error_set(err, errno, "tap.ifname", t->ifname, NULL, "does not come up: %s", strerror(errno));
}

// Inside the namespace.
static int create(void *arg)
{
	struct tap_create *c = arg;
	struct tap *t = c->tap;
	int ret = open_socket(&t->ctl);
	uint16_t i;

	if (ret < 0)
		return error_set(c->err, -ret, NULL, NULL, NULL, "no socket: %s", strerror(-ret));
	for (i = 0; i < t->n_queues; i++)
		if ((ret = open_queue(t, i, c->err)) < 0)
			return ret;
	ret = set_if_mtu(t, c->cfg->mtu, c->err);
	// A guest without hypervisor is the kernel itself: its address is that of the interface.
	if (ret == 0 && !rte_is_zero_ether_addr(&c->cfg->guest_mac))
		ret = set_if_mac(t, &c->cfg->guest_mac, c->err);
	return ret < 0 ? ret : set_if_up(t, c->err);
}

static int find_again(struct tap *t)
{
	int netns = ioctl(t->queues[0].fd, TUNGETDEVNETNS), fd = -1, ret;

	if (netns < 0)
		return -errno;
	ret = netns_call(netns, open_socket, &fd);
	close(netns);
	if (ret < 0)
		return ret;
	close(t->ctl);
	t->ctl = fd;
	return 0;
}

// Is the interface there, and may it send? Follows it when it has been renamed or moved.
static bool is_up(struct tap *t)
{
	struct ifreq ifr = {};

	if (ioctl(t->queues[0].fd, TUNGETIFF, &ifr) < 0) {
		t->gone = true;
		return false;
	}
	snprintf(t->ifname, sizeof(t->ifname), "%s", ifr.ifr_name);
	if (ioctl(t->ctl, SIOCGIFFLAGS, &ifr) < 0 && (find_again(t) < 0 || ioctl(t->ctl, SIOCGIFFLAGS, &ifr) < 0))
		return false;
	return (ifr.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}

static void check_link(void *arg)
{
	struct tap *t = arg;
	bool up;

	if (t->gone)
		return;
	up = is_up(t);
	if (t->gone) {
		snprintf(t->port->last_error, sizeof(t->port->last_error), "somebody deleted the interface %s", t->ifname);
		LOG(ERR, "port %s: %s", t->port->cfg.name, t->port->last_error);
	}
	if (up == t->up)
		return;
	t->up = up;
	port_link_changed(t->port, up, up);
}

static void tap_free(struct tap *t)
{
	uint16_t i;

	port_watch_free(t->watch);
	for (i = 0; i < t->n_queues; i++) {
		if (t->queues[i].fd >= 0)
			close(t->queues[i].fd); // the last one takes the interface with it
		rte_pktmbuf_free_bulk(t->queues[i].spare, t->queues[i].n_spare);
	}
	if (t->ctl >= 0)
		close(t->ctl);
	rte_free(t);
}

static uint16_t segs_for(const struct tap_queue *q, uint16_t mtu)
{
	return (uint16_t)((mtu + TAP_OVERHEAD) / q->room + 1); // one byte more than a frame has, to see larger ones
}

static struct tap *tap_new(struct port *port, const struct port_config *cfg)
{
	struct tap *t = rte_zmalloc("tap", sizeof(*t) + cfg->queues * sizeof(t->queues[0]), RTE_CACHE_LINE_SIZE);
	uint16_t i;

	if (t == NULL)
		return NULL;
	t->port = port;
	t->ctl = -1;
	t->n_queues = cfg->queues;
	rte_strscpy(t->ifname, cfg->ifname[0] ? cfg->ifname : cfg->name, sizeof(t->ifname));
	for (i = 0; i < t->n_queues; i++) {
		t->queues[i].fd = -1;
		t->queues[i].pool = port_pool(SOCKET_ID_ANY);
		t->queues[i].room = (uint16_t)(port_pool_data_room() - RTE_PKTMBUF_HEADROOM);
		t->queues[i].segs = segs_for(&t->queues[i], cfg->mtu);
	}
	return t;
}

static int check_config(const struct port_config *cfg, struct error *err)
{
	const char *name = cfg->ifname[0] ? cfg->ifname : cfg->name;
	size_t n = strnlen(name, PORT_NAME);
	char value[8];

	if (n == 0 || n >= IFNAMSIZ || strpbrk(name, "/:% \t\n") != NULL || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return error_set(err, EINVAL, "tap.ifname", name, "1 to 15 characters without / : % and space", "is no name for an interface");
	snprintf(value, sizeof(value), "%u", cfg->queues);
	if (cfg->queues == 0 || cfg->queues > PORT_MAX_QUEUES)
		return error_set(err, EINVAL, "port.queues", value, "1..16", "is out of range");
	snprintf(value, sizeof(value), "%u", cfg->mtu);
	if (cfg->mtu < 68 || cfg->mtu > TAP_MTU_MAX)
		return error_set(err, EINVAL, "port.mtu", value, "68..9600", "is out of range");
	return 0;
}

static int create_in(const struct port_config *cfg, struct tap *t, struct error *err)
{
	struct tap_create c = {.tap = t, .cfg = cfg, .err = err};
	int netns = -1, ret;

	if (err != NULL)
		err->code = 0;
	if (cfg->netns[0] && (netns = netns_open(cfg->netns, err)) < 0)
		return netns;
	ret = netns_call(netns, create, &c);
	if (netns >= 0)
		close(netns);
	if (ret < 0 && err != NULL && err->code == 0) // create() was never reached
		error_set(err, -ret, "tap.netns", cfg->netns, "a network namespace, and CAP_SYS_ADMIN to enter it", "cannot be entered: %s",
			  strerror(-ret));
	return ret;
}

static int tap_open(struct port *port, const struct port_config *cfg, struct error *err)
{
	int ret = check_config(cfg, err);
	struct tap *t;
	uint16_t i;

	if (ret < 0)
		return ret;
	if (port_pool(SOCKET_ID_ANY) == NULL || (t = tap_new(port, cfg)) == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a tap port");
	ret = create_in(cfg, t, err);
	if (ret == 0) {
		t->watch = port_watch_new(TAP_CHECK_MS, check_link, t);
		if (t->watch == NULL)
			ret = error_set(err, ENOMEM, NULL, NULL, NULL, "no timer for a tap port");
	}
	if (ret < 0) {
		tap_free(t);
		return ret;
	}
	for (i = 0; i < t->n_queues; i++)
		port->queues[i].priv = &t->queues[i];
	port->n_queues = t->n_queues;
	port->priv = t;
	if (rte_is_zero_ether_addr(&cfg->mac))
		rte_eth_random_addr(port->mac.addr_bytes); // the interface's own is the other side's
	snprintf(port->driver, sizeof(port->driver), "tap");
	port_watch_kick(t->watch);
	return 0;
}

static void tap_close(struct port *port)
{
	tap_free(port->priv);
	port->priv = NULL;
}

static int tap_set_mtu(struct port *port, uint16_t mtu, struct error *err)
{
	struct tap *t = port->priv;
	uint16_t i;
	int ret;

	if (is_up(t) != t->up)
		port_watch_kick(t->watch);
	ret = t->gone ? error_set(err, ENODEV, "tap.ifname", t->ifname, NULL, "has been deleted") : set_if_mtu(t, mtu, err);
	for (i = 0; ret == 0 && i < t->n_queues; i++)
		__atomic_store_n(&t->queues[i].segs, segs_for(&t->queues[i], mtu), __ATOMIC_RELAXED);
	return ret;
}

static void tap_stats(struct port *port, struct port_stats *out)
{
	const struct tap *t = port->priv;
	uint16_t i;

	*out = (struct port_stats){};
	for (i = 0; i < t->n_queues; i++) {
		out->rx_missed += t->queues[i].truncated;
		out->tx_errors += t->queues[i].tx_errors;
	}
}

static void tap_xstats(struct port *port, void (*cb)(void *arg, const char *name, uint64_t value), void *arg)
{
	const struct tap *t = port->priv;
	char name[32];
	uint16_t i;

	for (i = 0; i < t->n_queues; i++) {
		snprintf(name, sizeof(name), "rx_q%u_oversize", i);
		cb(arg, name, t->queues[i].truncated);
		snprintf(name, sizeof(name), "rx_q%u_no_buffer", i);
		cb(arg, name, t->queues[i].no_buffer);
		snprintf(name, sizeof(name), "tx_q%u_errors", i);
		cb(arg, name, t->queues[i].tx_errors);
	}
}

const struct port_ops port_tap_ops = {
	.kind = "tap",
	.open = tap_open,
	.close = tap_close,
	.rx = tap_rx,
	.tx = tap_tx,
	.set_mtu = tap_set_mtu,
	.stats = tap_stats,
	.xstats = tap_xstats,
};
