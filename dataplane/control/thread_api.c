// SPDX-License-Identifier: Apache-2.0
// API of threads (api/thread.proto).
#include "api/api.h"
#include "threads/threads.h"
#include "threads/worker_watch.h"
#include "thread.pb-c.h"

#define TEXT 4096

static char *thread_api_encode_cpus(struct api_call *call, const struct cpu_list *l)
{
	return cpu_list_format(l, api_alloc(call, TEXT), TEXT);
}

static void thread_api_encode(struct api_call *call, const struct thread *t, const struct task *now,
			      Corelane__V1__Thread *out)
{
	out->tid = now->tid;
	out->name = api_strdup(call, now->name);
	out->role = (Corelane__V1__ThreadRole)t->role;
	out->planned = thread_api_encode_cpus(call, &t->planned);
	out->allowed = thread_api_encode_cpus(call, &now->affinity);
	out->cpu = now->cpu;
	out->state = api_printf(call, "%c", now->state);
	out->voluntary_switches = now->voluntary;
	out->involuntary_switches = now->involuntary;
	out->ran_ns = now->run_ns;
	out->waited_ns = now->wait_ns;
	out->moved_back = t->moved_back;
	out->displaced = t->displaced != 0;
	out->stalled_ms = t->worker < 0 ? 0 : (uint32_t)(worker_watch_stalled_ns((unsigned)t->worker) / 1000000);
}

static const struct thread *thread_api_after(int tid) // the one with the next id
{
	const struct threads *all = threads_all();
	const struct thread *best = NULL;
	unsigned i;

	for (i = 0; i < all->n; i++)
		if (all->list[i].task.tid > tid && (best == NULL || all->list[i].task.tid < best->task.tid))
			best = &all->list[i];
	return best;
}

static int thread_api_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const struct thread *t;
	struct task now = {0};
	int *last = cursor;

	if (*last == 0)
		threads_poll(); // adds threads that have started since the last poll
	while ((t = thread_api_after(*last)) != NULL) {
		*last = t->task.tid;
		if (task_read_status("", t->task.tid, &now) == 0 && task_read_sched("", t->task.tid, &now) == 0) {
			thread_api_encode(call, t, &now, item);
			return 1;
		}
	}
	return 0;
}

static const struct api_method methods[] = {
	{"corelane.v1.Threads", "List", &corelane__v1__thread_list_request__descriptor,
	 &corelane__v1__thread__descriptor, .next = thread_api_list, .cursor_size = sizeof(int)},
};
API_METHODS(methods)
