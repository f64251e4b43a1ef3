// SPDX-License-Identifier: Apache-2.0
// Compares the loop counters of all workers with their last values, and reports workers that stall or resume.
#include "threads/worker_watch.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/event.h"
#include "worker/worker.h"

EVENT_KIND(worker_stalled, ERROR,
	   "A worker has not finished a loop for half a second: its packets wait, and are dropped when the queues are "
	   "full. The text gives the state of its thread: it is stopped or frozen, it is runnable but other threads "
	   "occupy its CPU (a real-time task, a stolen CPU of a virtual machine), or a loop takes that long. Changes "
	   "that all workers must see wait for it.");
EVENT_KIND(worker_resumed, INFO, "A stalled worker has run for one second without stalling again.");

static struct watch watches[WORKER_MAX];

void watch_restart(struct watch *w, uint64_t loops, uint64_t now)
{
	w->loops = loops;
	w->progress = now;
	w->steady = now;
	w->sampled = false;
}

static enum watch_result worker_watch_progressed(struct watch *w, uint64_t loops, uint64_t now)
{
	if (now - w->progress >= WATCH_STALL_NS) {
		w->longest = now - w->progress > w->longest ? now - w->progress : w->longest;
		w->steady = now;
	}
	w->loops = loops;
	w->progress = now;
	w->sampled = w->stalled = w->hangs = false;
	if (!w->reported || now - w->steady < WATCH_STEADY_NS)
		return WATCH_NOTHING;
	w->reported = false;
	return WATCH_RESUMED;
}

enum watch_result watch_step(struct watch *w, uint64_t loops, uint64_t now)
{
	uint64_t before = w->longest;

	if (loops != w->loops)
		return worker_watch_progressed(w, loops, now);
	if (now - w->progress < WATCH_STALL_NS)
		return WATCH_SUSPECT;
	w->stalled = true;
	if (w->reported)
		return WATCH_NOTHING;
	w->reported = true;
	w->begin = w->progress;
	w->longest = before < now - w->progress ? now - w->progress : before;
	return WATCH_STALLED;
}

bool watch_is_preempted(const struct task *before, const struct task *now)
{
	double waited = (double)(now->wait_ns - before->wait_ns) / 1e9;

	return now->state == 'R' && (now->run_ns == before->run_ns || waited >= 0.1);
}

bool watch_is_hanging(const struct task *before, const struct task *now)
{
	return now->state != 'R' || now->run_ns - before->run_ns >= WATCH_STALL_NS / 2;
}

const char *watch_why(const struct task *before, const struct task *now, unsigned cpu, char *buf, size_t size)
{
	switch (now->state) {
	case 'T':
		snprintf(buf, size, "it was stopped by a signal");
		break;
	case 't':
		snprintf(buf, size, "it was stopped by a debugger");
		break;
	case 'D':
		snprintf(buf, size,
			 "it is in uninterruptible sleep: frozen by its cgroup, or waiting for a device or for memory");
		break;
	case 'S':
		snprintf(buf, size, "it sleeps in a system call");
		break;
	case 'R':
		if (!watch_is_preempted(before, now))
			snprintf(buf, size, "it runs on CPU %d, but its loop does not end", now->cpu);
		else
			snprintf(buf, size, "it could run on CPU %d, but others have it%s", now->cpu,
				 now->cpu == (int)cpu ? "" : " (not its own CPU)");
		break;
	default:
		snprintf(buf, size, "its thread has ended (state %c)", now->state ? now->state : '?');
	}
	return buf;
}

static void report_stalled(const struct worker *w, const struct watch *s, uint64_t now)
{
	struct task task = {0};
	char who[32], why[128], name[16];

	if (task_read_sched("", w->tid, &task) < 0)
		task.state = 'X';
	snprintf(who, sizeof(who), "worker %u", w->id);
	event_report(worker_stalled, who, "thread %s (%d) has not ended a loop for %.1f s; %s",
		     worker_thread_name(w, name), w->tid, (double)(now - s->progress) / 1e9,
		     watch_why(&s->sample, &task, w->cpu, why, sizeof(why)));
}

static void report_resumed(const struct worker *w, struct watch *s)
{
	char who[32];

	snprintf(who, sizeof(who), "worker %u", w->id);
	event_report(worker_resumed, who, "loops again; it was stalled for %.1f s, at most %.1f s at once",
		     (double)(s->steady - s->begin) / 1e9, (double)s->longest / 1e9);
	s->longest = 0;
}

static void worker_watch_look_at(const struct worker *w, uint64_t now)
{
	uint64_t loops = __atomic_load_n(&w->loops, __ATOMIC_RELAXED);
	struct watch *s = &watches[w->id];

	if (s->tid != w->tid) { // a new worker with this id
		*s = (struct watch){.tid = w->tid};
		watch_restart(s, loops, now);
		return;
	}
	switch (watch_step(s, loops, now)) {
	case WATCH_SUSPECT:
		if (!s->sampled)
			task_read_sched("", w->tid, &s->sample);
		s->sampled = true;
		break;
	case WATCH_STALLED:
		report_stalled(w, s, now);
		break;
	case WATCH_RESUMED:
		report_resumed(w, s);
		break;
	case WATCH_NOTHING:
		break;
	}
}

static uint64_t worker_watch_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void worker_watch_poll(void)
{
	static uint64_t last;
	uint64_t now = worker_watch_now_ns(), away = last ? now - last : 0;
	struct worker *w;

	last = now;
	for (w = worker_next(NULL); w; w = worker_next(w)) {
		if (away > WATCH_STALL_NS / 2)
			watch_restart(&watches[w->id], __atomic_load_n(&w->loops, __ATOMIC_RELAXED), now);
		else
			worker_watch_look_at(w, now);
	}
}

uint64_t worker_watch_stalled_ns(unsigned worker)
{
	const struct watch *s = &watches[worker];
	uint64_t now = worker_watch_now_ns();

	return s->reported && now - s->progress >= WATCH_STALL_NS ? now - s->progress : 0;
}

static bool worker_watch_is_hanging(const struct worker *w, struct watch *s)
{
	struct task task;

	if (s->stalled && !s->hangs)
		s->hangs = task_read_sched("", w->tid, &task) < 0 || watch_is_hanging(&s->sample, &task);
	return s->hangs;
}

bool worker_watch_hangs(void)
{
	struct worker *w;

	for (w = worker_next(NULL); w; w = worker_next(w))
		if (worker_watch_is_hanging(w, &watches[w->id]))
			return true;
	return false;
}
