// SPDX-License-Identifier: Apache-2.0
// The polling loop of a trial: windows in which frames are sent, pauses between them, and the wait for the last frames.
#include "trial.h"

#include <sched.h>
#include <time.h>

#include <rte_pause.h>

#include "poll.h"
#include "profile.h"
#include "round_trip.h"

#define REST_BELOW 64 // a turn that moved fewer frames is followed by a rest
#define LAST_TURNS 64 // that receive what is in the rings when the wait is over
#define QUIET_MS 5    // once all frames are back, the trial ends after so long without another one

static struct stream_count sum_counts(const struct trial *t)
{
	struct stream_count sum = {0};
	unsigned i;

	for (i = 0; i < t->n_streams; i++) {
		const struct stream_count *c = &t->streams[i].count;

		sum.due += c->due;
		sum.sent += c->sent;
		sum.no_room += c->no_room;
		sum.late += c->late;
		sum.received += c->received;
		sum.received_bytes += c->received_bytes;
		sum.duplicated += c->duplicated;
		sum.reordered += c->reordered;
		sum.misplaced += c->misplaced;
		sum.corrupt += c->corrupt;
		sum.wrong_header += c->wrong_header;
	}
	if (!t->paced)
		sum.due = sum.sent;
	return sum;
}

static int trial_stopped(const struct trial *t)
{
	return __atomic_load_n(&t->stop, __ATOMIC_RELAXED);
}

// Gives the CPU to another poller (share), or to any thread during a rest. Returns the time afterwards.
static uint64_t give_turn(struct trial *t, uint64_t now)
{
	struct timespec rest = {.tv_nsec = t->plan.rest_us * 1000L};
	uint64_t end;

	if (t->plan.share)
		sched_yield();
	else
		nanosleep(&rest, NULL);
	end = rte_rdtsc();
	t->turns++;
	t->turn_cycles += end - now;
	return end;
}

// One turn: receives and, if `sending`, sends. Returns the time at its end.
static __rte_always_inline uint64_t trial_turn(struct trial *t, struct window *w, uint64_t now, bool sending)
{
	unsigned moved = 0;
	uint64_t end;

	look(t, now);
	if (sending)
		moved = send_due(t, now, t->active + now - w->start);
	moved += receive(t, now);
	poll_turn();
	end = rte_rdtsc();
	if (moved > 0)
		w->busy += end - now;
	if (t->plan.share || (t->plan.rest_us > 0 && moved < REST_BELOW))
		return give_turn(t, end);
	if (moved == 0)
		rte_pause();
	return end;
}

static void run_window(struct trial *t, struct window *w)
{
	uint64_t now = rte_rdtsc(), end = now + t->plan.window;

	if (t->plan.duration > 0)
		end = RTE_MIN(end, now + t->plan.duration - t->active);
	w->start = t->last_seen = now;
	do {
		now = trial_turn(t, w, now, true);
	} while (now < end && !trial_stopped(t) && !send_done(t));
	w->cycles = (t->paced ? RTE_MIN(now, end) : now) - w->start;
	t->active += w->cycles;
	if (t->paced) // sends what became due in the last turn, but nothing that became due after the window's end
		send_due(t, now, t->active);
}

static void trial_publish(struct trial *t, struct window *w, const struct stream_count *was)
{
	struct stream_count now = sum_counts(t);

	if (t->n_written - __atomic_load_n(&t->n_read, __ATOMIC_ACQUIRE) == TRIAL_WINDOWS)
		return; // the client has not read for long: it gets only the total
	w->start -= t->start;
	w->count = (struct stream_count){.due = now.due - was->due,
					 .sent = now.sent - was->sent,
					 .no_room = now.no_room - was->no_room,
					 .late = now.late - was->late,
					 .received = now.received - was->received,
					 .received_bytes = now.received_bytes - was->received_bytes};
	if (t->sink.latency) {
		w->p99 = histogram_quantile_since(&t->sink.histogram, &t->before, 0.99);
		t->before = t->sink.histogram;
	}
	t->windows[t->n_written % TRIAL_WINDOWS] = *w;
	__atomic_store_n(&t->n_written, t->n_written + 1, __ATOMIC_RELEASE);
	poll_notify();
}

// Receives without sending for `cycles`, or, with until_quiet, until all frames are back and no more arrive for
// QUIET_MS. What had arrived when the time was over is received, too, also if this thread did not run for so long.
static void wait_for_frames(struct trial *t, uint64_t cycles, bool until_quiet)
{
	uint64_t now = t->last_seen = rte_rdtsc(), end = now + cycles, quiet = t->sink.clock.hz / 1000 * QUIET_MS,
		 last = now;
	struct window none = {0};
	unsigned more = LAST_TURNS;
	bool moved, over;
	uint64_t busy;

	do {
		over = now >= end;
		busy = none.busy;
		now = trial_turn(t, &none, now, false);
		moved = none.busy != busy;
		if (moved)
			last = now;
	} while ((!over || (moved && more-- > 0)) && trial_stopped(t) != TRIAL_ABANDON &&
		 (!until_quiet || now - last < quiet || sum_counts(t).received < sum_counts(t).sent));
}

static bool goes_on(const struct trial *t)
{
	return !trial_stopped(t) && !send_done(t) && (t->plan.duration == 0 || t->active < t->plan.duration);
}

static unsigned away_us(const struct trial_plan *plan)
{
	if (plan->share)
		return AWAY_SHARED_US;
	return plan->rest_us > 0 ? plan->rest_us + AWAY_RESTED_US : AWAY_US;
}

int trial_init(struct trial *t, uint8_t number)
{
	unsigned i, q;

	t->streams = profile.streams;
	t->n_streams = profile.n_streams;
	t->ports = profile.ports;
	t->n_ports = profile.n_ports;
	for (i = 0; i < t->n_ports; i++)
		for (q = 0; q < t->ports[i]->n_rx; q++)
			t->ports[i]->rest_until[q] = t->ports[i] == t->plan.unread ? UINT64_MAX : 0;
	for (i = 0; i < t->n_streams; i++) {
		t->streams[i].count = (struct stream_count){0};
		t->streams[i].renewed = t->streams[i].behind = 0;
	}
	sink_start(&t->sink, t->streams, t->n_streams, number);
	t->sink.clock = clock_of(rte_get_tsc_hz());
	t->sink.verify = t->plan.verify;
	t->sink.latency = t->plan.latency;
	t->sink.age = clock_stamp(&t->sink.clock, t->sink.clock.hz); // a second
	t->paced = t->plan.packets_per_second > 0;
	t->away = t->sink.clock.hz / 1000000 * away_us(&t->plan);
	return send_init(t);
}

// Gives real-time priority to this thread first and takes it from this thread last, since it must run to change the
// others.
static void set_priorities(struct trial *t, int policy)
{
	struct sched_param param = {.sched_priority = policy == SCHED_FIFO};
	unsigned i;

	if (t->plan.n_real_time == 0)
		return;
	if (policy == SCHED_FIFO)
		sched_setscheduler(0, policy, &param);
	for (i = 0; i < t->plan.n_real_time; i++)
		if (sched_setscheduler(t->plan.real_time[i], policy, &param) == 0 && policy == SCHED_FIFO)
			t->real_time++;
	if (policy != SCHED_FIFO)
		sched_setscheduler(0, policy, &param);
}

void trial_run(struct trial *t)
{
	struct stream_count before;
	struct window w;

	set_priorities(t, SCHED_FIFO);
	t->start = rte_rdtsc();
	do {
		w = (struct window){0};
		if (t->plan.pause > 0) {
			wait_for_frames(t, t->plan.pause, false);
			w.round_trip = round_trip_probe();
		}
		before = sum_counts(t);
		run_window(t, &w);
		trial_publish(t, &w, &before);
		t->total.busy += w.busy;
	} while (goes_on(t));
	wait_for_frames(t, t->plan.drain, true);
	set_priorities(t, SCHED_OTHER);
	t->total.count = sum_counts(t);
	t->total.cycles = t->active;
	__atomic_store_n(&t->ended, true, __ATOMIC_RELEASE);
	poll_notify();
}
