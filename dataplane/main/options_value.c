// SPDX-License-Identifier: Apache-2.0
// What stands behind an option. name is as it was typed.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault_injection.h"
#include "main/options_private.h"

#define RING_MIN 64
#define RING_MAX (1 << 22)

int option_number(const char *name, const char *text, unsigned long min, unsigned long max, unsigned long *out, struct error *err)
{
	char valid[64], *end;

	errno = 0;
	*out = strtoul(text, &end, 10);
	if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *out >= min && *out <= max)
		return 0;
	snprintf(valid, sizeof(valid), "%lu to %lu", min, max);
	return error_set(err, EINVAL, name, text, valid, "is not a number in range");
}

int option_path(const char *name, char *dst, size_t size, const char *src, struct error *err)
{
	char valid[64];

	if (*src && strlen(src) < size) {
		snprintf(dst, size, "%s", src);
		return 0;
	}
	snprintf(valid, sizeof(valid), "1 to %zu characters", size - 1);
	return error_set(err, EINVAL, name, src, valid, "is no usable path");
}

int option_power_of_two(const char *name, const char *text, uint32_t *out, struct error *err)
{
	unsigned long v = 0;
	struct error ignored;

	if (option_number(name, text, RING_MIN, RING_MAX, &v, &ignored) < 0 || (v & (v - 1)))
		return error_set(err, EINVAL, name, text, "a power of two from 64 to 4194304", "is no size of a ring");
	*out = (uint32_t)v;
	return 0;
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
	return idle_policy_parse(text, &o->idle) < 0 ? error_set(err, EINVAL, name, text, IDLE_POLICY_NAMES, "is no idle policy")
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

int option_allow_debug(const char *name, struct error *err)
{
	return fault_injection ? 0
			       : error_set(err, EINVAL, name, NULL, "bin/corelaned of a build tree",
					   "this corelaned cannot inject faults: it is the one for production");
}

int option_level(const char *name, const char *text, struct options *o, struct error *err)
{
	static const char *const levels[] = {"emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"};
	unsigned i;

	for (i = 0; i < sizeof(levels) / sizeof(*levels); i++)
		if (strcmp(text, levels[i]) == 0)
			return option_path(name, o->log_level, sizeof(o->log_level), text, err);
	return error_set(err, EINVAL, name, text, "emergency, alert, critical, error, warning, notice, info, debug",
			 "is no log level");
}
