// SPDX-License-Identifier: Apache-2.0
// The ring of the last events. The master thread writes and reads it.
#include "base/event.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/notify.h"

static struct event_record ring[EVENT_RING]; // event n is at n % EVENT_RING
static uint64_t last;
static struct event_kind *kinds; // sorted by name

static struct event_listener *listeners;

void event_listen(struct event_listener *l)
{
	LISTEN(listeners, l);
}

void event_kind_register(struct event_kind *kind)
{
	struct event_kind **at = &kinds;

	while (*at && strcmp((*at)->name, kind->name) < 0)
		at = &(*at)->next;
	kind->next = *at;
	*at = kind;
}

const struct event_kind *event_kind_next(const struct event_kind *kind)
{
	return kind ? kind->next : kinds;
}

static uint64_t event_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void event_report_as(const struct event_kind *kind, const char *subject, const char *fmt, ...)
{
	static const uint32_t levels[] = {
		[EVENT_INFO] = RTE_LOG_NOTICE, [EVENT_WARNING] = RTE_LOG_WARNING, [EVENT_ERROR] = RTE_LOG_ERR};
	struct event_record *e = &ring[++last % EVENT_RING];
	const struct event_listener *l;
	va_list ap;

	e->number = last;
	e->time_ns = event_now_ns();
	e->kind = kind;
	snprintf(e->subject, sizeof(e->subject), "%s", subject ? subject : "");
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	rte_log(levels[kind->severity], corelane_logtype, "%s: %s%s%s\n", kind->name, e->subject, subject ? " " : "",
		e->text);
	for (l = listeners; l; l = l->next)
		if (l->reported)
			l->reported();
}

const struct event_record *event_after(uint64_t number)
{
	uint64_t oldest = last > EVENT_RING ? last - EVENT_RING + 1 : 1;

	if (number >= last)
		return NULL;
	return &ring[(number + 1 > oldest ? number + 1 : oldest) % EVENT_RING];
}

uint64_t event_last(void)
{
	return last;
}
