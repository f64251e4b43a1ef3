// SPDX-License-Identifier: Apache-2.0
// The master's turns, in the status of the process (api/system.proto).
#include "control/master_turns.h"

#include <stdlib.h>

#include "api/api.h"
#include "base/turn.h"
#include "control/loop_times.h"

static uint64_t master_turns_ns(uint64_t ns)
{
	return ns;
}

static char *master_turns_name(struct api_call *call, const struct turn_work *w)
{
	if (w == NULL)
		return api_strdup(call, "");
	return w->noun ? api_printf(call, "%s.%s", w->noun, w->name) : api_strdup(call, w->name);
}

static Corelane__V1__MasterWork *master_turns_encode_work(struct api_call *call, const struct turn_work *w)
{
	Corelane__V1__MasterWork *out = api_alloc(call, sizeof(*out));

	corelane__v1__master_work__init(out);
	out->name = master_turns_name(call, w);
	out->runs = w->runs;
	out->total_ns = w->total_ns;
	out->longest_ns = w->longest_ns;
	out->longest_time_ns = w->longest_at_ns;
	return out;
}

static int master_turns_longer(const void *a, const void *b)
{
	const Corelane__V1__MasterWork *x = *(Corelane__V1__MasterWork *const *)a,
				       *y = *(Corelane__V1__MasterWork *const *)b;

	return x->longest_ns > y->longest_ns ? -1 : x->longest_ns < y->longest_ns;
}

Corelane__V1__MasterTurns *master_turns_encode(struct api_call *call)
{
	Corelane__V1__MasterTurns *out = api_alloc(call, sizeof(*out));
	const struct turns *t = turns_get();
	const struct turn_work *w;
	size_t n = 0;

	corelane__v1__master_turns__init(out);
	out->times = loop_times_encode(call, t->times, t->longest_ns, master_turns_ns);
	out->longest_time_ns = t->longest_at_ns;
	out->longest_waited_ns = t->longest_waited_ns;
	out->longest_work = master_turns_name(call, t->longest_work);
	out->longest_work_ns = t->longest_work_ns;
	out->own_ns = t->own_ns;
	out->own_work = master_turns_name(call, t->own_work);
	out->long_turns = t->above;
	out->waiting_turns = t->waiting;
	for (w = turn_work_next(NULL); w; w = turn_work_next(w))
		n++;
	out->work = api_alloc(call, (n + 1) * sizeof(*out->work));
	for (w = turn_work_next(NULL); w; w = turn_work_next(w))
		out->work[out->n_work++] = master_turns_encode_work(call, w);
	qsort(out->work, n, sizeof(*out->work), master_turns_longer);
	return out;
}
