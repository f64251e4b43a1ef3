// SPDX-License-Identifier: Apache-2.0
#include "threads/placement.h"

#include <errno.h>
#include <stdio.h>

struct cpu_list placement_workers(const struct placement *p)
{
	struct cpu_list l = {0};
	unsigned i;

	for (i = 0; i < p->n_workers; i++)
		cpu_list_add(&l, p->worker_cpus[i]);
	return l;
}

static void fill_worker(struct placement *p, const struct machine *m)
{
	struct cpu_list rest = cpu_list_without(&m->started, &p->service);

	rest = cpu_list_without(&rest, &p->control);
	if (cpu_list_empty(&rest))
		rest = m->started;
	p->worker_cpus[0] = cpu_list_last(&rest);
	p->n_workers = 1;
	p->own_workers = true;
}

static struct cpu_list placement_others(const struct placement *p, const struct machine *m)
{
	struct cpu_list workers = placement_workers(p), rest = cpu_list_without(&m->started, &workers);

	return cpu_list_empty(&rest) ? m->started : rest;
}

void placement_fill(struct placement *p, const struct machine *m)
{
	if (p->n_workers == 0)
		fill_worker(p, m);
	p->own_service = cpu_list_empty(&p->service);
	p->own_control = cpu_list_empty(&p->control);
	if (p->own_service)
		p->service = p->own_control ? placement_others(p, m) : p->control;
	if (p->own_control)
		p->control = p->service;
}

static int placement_refuse(const struct cpu_list *bad, const struct cpu_list *valid, const char *option,
			    const char *why, struct error *err)
{
	char text[CPU_LIST_TEXT], list[CPU_LIST_TEXT], range[CPU_LIST_TEXT + 8];

	snprintf(range, sizeof(range), "CPUs %s", cpu_list_format(valid, list, sizeof(list)));
	return error_set(err, EINVAL, option, cpu_list_format(bad, text, sizeof(text)), range, "%s", why);
}

static int check_exist(const struct cpu_list *l, const struct machine *m, const char *option, struct error *err)
{
	struct cpu_list usable = cpu_list_both(&m->online, &m->allowed), bad = cpu_list_without(l, &m->possible);

	if (!cpu_list_empty(&bad))
		return placement_refuse(&bad, &usable, option, "does not exist on this machine", err);
	bad = cpu_list_without(l, &m->online);
	if (!cpu_list_empty(&bad))
		return placement_refuse(&bad, &usable, option, "is offline", err);
	bad = cpu_list_without(l, &m->allowed);
	if (!cpu_list_empty(&bad))
		return placement_refuse(&bad, &usable, option, "is not allowed to this process by its cpuset", err);
	return 0;
}

static int refuse_overlap(const struct cpu_list *bad, const struct placement *p, const struct machine *m,
			  const char *option, struct error *err)
{
	struct cpu_list workers = placement_workers(p), usable = cpu_list_both(&m->online, &m->allowed);
	char text[CPU_LIST_TEXT], list[CPU_LIST_TEXT], valid[2 * CPU_LIST_TEXT];

	usable = cpu_list_without(&usable, &workers);
	snprintf(valid, sizeof(valid), "CPUs %s, or --allow-overlap", cpu_list_format(&usable, list, sizeof(list)));
	return error_set(err, EINVAL, option, cpu_list_format(bad, text, sizeof(text)), valid,
			 "is the CPU of a worker too, which loses packets while another thread runs there");
}

// CPUs of a role that were chosen here overlap only when there is no other way.
static int check_overlap(const struct placement *p, const struct machine *m, struct cpu_list *overlap,
			 struct error *err)
{
	struct cpu_list workers = placement_workers(p), service = cpu_list_both(&workers, &p->service),
			control = cpu_list_both(&workers, &p->control);
	bool may = p->allow_overlap || cpu_list_count(&m->started) == 1;
	unsigned cpu;

	if (!may && !cpu_list_empty(&service) && !p->own_service)
		return refuse_overlap(&service, p, m, "--service-cpus", err);
	if (!may && !cpu_list_empty(&control) && !p->own_control)
		return refuse_overlap(&control, p, m, "--control-cpus", err);
	if (!may && !cpu_list_empty(&service) && p->own_service && p->own_control)
		return error_set(err, EINVAL, "--worker-cpus", NULL, "fewer CPUs, or --allow-overlap",
				 "leaves no CPU to the threads that do not forward");
	*overlap = service;
	for (cpu = cpu_list_next(&control, 0); cpu < CPU_LIST_MAX; cpu = cpu_list_next(&control, cpu + 1))
		cpu_list_add(overlap, cpu);
	return 0;
}

int placement_check(const struct placement *p, const struct machine *m, struct cpu_list *overlap, struct error *err)
{
	struct cpu_list workers = placement_workers(p);
	int ret = check_exist(&workers, m, "--worker-cpus", err);

	if (ret == 0 && !p->own_service)
		ret = check_exist(&p->service, m, "--service-cpus", err);
	if (ret == 0 && !p->own_control)
		ret = check_exist(&p->control, m, "--control-cpus", err);
	return ret < 0 ? ret : check_overlap(p, m, overlap, err);
}
