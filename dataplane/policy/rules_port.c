// SPDX-License-Identifier: Apache-2.0
// Rule lists attached to ports: workers find the list's set by the port's id.
#include <errno.h>
#include <stdlib.h>

#include "base/notify.h"
#include "base/rcu.h"
#include "policy/rules_private.h"
#include "port/registry.h"

struct rules_set *rules_sets[PORT_MAX][2];
static uint16_t attached[PORT_MAX][2]; // ids of the lists to which the sets belong, 0 = none
static struct rules_listener *listeners;

void rules_classify(uint16_t port, enum rule_direction dir, const struct flow_key *key, struct rule_verdict *out)
{
	const struct rules_set *s = rcu_read(rules_sets[port][dir]);

	if (s == NULL)
		*out = (struct rule_verdict){0};
	else
		rules_lookup(s, key, out);
}

void rules_default(uint16_t port, enum rule_direction dir, struct rule_verdict *out)
{
	const struct rules_set *s = rcu_read(rules_sets[port][dir]);

	*out = (struct rule_verdict){0};
	if (s)
		*out = (struct rule_verdict){.denied = !s->allow, .slot = s->slot};
}

void rules_listen(struct rules_listener *l)
{
	LISTEN(listeners, l);
}

static void rules_port_changed(uint16_t port)
{
	const struct rules_listener *l;

	for (l = listeners; l; l = l->next)
		if (l->changed)
			l->changed(port);
}

// --- Publication of a list's set. ---

struct retired {
	struct rules_set *set;
	uint32_t *slots;
	size_t n;
};

static void rules_port_retire(void *arg)
{
	struct retired *r = arg;

	rules_set_free(r->set);
	rule_slots_put(r->slots, r->n);
	free(r);
}

static void rules_port_defer(struct rules_set *set, uint32_t *slots, size_t n)
{
	struct retired *r = malloc(sizeof(*r));

	if (r == NULL)
		return; // out of memory: leak them rather than free them under a reader
	*r = (struct retired){set, slots, n};
	rcu_defer(rules_port_retire, r);
}

void rules_publish(struct rule_list *l, struct rules_set *set, uint32_t *slots, size_t n_slots, bool tell)
{
	struct rules_set *old = l->set;
	uint16_t port;
	unsigned dir;

	l->set = set;
	for (port = 0; port < PORT_MAX && l->refs; port++)
		for (dir = 0; dir < 2; dir++)
			if (attached[port][dir] == l->id)
				rcu_publish(rules_sets[port][dir], set);
	if (old || slots)
		rules_port_defer(old, slots, n_slots);
	for (port = 0; port < PORT_MAX && l->refs && tell; port++)
		if (attached[port][0] == l->id || attached[port][1] == l->id)
			rules_port_changed(port);
}

// --- Port listener. ---

PORT_SETTINGS(rules_config)

static int rules_port_check(const struct port *old, const struct port_config *cfg, struct error *err)
{
	static const char *const fields[] = {"port.egress_rules", "port.ingress_rules"};
	const uint16_t *lists = rules_config(cfg)->lists;
	unsigned dir;

	for (dir = 0; dir < 2; dir++) {
		if (lists[dir] == 0)
			continue;
		if (cfg->role != PORT_TENANT)
			return error_set(err, EINVAL, fields[dir], rule_list_name(lists[dir]), "role tenant",
					 "only a tenant port has rules");
		if (!cfg->stateful)
			return error_set(err, EINVAL, fields[dir], rule_list_name(lists[dir]), "with stateful",
					 "rules decide about flows, which only stateful ports keep");
	}
	return 0;
}

// Replaces the lists of a port; each packet meets the old list or the new one. keep: a direction without a new list
// keeps the old one.
static void rules_port_attach(uint16_t port, const uint16_t lists[2], bool keep)
{
	bool any = false;
	unsigned dir;

	for (dir = 0; dir < 2; dir++) {
		struct rule_list *was = rule_list_get(attached[port][dir]), *l = rule_list_get(lists[dir]);

		if (was == l || (keep && l == NULL))
			continue;
		if (was)
			was->refs--;
		if (l)
			l->refs++;
		attached[port][dir] = lists[dir];
		rcu_publish(rules_sets[port][dir], l ? l->set : NULL);
		any = true;
	}
	if (any)
		rules_port_changed(port);
}

// A packet reads the lists after it has found the port.
static bool rules_port_guard(struct port *p, const struct port_config *next)
{
	rules_port_attach(p->id, rules_config(next)->lists, true);
	return false;
}

static void rules_port_unguard(struct port *p, const struct port_config *old)
{
	rules_port_attach(p->id, rules_config(&p->cfg)->lists, false);
}

static void rules_port_on_closed(struct port *p)
{
	rules_port_attach(p->id, (const uint16_t[2]){0, 0}, false);
}

static struct port_listener listener = {.check = rules_port_check,
					.guard = rules_port_guard,
					.unguard = rules_port_unguard,
					.closed = rules_port_on_closed};

void rules_port_init(void)
{
	port_listen(&listener);
}
