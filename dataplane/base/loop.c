// SPDX-License-Identifier: Apache-2.0
// Keeps the event base of the master's loop.
#include "base/loop.h"

#include <stddef.h>

static struct event_base *loop;

void loop_set_base(struct event_base *base)
{
	loop = base;
}

struct event_base *loop_base(void)
{
	return loop;
}
