// SPDX-License-Identifier: Apache-2.0
// Sub-ports: ports whose device is another tenant port, their parent, and one or two VLAN tags. eth/vlan_input.c finds
// the sub-port of a received frame; here the tags are put into what is sent.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_malloc.h>

#include "base/rcu.h"
#include "graph/capture.h"
#include "graph/counters.h"
#include "port/registry.h"

DROP_REASON(vlan_no_headroom, "A buffer had no room for the VLAN tag of the sub-port that the packet should leave by.");

struct trunk *port_trunks[PORT_MAX];

struct subport { // workers: ro
	uint16_t parent;
	uint8_t len; // bytes of the tags
	rte_be16_t tags[4];
};

// --- Sending. ---

#define MACS (2 * RTE_ETHER_ADDR_LEN)

static inline bool subport_tag(const struct subport *s, struct rte_mbuf *m)
{
	char *start = rte_pktmbuf_prepend(m, s->len);

	if (unlikely(start == NULL))
		return false;
	memmove(start, start + s->len, MACS);
	memcpy(start + MACS, s->tags, s->len);
	return true;
}

static void subport_untag(const struct subport *s, struct rte_mbuf *m)
{
	char *start = rte_pktmbuf_mtod(m, char *);

	memmove(start + s->len, start, MACS);
	rte_pktmbuf_adj(m, s->len);
}

// Tags all packets. Returns how many could not be tagged and were dropped; the others are at the end then, in order.
static uint16_t subport_tag_all(const struct subport *s, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i, at = n;

	for (i = n; i-- > 0;) {
		if (likely(subport_tag(s, pkts[i]))) {
			pkts[--at] = pkts[i];
			continue;
		}
		drop(pkts[i], vlan_no_headroom);
		drop_packets(&pkts[i], 1);
	}
	return at;
}

static uint16_t subport_send(struct port *parent, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct port_queue *q = &parent->queues[queue];
	uint16_t sent;

	if (likely(!(__atomic_load_n(&parent->tx_flags, __ATOMIC_RELAXED) & PORT_TX_SHARED)))
		return parent->ops->tx(q, pkts, n);
	rte_spinlock_lock(&q->tx_lock);
	sent = parent->ops->tx(q, pkts, n);
	rte_spinlock_unlock(&q->tx_lock);
	return sent;
}

// The parent counts the frames of its sub-ports, too, with their tags.
static uint16_t subport_transmit(struct port *parent, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct port_counters *c = &counters->port[parent->id];
	uint64_t bytes = 0, left = 0;
	uint16_t i, sent;

	if (unlikely(capture_active))
		capture_batch(CAPTURE_TX, parent->id, pkts, n);
	for (i = 0; i < n; i++)
		bytes += pkts[i]->pkt_len;
	sent = subport_send(parent, queue, pkts, n);
	for (i = sent; i < n; i++)
		left += pkts[i]->pkt_len;
	c->tx_packets += sent;
	c->tx_bytes += bytes - left;
	c->tx_refused += n - sent;
	return sent;
}

// Packets that are dropped here count as sent.
static uint16_t subport_tx(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	const struct subport *s = q->priv;
	struct port *parent = rcu_read(port_table[s->parent]);
	uint16_t i, dropped, sent, takes;

	if (unlikely(parent == NULL || !parent->up))
		return 0;
	takes = __atomic_load_n(&parent->takes, __ATOMIC_RELAXED);
	if (unlikely(takes != __atomic_load_n(&q->port->takes, __ATOMIC_RELAXED))) {
		__atomic_store_n(&q->port->takes, takes, __ATOMIC_RELAXED); // these packets were made for another peer
		return 0;
	}
	dropped = subport_tag_all(s, pkts, n);
	sent = dropped + subport_transmit(parent, q->index, pkts + dropped, n - dropped);
	for (i = sent; i < n; i++)
		subport_untag(s, pkts[i]);
	return sent;
}

// --- The device. ---

static void subport_follow(struct port *port, const struct port *parent)
{
	__atomic_store_n(&port->takes, __atomic_load_n(&parent->takes, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	port_link_changed(port, parent->up, parent->peer_connected);
}

static int subport_open(struct port *port, const struct port_config *cfg, struct error *err)
{
	struct subport *s = rte_zmalloc("subport", sizeof(*s), 0);
	const struct port *parent = port_get(cfg->parent);
	unsigned i, n = 0;

	if (s == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a port");
	s->parent = cfg->parent;
	if (cfg->outer_tag) {
		s->tags[n++] = RTE_BE16(RTE_ETHER_TYPE_QINQ);
		s->tags[n++] = rte_cpu_to_be_16(cfg->outer_tag);
	}
	s->tags[n++] = RTE_BE16(RTE_ETHER_TYPE_VLAN);
	s->tags[n++] = rte_cpu_to_be_16(cfg->tag);
	s->len = (uint8_t)(n * sizeof(s->tags[0]));
	port->priv = s;
	port->n_queues = parent->n_queues;
	for (i = 0; i < port->n_queues; i++)
		port->queues[i].priv = s;
	port->numa = parent->numa;
	snprintf(port->driver, sizeof(port->driver), "vlan");
	subport_follow(port, parent);
	return 0;
}

static void subport_close(struct port *port)
{
	rte_free(port->priv);
}

const struct port_ops port_subport_ops = {
	.kind = "subport", .open = subport_open, .close = subport_close, .tx = subport_tx};

// --- The parent. ---

struct port *port_next_sub(const struct port *parent, const struct port *last)
{
	struct port *p = port_next(last);

	while (p && p->cfg.parent != parent->id)
		p = port_next(p);
	return p;
}

static int subport_check_new(const struct port_config *cfg, struct error *err)
{
	const struct port *parent = port_get(cfg->parent), *p;
	char text[16];

	snprintf(text, sizeof(text), "%u", cfg->tag);
	for (p = port_next_sub(parent, NULL); p; p = port_next_sub(parent, p))
		if (p->cfg.tag == cfg->tag && p->cfg.outer_tag == cfg->outer_tag)
			return error_set(err, EEXIST, "port.subport.vlan", text, "a tag that no other sub-port has",
					 "is the tag of the sub-port '%s'", p->cfg.name);
	return 0;
}

// No sub-port has a larger MTU than its parent. Tags do not count.
static int subport_check(const struct port *old, const struct port_config *cfg, struct error *err)
{
	const struct port *parent = cfg->parent ? port_get(cfg->parent) : NULL, *p;
	char text[16], valid[32];
	int ret = 0;

	snprintf(text, sizeof(text), "%u", cfg->mtu);
	if (parent && old == NULL)
		ret = subport_check_new(cfg, err);
	if (parent && ret == 0 && cfg->mtu > parent->cfg.mtu) {
		snprintf(valid, sizeof(valid), "up to %u", parent->cfg.mtu);
		return error_set(err, EINVAL, "port.mtu", text, valid, "is larger than that of the parent '%s'",
				 parent->cfg.name);
	}
	for (p = old && ret == 0 ? port_next_sub(old, NULL) : NULL; p; p = port_next_sub(old, p)) {
		if (p->cfg.mtu <= cfg->mtu)
			continue;
		snprintf(valid, sizeof(valid), "%u or more", p->cfg.mtu);
		return error_set(err, EINVAL, "port.mtu", text, valid, "is smaller than that of the sub-port '%s'",
				 p->cfg.name);
	}
	return ret;
}

static int subport_check_del(const struct port *port, struct error *err)
{
	const struct port *sub = port_next_sub(port, NULL);

	return sub ? error_set(err, EBUSY, "port.name", port->cfg.name, "remove its sub-ports first",
			       "has the sub-port '%s'", sub->cfg.name)
		   : 0;
}

static void subport_link(struct port *port)
{
	struct port *p;

	for (p = port_next_sub(port, NULL); p; p = port_next_sub(port, p))
		subport_follow(p, port);
}

static uint16_t *subport_entry(const struct port *p)
{
	struct trunk *t = port_trunks[p->cfg.parent];
	uint16_t *list = t == NULL ? NULL : p->cfg.outer_tag ? t->twice[p->cfg.outer_tag] : t->once;

	return list ? &list[p->cfg.tag] : NULL;
}

// Makes room for the port's tags.
static int subport_make_entry(const struct port *p, struct error *err)
{
	struct trunk *t = port_trunks[p->cfg.parent];
	uint16_t *list;

	if (t == NULL) {
		t = rte_zmalloc("trunk", sizeof(*t), 0);
		rcu_publish(port_trunks[p->cfg.parent], t);
	}
	if (t && p->cfg.outer_tag && t->twice[p->cfg.outer_tag] == NULL) {
		list = rte_zmalloc("trunk", TAGS * sizeof(*list), 0);
		rcu_publish(t->twice[p->cfg.outer_tag], list);
	}
	return subport_entry(p) ? 0 : error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a port");
}

static void trunk_free(void *arg)
{
	struct trunk *t = arg;
	unsigned i;

	for (i = 0; i < TAGS; i++)
		rte_free(t->twice[i]);
	rte_free(t);
}

// From now on the tags of the parent's frames are those of its sub-ports.
static int subport_settle(struct port *p, struct error *err)
{
	struct port *parent = p->cfg.parent ? port_get(p->cfg.parent) : NULL;
	int ret = parent ? subport_make_entry(p, err) : 0;

	if (parent == NULL || ret < 0)
		return ret;
	port_set_tx_flag(parent, PORT_TX_TRUNK, true);
	if (parent->input != PORT_INPUT_TRUNK)
		ret = port_set_input(parent, PORT_INPUT_TRUNK, err);
	if (ret == 0)
		__atomic_store_n(subport_entry(p), p->id, __ATOMIC_RELEASE);
	return ret;
}

// An 802.1ad tag has a list while sub-ports have this tag.
static void subport_drop_list(struct trunk *t, const struct port *parent, const struct port *p)
{
	uint16_t *list = t && p->cfg.outer_tag ? t->twice[p->cfg.outer_tag] : NULL;
	const struct port *other;

	for (other = port_next_sub(parent, NULL); other; other = port_next_sub(parent, other))
		if (other != p && other->cfg.outer_tag == p->cfg.outer_tag)
			return;
	if (list == NULL)
		return;
	rcu_publish(t->twice[p->cfg.outer_tag], NULL);
	rcu_defer(rte_free, list);
}

static void subport_unused(struct port *p)
{
	struct port *parent = p->cfg.parent ? port_get(p->cfg.parent) : NULL;
	struct trunk *t = port_trunks[p->cfg.parent];
	uint16_t *entry = subport_entry(p);
	const struct port *other;

	if (parent == NULL)
		return;
	if (entry)
		__atomic_store_n(entry, 0, __ATOMIC_RELEASE);
	subport_drop_list(t, parent, p);
	other = port_next_sub(parent, NULL);
	if (other == p)
		other = port_next_sub(parent, p);
	if (other ||
	    port_set_input(parent, parent->role, NULL) < 0) // without memory it stays a trunk without sub-ports
		return;
	port_set_tx_flag(parent, PORT_TX_TRUNK, false);
	rcu_publish(port_trunks[parent->id], NULL);
	if (t)
		rcu_defer(trunk_free, t);
}

static struct port_listener subport_listener = {.check = subport_check,
						.check_del = subport_check_del,
						.link = subport_link,
						.settle = subport_settle,
						.unused = subport_unused};

RTE_INIT(subport)
{
	port_listen(&subport_listener);
}
