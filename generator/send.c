// SPDX-License-Identifier: Apache-2.0
// Sending. At a rate, each stream sends the frames that are due. Without a rate, each port gets as many frames as it
// takes, and its streams take turns by weight.
#include "trial.h"

#include <stdlib.h>

#include "pace.h"

#define TURN 256    // frames of a stream in one turn, so that receiving is not delayed
#define UNTIMED 16u // of a stream that is not timed, beside others that are: each frame of theirs waits for a turn
#define QUANTUM 64u // frames of a stream of weight 1 before the next stream's turn
#define RENEW 64    // flows replaced in one turn

struct send_port {
	uint64_t rest_until;
	unsigned turn; // index in `mine` of the stream whose turn it is
	uint64_t left; // rest of its quantum
	unsigned n;
	unsigned *mine; // streams that this port sends
};

struct send_state {
	struct pace *paces; // by stream: pace of frames
	struct pace *ends;  // by stream: pace of ending flows
	bool renews;        // some stream replaces flows
	struct send_port *ports;
	unsigned *lists;
};

static uint32_t weight_of(const struct stream *s)
{
	return s->silent ? 0 : s->weight;
}

static double mean_size(const struct stream *s)
{
	double sum = 0;
	unsigned i;

	for (i = 0; i < s->n_turns; i++)
		sum += s->heads[s->turns[i]].size;
	return sum / s->n_turns;
}

static void send_share_out(struct trial *t, struct send_state *d)
{
	uint64_t left = t->plan.packets, weight = 0, weight_left, limit = UINT64_MAX;
	double hz = (double)t->sink.clock.hz;
	unsigned i;

	for (i = 0; i < t->n_streams; i++)
		weight += weight_of(&t->streams[i]);
	weight_left = weight;
	for (i = 0; i < t->n_streams; i++) {
		const struct stream *s = &t->streams[i];

		if (t->plan.packets > 0) { // the rest by the remaining weights: rounding loses no frame
			limit = (uint64_t)((unsigned __int128)left * weight_of(s) / RTE_MAX(weight_left, UINT64_C(1)));
			left -= limit;
			weight_left -= weight_of(s);
		}
		d->ends[i] = pace_of(s->new_per_second, hz, 1, 0, UINT64_MAX);
		d->renews |= s->new_per_second > 0;
		d->paces[i] = pace_of(t->plan.packets_per_second * weight_of(s) / (double)weight, hz, t->plan.burst,
				      mean_size(s), limit);
	}
}

static void sort_by_port(struct trial *t, struct send_state *d)
{
	unsigned *next = d->lists, p, i;

	for (p = 0; p < t->n_ports; p++) {
		struct send_port *sp = &d->ports[p];

		*sp = (struct send_port){.mine = next};
		for (i = 0; i < t->n_streams; i++)
			if (t->streams[i].tx == t->ports[p] && !t->streams[i].silent)
				sp->mine[sp->n++] = i;
		next += sp->n;
		if (sp->n > 0)
			sp->left = (uint64_t)QUANTUM * t->streams[sp->mine[0]].weight;
	}
}

int send_init(struct trial *t)
{
	struct send_state *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return -1;
	t->send = d;
	d->paces = calloc(t->n_streams, sizeof(*d->paces));
	d->ends = calloc(t->n_streams, sizeof(*d->ends));
	d->ports = calloc(t->n_ports, sizeof(*d->ports));
	d->lists = calloc(t->n_streams, sizeof(*d->lists));
	if (d->paces == NULL || d->ends == NULL || d->ports == NULL || d->lists == NULL)
		return -1;
	send_share_out(t, d);
	sort_by_port(t, d);
	return 0;
}

void send_fini(struct trial *t)
{
	struct send_state *d = t->send;

	if (d == NULL)
		return;
	free(d->paces);
	free(d->ends);
	free(d->ports);
	free(d->lists);
	free(d);
	t->send = NULL;
}

// Sends up to n <= PORT_BURST frames to the queue of the next flow. Returns how many the port took.
static __rte_always_inline unsigned send_some(const struct trial *t, struct stream *s, unsigned n)
{
	struct gen_port *port = s->tx;
	unsigned queue = stream_queue(s), got, took;
	struct frame frames[PORT_FRAMES];

	got = port->ops->reserve(port, queue, frames, n);
	if (got == 0)
		return 0;
	stream_build(s, frames, got, t->sink.trial, clock_stamp(&t->sink.clock, rte_rdtsc()));
	took = port->ops->commit(port, queue, frames, got);
	if (unlikely(took < got))
		stream_rewind(s, got - took);
	s->count.sent += took;
	return took;
}

static void count_late(struct stream *s, uint64_t due)
{
	s->count.late += due - s->count.due;
	s->count.due = due;
}

// Returns the number of frames to send now. Frames that have been due for too long are counted as late and not sent. If
// latencies are measured, so are all that became due while gen-poll did not run: they would be a burst that delays the
// next frames.
static unsigned send_wanted(const struct trial *t, struct stream *s, const struct pace *pace, uint64_t active,
			    uint64_t away)
{
	uint64_t due = pace_due(pace, active), most = t->plan.latency && s->untimed ? UNTIMED : TURN, old;
	uint64_t limit = t->plan.latency ? t->away : t->sink.clock.hz / 1000 * LATE_MS;

	if (away > t->away)
		s->behind = due;
	if (away > limit)
		count_late(s, due);
	if (due - s->count.due > TURN && active > limit) {
		old = pace_due(pace, active - limit);
		if (old > s->count.due)
			count_late(s, old);
	}
	return (unsigned)RTE_MIN(due - s->count.due, most); // the rest in the next turn
}

// Counts the frames up to `due` that were not sent as without room, or as late if they became due while the generator
// was away.
static void send_refused(struct stream *s, unsigned unsent, uint64_t due)
{
	*(s->count.due <= s->behind ? &s->count.late : &s->count.no_room) += unsent;
	if (due > s->count.due && s->behind > s->count.due)
		count_late(s, RTE_MIN(due, s->behind));
	s->count.no_room += due - s->count.due;
	s->count.due = due;
}

static unsigned send_paced(const struct trial *t, struct stream *s, const struct pace *pace, uint64_t active,
			   uint64_t away)
{
	unsigned want = send_wanted(t, s, pace, active, away), sent = 0, full = 0, n, took;

	for (; want > 0; want -= n) {
		n = RTE_MIN(want, stream_run(s));
		took = send_some(t, s, n);
		sent += took;
		s->count.due += n;
		if (likely(took == n)) {
			full = 0;
			continue;
		}
		if (++full == s->tx->n_tx) { // nothing that is due now has room
			send_refused(s, n - took, pace_due(pace, active));
			break;
		}
		send_refused(s, n - took, s->count.due);
		stream_skip(s, n - took); // another queue may have room
	}
	return sent;
}

static void next_turn(const struct trial *t, struct send_port *sp)
{
	sp->turn = (sp->turn + 1) % sp->n;
	sp->left = (uint64_t)QUANTUM * t->streams[sp->mine[sp->turn]].weight;
}

static unsigned send_saturated(const struct trial *t, const struct send_state *d, struct send_port *sp, uint64_t now)
{
	unsigned sent = 0, full = 0, done = 0, n, took;

	if (sp->n == 0 || now < sp->rest_until)
		return 0;
	while (sent < TURN && done < sp->n) {
		struct stream *s = &t->streams[sp->mine[sp->turn]];
		uint64_t limit = RTE_MIN(d->paces[s->index].limit - s->count.sent, sp->left);

		n = (unsigned)RTE_MIN(limit, (uint64_t)stream_run(s));
		if (n == 0) {
			done += limit == 0 && sp->left > 0;
			next_turn(t, sp);
			continue;
		}
		took = send_some(t, s, n);
		sent += took;
		sp->left -= took;
		if (likely(took == n))
			continue;
		sp->rest_until = now + rest_of(t, s->tx);
		if (++full == s->tx->n_tx)
			break;
		stream_skip(s, n - took); // to the next queue
	}
	return sent;
}

// Replaces the oldest flows by new ones, which continue their sequence numbers, so that the sink need not know.
static void renew_flows(const struct trial *t, uint64_t active)
{
	unsigned i;

	for (i = 0; i < t->n_streams; i++) {
		struct stream *s = &t->streams[i];
		uint64_t due = pace_due(&t->send->ends[i], active) - s->renewed;

		stream_renew(s, (unsigned)RTE_MIN(due, (uint64_t)RENEW));
	}
}

unsigned send_due(struct trial *t, uint64_t now, uint64_t active)
{
	uint64_t away = active - t->last_sent;
	struct send_state *d = t->send;
	unsigned sent = 0, i;

	t->last_sent = active;
	if (d->renews)
		renew_flows(t, active);
	if (t->paced) {
		for (i = 0; i < t->n_streams; i++)
			sent += send_paced(t, &t->streams[i], &d->paces[i], active, away);
		return sent;
	}
	for (i = 0; i < t->n_ports; i++)
		sent += send_saturated(t, d, &d->ports[i], now);
	return sent;
}

bool send_done(const struct trial *t)
{
	const struct send_state *d = t->send;
	unsigned i;

	if (t->plan.packets == 0)
		return false;
	for (i = 0; i < t->n_streams; i++) {
		const struct stream_count *c = &t->streams[i].count;

		if ((t->paced ? c->due : c->sent) < d->paces[i].limit)
			return false;
	}
	return true;
}
