// SPDX-License-Identifier: Apache-2.0
// Tap ports: creation in any network namespace, link state, removal.
//
// The kernel delivers whole frames with complete checksums, because no offload is offered (no IFF_VNET_HDR). The
// descriptors keep working when the interface is renamed or moved to another namespace; TUNGETDEVNETNS finds it again.
#include "port/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if_arp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_malloc.h>
#include <rte_string_fns.h>

#include "base/check.h"
#include "base/event.h"
#include "base/wake_fd.h"

#define TAP_CHECK_MS 250 // how soon a change of the link is noticed
#define RESTORE_EVERY 4  // checks between attempts to recreate an interface

EVENT_KIND(port_interface_deleted, ERROR,
	   "The kernel's interface of a tap port was deleted. Remove a tenant port and add it again; a host port's "
	   "interface is recreated automatically.");
EVENT_KIND(port_interface_restored, WARNING,
	   "The deleted interface of a host port was recreated. Its addresses, routes and neighbours were "
	   "deleted with the old one: configure them again.");
EVENT_KIND(port_interface_not_restored, ERROR,
	   "The deleted interface of a host port cannot be recreated, perhaps because its network namespace was "
	   "deleted. The daemon retries each second.");

// A call inside the interface's namespace.
struct tap_call {
	struct tap *tap;
	const struct port_config *cfg;
	uint16_t mtu;
	struct error *err;
	int ctl; // a socket there; not kept, because it would keep the namespace alive
};

// Watched by level: the edge of a packet that was polled already would wake the worker for nothing.
static int watch_queue(struct tap_queue *q, struct error *err)
{
	int ret = q->wake_fd = wake_fd_new();

	if (ret >= 0)
		ret = wake_fd_watch(q->wake_fd, q->fd, false);
	return ret == 0 ? 0
			: error_set(err, -ret, NULL, NULL, NULL, "no descriptor for a tap port: %s", strerror(-ret));
}

static int tap_open_queue(struct tap *t, uint16_t i, struct error *err)
{
	struct ifreq ifr = {.ifr_flags = (short)(IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE | (i == 0 ? IFF_TUN_EXCL : 0))};
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	t->queues[i].fd = fd;
	if (fd < 0)
		return error_set(err, errno, "port.kind", "tap",
				 "a kernel with the tun module (modprobe tun), and root's rights",
				 "/dev/net/tun cannot be opened: %s", strerror(errno));
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", t->ifname);
	if (ioctl(fd, TUNSETIFF, &ifr) == 0)
		return watch_queue(&t->queues[i], err);
	if (errno == EBUSY || errno == EEXIST || errno == EINVAL)
		return error_set(err, EEXIST, "tap.ifname", t->ifname, "a name that is free in the namespace",
				 "exists already");
	return error_set(err, errno, "tap.ifname", t->ifname, "CAP_NET_ADMIN in the namespace", "cannot be created: %s",
			 strerror(errno));
}

static int if_ioctl(const struct tap_call *c, unsigned long request, struct ifreq *ifr)
{
	struct ifreq name = {};

	if (ioctl(c->tap->queues[0].fd, TUNGETIFF, &name) < 0)
		return -errno;
	memcpy(ifr->ifr_name, name.ifr_name, sizeof(ifr->ifr_name));
	return ioctl(c->ctl, request, ifr) < 0 ? -errno : 0;
}

static int set_if_mtu(const struct tap_call *c)
{
	struct ifreq ifr = {.ifr_mtu = c->mtu};
	int ret = if_ioctl(c, SIOCSIFMTU, &ifr);
	char value[8];

	snprintf(value, sizeof(value), "%u", c->mtu);
	return ret == 0 ? 0
			: error_set(c->err, -ret, "port.mtu", value, NULL, "%s refuses it: %s", c->tap->ifname,
				    strerror(-ret));
}

static int set_if_mac(const struct tap_call *c, const struct rte_ether_addr *mac)
{
	struct ifreq ifr = {.ifr_hwaddr.sa_family = ARPHRD_ETHER};
	char text[18];
	int ret;

	memcpy(ifr.ifr_hwaddr.sa_data, mac, sizeof(*mac));
	ret = if_ioctl(c, SIOCSIFHWADDR, &ifr);
	return ret == 0 ? 0
			: error_set(c->err, -ret, "port.guest_mac", mac_format(mac, text), "a unicast address",
				    "%s refuses it: %s", c->tap->ifname, strerror(-ret));
}

static int set_if_up(const struct tap_call *c)
{
	struct ifreq ifr = {};
	int ret = if_ioctl(c, SIOCGIFFLAGS, &ifr);

	ifr.ifr_flags |= IFF_UP;
	if (ret == 0)
		ret = if_ioctl(c, SIOCSIFFLAGS, &ifr);
	return ret == 0 ? 0
			: error_set(c->err, -ret, "tap.ifname", c->tap->ifname, NULL, "cannot be brought up: %s",
				    strerror(-ret));
}

static int with_socket(struct tap_call *c, int (*fn)(const struct tap_call *c))
{
	int ret;

	c->ctl = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (c->ctl < 0)
		return error_set(c->err, errno, NULL, NULL, NULL, "no socket: %s", strerror(errno));
	ret = fn(c);
	close(c->ctl);
	return ret;
}

static int create_queues(const struct tap_call *c)
{
	const struct rte_ether_addr *mac = c->cfg->role == PORT_HOST ? &c->tap->port->mac : &c->cfg->guest_mac;
	struct tap *t = c->tap;
	int ret = 0;
	uint16_t i;

	for (i = 0; i < t->n_queues && ret == 0; i++)
		ret = tap_open_queue(t, i, c->err);
	if (ret == 0)
		ret = set_if_mtu(c);
	// Without a hypervisor the guest is the kernel itself: the interface gets its MAC.
	if (ret == 0 && !rte_is_zero_ether_addr(mac))
		ret = set_if_mac(c, mac);
	return ret < 0 ? ret : set_if_up(c);
}

static int tap_create(void *arg)
{
	return with_socket(arg, create_queues);
}

static int change_mtu(void *arg)
{
	return with_socket(arg, set_if_mtu);
}

// tun(4) reports POLLOUT while the interface is up, and POLLERR once it is deleted, in whatever namespace it is.
static bool tap_is_up(struct tap *t)
{
	struct pollfd p = {.fd = t->queues[0].fd, .events = POLLOUT};

	if (poll(&p, 1, 0) < 0)
		return t->up;
	t->gone = (p.revents & POLLERR) != 0;
	return (p.revents & POLLOUT) != 0 && !t->gone;
}

static void tap_free(struct tap *t)
{
	uint16_t i;

	port_watch_free(t->watch);
	for (i = 0; i < t->n_queues; i++) {
		if (t->queues[i].fd >= 0)
			close(t->queues[i].fd); // closing the last one removes the interface
		if (t->queues[i].wake_fd >= 0)
			close(t->queues[i].wake_fd);
		rte_pktmbuf_free_bulk(t->queues[i].spare, t->queues[i].n_spare);
	}
	rte_free(t);
}

static uint16_t segs_for(const struct tap_queue *q, uint16_t mtu)
{
	return (uint16_t)((mtu + PORT_L2_OVERHEAD) / q->room + 1); // one byte more than a frame, to detect longer ones
}

static struct tap *tap_new(struct port *port, const struct port_config *cfg)
{
	struct tap *t = rte_zmalloc("tap", sizeof(*t) + cfg->queues * sizeof(t->queues[0]), RTE_CACHE_LINE_SIZE);
	uint16_t i;

	if (t == NULL)
		return NULL;
	t->port = port;
	t->n_queues = cfg->queues;
	rte_strscpy(t->ifname, cfg->ifname[0] ? cfg->ifname : cfg->name, sizeof(t->ifname));
	for (i = 0; i < t->n_queues; i++) {
		t->queues[i].fd = t->queues[i].wake_fd = -1;
		t->queues[i].pool = port_pool(SOCKET_ID_ANY);
		t->queues[i].room = (uint16_t)(port_pool_data_room() - RTE_PKTMBUF_HEADROOM);
		t->queues[i].segs = segs_for(&t->queues[i], cfg->mtu);
	}
	return t;
}

// The port's name, which is the default, may be no name of an interface.
static int tap_check_ifname(const struct port_config *cfg, struct error *err)
{
	const char *name = cfg->ifname[0] ? cfg->ifname : cfg->name;
	int ret = check_text("tap.ifname", name, NOTATION_INTERFACE, err);

	if (ret == 0 && (strcmp(name, ".") == 0 || strcmp(name, "..") == 0))
		return error_set(err, EINVAL, "tap.ifname", name, NOTATION_INTERFACE_VALID,
				 "is not the name of an interface");
	return ret;
}

static int create_in(const struct port_config *cfg, struct tap *t, struct error *err)
{
	struct tap_call c = {.tap = t, .cfg = cfg, .mtu = cfg->mtu, .err = err};
	int netns = -1, ret;

	if (err != NULL)
		err->code = 0;
	if (cfg->netns[0] && (netns = netns_open(cfg->netns, err)) < 0)
		return netns;
	ret = netns_call(netns, tap_create, &c);
	if (netns >= 0)
		close(netns);
	if (ret < 0 && err != NULL && err->code == 0) // tap_create() was never reached
		error_set(err, -ret, "tap.netns", cfg->netns, "a network namespace, and CAP_SYS_ADMIN to enter it",
			  "cannot be entered: %s", strerror(-ret));
	return ret;
}

// Replaces the old interface's descriptors by the new one's while workers use them.
static void replace_queues(struct tap *t, const struct tap *fresh)
{
	uint16_t i;

	for (i = 0; i < t->n_queues; i++) {
		if (dup3(fresh->queues[i].fd, t->queues[i].fd, O_CLOEXEC) >= 0)
			// The old descriptor is no longer watched.
			wake_fd_watch(t->queues[i].wake_fd, t->queues[i].fd, false);
		port_queue_changed(&t->port->queues[i]);
	}
}

// Recreates a host port's interface. A guest's interface may have been deleted for good.
static void tap_restore(struct tap *t)
{
	const struct port_config *cfg = &t->port->cfg;
	struct error err = {0};
	struct tap *fresh;

	if (cfg->role != PORT_HOST || t->tries++ % RESTORE_EVERY != 0 || (fresh = tap_new(t->port, cfg)) == NULL)
		return;
	if (create_in(cfg, fresh, &err) == 0) {
		replace_queues(t, fresh);
		t->gone = false;
		t->tries = 0;
		snprintf(t->port->last_error, sizeof(t->port->last_error),
			 "somebody deleted the interface %s; it was recreated without its addresses", t->ifname);
		event_report(port_interface_restored, cfg->name, "the interface %s was recreated; it has no addresses",
			     t->ifname);
	} else if (t->tries == 1) {
		event_report(port_interface_not_restored, cfg->name, "%s", err.message);
	}
	tap_free(fresh);
}

static void tap_check_link(void *arg)
{
	struct tap *t = arg;
	bool up, was_gone = t->gone;

	if (t->gone)
		tap_restore(t);
	if (t->gone)
		return;
	up = tap_is_up(t);
	if (t->gone && !was_gone) {
		snprintf(t->port->last_error, sizeof(t->port->last_error), "somebody deleted the interface %s",
			 t->ifname);
		event_report(port_interface_deleted, t->port->cfg.name, "%s", t->port->last_error);
	}
	if (up == t->up)
		return;
	t->up = up;
	port_link_changed(t->port, up, up);
}

static int tap_open(struct port *port, const struct port_config *cfg, struct error *err)
{
	int ret = tap_check_ifname(cfg, err);
	struct tap *t;
	uint16_t i;

	if (ret < 0)
		return ret;
	if (port_pool(SOCKET_ID_ANY) == NULL || (t = tap_new(port, cfg)) == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a tap port");
	ret = create_in(cfg, t, err);
	if (ret == 0) {
		t->watch = port_watch_new(TAP_CHECK_MS, tap_check_link, t);
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
	if (rte_is_zero_ether_addr(&cfg->mac) && cfg->role != PORT_HOST)
		rte_eth_random_addr(port->mac.addr_bytes); // the interface's own MAC belongs to the other side
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
	struct tap_call c = {.tap = t, .cfg = &port->cfg, .mtu = mtu, .err = err};
	int netns = ioctl(t->queues[0].fd, TUNGETDEVNETNS), ret;
	uint16_t i;

	if (netns < 0)
		return error_set(err, ENODEV, "tap.ifname", t->ifname, NULL, "has been deleted");
	if (err != NULL)
		err->code = 0;
	ret = netns_call(netns, change_mtu, &c);
	close(netns);
	if (ret < 0 && err != NULL && err->code == 0)
		error_set(err, -ret, "port.mtu", NULL, NULL, "the namespace of %s cannot be entered: %s", t->ifname,
			  strerror(-ret));
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
	.arm = tap_arm,
	.disarm = tap_disarm,
	.set_mtu = tap_set_mtu,
	.stats = tap_stats,
	.xstats = tap_xstats,
};
