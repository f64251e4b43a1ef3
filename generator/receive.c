// SPDX-License-Identifier: Apache-2.0
// Receives from all ports.
#include "trial.h"

#define TURN 256       // frames taken from a queue in one turn
#define REST_PACED 300 // cycles between polls that leave the ring's lines to the router; short, as latency counts

// The first pass fetches what the second one reads.
void look(const struct trial *t, uint64_t now)
{
	unsigned i, q;

	for (i = 0; i < t->n_ports; i++) {
		struct gen_port *p = t->ports[i];

		for (q = 0; q < p->n_rx && p->ops->touch != NULL; q++)
			if (now >= p->rest_until[q])
				p->ops->touch(p, q);
	}
	for (i = 0; i < t->n_ports; i++) {
		struct gen_port *p = t->ports[i];

		for (q = 0; q < p->n_rx && p->ops->look != NULL; q++)
			if (now >= p->rest_until[q])
				p->ops->look(p, q);
	}
}

// The latency of frames that waited while gen-poll did not run says nothing about the router. After such a gap no frame
// is timed until two turns have emptied all queues.
static void note_time(struct trial *t, uint64_t now)
{
	if (now - t->last_seen > t->away)
		t->blind = 2;
	t->last_seen = now;
	t->sink.timing = t->plan.latency && t->blind == 0;
}

static unsigned receive_take(struct trial *t, struct gen_port *p, unsigned queue, uint64_t now)
{
	struct frame frames[PORT_FRAMES];
	unsigned got = 0, n;

	do {
		n = p->ops->peek(p, queue, frames, PORT_BURST);
		if (n == 0)
			break;
		if (t->plan.latency) {
			now = rte_rdtsc();
			note_time(t, now);
			t->sink.not_timed += t->blind > 0 ? n : 0;
		}
		sink_take(&t->sink, p, frames, n, clock_stamp(&t->sink.clock, now));
		p->ops->release(p, queue, n);
		got += n;
	} while (n == PORT_BURST && got < TURN);
	return got;
}

unsigned receive(struct trial *t, uint64_t now)
{
	unsigned sum = 0, i, q, n;
	bool more = false;

	note_time(t, now);
	for (i = 0; i < t->n_ports; i++) {
		struct gen_port *p = t->ports[i];

		for (q = 0; q < p->n_rx; q++) {
			if (now < p->rest_until[q])
				continue;
			n = receive_take(t, p, q, now);
			if (n < TURN)
				p->rest_until[q] = now + (t->paced ? REST_PACED : rest_of(t, p));
			more |= n >= TURN;
			sum += n;
		}
	}
	if (unlikely(t->blind > 0 && !more))
		t->blind--;
	return sum;
}
