// SPDX-License-Identifier: Apache-2.0
// API of events (api/event.proto).
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/queue.h>

#include "api/api.h"
#include "base/event.h"
#include "event.pb-c.h"

struct cursor {
	TAILQ_ENTRY(cursor) next;
	struct api_call *call;
	uint64_t last; // number of the event that was sent last
	bool begun, waiting;
};

static TAILQ_HEAD(, cursor) waiting = TAILQ_HEAD_INITIALIZER(waiting);

static void stop_waiting(struct cursor *c)
{
	if (c->waiting)
		TAILQ_REMOVE(&waiting, c, next);
	c->waiting = false;
}

static void wake_all(void)
{
	struct cursor *c;

	while ((c = TAILQ_FIRST(&waiting)) != NULL) {
		stop_waiting(c);
		api_wake(c->call);
	}
}

__attribute__((constructor)) static void listen_to_events(void)
{
	static struct event_listener listener = {.reported = wake_all};

	event_listen(&listener);
}

static bool kind_exists(const char *name)
{
	const struct event_kind *k;

	for (k = event_kind_next(NULL); k; k = event_kind_next(k))
		if (strcmp(k->name, name) == 0)
			return true;
	return false;
}

static int event_api_check(const Corelane__V1__EventListRequest *in, struct error *err)
{
	if (*in->kind && !kind_exists(in->kind))
		return error_set(err, ENOENT, "kind", in->kind, "a kind of `corelane event kinds`",
				 "there is no such kind of event");
	return 0;
}

static bool event_api_wanted(const Corelane__V1__EventListRequest *in, const struct event_record *e)
{
	return (unsigned)e->kind->severity >= (unsigned)in->severity &&
	       (*in->kind == '\0' || strcmp(in->kind, e->kind->name) == 0);
}

static void event_api_encode(struct api_call *call, const struct event_record *e, Corelane__V1__Event *out)
{
	out->number = e->number;
	out->time_ns = e->time_ns;
	out->severity = (Corelane__V1__EventSeverity)e->kind->severity;
	out->kind = api_strdup(call, e->kind->name);
	out->subject = api_strdup(call, e->subject);
	out->text = api_strdup(call, e->text);
}

static int event_api_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__EventListRequest *in = req;
	const struct event_record *e;
	struct cursor *c = cursor;

	if (!c->begun && event_api_check(in, err) < 0)
		return -err->code;
	if (!c->begun)
		c->last = in->after;
	c->begun = true;
	while ((e = event_after(c->last)) != NULL) {
		c->last = e->number;
		if (event_api_wanted(in, e)) {
			event_api_encode(call, e, item);
			return 1;
		}
	}
	if (!in->follow)
		return 0;
	c->call = call;
	c->waiting = true;
	TAILQ_INSERT_TAIL(&waiting, c, next);
	return -EAGAIN;
}

static void list_done(void *cursor)
{
	stop_waiting(cursor);
}

static int event_api_kinds(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const struct event_kind **last = cursor;
	Corelane__V1__EventKind *out = item;

	if (*last && event_kind_next(*last) == NULL)
		return 0;
	*last = event_kind_next(*last);
	if (*last == NULL)
		return 0;
	out->name = api_strdup(call, (*last)->name);
	out->severity = (Corelane__V1__EventSeverity)(*last)->severity;
	out->explanation = api_strdup(call, (*last)->text);
	return 1;
}

static const struct api_method methods[] = {
	{"corelane.v1.Events", "List", &corelane__v1__event_list_request__descriptor, &corelane__v1__event__descriptor,
	 .next = event_api_list, .done = list_done, .cursor_size = sizeof(struct cursor)},
	{"corelane.v1.Events", "Kinds", &corelane__v1__empty__descriptor, &corelane__v1__event_kind__descriptor,
	 .next = event_api_kinds, .cursor_size = sizeof(struct event_kind *)},
};
API_METHODS(methods)
