// SPDX-License-Identifier: Apache-2.0
// Parsers of option values.
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/ip.h"
#include "flow/flow.h"
#include "main/options_private.h"
#include "port/port_kinds.h"
#include "port/registry.h"

const struct number_limits memory_sizes = {.min = 64, .max = 1 << 20};
const struct number_limits mbuf_counts = {.min = PORT_POOL_MIN, .max = PORT_POOL_MAX};
const struct number_limits mbuf_sizes = {.min = PORT_POOL_ROOM, .max = PORT_POOL_ROOM_MAX};
const struct number_limits fib_sizes = {.min = 16, .max = 65536};
const struct number_limits flow_counts = {.min = FLOW_CAPACITY_MIN, .max = FLOW_CAPACITY_MAX};

static void *option_member(const struct option_given *g, struct options *o)
{
	return (char *)o + g->row->at;
}

static int option_limits(const struct option_given *g, const struct number_limits *l, uint32_t *out, struct error *err)
{
	struct error limits;
	unsigned long v;
	bool number;
	char *end;

	v = strtoul(g->text, &end, 10); // ULONG_MAX when the number is too large
	number = *g->text >= '0' && *g->text <= '9' && *end == '\0';
	*out = (uint32_t)v;
	if (number && check_limits(g->name, v, l, NULL) == 0)
		return 0;
	check_limits(g->name, UINT64_MAX, l, &limits); // for the description of the valid numbers
	return error_set(err, EINVAL, g->name, g->text, limits.valid, number ? "is out of range" : "is not a number");
}

int option_number(const struct option_given *g, struct options *o, struct error *err)
{
	return option_limits(g, g->row->limits, option_member(g, o), err);
}

int option_path(const struct option_given *g, struct options *o, struct error *err)
{
	char valid[64];

	if (*g->text && strlen(g->text) < g->row->size) {
		snprintf(option_member(g, o), g->row->size, "%s", g->text);
		return 0;
	}
	snprintf(valid, sizeof(valid), "1 to %zu characters", g->row->size - 1);
	return error_set(err, EINVAL, g->name, g->text, valid, "is not a usable path");
}

int option_mac(const struct option_given *g, struct options *o, struct error *err)
{
	return mac_parse(g->text, g->name, option_member(g, o), err);
}

static int refuse_cpus(const struct option_given *g, int ret, const struct machine *m, struct error *err)
{
	char valid[256], list[CPU_LIST_TEXT];

	snprintf(valid, sizeof(valid), "a list such as 2,4-7 or (5,6), or a mask such as 0xf0; of CPUs %s",
		 cpu_list_format(&m->online, list, sizeof(list)));
	return error_set(err, EINVAL, g->name, g->text, valid, "%s",
			 ret == -EEXIST   ? "names a CPU twice"
			 : ret == -ENOSPC ? "names too many CPUs"
			 : ret == -ERANGE ? "names CPUs that no machine has"
					  : "names no CPUs");
}

int option_cpus(const struct option_given *g, struct options *o, struct error *err)
{
	int ret = cpu_list_parse(g->text, option_member(g, o));

	return ret < 0 ? refuse_cpus(g, ret, &o->machine, err) : 0;
}

int option_workers(const struct option_given *g, struct options *o, struct error *err)
{
	int ret = cpu_list_order(g->text, o->placement.worker_cpus, WORKER_MAX, &o->placement.n_workers);

	return ret < 0 ? refuse_cpus(g, ret, &o->machine, err) : 0;
}

int option_idle(const struct option_given *g, struct options *o, struct error *err)
{
	o->idle_given = true;
	return idle_policy_parse(g->text, &o->idle) < 0
		       ? error_set(err, EINVAL, g->name, g->text, IDLE_POLICY_NAMES, "is not an idle policy")
		       : 0;
}

int option_yield(const struct option_given *g, struct options *o, struct error *err)
{
	static const struct number_limits either = {.max = 1};
	uint32_t v;
	int ret = option_limits(g, &either, &v, err);

	o->idle_given = true;
	o->idle = v ? IDLE_YIELD : IDLE_SPIN;
	return ret;
}

int option_system_calls(const struct option_given *g, struct options *o, struct error *err)
{
	static const char *const modes[] = {[FILTER_OFF] = "any", [FILTER_LOG] = "logged", [FILTER_KILL] = "filtered"};
	unsigned i;

	for (i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		if (strcmp(g->text, modes[i]) != 0)
			continue;
		o->system_calls = (enum filter_mode)i;
		o->system_calls_given = true;
		return 0;
	}
	return error_set(err, EINVAL, g->name, g->text, "any, logged, filtered", "is not a treatment of system calls");
}

int option_kinds(const struct option_given *g, struct options *o, struct error *err)
{
	return port_allow_kinds(g->text, err);
}

// The defaults need not exist, but a group that was asked for must.
int option_group(const struct option_given *g, struct options *o, struct error *err)
{
	*(const char **)option_member(g, o) = g->text;
	return getgrnam(g->text) ? 0
				 : error_set(err, EINVAL, g->name, g->text, "a group that `getent group` lists",
					     "there is no such group");
}

int option_level(const struct option_given *g, struct options *o, struct error *err)
{
	static const char *const levels[] = {"emergency", "alert",  "critical", "error",
					     "warning",   "notice", "info",     "debug"};
	unsigned i;

	for (i = 0; i < sizeof(levels) / sizeof(*levels); i++)
		if (strcmp(g->text, levels[i]) == 0)
			return option_path(g, o, err);
	return error_set(err, EINVAL, g->name, g->text,
			 "emergency, alert, critical, error, warning, notice, info, debug", "is not a log level");
}
