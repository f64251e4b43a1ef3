// SPDX-License-Identifier: Apache-2.0
#include "base/turn.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/event.h"
#include "base/histogram.h"
#include "base/notify.h"

EVENT_KIND(
	master_stalled, WARNING,
	"The master thread did not return to its loop for more than 100 ms, because one request or one piece of work "
	"took that long; or for more than a second, because other threads occupied its CPUs or the process was "
	"stopped. Meanwhile it answered no request, resolved no neighbour and watched no worker. `corelane status` "
	"shows the longest turn.");

static struct histogram times;
static struct turns turns = {.times = &times};
static struct turn_work *works;

static struct {
	uint64_t begin, waited; // of the turn; waited: all time that the thread has waited for a CPU
	struct turn_work *work; // the one that runs
	uint64_t work_begin;
	const struct turn_work *longest;
	uint64_t longest_ns;
} turn;

static struct {
	uint64_t at;
	unsigned omitted;
} report;

const struct turn_work *turn_work_next(const struct turn_work *w)
{
	return w ? w->next : works;
}

const struct turns *turns_get(void)
{
	return &turns;
}

void turn_begin(struct turn_work *w)
{
	turn.work = w;
	turn.work_begin = clock_now_ns(CLOCK_MONOTONIC);
}

void turn_end(void)
{
	uint64_t ns = clock_now_ns(CLOCK_MONOTONIC) - turn.work_begin;
	struct turn_work *w = turn.work;

	if (w->runs++ == 0)
		LISTEN(works, w);
	w->total_ns += ns;
	if (ns > w->longest_ns) {
		w->longest_ns = ns;
		w->longest_at_ns = clock_now_ns(CLOCK_REALTIME);
	}
	if (ns > turn.longest_ns) {
		turn.longest_ns = ns;
		turn.longest = w;
	}
}

// How long this thread has waited for a CPU since its start, in ns. 0: the kernel does not count it.
static uint64_t turn_read_waited(void)
{
	static int fd = -1;
	char text[96], *second;
	ssize_t n;

	if (unlikely(clock_stopped_ns != 0)) // a test: nothing is waited for
		return 0;
	if (fd == -1) {
		fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
		fd = fd < 0 ? -2 : fd; // asked once
	}
	n = fd < 0 ? 0 : pread(fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	second = strchr(text, ' ');
	return second ? strtoull(second, NULL, 10) : 0;
}

static void turn_report(uint64_t ns, uint64_t waited, uint64_t now)
{
	char cause[128] = "", wait[64] = "", more[64] = "";
	const struct turn_work *w = turn.longest;

	if (report.at != 0 && now - report.at < TURN_REPORT_NS) {
		report.omitted++;
		return;
	}
	if (w && turn.longest_ns >= ns / 2) // else the process was stopped, or its CPU was taken, outside of any work
		snprintf(cause, sizeof(cause), ": %s%s%s took %" PRIu64 " ms", w->noun ? w->noun : "",
			 w->noun ? "." : "", w->name, turn.longest_ns / 1000000);
	if (waited >= ns / 10)
		snprintf(wait, sizeof(wait), "; it waited %" PRIu64 " ms for a CPU", waited / 1000000);
	if (report.omitted > 0)
		snprintf(more, sizeof(more), "; %u earlier ones were not reported", report.omitted);
	event_report(master_stalled, NULL, "the master thread did not return to its loop for %" PRIu64 " ms%s%s%s",
		     ns / 1000000, cause, wait, more);
	report.at = now;
	report.omitted = 0;
}

static void turn_count(uint64_t ns, uint64_t waited, uint64_t now)
{
	histogram_add(&times, ns);
	if (ns > turns.longest_ns) {
		turns.longest_ns = ns;
		turns.longest_at_ns = clock_now_ns(CLOCK_REALTIME);
		turns.longest_waited_ns = waited;
		turns.longest_work = turn.longest;
		turns.longest_work_ns = turn.longest_ns;
	}
	if (ns - waited > turns.own_ns) {
		turns.own_ns = ns - waited;
		turns.own_work = turn.longest;
	}
	turns.above += ns - waited > TURN_LONG_NS;
	turns.waiting += ns > TURN_LONG_NS && ns - waited <= TURN_LONG_NS;
	if (ns - waited > TURN_LONG_NS || ns > TURN_STALL_NS)
		turn_report(ns, waited, now);
}

void turn_next(void)
{
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC), all = turn_read_waited(), ns = now - turn.begin,
		 waited = all - turn.waited;

	if (turn.begin != 0)
		turn_count(ns, waited < ns ? waited : ns, now);
	turn.begin = now;
	turn.waited = all;
	turn.longest = NULL;
	turn.longest_ns = 0;
}
