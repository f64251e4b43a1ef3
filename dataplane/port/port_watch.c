// SPDX-License-Identifier: Apache-2.0
// Calls a function on the master thread at an interval, and at once when another thread asks for it.
#include "port/port_kinds.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/loop.h"

struct port_watch {
	struct event *event;
	int fd;
	void (*fn)(void *arg);
	void *arg;
};

static void port_watch_on_event(evutil_socket_t fd, short what, void *arg)
{
	struct port_watch *w = arg;
	eventfd_t n;

	if (what & EV_READ)
		eventfd_read(fd, &n); // it may be empty
	w->fn(w->arg);                // may free w
}

struct port_watch *port_watch_new(unsigned interval_ms, void (*fn)(void *arg), void *arg)
{
	const struct timeval interval = {.tv_sec = interval_ms / 1000, .tv_usec = interval_ms % 1000 * 1000};
	struct port_watch *w = malloc(sizeof(*w));

	if (w == NULL)
		return NULL;
	w->fn = fn;
	w->arg = arg;
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->event = w->fd < 0 ? NULL : event_new(loop_base(), w->fd, EV_READ | EV_PERSIST, port_watch_on_event, w);
	if (w->event == NULL || event_add(w->event, interval_ms > 0 ? &interval : NULL) < 0) {
		port_watch_free(w);
		return NULL;
	}
	return w;
}

void port_watch_kick(struct port_watch *w)
{
	eventfd_write(w->fd, 1);
}

void port_watch_free(struct port_watch *w)
{
	if (w == NULL)
		return;
	if (w->event != NULL)
		event_free(w->event);
	if (w->fd >= 0)
		close(w->fd);
	free(w);
}
