// SPDX-License-Identifier: Apache-2.0
// Two rings of samples: one per second and one per minute.
#include "worker/history.h"

static const struct history_sample *history_at(const struct history_sample ring[HISTORY_SAMPLES], uint32_t number)
{
	return &ring[number % HISTORY_SAMPLES];
}

static uint32_t history_oldest(uint32_t written)
{
	return written > HISTORY_SAMPLES ? written - HISTORY_SAMPLES : 0;
}

void history_add(struct history *h, const struct history_sample *s, uint64_t tsc_hz)
{
	h->seconds[h->n_seconds++ % HISTORY_SAMPLES] = *s;
	if (h->n_minutes == 0 || s->tsc - history_at(h->minutes, h->n_minutes - 1)->tsc >= 60 * tsc_hz)
		h->minutes[h->n_minutes++ % HISTORY_SAMPLES] = *s;
}

unsigned history_read(const struct history *h, struct history_sample out[2 * HISTORY_SAMPLES])
{
	uint32_t second = history_oldest(h->n_seconds), minute;
	unsigned n = 0;

	for (minute = history_oldest(h->n_minutes); minute < h->n_minutes; minute++)
		if (history_at(h->minutes, minute)->tsc < history_at(h->seconds, second)->tsc)
			out[n++] = *history_at(h->minutes, minute);
	for (; second < h->n_seconds; second++)
		out[n++] = *history_at(h->seconds, second);
	return n;
}
