// SPDX-License-Identifier: Apache-2.0
// Takes what came from all ports.
#include "trial.h"

#define TURN 256        // frames of a queue in one poll
#define FEW 32          // so few frames, and the queue
#define REST_CYCLES 500 // rests so long: looking at it costs the router, too

static unsigned take(struct trial *t, struct gen_port *p, unsigned queue, uint64_t now)
{
	struct frame frames[PORT_BURST];
	unsigned got = 0, n;

	do {
		n = p->ops->peek(p, queue, frames, PORT_BURST);
		if (n == 0)
			break;
		sink_take(&t->sink, p, frames, n, clock_stamp(&t->sink.clock, t->plan.latency ? rte_rdtsc() : now));
		p->ops->release(p, queue, n);
		got += n;
	} while (n == PORT_BURST && got < TURN);
	return got;
}

unsigned receive(struct trial *t, uint64_t now)
{
	unsigned sum = 0, i, q, n;

	for (i = 0; i < t->n_ports; i++) {
		struct gen_port *p = t->ports[i];

		for (q = 0; q < p->n_rx; q++) {
			if (now < p->rest_until[q])
				continue;
			n = take(t, p, q, now);
			if (n < FEW)
				p->rest_until[q] = now + REST_CYCLES;
			sum += n;
		}
	}
	return sum;
}
