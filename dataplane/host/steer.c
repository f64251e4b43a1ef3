// SPDX-License-Identifier: Apache-2.0
// Steered addresses and how they are applied: NIC rules, or queues that the host-path worker polls. Master thread only.
#include "host/steer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_malloc.h>

#include "base/log.h"
#include "worker/spread.h"

struct steer_table *steer_tables[PORT_MAX];

static struct steer *steers;
static struct steer_state states[PORT_MAX];

struct steer *steer_next(const struct steer *s)
{
	return s ? s->next : steers;
}

const struct steer_state *steer_state(uint16_t fabric)
{
	return &states[fabric];
}

unsigned steer_count(uint16_t fabric)
{
	struct steer *s;
	unsigned n = 0;

	for (s = steers; s; s = s->next)
		n += s->port == fabric;
	return n;
}

static struct steer **host_steer_find(uint16_t fabric, const struct ip_addr *addr)
{
	struct steer **s;

	for (s = &steers; *s; s = &(*s)->next)
		if ((*s)->port == fabric && ip_addr_eq(&(*s)->addr, addr))
			return s;
	return NULL;
}

// --- The table that the host-path worker reads. ---

static void steer_table_add(struct steer_table *t, const struct steer *s)
{
	unsigned at = t->n++;

	for (; at > 0 && steer_compare(&s->addr, &t->addr[at - 1]) < 0; at--) {
		t->addr[at] = t->addr[at - 1];
		t->count[at] = t->count[at - 1];
	}
	t->addr[at] = s->addr;
	t->count[at] = s->count;
}

static struct steer_table *steer_table_build(uint16_t fabric)
{
	struct steer_table *t = rte_zmalloc("steer_table", sizeof(*t), RTE_CACHE_LINE_SIZE);
	struct steer *s;

	if (t == NULL)
		return NULL;
	for (s = steers; s; s = s->next)
		if (s->port == fabric)
			steer_table_add(t, s);
	return t;
}

static void steer_table_publish(uint16_t fabric, struct steer_table *t)
{
	struct steer_table *old = steer_tables[fabric];

	rcu_publish(steer_tables[fabric], t);
	rcu_defer(rte_free, old);
}

// --- NIC rules. ---

static void steer_unrule(struct port *p)
{
	struct steer *s;

	for (s = steers; s; s = s->next) {
		if (s->port == p->id && s->rule) {
			p->ops->unsteer(p, s->rule);
			s->rule = NULL;
		}
	}
}

static int steer_rule_all(struct port *p, char why[128])
{
	struct error err = {0};
	struct steer *s;

	if (p->ops->steer == NULL || p->n_queues < 2) {
		snprintf(why, 128, "%s",
			 p->ops->steer ? "the port needs a second queue for the host path"
				       : "the device has no steering rules");
		return -ENOTSUP;
	}
	for (s = steers; s; s = s->next) {
		if (s->port != p->id || s->rule)
			continue;
		s->rule = p->ops->steer(p, &s->addr, (uint16_t)(p->n_queues - 1), &err);
		if (s->rule == NULL) {
			snprintf(why, 128, "%.127s", err.message);
			steer_unrule(p);
			return -ENOTSUP;
		}
	}
	return 0;
}

// --- Pollers of the queues. ---

static void steer_assign(struct port_queue *q, struct worker *w)
{
	struct error err = {0};

	if (worker_assign(q, w, &err) < 0)
		LOG(ERR, "port %s: queue %u keeps its worker: %s", q->port->cfg.name, q->index, err.message);
}

static void steer_take_queue(struct steer_state *s, struct port_queue *q, struct worker *w)
{
	if (s->queues & 1u << q->index)
		return;
	s->queues |= 1u << q->index;
	s->home[q->index] = q->rx_worker;
	q->host = true;
	steer_assign(q, w);
}

// Returns a queue to a forwarding worker: the configured one, else the previous one, else the target of the host-path
// worker.
static void steer_give_queue(struct steer_state *s, struct port_queue *q)
{
	unsigned wanted = spread_config(&q->port->cfg)->polled_by[q->index];
	struct worker *home = worker_get(wanted ? wanted - 1u : s->home[q->index]);

	if (!(s->queues & 1u << q->index))
		return;
	s->queues &= ~(1u << q->index);
	q->host = false;
	if (home == NULL || home->role != WORKER_FORWARDING || home->leaving)
		home = worker_get(s->worker->target);
	if (home && q->rx_worker == s->worker->id) // unless the operator has assigned it to another worker
		steer_assign(q, home);
}

static void steer_share_queues(struct port *p, struct worker *w, unsigned first)
{
	unsigned i;

	for (i = 0; i < p->n_queues; i++) {
		if (i >= first)
			steer_take_queue(&states[p->id], &p->queues[i], w);
		else
			steer_give_queue(&states[p->id], &p->queues[i]);
	}
}

static void steer_off(struct port *p, const char *why)
{
	struct steer_state *s = &states[p->id];

	if (s->mode != STEER_NONE) {
		steer_unrule(p);
		steer_share_queues(p, s->worker, p->n_queues);
		steer_table_publish(p->id, NULL);
	}
	*s = (struct steer_state){0};
	snprintf(s->why, sizeof(s->why), "%s", why);
}

static void steer_on(struct port *p, struct worker *w)
{
	struct steer_table *t = steer_table_build(p->id);
	struct steer_state *s = &states[p->id];
	enum steer_mode mode;
	char why[128] = "";

	if (t == NULL) {
		LOG(ERR, "port %s: no memory to steer addresses", p->cfg.name);
		return;
	}
	steer_table_publish(p->id, t); // before the first steered packet arrives
	mode = steer_rule_all(p, why) == 0 ? STEER_HARDWARE : STEER_SOFTWARE;
	if (s->mode != mode)
		LOG(INFO, "port %s: steered addresses go to worker %u %s%s", p->cfg.name, w->id,
		    mode == STEER_HARDWARE ? "by rules of the NIC" : "in software: ", why);
	s->mode = mode;
	s->worker = w;
	memcpy(s->why, why, sizeof(why));
	steer_share_queues(p, w, mode == STEER_HARDWARE ? p->n_queues - 1u : 0);
}

static void steer_apply_port(struct port *p)
{
	struct worker *w = p->host_worker == SPREAD_LOCAL ? NULL : worker_get(p->host_worker);

	if (states[p->id].mode != STEER_NONE && states[p->id].worker != w)
		steer_off(p, "");
	if (steer_count(p->id) == 0)
		steer_off(p, "");
	else if (w == NULL)
		steer_off(p, "there is no worker of role host-path");
	else
		steer_on(p, w);
}

void steer_apply(void)
{
	struct port *p;

	for (p = port_next(NULL); p; p = port_next(p))
		if (p->role == PORT_FABRIC && (states[p->id].mode != STEER_NONE || steer_count(p->id) > 0))
			steer_apply_port(p);
}

// --- Addresses. ---

static int steer_check(const struct port *fabric, const struct ip_addr *addr, struct error *err)
{
	char text[IP_TEXT], valid[32];

	ip_format_addr(addr, text);
	if (fabric->role != PORT_FABRIC || fabric->host == 0)
		return error_set(err, EINVAL, "steer.port", fabric->cfg.name, "a fabric port with a host port",
				 "has no host port");
	if (host_steer_find(fabric->id, addr))
		return error_set(err, EEXIST, "steer.address", text, "another address", "is steered already");
	snprintf(valid, sizeof(valid), "up to %u addresses", STEER_MAX);
	if (steer_count(fabric->id) == STEER_MAX)
		return error_set(err, ENOSPC, "steer.address", text, valid, "is one too many for port %s",
				 fabric->cfg.name);
	return 0;
}

struct steer *steer_add(struct port *fabric, const struct ip_addr *addr, struct error *err)
{
	struct steer *s, **end = &steers;

	if (steer_check(fabric, addr, err) < 0)
		return NULL;
	s = calloc(1, sizeof(*s));
	if (s)
		s->count = rte_zmalloc("steer_count", sizeof(*s->count), RTE_CACHE_LINE_SIZE);
	if (s == NULL || s->count == NULL) {
		free(s);
		error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for an address");
		return NULL;
	}
	s->addr = *addr;
	s->port = fabric->id;
	while (*end)
		end = &(*end)->next;
	*end = s;
	steer_apply_port(fabric);
	return s;
}

int steer_del(struct port *fabric, const struct ip_addr *addr, struct error *err)
{
	struct steer **at = host_steer_find(fabric->id, addr), *s = at ? *at : NULL;
	char text[IP_TEXT];

	if (s == NULL)
		return error_set(err, ENOENT, "steer.address", ip_format_addr(addr, text), NULL,
				 "is not steered on port %s", fabric->cfg.name);
	if (s->rule)
		fabric->ops->unsteer(fabric, s->rule);
	*at = s->next;
	steer_apply_port(fabric); // no worker finds the counter any more
	rcu_defer(rte_free, s->count);
	free(s);
	return 0;
}
