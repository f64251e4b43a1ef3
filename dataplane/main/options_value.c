// SPDX-License-Identifier: Apache-2.0
// Parsers of option values.
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/fault_injection.h"
#include "main/options_private.h"
#include "worker/handoff.h"

static int option_limits(const char *name, const char *text, const struct number_limits *l, unsigned long *out,
			 struct error *err)
{
	struct error limits;
	bool number;
	char *end;

	*out = strtoul(text, &end, 10); // ULONG_MAX when the number is too large
	number = *text >= '0' && *text <= '9' && *end == '\0';
	if (number && check_limits(name, *out, l, NULL) == 0)
		return 0;
	check_limits(name, UINT64_MAX, l, &limits); // for the description of the valid numbers
	return error_set(err, EINVAL, name, text, limits.valid, number ? "is out of range" : "is not a number");
}

int option_number(const char *name, const char *text, unsigned long min, unsigned long max, unsigned long *out,
		  struct error *err)
{
	const struct number_limits l = {.min = min, .max = max};

	return option_limits(name, text, &l, out, err);
}

int option_path(const char *name, char *dst, size_t size, const char *src, struct error *err)
{
	char valid[64];

	if (*src && strlen(src) < size) {
		snprintf(dst, size, "%s", src);
		return 0;
	}
	snprintf(valid, sizeof(valid), "1 to %zu characters", size - 1);
	return error_set(err, EINVAL, name, src, valid, "is not a usable path");
}

int option_ring_size(const char *name, const char *text, uint32_t *out, struct error *err)
{
	unsigned long v = 0;
	int ret = option_limits(name, text, &handoff_sizes, &v, err);

	*out = (uint32_t)v;
	return ret;
}

static int refuse_cpus(const char *name, const char *text, int ret, const struct machine *m, struct error *err)
{
	char valid[256], list[CPU_LIST_TEXT];

	snprintf(valid, sizeof(valid), "a list such as 2,4-7 or (5,6), or a mask such as 0xf0; of CPUs %s",
		 cpu_list_format(&m->online, list, sizeof(list)));
	return error_set(err, EINVAL, name, text, valid, "%s",
			 ret == -EEXIST   ? "names a CPU twice"
			 : ret == -ENOSPC ? "names too many CPUs"
			 : ret == -ERANGE ? "names CPUs that no machine has"
					  : "names no CPUs");
}

int option_cpus(const char *name, const char *text, struct cpu_list *out, const struct machine *m, struct error *err)
{
	int ret = cpu_list_parse(text, out);

	return ret < 0 ? refuse_cpus(name, text, ret, m, err) : 0;
}

int option_workers(const char *name, const char *text, struct options *o, struct error *err)
{
	int ret = cpu_list_order(text, o->placement.worker_cpus, WORKER_MAX, &o->placement.n_workers);

	return ret < 0 ? refuse_cpus(name, text, ret, &o->machine, err) : 0;
}

int option_idle(const char *name, const char *text, struct options *o, struct error *err)
{
	o->idle_given = true;
	return idle_policy_parse(text, &o->idle) < 0
		       ? error_set(err, EINVAL, name, text, IDLE_POLICY_NAMES, "is not an idle policy")
		       : 0;
}

int option_yield(const char *name, const char *text, struct options *o, struct error *err)
{
	unsigned long v = 0;
	int ret = option_number(name, text, 0, 1, &v, err);

	o->idle_given = true;
	o->idle = v ? IDLE_YIELD : IDLE_SPIN;
	return ret;
}

int option_system_calls(const char *name, const char *text, struct options *o, struct error *err)
{
	static const char *const modes[] = {[FILTER_OFF] = "any", [FILTER_LOG] = "logged", [FILTER_KILL] = "filtered"};
	unsigned i;

	for (i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		if (strcmp(text, modes[i]) != 0)
			continue;
		o->system_calls = (enum filter_mode)i;
		o->system_calls_given = true;
		return 0;
	}
	return error_set(err, EINVAL, name, text, "any, logged, filtered", "is not a treatment of system calls");
}

int option_allow_debug(const char *name, struct error *err)
{
	return fault_injection ? 0
			       : error_set(err, EINVAL, name, NULL, "bin/corelaned of a build tree",
					   "this corelaned cannot inject faults: it is the production build");
}

// The defaults need not exist, but a group that was asked for must.
int option_group(const char *name, const char *text, const char **out, struct error *err)
{
	*out = text;
	return getgrnam(text) ? 0
			      : error_set(err, EINVAL, name, text, "a group that `getent group` lists",
					  "there is no such group");
}

int option_level(const char *name, const char *text, struct options *o, struct error *err)
{
	static const char *const levels[] = {"emergency", "alert",  "critical", "error",
					     "warning",   "notice", "info",     "debug"};
	unsigned i;

	for (i = 0; i < sizeof(levels) / sizeof(*levels); i++)
		if (strcmp(text, levels[i]) == 0)
			return option_path(name, o->log_level, sizeof(o->log_level), text, err);
	return error_set(err, EINVAL, name, text, "emergency, alert, critical, error, warning, notice, info, debug",
			 "is not a log level");
}
