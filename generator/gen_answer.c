// SPDX-License-Identifier: Apache-2.0
// Converts the counts of gen-poll to API messages.
#include "gen_answer.h"

#include <string.h>

#include "profile.h"

static Corelane__V1__GeneratorMemif *memif_of(struct api_call *call, const struct port_config *cfg)
{
	Corelane__V1__GeneratorMemif *out = api_alloc(call, sizeof(*out));

	corelane__v1__generator_memif__init(out);
	out->socket = api_strdup(call, cfg->socket);
	out->id = cfg->id;
	out->server = cfg->server;
	out->ring_size = cfg->ring_size;
	out->queues = cfg->queues;
	return out;
}

void answer_ports(struct api_call *call, Corelane__V1__GeneratorProfile *out)
{
	unsigned i;

	out->n_ports = profile.n_ports;
	out->ports = api_alloc(call, profile.n_ports * sizeof(*out->ports));
	for (i = 0; i < profile.n_ports; i++) {
		const struct gen_port *p = profile.ports[i];
		Corelane__V1__GeneratorPort *port = api_alloc(call, sizeof(*port));

		corelane__v1__generator_port__init(port);
		port->name = api_strdup(call, p->cfg.name);
		port->up = p->ops->up(p);
		if (p->cfg.devargs[0]) {
			port->device_case = CORELANE__V1__GENERATOR_PORT__DEVICE_DEVARGS;
			port->devargs = api_strdup(call, p->cfg.devargs);
		} else {
			port->device_case = CORELANE__V1__GENERATOR_PORT__DEVICE_MEMIF;
			port->memif = memif_of(call, &p->cfg);
		}
		out->ports[i] = port;
	}
}

void answer_window(const struct trial *t, const struct window *w, Corelane__V1__GeneratorWindow *out)
{
	double hz = (double)t->sink.clock.hz;

	out->start_seconds = (double)w->start / hz;
	out->seconds = (double)w->cycles / hz;
	out->due = w->count.due;
	out->sent = w->count.sent;
	out->no_room = w->count.no_room;
	out->late = w->count.late;
	out->received = w->count.received;
	out->received_bytes = w->count.received_bytes;
	out->busy_cycles = w->busy;
	out->cycles = w->cycles;
	out->round_trip_cycles = (uint32_t)w->round_trip;
	out->tsc_hz = t->sink.clock.hz;
	out->p99_ns = (uint64_t)clock_ns(&t->sink.clock, (double)w->p99);
}

static uint64_t gen_answer_lost(const struct stream_count *c)
{
	return c->sent > c->received ? c->sent - c->received : 0;
}

static ProtobufCBinaryData gen_answer_bytes_of(struct api_call *call, const struct kept_frame *f)
{
	ProtobufCBinaryData out = {.len = f->n, .data = api_alloc(call, SINK_KEPT)};

	memcpy(out.data, f->bytes, f->n);
	return out;
}

static void gen_answer_encode_streams(struct api_call *call, const struct trial *t, Corelane__V1__GeneratorWindow *out)
{
	unsigned i;

	out->n_streams = t->n_streams;
	out->streams = api_alloc(call, t->n_streams * sizeof(*out->streams));
	for (i = 0; i < t->n_streams; i++) {
		const struct stream *s = &t->streams[i];

		out->streams[i] = api_alloc(call, sizeof(**out->streams));
		corelane__v1__generator_stream_count__init(out->streams[i]);
		out->streams[i]->name = api_strdup(call, s->name);
		out->streams[i]->sent = s->count.sent;
		out->streams[i]->received = s->count.received;
		out->streams[i]->lost = gen_answer_lost(&s->count);
		out->streams[i]->no_room = s->count.no_room;
	}
}

static void gen_answer_encode_latency(struct api_call *call, const struct trial *t, Corelane__V1__GeneratorWindow *out)
{
	const struct histogram *h = &t->sink.histogram;
	unsigned bar;

	out->latency = api_alloc(call, HISTOGRAM_BARS * sizeof(*out->latency));
	for (bar = 0; bar < HISTOGRAM_BARS; bar++) {
		Corelane__V1__GeneratorLatency *l;

		if (h->bars[bar] == 0)
			continue;
		l = api_alloc(call, sizeof(*l));
		corelane__v1__generator_latency__init(l);
		l->low_ns = (uint64_t)clock_ns(&t->sink.clock, (double)histogram_low(bar));
		l->frames = h->bars[bar];
		out->latency[out->n_latency++] = l;
	}
}

void answer_total(struct api_call *call, const struct trial *t, Corelane__V1__GeneratorWindow *out)
{
	const struct stream_count *c = &t->total.count;
	const struct sink *k = &t->sink;

	answer_window(t, &t->total, out);
	out->total = true;
	out->lost = gen_answer_lost(c);
	out->reordered = c->reordered;
	out->duplicated = c->duplicated;
	out->corrupt = c->corrupt + k->corrupt;
	out->misplaced = c->misplaced;
	out->wrong_header = c->wrong_header;
	out->foreign = k->foreign;
	out->stale = k->stale;
	out->not_timed = k->not_timed;
	out->checked = k->checked;
	out->turns = t->turns;
	out->turn_cycles = t->turn_cycles;
	out->real_time = t->real_time;
	out->wrong_frame = gen_answer_bytes_of(call, &k->wrong);
	out->wrong_stream = api_strdup(call, k->wrong.stream != NULL ? k->wrong.stream->name : "");
	out->foreign_frame = gen_answer_bytes_of(call, &k->strange);
	gen_answer_encode_streams(call, t, out);
	gen_answer_encode_latency(call, t, out);
}
