// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_malloc.h>

#include "base/id_table.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/rcu.h"
#include "graph/counters.h"
#include "port/port_after.h"
#include "port/registry.h"

DROP_REASON(frame_too_long,
	    "The frame is longer than its port's MTU with an Ethernet header and two VLAN tags. A vhost-user guest's "
	    "descriptors that do not make a frame, such as one longer than a packet buffer, are counted here, too.");

DROP_REASON(
	port_no_buffer,
	"No packet buffer was free when the port was polled. Polls are counted, not packets: these wait in the port's "
	"ring, and their sender drops what finds no room there. `corelane explain` names what holds the buffers; "
	"corelaned --mbufs sets their number.");

const struct drop_reason *const frame_too_long = &drop_frame_too_long;

#define WAIT_MS 200   // how long a change of a port waits for workers before it goes on without them
#define GUARD_MS 1000 // and before it is refused

struct port *port_table[PORT_MAX];
struct port_fwd *port_fwds[PORT_MAX];
static struct {
	struct port *port;
	struct port_after after;
} closing[PORT_MAX]; // removed ports that a worker may still see, by id
static struct port_listener *listeners;
bool port_buffers_lacked;
static size_t settings_used; // bytes of port_config.settings

struct port *port_get(uint16_t id)
{
	return id < PORT_MAX ? port_table[id] : NULL;
}

struct port *port_next(const struct port *p)
{
	return id_table_next(port_table, PORT_MAX, p ? p->id + 1u : 1);
}

struct port *port_find(const char *name)
{
	return id_table_find(port_table, PORT_MAX, offsetof(struct port, cfg.name), name);
}

unsigned port_count(void)
{
	return id_table_count(port_table, PORT_MAX);
}

void port_refused_too_long(const struct port *port)
{
	counters->port[port->id].rx_packets++;
	counters->drops[port->id][frame_too_long->id]++;
}

void port_refused(const struct port *port, struct rte_mbuf *m, const struct drop_reason *why)
{
	counters->port[port->id].rx_packets++;
	counters->port[port->id].rx_bytes += m->pkt_len;
	m->port = port->id;
	*meta(m) = (struct pkt_meta){0};
	drop_as(m, why);
	drop_packets(&m, 1);
}

void port_no_buffer(const struct port *port)
{
	counters->drops[port->id][drop_port_no_buffer.id]++;
	__atomic_store_n(&port_buffers_lacked, true, __ATOMIC_RELAXED);
}

void port_listen(struct port_listener *l)
{
	LISTEN(listeners, l);
}

uint16_t port_settings_reserve(size_t size)
{
	size_t at = settings_used;

	settings_used += RTE_ALIGN_CEIL(size, 8u);
	RTE_VERIFY(settings_used <= PORT_SETTINGS_SIZE);
	return (uint16_t)at;
}

static void port_add_ip(struct port_fwd *f, const struct ip_addr *a)
{
	if (a->family == IPV4)
		f->ip4[f->n_ip4++] = ip4_be(a);
	else
		memcpy(f->ip6[f->n_ip6++], a->bytes, 16);
}

static struct port_fwd *port_fwd_build(const struct port *p)
{
	const struct port_config *c = &p->cfg;
	struct port_fwd *f = rte_zmalloc("port_fwd", sizeof(*f), RTE_CACHE_LINE_SIZE);
	struct port_listener *l;
	unsigned i;

	if (f == NULL)
		return NULL;
	f->mac = p->mac;
	f->role = (uint8_t)c->role;
	f->input = p->input;
	f->stateful = c->stateful;
	f->guest_mac = c->guest_mac;
	f->n_guests = (uint8_t)c->n_guests;
	memcpy(f->guests, c->guests, sizeof(f->guests));
	f->host = p->host;
	f->fabric = c->fabric;
	f->vrf = c->role == PORT_FABRIC ? 0 : c->vrf;
	f->bridge = c->role == PORT_FABRIC ? UINT16_MAX : c->bridge;
	f->vlan_be = rte_cpu_to_be_16(c->vlan);
	f->mtu = c->mtu;
	for (i = 0; i < c->n_addrs; i++)
		port_add_ip(f, &c->addrs[i].addr);
	for (i = 0; i < c->n_gateways; i++)
		port_add_ip(f, &c->gateways[i].addr);
	for (l = listeners; l; l = l->next)
		if (l->forward)
			l->forward(c, f);
	return f;
}

static void port_publish_rx(struct port *p, uint16_t mtu, uint16_t mss)
{
	__atomic_store_n(&p->longest, p->cfg.disabled ? 0 : (uint16_t)(mtu + PORT_L2_OVERHEAD), __ATOMIC_RELAXED);
	__atomic_store_n(&p->rx_flags, mss ? META_CLAMP : 0, __ATOMIC_RELAXED);
}

static int port_fwd_publish(struct port *p, struct error *err)
{
	struct port_fwd *old = port_fwds[p->id], *f = port_fwd_build(p);

	if (f == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a port");
	rcu_publish(port_fwds[p->id], f);
	port_publish_rx(p, f->mtu, f->mss);
	if (old)
		rcu_defer(rte_free, old);
	return 0;
}

// Calls guard() of all listeners and waits until all workers have seen it. -EAGAIN if one of them is late.
static int port_guard(struct port *p, const struct port_config *next, struct error *err)
{
	struct port_listener *l;
	bool wait = false;

	for (l = listeners; l; l = l->next)
		if (l->guard)
			wait |= l->guard(p, next);
	return !wait || rcu_wait(GUARD_MS) ? 0
					   : error_set(err, EAGAIN, "port.name", next->name, "the same request later",
						       "a worker has not finished its packets for %u ms", GUARD_MS);
}

struct port_change {
	struct port *port;
	struct port_config old;
	struct port_after after;
	struct port_change *earlier; // those that this one ends, too
};

static struct port_change *changes[PORT_MAX]; // the last one of each port, while workers may not have passed it

static void port_unguard(struct port_change *c)
{
	struct port_change *earlier;
	struct port_listener *l;

	for (; c; c = earlier) {
		for (l = listeners; l; l = l->next)
			if (l->unguard)
				l->unguard(c->port, &c->old);
		earlier = c->earlier;
		free(c);
	}
}

// All workers have passed the change. If they may not have passed a later one of the same port, they may still need
// what the port had in between, so the later one ends this one, too.
static void port_change_passed(void *arg)
{
	struct port_change *c = arg, **end = &c->earlier, *later = changes[c->port->id];

	if (later == NULL || later == c) {
		changes[c->port->id] = NULL;
		port_unguard(c);
		return;
	}
	while (*end)
		end = &(*end)->earlier;
	*end = later->earlier;
	later->earlier = c;
}

static void port_call_closed(struct port *p)
{
	struct port_listener *l;

	for (l = listeners; l; l = l->next)
		if (l->closed)
			l->closed(p);
}

static int port_check_listeners(const struct port *old, const struct port_config *cfg, struct error *err)
{
	struct port_listener *l;
	int ret = 0;

	for (l = listeners; l && ret == 0; l = l->next)
		if (l->check)
			ret = l->check(old, cfg, err);
	return ret;
}

static int port_check_open(const struct port *p, const struct port_config *cfg, struct error *err)
{
	struct port_listener *l;
	int ret = 0;

	for (l = listeners; l && ret == 0; l = l->next)
		if (l->check_open)
			ret = l->check_open(p, cfg, err);
	return ret;
}

static int port_settle(struct port *p, struct error *err)
{
	struct port_listener *l;
	int ret = 0;

	for (l = listeners; l && ret == 0; l = l->next)
		if (l->settle)
			ret = l->settle(p, err);
	return ret;
}

// Ids are used in turn, so that a packet that still names a removed port does not reach a new one. 0 = all are in use.
static uint16_t port_next_id(void)
{
	static uint16_t last;
	unsigned tries;

	for (tries = 1; tries < PORT_MAX; tries++) {
		last = (uint16_t)(last % (PORT_MAX - 1) + 1);
		if (port_table[last] == NULL && !closing[last].port)
			return last;
	}
	return 0;
}

static struct port *port_new(const struct port_config *cfg, struct error *err)
{
	struct port *p = rte_zmalloc("port", sizeof(*p), RTE_CACHE_LINE_SIZE);
	uint16_t id = port_next_id(), i;

	if (p == NULL || id == 0) {
		rte_free(p);
		error_full(err, id ? ENOMEM : ENOSPC, "port", NULL, PORT_MAX - 1, "ports");
		return NULL;
	}
	p->id = id;
	p->cfg = *cfg;
	if (cfg->role == PORT_HOST)
		p->mac = port_get(cfg->fabric)->mac;
	p->role = p->input = (uint8_t)cfg->role;
	p->ops = port_kind_find(cfg->kind);
	p->n_queues = cfg->queues;
	p->numa = SOCKET_ID_ANY;
	port_publish_rx(p, cfg->mtu, 0);
	p->host_worker = SPREAD_LOCAL;
	for (i = 0; i < PORT_MAX_QUEUES; i++) {
		p->queues[i].port = p;
		p->queues[i].index = i;
		p->queues[i].rx_worker = p->queues[i].owner = WORKER_NONE;
		rte_spinlock_init(&p->queues[i].tx_lock);
	}
	return p;
}

static void port_set_mac(struct port *p)
{
	if (!rte_is_zero_ether_addr(&p->cfg.mac))
		p->mac = p->cfg.mac;
	else if (p->cfg.role == PORT_TENANT)
		p->mac = gateway_mac;
}

static void port_update_up(struct port *p)
{
	struct port_listener *l;
	bool up = p->link_up && !p->cfg.disabled;

	if (up == p->up)
		return;
	__atomic_store_n(&p->up, up, __ATOMIC_RELAXED);
	LOG(INFO, "port %s is %s", p->cfg.name, up ? "up" : "down");
	for (l = listeners; l; l = l->next)
		if (l->link && port_table[p->id] == p)
			l->link(p);
}

void port_link_changed(struct port *p, bool link_up, bool peer_connected)
{
	p->peer_connects += peer_connected && !p->peer_connected;
	p->peer_disconnects += !peer_connected && p->peer_connected;
	p->peer_connected = peer_connected;
	p->link_up = link_up;
	port_update_up(p);
}

// Called when no worker polls the port or sends to it any more.
static void port_close(void *arg)
{
	struct port *p = arg;
	struct port_fwd *fwd;

	port_call_closed(p);
	p->ops->close(p);
	fwd = port_fwds[p->id];
	rcu_publish(port_fwds[p->id], NULL);
	rcu_defer(rte_free, fwd);
	closing[p->id].port = NULL;
	LOG(INFO, "port %s is closed", p->cfg.name);
	rte_free(p);
}

static void port_remove(struct port *p)
{
	struct port_listener *l;

	for (l = listeners; l; l = l->next)
		if (l->unused)
			l->unused(p);
	for (l = listeners; l; l = l->next)
		if (l->removed)
			l->removed(p);
	rcu_publish(port_table[p->id], NULL);
	closing[p->id].port = p;
	port_after_add(&closing[p->id].after, port_close, p);
	port_poll(); // at once, if there are no workers
}

static bool same_device(const struct port_config *a, const struct port_config *b)
{
	return strcmp(a->kind, b->kind) == 0 && a->parent == b->parent && a->tag == b->tag &&
	       a->outer_tag == b->outer_tag && strcmp(a->ifname, b->ifname) == 0 && strcmp(a->netns, b->netns) == 0 &&
	       strcmp(a->socket, b->socket) == 0 && strcmp(a->devargs, b->devargs) == 0;
}

// A device that a removed port still has open cannot be opened again. -EAGAIN if a worker still uses it.
static int port_wait_closed(const struct port_config *cfg, struct error *err)
{
	unsigned i;

	for (i = 0; i < PORT_MAX; i++) {
		if (closing[i].port == NULL || !same_device(&closing[i].port->cfg, cfg))
			continue;
		if (!rcu_wait(GUARD_MS))
			return error_set(err, EAGAIN, "port.name", cfg->name, "the same request later",
					 "a port with this device is being removed, and a worker has not finished its "
					 "packets for %u ms",
					 GUARD_MS);
		while (closing[i].port)
			port_poll();
	}
	return 0;
}

struct port *port_add(const struct port_config *wanted, struct error *err)
{
	struct port_config cfg = *wanted;
	struct port_listener *l;
	struct port *p;

	if (port_config_check(&cfg, err) < 0)
		return NULL;
	if (port_find(cfg.name)) {
		error_set(err, EEXIST, "port.name", cfg.name, "a new name", "is taken");
		return NULL;
	}
	if (port_check_listeners(NULL, &cfg, err) < 0 || port_wait_closed(&cfg, err) < 0)
		return NULL;
	p = port_new(&cfg, err);
	if (p == NULL)
		return NULL;
	if (p->ops->open(p, &cfg, err) < 0) {
		rte_free(p);
		return NULL;
	}
	port_set_mac(p);
	counters_port_reset(p->id);
	if (port_check_open(p, &cfg, err) < 0 || port_guard(p, &cfg, err) < 0 || port_fwd_publish(p, err) < 0) {
		port_call_closed(p);
		p->ops->close(p);
		rte_free(p);
		return NULL;
	}
	rcu_publish(port_table[p->id], p);
	LOG(INFO, "port %s: %s, %u queues", cfg.name, p->driver, p->n_queues);
	for (l = listeners; l; l = l->next)
		if (l->added)
			l->added(p);
	if (port_settle(p, err) == 0)
		return p;
	port_remove(p);
	return NULL;
}

// The port keeps its configuration if this fails. Frees `change`.
static int port_apply(struct port *p, const struct port_config *cfg, struct port_change *change, struct error *err)
{
	const struct port_config *old = &change->old;
	struct port_listener *l;
	int ret = port_guard(p, cfg, err);

	if (ret == 0) {
		p->cfg = *cfg;
		ret = port_fwd_publish(p, err);
	}
	if (ret < 0) {
		p->cfg = *old;
		change->old = *cfg;
		port_change_passed(change); // no worker has seen it
		return ret;
	}
	port_update_up(p);
	for (l = listeners; l; l = l->next)
		if (l->changed)
			l->changed(p, old);
	changes[p->id] = change;
	port_after_add(&change->after, port_change_passed, change);
	port_poll();
	return port_settle(p, err);
}

int port_set(struct port *p, const struct port_config *wanted, struct error *err)
{
	struct port_change *change = malloc(sizeof(*change));
	struct port_config cfg = *wanted;
	int ret = change ? port_config_check(&cfg, err)
			 : error_set(err, ENOMEM, NULL, NULL, NULL, "no memory to change a port");

	if (ret == 0)
		ret = port_check_listeners(p, &cfg, err);
	if (ret == 0)
		ret = port_check_open(p, &cfg, err);
	if (ret == 0 && cfg.mtu != p->cfg.mtu && p->ops->set_mtu)
		ret = p->ops->set_mtu(p, cfg.mtu, err);
	if (ret < 0) {
		free(change);
		return ret;
	}
	*change = (struct port_change){.port = p, .old = p->cfg};
	ret = port_apply(p, &cfg, change, err);
	if (ret < 0 && cfg.mtu != p->cfg.mtu && p->ops->set_mtu)
		p->ops->set_mtu(p, p->cfg.mtu, NULL);
	return ret;
}

int port_set_host(struct port *fabric, uint16_t host, struct error *err)
{
	uint16_t old = fabric->host;
	int ret;

	fabric->host = host;
	ret = port_fwd_publish(fabric, err);
	if (ret < 0)
		fabric->host = old;
	return ret;
}

int port_set_input(struct port *p, uint8_t input, struct error *err)
{
	uint8_t old = p->input;
	int ret;

	__atomic_store_n(&p->input, input, __ATOMIC_RELAXED);
	ret = port_fwd_publish(p, err);
	if (ret < 0)
		__atomic_store_n(&p->input, old, __ATOMIC_RELAXED);
	return ret;
}

int port_del(const char *name, struct error *err)
{
	struct port *p = port_find(name);
	struct port_listener *l;
	int ret = 0;

	if (p == NULL)
		return error_set(err, ENOENT, "port.name", name, NULL, "there is no such port");
	for (l = listeners; l && ret == 0; l = l->next)
		if (l->check_del)
			ret = l->check_del(p, err);
	if (ret == 0)
		port_remove(p);
	return ret;
}

void port_del_all(void)
{
	struct port *p, *sub;

	while ((p = port_next(NULL)) != NULL) {
		while ((sub = port_next_sub(p, NULL)) != NULL)
			port_remove(sub);
		port_remove(p);
	}
	while (rcu_passed(rcu_token()) && !port_change_done(port_last_change()))
		;
}
