// SPDX-License-Identifier: Apache-2.0
// Endpoints of services: the store, their ids, and what their flows count.
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id_table.h"
#include "policy/service_private.h"

#define PAGE 1024u

struct endpoint_counts { // workers: atomic
	uint64_t flows, ended;
	struct service_traffic traffic;
} __rte_cache_aligned;

struct endpoint_page { // never freed: workers count in it
	struct endpoint *endpoint[PAGE];
	uint16_t service[PAGE]; // stays until the id is reused, for flows of removed endpoints
	bool passing[PAGE];     // removed, and a table that workers may read still names it
	struct endpoint_counts counts[PAGE];
};

static struct endpoint_page *endpoint_pages[ENDPOINT_MAX / PAGE];
static uint32_t last_endpoint;

// --- Counters. ---

static struct endpoint_page *endpoint_page_of(uint32_t rule)
{
	uint32_t id = rule & ~NAT_OF_ENDPOINT;

	return nat_is_endpoint(rule) && id < ENDPOINT_MAX ? rcu_read(endpoint_pages[id / PAGE]) : NULL;
}

uint16_t service_of_rule(uint32_t rule)
{
	const struct endpoint_page *p = endpoint_page_of(rule);

	return p ? p->service[rule % PAGE] : 0;
}

void service_flow_made(uint32_t rule)
{
	struct endpoint_page *p = endpoint_page_of(rule);

	if (p == NULL)
		return;
	service_count(&p->counts[rule % PAGE].flows, 1);
}

static void service_count_traffic(struct service_traffic *t, const uint64_t packets[2], const uint64_t bytes[2])
{
	for (unsigned i = 0; i < 2; i++) {
		service_count(&t->packets[i], packets[i]);
		service_count(&t->bytes[i], bytes[i]);
	}
}

void service_flow_ended(uint32_t rule, const uint64_t packets[2], const uint64_t bytes[2])
{
	struct endpoint_page *p = endpoint_page_of(rule);
	struct endpoint_counts *c;
	struct service *s;

	if (p == NULL)
		return;
	c = &p->counts[rule % PAGE];
	if (rcu_read(p->endpoint[rule % PAGE])) {
		service_count_traffic(&c->traffic, packets, bytes);
	} else { // it was removed
		s = service_get(p->service[rule % PAGE]);
		if (s)
			service_count_traffic(&s->late, packets, bytes);
	}
	service_count(&c->ended, 1);
}

void service_traffic_load(struct service_traffic *to, const struct service_traffic *from)
{
	for (unsigned i = 0; i < 2; i++) {
		to->packets[i] = __atomic_load_n(&from->packets[i], __ATOMIC_RELAXED);
		to->bytes[i] = __atomic_load_n(&from->bytes[i], __ATOMIC_RELAXED);
	}
}

void service_traffic_add(struct service_traffic *sum, const struct service_traffic *t)
{
	for (unsigned i = 0; i < 2; i++) {
		sum->packets[i] += t->packets[i];
		sum->bytes[i] += t->bytes[i];
	}
}

void endpoint_totals(uint32_t id, struct service_totals *out)
{
	const struct endpoint_counts *c = &endpoint_pages[id / PAGE]->counts[id % PAGE];

	uint64_t ended = __atomic_load_n(&c->ended, __ATOMIC_ACQUIRE); // before the flows, of which there are no fewer

	out->flows = __atomic_load_n(&c->flows, __ATOMIC_RELAXED);
	out->active = out->flows - ended;
	service_traffic_load(&out->traffic, &c->traffic);
}

// --- Endpoints. ---

static struct endpoint *endpoint_get(uint32_t id)
{
	const struct endpoint_page *p = endpoint_pages[id / PAGE];

	return p ? p->endpoint[id % PAGE] : NULL;
}

struct endpoint *endpoint_next(uint32_t after)
{
	uint32_t id;

	for (id = after + 1; id < ENDPOINT_MAX; id++) {
		if (endpoint_pages[id / PAGE] == NULL)
			id |= PAGE - 1;
		else if (endpoint_get(id))
			return endpoint_get(id);
	}
	return NULL;
}

static bool endpoint_id_free(uint32_t id)
{
	const struct endpoint_page *p = endpoint_pages[id / PAGE];
	struct service_totals t;

	if (id == 0 || p == NULL)
		return id != 0;
	endpoint_totals(id, &t);
	return p->endpoint[id % PAGE] == NULL && !p->passing[id % PAGE] && t.active == 0;
}

static bool endpoint_page_add(struct endpoint_page **p)
{
	struct endpoint_page *page = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*page));

	if (page == NULL)
		return false;
	memset(page, 0, sizeof(*page));
	rcu_publish(*p, page);
	return true;
}

// Ids are used in turn, and none of which a flow exists.
static uint32_t endpoint_id(struct error *err)
{
	uint32_t tries, id = last_endpoint;
	struct endpoint_page **p;

	for (tries = 0; tries < ENDPOINT_MAX; tries++) {
		id = (id + 1) % ENDPOINT_MAX;
		if (endpoint_id_free(id))
			break;
	}
	p = &endpoint_pages[id / PAGE];
	if (tries == ENDPOINT_MAX || (*p == NULL && !endpoint_page_add(p))) {
		error_full(err, tries == ENDPOINT_MAX ? ENOSPC : ENOMEM, "endpoint", NULL, ENDPOINT_MAX - 1,
			   "endpoints");
		return 0;
	}
	return last_endpoint = id;
}

static int endpoint_compare(const struct endpoint_config *a, const struct endpoint_config *b)
{
	int ret = memcmp(a->addr.bytes, b->addr.bytes, ip_bytes(a->addr.family));

	return ret ? ret : a->port - b->port;
}

// The first one that is not before *c.
static unsigned endpoint_position(const struct service *s, const struct endpoint_config *c)
{
	unsigned low = 0, high = s->n_endpoints;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (endpoint_compare(&s->endpoints[middle]->cfg, c) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct endpoint *endpoint_at(const struct service *s, const struct ip_addr *addr, uint16_t port)
{
	struct endpoint_config c = {.addr = *addr, .port = port};
	unsigned i = endpoint_position(s, &c);

	return i < s->n_endpoints && endpoint_compare(&s->endpoints[i]->cfg, &c) == 0 ? s->endpoints[i] : NULL;
}

struct endpoint *endpoint_with(const struct service *s, const struct ip_addr *addr)
{
	struct endpoint_config c = {.addr = *addr};
	unsigned i = endpoint_position(s, &c);

	return i < s->n_endpoints && ip_addr_eq(&s->endpoints[i]->cfg.addr, addr) ? s->endpoints[i] : NULL;
}

struct endpoint *endpoint_find_err(struct service *s, const struct ip_addr *addr, uint16_t port, struct error *err)
{
	struct endpoint *e = addr->family == s->cfg.addr.family ? endpoint_at(s, addr, port) : NULL;
	char text[IP_TEXT];

	if (e == NULL)
		error_set(err, ENOENT, "endpoint.address", ip_format_addr(addr, text),
			  "an endpoint of `corelane endpoint list`",
			  "service '%s' has no endpoint with this address and port %u", s->cfg.name, port);
	return e;
}

static int endpoint_check(const struct service *s, const struct endpoint_config *c, struct error *err)
{
	char address[IP_TEXT], port[16];

	snprintf(port, sizeof(port), "%u", c->port);
	ip_format_addr(&c->addr, address);
	if (c->addr.family != s->cfg.addr.family)
		return error_set(err, EINVAL, "endpoint.address", address,
				 s->cfg.addr.family == IPV4 ? "an IPv4 address" : "an IPv6 address",
				 "differs in IP version from the service");
	if (c->port && !nat_has_ports(s->cfg.protocol))
		return error_set(err, EINVAL, "endpoint.port", port, "a service of protocol TCP, UDP or SCTP",
				 "the service's protocol has no ports");
	if (c->port && s->cfg.protocol == IPPROTO_SCTP && c->port != s->cfg.port)
		return error_set(err, EINVAL, "endpoint.port", port, "the service's port, or 0",
				 "ports of SCTP are not translated");
	if (endpoint_at(s, &c->addr, c->port))
		return error_set(err, EEXIST, "endpoint.address", address, "a new address or port",
				 "service '%s' has this endpoint", s->cfg.name);
	if (s->n_endpoints == s->cfg.max_endpoints)
		return error_full(err, ENOSPC, "endpoint.address", address, s->cfg.max_endpoints,
				  "endpoints of this service (max_endpoints)");
	return 0;
}

static void endpoint_insert(struct service *s, struct endpoint *e)
{
	unsigned i = endpoint_position(s, &e->cfg);

	memmove(&s->endpoints[i + 1], &s->endpoints[i], (s->n_endpoints - i) * sizeof(s->endpoints[0]));
	s->endpoints[i] = e;
	s->n_endpoints++;
}

static void endpoint_remove(struct service *s, const struct endpoint *e)
{
	unsigned i = endpoint_position(s, &e->cfg);

	s->n_endpoints--;
	memmove(&s->endpoints[i], &s->endpoints[i + 1], (s->n_endpoints - i) * sizeof(s->endpoints[0]));
}

struct endpoint *endpoint_add(struct service *s, const struct endpoint_config *cfg, struct error *err)
{
	struct endpoint *e;
	uint32_t id;

	if (endpoint_check(s, cfg, err) < 0)
		return NULL;
	id = endpoint_id(err);
	e = id ? malloc(sizeof(*e)) : NULL;
	if (e == NULL) {
		if (id)
			error_full(err, ENOMEM, "endpoint", NULL, ENDPOINT_MAX - 1, "endpoints");
		return NULL;
	}
	*e = (struct endpoint){.id = id, .service = s, .cfg = *cfg, .built = MAGLEV_NONE};
	endpoint_insert(s, e);
	memset(&endpoint_pages[id / PAGE]->counts[id % PAGE], 0, sizeof(struct endpoint_counts));
	endpoint_pages[id / PAGE]->service[id % PAGE] = s->id;
	if (service_changed(s, err) < 0) {
		endpoint_remove(s, e);
		free(e);
		return NULL;
	}
	rcu_publish(endpoint_pages[id / PAGE]->endpoint[id % PAGE], e);
	return e;
}

int endpoint_set(struct endpoint *e, uint16_t weight, struct error *err)
{
	uint16_t old = e->cfg.weight;
	int ret;

	if (weight == old)
		return 0;
	e->cfg.weight = weight;
	ret = service_changed(e->service, err);
	if (ret < 0)
		e->cfg.weight = old;
	return ret;
}

static void endpoint_passed(void *arg)
{
	struct endpoint *e = arg;
	struct service_totals now, *gone = &e->service->gone;

	// Flows that were made or ended in the meantime, by workers that still read the old table.
	endpoint_totals(e->id, &now);
	gone->flows += now.flows - e->folded.flows;
	for (unsigned i = 0; i < 2; i++) {
		gone->traffic.packets[i] += now.traffic.packets[i] - e->folded.traffic.packets[i];
		gone->traffic.bytes[i] += now.traffic.bytes[i] - e->folded.traffic.bytes[i];
	}
	endpoint_pages[e->id / PAGE]->passing[e->id % PAGE] = false;
	free(e);
}

void endpoint_let_go(struct service *s)
{
	struct endpoint *e;

	while ((e = s->removed) != NULL) {
		s->removed = e->next;
		rcu_defer(endpoint_passed, e);
	}
}

// Its flows go on, and their packets count for the service when they end. The id may be reused after the last one,
// and once no table names it.
void endpoint_del(struct endpoint *e)
{
	struct endpoint_page *p = endpoint_pages[e->id / PAGE];
	struct service *s = e->service;
	struct service_totals t;
	struct error err;

	endpoint_totals(e->id, &t);
	t.active = 0;
	service_totals_add(&s->gone, &t);
	e->folded = t;
	p->passing[e->id % PAGE] = true;
	rcu_publish(p->endpoint[e->id % PAGE], NULL);
	endpoint_remove(s, e);
	e->next = s->removed;
	s->removed = e;
	if (service_changed(s, &err) < 0) {
		service_publish(s, NULL); // rather none than one that was removed, until service_poll() has memory
		s->dirty = true;
	}
}

void endpoint_disown(uint16_t service)
{
	for (uint32_t id = 0; id < ENDPOINT_MAX; id++) {
		struct endpoint_page *p = endpoint_pages[id / PAGE];

		if (p == NULL)
			id |= PAGE - 1;
		else if (p->service[id % PAGE] == service)
			__atomic_store_n(&p->service[id % PAGE], 0, __ATOMIC_RELAXED);
	}
}
