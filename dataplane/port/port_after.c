// SPDX-License-Identifier: Apache-2.0
#include "port/port_after.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/rcu.h"

static STAILQ_HEAD(, port_after) queue = STAILQ_HEAD_INITIALIZER(queue);
static uint64_t last;

void port_after_add(struct port_after *a, void (*fn)(void *arg), void *arg)
{
	*a = (struct port_after){
		.fn = fn, .arg = arg, .change = ++last, .token = rcu_token(), .since = clock_now_ns(CLOCK_MONOTONIC)};
	STAILQ_INSERT_TAIL(&queue, a, next);
}

static void port_after_tell(struct port_after *a)
{
	if (a->told || clock_now_ns(CLOCK_MONOTONIC) - a->since < PORT_PATIENCE_MS * 1000000ull)
		return;
	a->told = true;
	LOG(WARNING, "a change of a port waits for a worker that has not finished its packets for %u ms",
	    PORT_PATIENCE_MS);
}

void port_poll(void)
{
	struct port_after *a = STAILQ_FIRST(&queue);

	if (a == NULL)
		return;
	if (!rcu_passed(a->token)) {
		port_after_tell(a);
		return;
	}
	STAILQ_REMOVE_HEAD(&queue, next);
	a->fn(a->arg);
}

uint64_t port_last_change(void)
{
	return last;
}

bool port_change_done(uint64_t change)
{
	port_poll();
	return STAILQ_EMPTY(&queue) || STAILQ_FIRST(&queue)->change > change;
}
