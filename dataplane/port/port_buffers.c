// SPDX-License-Identifier: Apache-2.0
// Reports that ports find no free packet buffers, and what holds these.
#include <stdio.h>

#include "base/event.h"
#include "graph/held.h"
#include "port/registry.h"

#define STEADY_S 10 // without a lack of buffers, until it is said to be over

EVENT_KIND(buffers_exhausted, ERROR,
	   "No packet buffer was free when a port was polled, so that port received nothing. The subject is the port "
	   "whose "
	   "waiting packets hold the most buffers. The text also counts those that devices keep for their rings. "
	   "`corelane drops --by-port` shows which ports suffer, and `corelane explain` what helps.");
EVENT_KIND(buffers_free, INFO, "No port has lacked packet buffers for ten seconds.");

static void buffers_report(void)
{
	unsigned total, in_use, devices = 0, waiting = 0, most = 0;
	const struct port *p;
	char holder[64] = "";

	port_pool_usage(&total, &in_use);
	for (p = port_next(NULL); p; p = port_next(p)) {
		uint32_t held = held_by(p->id);

		devices += p->kept;
		waiting += held;
		if (held > most) {
			most = held;
			snprintf(holder, sizeof(holder), "port %s", p->cfg.name);
		}
	}
	event_report(
		buffers_exhausted, most > 0 ? holder : NULL,
		"%u of %u packet buffers are in use: devices keep %u, and packets that wait hold %u, %u of them from "
		"one port",
		in_use, total, devices, waiting, most);
}

void port_buffers_poll(void)
{
	static unsigned left; // seconds until a lack that was reported is over

	if (__atomic_exchange_n(&port_buffers_lacked, false, __ATOMIC_RELAXED)) {
		if (left == 0)
			buffers_report();
		left = STEADY_S;
	} else if (left > 0 && --left == 0) {
		event_report(buffers_free, NULL, "no port lacked packet buffers for %u s", STEADY_S);
	}
}
