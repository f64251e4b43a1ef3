// SPDX-License-Identifier: Apache-2.0
// API of the generator (api/generator.proto). Runs one trial at a time; Run streams the windows that gen-poll has
// written.
#include "gen_api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "gen_answer.h"
#include "poll.h"
#include "profile.h"

struct run { // state of Run's stream
	bool started, done;
};

static struct trial *current; // a trial that runs or has an unfinished stream
static struct api_call *waiting;
static char broken[192]; // why the current trial cannot go on

void gen_api_poll(void)
{
	struct api_call *call = waiting;

	waiting = NULL;
	if (call != NULL)
		api_wake(call);
}

static void stop_trial(int how)
{
	if (current != NULL)
		__atomic_store_n(&current->stop, how, __ATOMIC_RELEASE);
}

void gen_port_down(struct gen_port *p, const char *reason)
{
	if (current == NULL || poll_idle())
		return;
	snprintf(broken, sizeof(broken), "%s: %s", p->cfg.name, reason);
	stop_trial(TRIAL_ABANDON);
}

static void free_trial(void)
{
	while (!poll_idle()) // the trial was abandoned or has just ended
		usleep(50);
	if (current != NULL)
		send_fini(current);
	free(current);
	current = NULL;
}

void gen_api_close(void)
{
	stop_trial(TRIAL_ABANDON);
	free_trial();
	profile_clear();
}

static int gen_api_busy(struct error *err)
{
	return error_set(err, EBUSY, NULL, NULL, NULL, "a trial is running");
}

static int gen_api_configure(struct api_call *call, const void *req, void *resp, struct error *err)
{
	int ret;

	if (current != NULL)
		return gen_api_busy(err);
	ret = profile_set(req, err);
	if (ret < 0)
		return ret;
	answer_ports(call, resp);
	return 0;
}

static int gen_api_ports(struct api_call *call, const void *req, void *resp, struct error *err)
{
	answer_ports(call, resp);
	return 0;
}

static int gen_api_stop(struct api_call *call, const void *req, void *resp, struct error *err)
{
	stop_trial(TRIAL_STOP);
	return 0;
}

static const struct gen_port *gen_api_find_port(const char *name)
{
	unsigned i;

	for (i = 0; i < profile.n_ports; i++)
		if (strcmp(profile.ports[i]->cfg.name, name) == 0)
			return profile.ports[i];
	return NULL;
}

static bool sends(const Corelane__V1__GeneratorTrial *in, const struct stream *s)
{
	size_t i;

	for (i = 0; i < in->n_streams && strcmp(in->streams[i], s->name) != 0; i++)
		;
	return in->n_streams == 0 || i < in->n_streams;
}

static int check_streams(const Corelane__V1__GeneratorTrial *in, struct error *err)
{
	unsigned k;
	size_t i;

	for (i = 0; i < in->n_streams; i++) {
		for (k = 0; k < profile.n_streams && strcmp(in->streams[i], profile.streams[k].name) != 0; k++)
			;
		if (k == profile.n_streams)
			return error_set(err, ENOENT, "streams", in->streams[i], "the name of a stream",
					 "there is no such stream");
	}
	return 0;
}

static int check_plan(const Corelane__V1__GeneratorTrial *in, struct error *err)
{
	unsigned i;

	if (profile.n_streams == 0)
		return error_set(err, ENOENT, NULL, NULL, NULL, "nothing is configured");
	if (in->duration_ms == 0 && in->packets == 0)
		return error_set(err, EINVAL, "duration_ms", "0", "a duration, or packets", "would never end");
	if (*in->unread_port && gen_api_find_port(in->unread_port) == NULL)
		return error_set(err, ENOENT, "unread_port", in->unread_port, "the name of a port",
				 "there is no such port");
	for (i = 0; i < profile.n_ports; i++)
		if (!profile.ports[i]->ops->up(profile.ports[i]))
			return error_set(err, ENOTCONN, "port", profile.ports[i]->cfg.name, NULL, "is not up");
	return check_streams(in, err);
}

static struct trial_plan plan_of(const Corelane__V1__GeneratorTrial *in)
{
	uint64_t ms = rte_get_tsc_hz() / 1000;
	struct trial_plan plan = {
		.duration = in->duration_ms * ms,
		.window = (in->window_ms ? in->window_ms : LIMIT_GENERATOR_TRIAL_WINDOW_MS_DEFAULT) * ms,
		.drain = (in->drain_ms ? in->drain_ms : LIMIT_GENERATOR_TRIAL_DRAIN_MS_DEFAULT) * ms,
		.pause = in->pause_ms * ms,
		.packets = in->packets,
		.packets_per_second = in->packets_per_second,
		.burst = in->burst ? in->burst : LIMIT_GENERATOR_TRIAL_BURST_DEFAULT,
		.verify = (enum verify)in->verify,
		.latency = in->latency,
		.share = in->share,
		.rest_us = in->rest_us,
		.unread = gen_api_find_port(in->unread_port),
		.n_real_time = (unsigned)in->n_real_time,
	};

	if (in->n_real_time > 0)
		memcpy(plan.real_time, in->real_time, in->n_real_time * sizeof(plan.real_time[0]));
	return plan;
}

static int gen_api_begin(const Corelane__V1__GeneratorTrial *in, struct error *err)
{
	static uint8_t number;
	unsigned i;
	int ret;

	if (current != NULL)
		return gen_api_busy(err);
	ret = check_plan(in, err);
	if (ret < 0)
		return ret;
	current = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN(sizeof(*current), (size_t)RTE_CACHE_LINE_SIZE));
	if (current == NULL)
		return -ENOMEM;
	memset(current, 0, sizeof(*current));
	number = (uint8_t)(number == PROBE_TRIALS - 1 ? 1 : number + 1);
	current->plan = plan_of(in);
	for (i = 0; i < profile.n_streams; i++)
		profile.streams[i].silent = !sends(in, &profile.streams[i]);
	if (trial_init(current, number) < 0) {
		free_trial();
		return -ENOMEM;
	}
	broken[0] = '\0';
	poll_run(current);
	return 0;
}

static int next_window(struct api_call *call, struct run *run, void *item)
{
	bool ended = __atomic_load_n(&current->ended, __ATOMIC_ACQUIRE); // read first: no window follows it

	if (current->n_read != __atomic_load_n(&current->n_written, __ATOMIC_ACQUIRE)) {
		answer_window(current, &current->windows[current->n_read % TRIAL_WINDOWS], item);
		__atomic_store_n(&current->n_read, current->n_read + 1, __ATOMIC_RELEASE);
		return 1;
	}
	if (!ended) {
		waiting = call;
		return -EAGAIN;
	}
	answer_total(call, current, item);
	run->done = true;
	return 1;
}

static int run_next(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	struct run *run = cursor;
	int ret;

	if (run->done) {
		free_trial();
		return 0;
	}
	if (!run->started) {
		ret = gen_api_begin(req, err);
		if (ret < 0)
			return ret;
		run->started = true;
	}
	if (broken[0])
		return error_set(err, ENOTCONN, "port", NULL, NULL, "%s", broken);
	return next_window(call, run, item);
}

static void run_done(void *cursor)
{
	const struct run *run = cursor;

	if (!run->started)
		return;
	waiting = NULL;
	stop_trial(TRIAL_ABANDON);
	free_trial();
}

static const struct api_method methods[] = {
	{"corelane.v1.Generator", "Configure", &corelane__v1__generator_profile__descriptor,
	 &corelane__v1__generator_profile__descriptor, .unary = gen_api_configure},
	{"corelane.v1.Generator", "Ports", &corelane__v1__empty__descriptor,
	 &corelane__v1__generator_profile__descriptor, .unary = gen_api_ports},
	{"corelane.v1.Generator", "Stop", &corelane__v1__empty__descriptor, &corelane__v1__empty__descriptor,
	 .unary = gen_api_stop},
	{"corelane.v1.Generator", "Run", &corelane__v1__generator_trial__descriptor,
	 &corelane__v1__generator_window__descriptor, .next = run_next, .done = run_done,
	 .cursor_size = sizeof(struct run)},
};
API_METHODS(methods)
