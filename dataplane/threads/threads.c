// SPDX-License-Identifier: Apache-2.0
#include "threads/threads.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "base/event.h"
#include "base/log.h"

// Up to this number every stray of a thread is reported; after it, fewer and fewer: a tool that moves the thread each
// second must not evict all other events.
#define STRAYS_REPORTED 8

EVENT_KIND(thread_stray, WARNING,
	   "A thread could run on CPUs that the plan does not give it: somebody (taskset, a tool that tunes the host) "
	   "or a library had changed its affinity. It was moved back. Packets wait while another thread runs on a "
	   "worker's CPU.");
EVENT_KIND(thread_displaced, ERROR,
	   "The kernel does not let a thread run on all CPUs that the plan gives it: they are offline, or the cpuset "
	   "of the process does not contain them any more. The thread is moved back as soon as possible; until then, "
	   "`corelane worker set` gives a worker another CPU.");
EVENT_KIND(thread_returned, INFO, "A thread that was kept from its CPUs may run on all of them again.");

static bool threads_starts(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

// Threads of DPDK and unknown threads of libraries count as control threads. A worker's name tells its role.
enum thread_role thread_role(const char *name, bool master)
{
	if (threads_starts(name, "pmd-rx-"))
		return THREAD_ISOLATED_RX;
	if (threads_starts(name, "pmd-host-"))
		return THREAD_HOST_PATH;
	if (threads_starts(name, "pmd-fwd-"))
		return THREAD_FORWARDING;
	if (master || threads_starts(name, "svc-") || threads_starts(name, "vhost") ||
	    threads_starts(name, "dpdk-vhost"))
		return THREAD_SERVICE;
	return THREAD_CONTROL;
}

static struct thread *threads_find(struct threads *all, int tid)
{
	unsigned i;

	for (i = 0; i < all->n; i++)
		if (all->list[i].task.tid == tid)
			return &all->list[i];
	return NULL;
}

static struct thread *threads_add(struct threads *all)
{
	struct thread *more;

	if (all->n == all->room) {
		more = realloc(all->list, (all->room + 32) * sizeof(*more));
		if (more == NULL)
			return NULL;
		all->list = more;
		all->room += 32;
	}
	memset(&all->list[all->n], 0, sizeof(*all->list));
	return &all->list[all->n++];
}

static struct cpu_list threads_planned_for(struct thread *t, const struct thread_plan *plan)
{
	struct cpu_list one = {0};
	unsigned cpu;

	t->worker = plan->worker(t->task.tid, &cpu);
	t->role = thread_role(t->task.name, t->task.tid == plan->master);
	if (t->worker < 0)
		return t->role == THREAD_SERVICE ? plan->service : plan->control;
	cpu_list_add(&one, cpu);
	return one;
}

static const char *threads_subject(const struct thread *t, char *buf, size_t size)
{
	if (t->worker < 0)
		return t->task.name;
	snprintf(buf, size, "worker %d", t->worker);
	return buf;
}

static void report_stray(const struct thread *t, const struct cpu_list *was)
{
	char who[32], found[CPU_LIST_TEXT], planned[CPU_LIST_TEXT];

	event_report(thread_stray, threads_subject(t, who, sizeof(who)),
		     "thread %s (%d) could run on CPUs %s and belongs to %s; moved back", t->task.name, t->task.tid,
		     cpu_list_format(was, found, sizeof(found)),
		     cpu_list_format(&t->planned, planned, sizeof(planned)));
}

static void report_displaced(const struct thread *t, const struct thread_plan *plan, int ret)
{
	char who[32], found[CPU_LIST_TEXT], planned[CPU_LIST_TEXT], off[CPU_LIST_TEXT], why[CPU_LIST_TEXT + 32];
	struct cpu_list online, offline = {0};

	if (machine_read_list(plan->root, "/sys/devices/system/cpu/online", &online) == 0)
		offline = cpu_list_without(&t->planned, &online);
	if (!cpu_list_empty(&offline))
		snprintf(why, sizeof(why), "CPU %s is offline", cpu_list_format(&offline, off, sizeof(off)));
	else if (ret == 0 || ret == -EINVAL)
		snprintf(why, sizeof(why), "the cpuset does not allow it");
	else
		snprintf(why, sizeof(why), "%s", strerror(-ret));
	event_report(thread_displaced, threads_subject(t, who, sizeof(who)),
		     "thread %s (%d) may run on CPUs %s and belongs to %s, but %s", t->task.name, t->task.tid,
		     cpu_list_format(&t->task.affinity, found, sizeof(found)),
		     cpu_list_format(&t->planned, planned, sizeof(planned)), why);
}

static void report_returned(const struct thread *t, uint64_t now_ns)
{
	char who[32], planned[CPU_LIST_TEXT];

	event_report(thread_returned, threads_subject(t, who, sizeof(who)),
		     "thread %s (%d) has its CPUs %s again, after %.1f s", t->task.name, t->task.tid,
		     cpu_list_format(&t->planned, planned, sizeof(planned)), (double)(now_ns - t->displaced) / 1e9);
}

// quiet: the thread is not a stray, so that only a failure is reported.
static void threads_move(struct thread *t, const struct thread_plan *plan, bool quiet, uint64_t now_ns)
{
	struct cpu_list was = t->task.affinity;
	int ret = plan->move(t->task.tid, &t->planned);

	if (ret == -ESRCH || task_read_status(plan->root, t->task.tid, &t->task) < 0)
		return; // the thread has ended
	if (!cpu_list_eq(&t->task.affinity, &t->planned)) {
		if (t->displaced == 0)
			report_displaced(t, plan, ret);
		t->displaced = t->displaced ? t->displaced : now_ns;
	} else if (!quiet && t->displaced == 0) {
		t->moved_back++;
		if (t->moved_back <= STRAYS_REPORTED || rte_is_power_of_2(t->moved_back))
			report_stray(t, &was);
	}
}

// A new thread starts on the CPUs of its creator. It is a stray only when it may run on other CPUs than those of
// service and control threads.
static bool threads_within_plan(const struct cpu_list *l, const struct thread_plan *plan)
{
	struct cpu_list rest = cpu_list_without(l, &plan->service);

	return cpu_list_within(&rest, &plan->control);
}

static void threads_look_at(struct thread *t, const struct thread_plan *plan, bool is_new, uint64_t now_ns)
{
	struct cpu_list before = t->planned;
	bool quiet;

	t->planned = threads_planned_for(t, plan);
	quiet = is_new ? threads_within_plan(&t->task.affinity, plan)
		       : !cpu_list_eq(&before, &t->planned) && cpu_list_eq(&before, &t->task.affinity);
	if (!cpu_list_eq(&t->task.affinity, &t->planned))
		threads_move(t, plan, quiet, now_ns);
	if (t->displaced && cpu_list_eq(&t->task.affinity, &t->planned)) {
		report_returned(t, now_ns);
		t->displaced = 0;
	}
}

static void threads_forget_gone(struct threads *all)
{
	unsigned i, n = 0;

	for (i = 0; i < all->n; i++)
		if (all->list[i].seen)
			all->list[n++] = all->list[i];
	all->n = n;
}

void threads_look(struct threads *all, const struct thread_plan *plan, uint64_t now_ns)
{
	struct task task = {0};
	struct thread *t;
	unsigned i, n;
	int *ids = task_ids(plan->root, &n);
	bool is_new;

	for (i = 0; i < all->n; i++)
		all->list[i].seen = false;
	for (i = 0; i < n; i++) {
		if (task_read_status(plan->root, ids[i], &task) < 0)
			continue;
		t = threads_find(all, ids[i]);
		is_new = t == NULL;
		if (is_new && (t = threads_add(all)) == NULL)
			break;
		t->task = task;
		t->seen = true;
		threads_look_at(t, plan, is_new, now_ns);
	}
	free(ids);
	threads_forget_gone(all);
}
