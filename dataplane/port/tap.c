// SPDX-License-Identifier: Apache-2.0
// Tap ports: their queues, link state, removal. tap_device.c makes the interface.
//
// The kernel hands over large segments and unfinished checksums if the port offers that (tun(4): IFF_VNET_HDR,
// TUNSETOFFLOAD). The descriptors keep working when the interface is renamed or moved to another namespace.
#include "port/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_malloc.h>
#include <rte_string_fns.h>

#include "base/check.h"
#include "base/event.h"
#include "base/log.h"
#include "base/wake_fd.h"
#include "port/tap_device.h"

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

enum port_taps port_taps;

// Watched by level: the edge of a packet that was polled already would wake the worker for nothing.
static int tap_watch_queue(struct tap_queue *q, struct error *err)
{
	int ret = q->wake_fd = wake_fd_new();

	if (ret >= 0)
		ret = wake_fd_watch(q->wake_fd, q->fd, false);
	return ret == 0 ? 0
			: error_set(err, -ret, NULL, NULL, NULL, "no descriptor for a tap port: %s", strerror(-ret));
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
			close(t->queues[i].fd); // closing the last one removes the interface, unless it outlives them
		if (t->queues[i].wake_fd >= 0)
			close(t->queues[i].wake_fd);
		rte_pktmbuf_free_bulk(t->queues[i].spare + t->queues[i].used, TAP_SPARE - t->queues[i].used);
	}
	rte_free(t);
}

// Large segments and unfinished checksums are for guests: the fabric's packets, and those of the host, are whole.
static bool tap_has_header(const struct port_config *cfg)
{
	return cfg->role == PORT_TENANT && cfg->offload != PORT_OFFLOAD_NONE;
}

static uint16_t segs_for(const struct tap_queue *q, uint16_t mtu)
{
	unsigned longest = q->vnet ? VNET_LONGEST : (unsigned)(mtu + PORT_L2_OVERHEAD);

	return (uint16_t)(longest / q->room + 1); // one byte more than a frame, to detect longer ones
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
		t->queues[i].vnet = tap_has_header(cfg);
		t->queues[i].used = TAP_SPARE;
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

static int tap_create_in(const struct port_config *cfg, struct tap *t, struct error *err)
{
	// Without a hypervisor the guest is the kernel itself: the interface gets its MAC.
	struct tap_request r = {.queues = t->n_queues,
				.mtu = cfg->mtu,
				.vnet = tap_has_header(cfg),
				.adopt = port_taps == PORT_TAPS_OUTLIVE,
				.mac = cfg->role == PORT_HOST ? t->port->mac : cfg->guest_mac};
	int fds[PORT_MAX_QUEUES], ret;
	uint16_t i;

	rte_strscpy(r.ifname, t->ifname, sizeof(r.ifname));
	rte_strscpy(r.netns, cfg->netns, sizeof(r.netns));
	ret = port_rights.tap_create(&r, fds, err);
	if (ret < 0)
		return ret;
	for (i = 0; i < t->n_queues; i++)
		t->queues[i].fd = fds[i];
	if (r.vnet)
		__atomic_store_n(&t->port->takes, tap_device_offer(fds[0], cfg->offload == PORT_OFFLOAD_ALL),
				 __ATOMIC_RELAXED);
	for (i = 0; i < t->n_queues && ret == 0; i++)
		ret = tap_watch_queue(&t->queues[i], err);
	return ret;
}

// An interface of before this process that cannot be opened now is left as it is.
static void tap_outlive(const struct tap *t)
{
	int ret = port_taps == PORT_TAPS_OUTLIVE ? tap_device_persist(t->queues[0].fd, true) : 0;

	if (ret < 0)
		LOG(WARNING, "tap %s: the interface ends with this process: %s", t->ifname, strerror(-ret));
}

// Replaces the old interface's descriptors by the new one's while workers use them.
static void tap_replace_queues(struct tap *t, const struct tap *fresh)
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
	if (tap_create_in(cfg, fresh, &err) == 0) {
		tap_outlive(fresh);
		tap_replace_queues(t, fresh);
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
	ret = port_pool_keep(port, cfg->queues, TAP_SPARE, err);
	if (ret == 0)
		ret = tap_create_in(cfg, t, err);
	if (ret == 0) {
		t->watch = port_watch_new(TAP_CHECK_MS, tap_check_link, t);
		if (t->watch == NULL)
			ret = error_set(err, ENOMEM, NULL, NULL, NULL, "no timer for a tap port");
	}
	if (ret < 0) {
		port_pool_release(port);
		tap_free(t);
		return ret;
	}
	tap_outlive(t);
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
	const struct tap *t = port->priv;

	if (port_taps == PORT_TAPS_OUTLIVE)
		tap_device_persist(t->queues[0].fd, false);
	tap_free(port->priv);
	port_pool_release(port);
	port->priv = NULL;
}

static int tap_set_mtu(struct port *port, uint16_t mtu, struct error *err)
{
	struct tap *t = port->priv;
	int ret = port_rights.tap_set_mtu(t->queues[0].fd, mtu, err);
	uint16_t i;

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
