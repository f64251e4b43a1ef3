// SPDX-License-Identifier: Apache-2.0
// Services: the store, their translation rules, and the key of their choices.
#include "policy/service.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/id_table.h"
#include "base/log.h"
#include "base/setting.h"
#include "policy/service_private.h"

#define KEY_WORDS 4

static struct service *services[SERVICE_MAX];
static struct siphash_key zero_key;
struct siphash_key *service_key = &zero_key;

// --- Counters. ---

bool service_flow_refused(uint32_t rule)
{
	uint32_t id = rule & ~NAT_OF_SERVICE;
	struct service *s = id < SERVICE_MAX ? service_get((uint16_t)id) : NULL;

	if (s)
		service_count(&s->refused, 1);
	return s && __atomic_load_n(&s->cfg.reject, __ATOMIC_RELAXED);
}

void service_totals_add(struct service_totals *sum, const struct service_totals *t)
{
	sum->flows += t->flows;
	sum->active += t->active;
	service_traffic_add(&sum->traffic, &t->traffic);
}

void service_totals(const struct service *s, struct service_totals *out)
{
	struct service_totals t;
	unsigned i;

	*out = s->gone;
	service_traffic_load(&t.traffic, &s->late);
	service_traffic_add(&out->traffic, &t.traffic);
	for (i = 0; i < s->n_endpoints; i++) {
		endpoint_totals(s->endpoints[i]->id, &t);
		service_totals_add(out, &t);
	}
}

unsigned service_serving(const struct service *s)
{
	unsigned i, n = 0;

	for (i = 0; i < s->n_endpoints; i++)
		n += s->endpoints[i]->cfg.weight > 0;
	return n;
}

// --- Services. ---

struct service *service_get(uint16_t id)
{
	return id < SERVICE_MAX ? rcu_read(services[id]) : NULL;
}

struct service *service_next(uint16_t after)
{
	return id_table_next(services, SERVICE_MAX, after + 1u);
}

struct service *service_find(const char *name)
{
	return id_table_find(services, SERVICE_MAX, offsetof(struct service, cfg.name), name);
}

struct service *service_find_err(const char *name, const char *field, struct error *err)
{
	struct service *s = service_find(name);

	if (s == NULL)
		error_set(err, ENOENT, field, name, "an existing service, see `corelane service list`",
			  "there is no such service");
	return s;
}

static int service_check_prefix(const struct service_config *c, struct error *err)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", c->client_prefix);
	if (c->client_prefix > ip_bits(c->addr.family))
		return error_set(err, EINVAL, "service.client_prefix", text, "0 to 32",
				 "is longer than an IPv4 address");
	return 0;
}

static int service_check(struct service_config *c, struct error *err)
{
	char text[16];

	if (c->vrf == VRF_FABRIC || c->external == VRF_FABRIC)
		return error_set(err, EINVAL, c->vrf == VRF_FABRIC ? "service.vrf" : "service.external_vrf", "fabric",
				 "a tenant's VRF", "belongs to the underlay");
	snprintf(text, sizeof(text), "%u", c->port);
	if (c->port && !nat_has_ports(c->protocol))
		return error_set(err, EINVAL, "service.port", text, "a service of protocol TCP, UDP or SCTP",
				 "a port needs a protocol that has ports");
	if (c->protocol == IPPROTO_ICMP && c->addr.family == IPV6)
		c->protocol = IPPROTO_ICMPV6;
	return service_check_prefix(c, err);
}

static struct nat_rule *service_rule(struct service *s, struct error *err)
{
	struct nat_config c = {.id = NAT_OF_SERVICE | s->id,
			       .vrf = s->cfg.vrf,
			       .external = s->cfg.external,
			       .kind = NAT_SERVICE,
			       .outside = s->cfg.addr,
			       .first_port = s->cfg.port,
			       .protocol = s->cfg.protocol};
	struct nat_rule *r;

	if (nat_conflict_rules(&c, err) < 0 || nat_conflict_ports(&c, err) < 0 || nat_begin(err) < 0)
		return NULL;
	r = nat_compile(&c);
	if (r == NULL)
		error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a service");
	else
		r->service = s;
	return r;
}

static struct service *service_alloc(const struct service_config *cfg, struct error *err)
{
	static uint16_t last;
	uint16_t id = id_table_in_turn(services, SERVICE_MAX, &last);
	struct service *s = id ? calloc(1, sizeof(*s)) : NULL;

	if (s == NULL) {
		error_full(err, id ? ENOMEM : ENOSPC, "service", NULL, SERVICE_MAX - 1, "services");
		return NULL;
	}
	s->id = id;
	s->cfg = *cfg;
	s->rows = maglev_rows(cfg->max_endpoints);
	s->endpoints = calloc(cfg->max_endpoints, sizeof(struct endpoint *));
	if (s->endpoints)
		return s;
	error_full(err, ENOMEM, "service", NULL, SERVICE_MAX - 1, "services");
	free(s);
	return NULL;
}

static void service_free(void *arg)
{
	struct service *s = arg;

	free(s->table);
	free(s->endpoints);
	free(s);
}

static bool service_find_vrf(uint32_t vrf, char *text, size_t size)
{
	const struct service *s = service_next(0);

	while (s && s->cfg.vrf != vrf && s->cfg.external != vrf)
		s = service_next(s->id);
	if (s)
		snprintf(text, size, "service '%s'", s->cfg.name);
	return s != NULL;
}

static void service_tell(const struct service *s)
{
	nat_tell((uint16_t[]){s->cfg.vrf, s->cfg.external}, 2);
}

struct service *service_add(const struct service_config *cfg, struct error *err)
{
	static struct referrer of_vrfs = {.find = service_find_vrf};
	struct service_config c = *cfg;
	struct service *s;

	if (service_check(&c, err) < 0)
		return NULL;
	if (service_find(c.name)) {
		error_set(err, EEXIST, "service.name", c.name, "a new name", "is taken");
		return NULL;
	}
	s = service_alloc(&c, err);
	if (s == NULL)
		return NULL;
	s->rule = service_rule(s, err);
	if (s->rule == NULL || nat_publish(s->rule) < 0) {
		if (s->rule)
			error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a service");
		free(s->rule);
		service_free(s);
		return NULL;
	}
	vrf_refer(&of_vrfs);
	rcu_publish(services[s->id], s);
	service_tell(s);
	return s;
}

// They are read once per new flow: those that exist go on.
int service_set(struct service *s, const struct service_config *cfg, struct error *err)
{
	if (service_check_prefix(cfg, err) < 0)
		return -err->code;
	__atomic_store_n(&s->cfg.scheduler, cfg->scheduler, __ATOMIC_RELAXED);
	__atomic_store_n(&s->cfg.reject, cfg->reject, __ATOMIC_RELAXED);
	__atomic_store_n(&s->cfg.client_prefix, cfg->client_prefix, __ATOMIC_RELAXED);
	return 0;
}

int service_del(const char *name, struct error *err)
{
	struct service *s = service_find_err(name, "service.name", err);

	if (s == NULL)
		return -ENOENT;
	if (s->n_endpoints > 0)
		return error_set(err, EBUSY, "service.name", name, "`corelane endpoint del` first", "has %u endpoints",
				 s->n_endpoints);
	rcu_publish(services[s->id], NULL);
	endpoint_disown(s->id);
	nat_withdraw(s->rule);
	service_tell(s);
	rcu_defer(service_free, s);
	return 0;
}

// --- The key. ---

static struct setting_list service_key_words;

static void service_key_changed(const struct setting *own)
{
	struct siphash_key *key = malloc(sizeof(*key)), *old = service_key;
	const uint32_t *w = service_key_words.values;
	uint32_t words[KEY_WORDS] = {0};

	if (key == NULL) {
		LOG(ERR, "no memory for a new service_key: the old one stays");
		return;
	}
	memcpy(words, w, RTE_MIN(service_key_words.n, (uint32_t)KEY_WORDS) * sizeof(words[0]));
	key->k[0] = (uint64_t)words[0] << 32 | words[1];
	key->k[1] = (uint64_t)words[2] << 32 | words[3];
	rcu_publish(service_key, key);
	if (old != &zero_key)
		rcu_defer(free, old);
}

static struct setting setting_service_key = {
	.name = "service_key", .type = SETTING_LIST, .value = &service_key_words, .changed = service_key_changed};

__attribute__((constructor)) static void setting_service_key_register(void)
{
	setting_register(&setting_service_key);
}
