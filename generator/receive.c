// SPDX-License-Identifier: Apache-2.0
// Takes what came from all ports.
#include "trial.h"

#define TURN 256        // frames of a queue in one poll
#define FEW 64          // less, and the queue rests: looking at it takes its lines from the router
#define REST_PER_SLOT 4 // cycles, without a rate: a ring of 1024 gathers some 50 frames
#define REST_PACED 300  // with one, where latency counts

void look(const struct trial *t, uint64_t now)
{
	unsigned i, q;

	for (i = 0; i < t->n_ports; i++) {
		struct gen_port *p = t->ports[i];

		for (q = 0; q < p->n_rx && p->ops->look != NULL; q++)
			if (now >= p->rest_until[q])
				p->ops->look(p, q);
	}
}

static unsigned take(struct trial *t, struct gen_port *p, unsigned queue, uint64_t now)
{
	struct frame frames[PORT_FRAMES];
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
				p->rest_until[q] =
					now + (t->plan.packets_per_second > 0 ? REST_PACED : REST_PER_SLOT * p->cfg.ring_size);
			sum += n;
		}
	}
	return sum;
}
