// SPDX-License-Identifier: Apache-2.0
// Collects the names of meters and mirrors from the two ports of a flow and from the rules that allowed it.
#include "control/flow_extras.h"

#include "policy/meter.h"
#include "policy/mirror.h"
#include "port/registry.h"

#define MOST 4

static const struct port_config *flow_extras_config(uint16_t id)
{
	static const struct port_config none;
	const struct port *p = id ? port_get(id) : NULL;

	return p ? &p->cfg : &none;
}

static void flow_extras_add(char **names, size_t *n, struct api_call *call, const char *name)
{
	if (name)
		names[(*n)++] = api_strdup(call, name);
}

static const char *meter_name(uint16_t id)
{
	const struct meter *m = id ? meter_get(id) : NULL;

	return m ? m->cfg.name : NULL;
}

size_t flow_meter_names(struct api_call *call, const struct flow_side *from, const struct flow_side *to, char ***names)
{
	const uint16_t ids[MOST] = {meters_config(flow_extras_config(from->port))->egress, from->extras.meter,
				    to->extras.meter, meters_config(flow_extras_config(to->port))->ingress};
	size_t i, n = 0;

	*names = api_alloc(call, MOST * sizeof(**names));
	for (i = 0; i < MOST; i++)
		flow_extras_add(*names, &n, call, meter_name(ids[i]));
	return n;
}

static const char *mirror_name(uint16_t id, enum mirror_direction excluded)
{
	const struct mirror *m = id ? mirror_get(id) : NULL;

	return m && m->cfg.direction != excluded ? m->cfg.name : NULL;
}

static void flow_extras_side(char **names, size_t *n, struct api_call *call, const struct flow_side *s,
			     enum mirror_direction excluded)
{
	uint16_t port = mirroring_config(flow_extras_config(s->port))->mirror;

	flow_extras_add(names, n, call, mirror_name(port, excluded));
	if (s->extras.mirror != port)
		flow_extras_add(names, n, call, mirror_name(s->extras.mirror, excluded));
}

size_t flow_mirror_names(struct api_call *call, const struct flow_side *from, const struct flow_side *to, char ***names)
{
	size_t n = 0;

	*names = api_alloc(call, MOST * sizeof(**names));
	flow_extras_side(*names, &n, call, from, MIRROR_INGRESS);
	flow_extras_side(*names, &n, call, to, MIRROR_EGRESS);
	return n;
}
