// SPDX-License-Identifier: Apache-2.0
// corelane-gen: the traffic generator. The main thread answers the API; one thread polls while a trial runs.
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

#include <event2/event.h>
#include <rte_eal.h>

#include "api/api.h"
#include "base/log.h"
#include "base/loop.h"
#include "eal.h"
#include "gen_api.h"
#include "head.h"
#include "poll.h"
#include "round_trip.h"

static int main_fail(const struct error *err)
{
	fprintf(stderr, "corelane-gen: %s\n", err->message);
	return 2;
}

static void main_on_signal(evutil_socket_t fd, short what, void *arg)
{
	event_base_loopbreak(loop_base());
}

static int main_start(const struct options *o, struct error *err)
{
	int ret = eal_start(o, err);

	if (ret < 0)
		return ret;
	pattern_init();
	loop_set_base(event_base_new());
	ret = poll_start((unsigned)o->cpu, gen_api_poll, err);
	if (ret == 0 && o->round_trip_cpu >= 0)
		ret = round_trip_start((unsigned)o->round_trip_cpu, err);
	return ret < 0 ? ret : api_server_start(loop_base(), o->socket, err);
}

static void main_run(void)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
	unsigned i;

	for (i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		event_add(event_new(loop_base(), signals[i], EV_SIGNAL | EV_PERSIST, main_on_signal, NULL), NULL);
	event_base_dispatch(loop_base());
}

static void main_stop(void)
{
	gen_api_close();
	api_server_stop();
	event_base_loop(loop_base(), EVLOOP_NONBLOCK); // libevent frees connections from its loop
	poll_stop();
	round_trip_stop();
	rte_eal_cleanup();
}

int main(int argc, char **argv)
{
	struct error err = {0};
	struct options o;
	int ret = options_parse(argc, argv, &o, &err);

	if (ret < 0)
		return main_fail(&err);
	if (ret > 0)
		return 0;
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGTERM); // the generator ends with the process that drives it
	if (main_start(&o, &err) < 0)
		return main_fail(&err);
	LOG(INFO, "corelane-gen %s answers on %s", CORELANE_VERSION, o.socket);
	main_run();
	main_stop();
	return 0;
}
