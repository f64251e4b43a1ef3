// SPDX-License-Identifier: Apache-2.0
// The API server of corelaned with methods whose answers are known, for the tests in this folder's parent.
//
// Usage: api_test_server SOCKET [STALL_MS [MESSAGE_MS]]
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/api_private.h"
#include "base/ip.h"
#include "capture.pb-c.h"
#include "route.pb-c.h"
#include "system.pb-c.h"

static struct event_base *base;
static uint64_t streams_open, items_given;

static uint64_t resident_bytes(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f != NULL) {
		if (fscanf(f, "%*u %lu", &pages) != 1)
			pages = 0;
		fclose(f);
	}
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

// The state of the server for the test: its memory, its streams (as nexthops), the items that they gave (as routes).
static int get_status(struct api_call *call, const void *req, void *resp, struct error *err)
{
	Corelane__V1__Status *s = resp;

	s->pid = getpid();
	s->memory_bytes = resident_bytes();
	s->nexthops = streams_open;
	s->routes_ipv4 = items_given;
	return 0;
}

static int add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__RouteAddRequest *r = req;
	struct ip_prefix prefix;
	size_t i;
	int ret;

	for (i = 0; i < r->n_routes; i++) {
		ret = ip_parse_prefix(r->routes[i]->prefix, "route.prefix", &prefix, err);
		if (ret < 0) {
			err->index = (uint32_t)i;
			return ret;
		}
	}
	((Corelane__V1__RouteReply *)resp)->changed = (uint32_t)r->n_routes;
	return 0;
}

static int lookup(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__RouteLookupRequest *r = req;
	Corelane__V1__Route *route = resp;

	route->vrf = api_strdup(call, r->vrf);
	route->prefix = api_printf(call, "%s/32", r->address);
	return 0;
}

struct cursor {
	uint64_t n;
	struct event *timer;
	struct api_call *call;
	bool ready;
};

// Sends as many routes as the name of the VRF says.
static int list_next(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__RouteListRequest *r = req;
	Corelane__V1__Route *route = item;
	struct cursor *c = cursor;

	streams_open += c->n == 0;
	if (c->n == strtoull(r->vrf, NULL, 10))
		return 0;
	route->vrf = r->vrf;
	route->prefix = api_printf(call, "10.%u.%u.%u/32", (unsigned)(c->n >> 16), (unsigned)(c->n >> 8 & 255),
				   (unsigned)(c->n & 255));
	route->nexthop = (uint32_t)c->n++;
	route->origin = api_strdup(call, "api");
	items_given++;
	return 1;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct cursor *c = arg;

	c->ready = true;
	api_wake(c->call);
}

// Sends a packet every 10 ms.
static int packets_next(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	static const struct timeval interval = {.tv_usec = 10 * 1000};
	struct cursor *c = cursor;

	if (c->n++ == 0) {
		streams_open++;
		c->call = call;
		c->timer = event_new(base, -1, EV_PERSIST, on_timer, c);
		event_add(c->timer, &interval);
	}
	if (!c->ready)
		return -EAGAIN;
	c->ready = false;
	((Corelane__V1__CapturedPacket *)item)->time_ns = c->n;
	items_given++;
	return 1;
}

static void done(void *cursor)
{
	struct cursor *c = cursor;

	streams_open -= c->n > 0;
	if (c->timer != NULL)
		event_free(c->timer);
}

static const struct api_method methods[] = {
	{.service = "corelane.v1.System",
	 .name = "GetStatus",
	 .req = &corelane__v1__empty__descriptor,
	 .resp = &corelane__v1__status__descriptor,
	 .unary = get_status},
	{.service = "corelane.v1.Routes",
	 .name = "Add",
	 .req = &corelane__v1__route_add_request__descriptor,
	 .resp = &corelane__v1__route_reply__descriptor,
	 .unary = add},
	{.service = "corelane.v1.Routes",
	 .name = "Lookup",
	 .req = &corelane__v1__route_lookup_request__descriptor,
	 .resp = &corelane__v1__route__descriptor,
	 .unary = lookup},
	{.service = "corelane.v1.Routes",
	 .name = "List",
	 .req = &corelane__v1__route_list_request__descriptor,
	 .resp = &corelane__v1__route__descriptor,
	 .next = list_next,
	 .done = done,
	 .cursor_size = sizeof(struct cursor)},
	{.service = "corelane.v1.Capture",
	 .name = "Packets",
	 .req = &corelane__v1__capture_request__descriptor,
	 .resp = &corelane__v1__captured_packet__descriptor,
	 .next = packets_next,
	 .done = done,
	 .cursor_size = sizeof(struct cursor)},
};

API_METHODS(methods)

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
	struct rlimit files = {.rlim_cur = 4096, .rlim_max = 4096};
	struct event *term;
	struct error err;

	if (argc < 2 || argc > 4) {
		fprintf(stderr, "usage: %s SOCKET [STALL_MS [MESSAGE_MS]]\n", argv[0]);
		return 2;
	}
	if (argc >= 3)
		api_limits.stall_ms = (unsigned)strtoul(argv[2], NULL, 10);
	if (argc == 4)
		api_limits.message_ms = (unsigned)strtoul(argv[3], NULL, 10);
	setrlimit(RLIMIT_NOFILE, &files);
	base = event_base_new();
	if (api_server_start(base, argv[1], &err) < 0) {
		fprintf(stderr, "%s: %s\n", argv[0], err.message);
		return 1;
	}
	term = evsignal_new(base, SIGTERM, on_signal, NULL);
	evsignal_add(term, NULL);
	event_base_dispatch(base);
	api_server_stop();
	event_base_loop(base, EVLOOP_NONBLOCK);
	event_free(term);
	event_base_free(base);
	return streams_open == 0 ? 0 : 1; // each stream that was begun must have ended
}
