// SPDX-License-Identifier: Apache-2.0
// Events tell the operator what happened to this process, such as a stalled worker or a thread that left its
// CPUs. The last EVENT_RING are kept for `corelane event list`; each is logged once. Do not report what a request has
// asked for (the API itself reports who has called what), nor anything per packet. Report a change of state, not the
// state each second.
//
// A kind is declared where it is reported, with its severity (INFO, WARNING, ERROR) and the sentence that explains it:
//
//	EVENT_KIND(thread_stray, WARNING,
//		   "A thread could run on CPUs that the plan does not give it. It was moved back.");
//	...
//	event_report(thread_stray, thread_name, "ran on CPUs %s, planned are %s; moved back", has, planned);
//
// Master thread only.
#pragma once

#include <assert.h>
#include <stdint.h>

#define EVENT_RING 4096

enum event_severity { EVENT_INFO, EVENT_WARNING, EVENT_ERROR };

struct event_kind {
	const char *name;
	const char *text; // what it means and what can be done
	enum event_severity severity;
	struct event_kind *next;
};

struct event_record {
	uint64_t number;  // from 1, without gaps
	uint64_t time_ns; // wall clock
	const struct event_kind *kind;
	char subject[64]; // "worker 3", "port vm1", a thread's name; empty: the process
	char text[320];
};

// A NULL subject stands for the process. The text does not end with a full stop.
#define event_report(sym, subject, ...) event_report_as(&event_kind_##sym, subject, __VA_ARGS__)
void event_report_as(const struct event_kind *kind, const char *subject, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

const struct event_record *event_after(uint64_t number);                 // first one kept after it; NULL: none yet
uint64_t event_last(void);                                               // number of the newest one, 0: none
const struct event_kind *event_kind_next(const struct event_kind *kind); // in order of name; NULL gives the first one

struct event_listener {
	void (*reported)(void); // after each event
	struct event_listener *next;
};
void event_listen(struct event_listener *l);

void event_kind_register(struct event_kind *kind);

#define EVENT_KIND(sym, level, sentence)                                                                         \
	static struct event_kind event_kind_##sym = {.name = #sym, .text = sentence, .severity = EVENT_##level}; \
	__attribute__((constructor)) static void event_kind_##sym##_register(void)                               \
	{                                                                                                        \
		event_kind_register(&event_kind_##sym);                                                          \
	}                                                                                                        \
	static_assert(1, "")
