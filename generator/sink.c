// SPDX-License-Identifier: Apache-2.0
// The fast path of the sink: frames with an intact probe at the usual offset. sink_odd.c handles all others.
#include "sink.h"

#include "simd.h"

// Sums over consecutive frames of one stream.
struct tally {
	struct stream *stream;
	uint64_t received, bytes;
};

// Consecutive frames with the same time stamp.
struct moment {
	uint32_t time;
	unsigned n;
};

static void add_offset(struct sink *k, uint16_t offset)
{
	unsigned i;

	for (i = 0; i < k->n_offsets; i++)
		if (k->offsets[i] == offset)
			return;
	if (k->n_offsets < SINK_OFFSETS)
		k->offsets[k->n_offsets++] = offset;
}

void sink_start(struct sink *k, struct stream *streams, unsigned n, uint8_t trial)
{
	unsigned i;

	memset(k, 0, sizeof(*k));
	k->streams = streams;
	k->n_streams = n;
	k->trial = trial;
	for (i = 0; i < n; i++)
		add_offset(k, streams[i].rx_probe);
	for (i = 0; i < n; i++)
		add_offset(k, streams[i].layout.size);
}

// RFC 4737: a frame is reordered if one with a higher sequence number arrived before it. Returns false for a duplicate.
static __rte_always_inline bool count_sequence(struct stream *s, struct flow_seen *seen, uint32_t sequence)
{
	int32_t ahead = (int32_t)(sequence - seen->highest);
	uint32_t bit;

	if (likely(ahead > 0)) {
		seen->window = likely(ahead < 32) ? seen->window << ahead | 1 : 1;
		seen->highest = sequence;
		return true;
	}
	bit = ahead > -32 ? 1u << -ahead : 0; // too old to tell: counts as new
	if (seen->window & bit) {
		s->count.duplicated++;
		return false;
	}
	seen->window |= bit;
	s->count.reordered++;
	return true;
}

static __rte_always_inline void count_latency(struct sink *k, uint32_t time, uint32_t stamp, unsigned n)
{
	int32_t took = (int32_t)(stamp - time);

	k->histogram.bars[histogram_bar(took > 0 ? (uint32_t)took : 0)] += n;
}

void sink_count(struct sink *k, struct stream *s, const struct frame *f, struct probe p, uint32_t stamp)
{
	if (!count_sequence(s, &s->seen[probe_flow(p)], probe_sequence(p)))
		return;
	s->count.received++;
	s->count.received_bytes += f->length;
	if (k->timing && !s->untimed)
		count_latency(k, probe_time(p), stamp, 1);
}

// Returns the stream of a frame with an intact probe at the usual offset of the port; NULL: sink_odd() must decide.
static __rte_always_inline struct stream *sink_usual(const struct sink *k, const struct gen_port *port,
						     const struct frame *f, struct probe *p)
{
	struct stream *s;
	uint32_t id;

	*p = probe_read(f->data + port->probe);
	id = probe_stream(*p);
	if (unlikely(f->length < port->probe + PROBE_SIZE || !probe_intact(*p) || probe_trial(*p) != k->trial ||
		     id >= k->n_streams))
		return NULL;
	s = &k->streams[id];
	return likely(s->usual_rx == port && probe_flow(*p) < s->n_flows) ? s : NULL;
}

static __rte_always_inline void tally_end(struct tally *t)
{
	if (t->stream == NULL)
		return;
	t->stream->count.received += t->received;
	t->stream->count.received_bytes += t->bytes;
}

static __rte_always_inline void moment_end(struct sink *k, struct moment *m, uint32_t stamp)
{
	if (m->n > 0)
		count_latency(k, m->time, stamp, m->n);
}

// Checks the first frames of a trial and one in SINK_SAMPLE in full, or all frames.
static void check_some(struct sink *k, const struct gen_port *port, const struct frame *frames, unsigned n)
{
	bool all = k->verify == VERIFY_ALL || k->frames < SINK_FIRST;
	unsigned i = all ? 0 : (unsigned)(-k->frames % SINK_SAMPLE);
	struct stream *s;
	struct probe p;

	for (; i < n; i += all ? 1 : SINK_SAMPLE) {
		s = sink_usual(k, port, &frames[i], &p);
		if (s != NULL) // else sink_odd() has checked it
			sink_check(k, s, &frames[i], p);
	}
}

static void count_only(struct sink *k, const struct gen_port *port, const struct frame *frames, unsigned n)
{
	unsigned i;

	for (i = 0; i < k->n_streams && k->streams[i].rx != port; i++)
		;
	if (i == k->n_streams) // no stream expects frames on this port
		return;
	k->streams[i].count.received += n;
	for (; n > 0; n--)
		k->streams[i].count.received_bytes += frames[n - 1].length;
}

static __rte_always_inline void generator_sink_take(struct sink *k, const struct gen_port *port,
						    const struct frame *frames, unsigned n, uint32_t stamp,
						    bool latency)
{
	struct moment moment = {0};
	struct tally tally = {0};
	struct probe p;
	unsigned i;

	for (i = 0; i < n; i++) {
		struct stream *s = sink_usual(k, port, &frames[i], &p);

		__builtin_prefetch((const void *)((uintptr_t)frames[i + PORT_AHEAD].data +
						  port->probe)); // harmless beyond the last
		if (unlikely(s == NULL)) {
			sink_odd(k, port, &frames[i], stamp);
			continue;
		}
		if (unlikely(s != tally.stream)) {
			tally_end(&tally);
			tally = (struct tally){.stream = s};
		}
		if (unlikely(!count_sequence(s, &s->seen[probe_flow(p)], probe_sequence(p))))
			continue;
		tally.received++;
		tally.bytes += frames[i].length;
		if (!latency || unlikely(s->untimed))
			continue;
		if (probe_time(p) != moment.time) {
			moment_end(k, &moment, stamp);
			moment = (struct moment){.time = probe_time(p)};
		}
		moment.n++;
	}
	tally_end(&tally);
	if (latency)
		moment_end(k, &moment, stamp);
}

void sink_take(struct sink *k, const struct gen_port *port, const struct frame *frames, unsigned n, uint32_t stamp)
{
	if (unlikely(k->verify == VERIFY_NONE)) {
		count_only(k, port, frames, n);
		return;
	}
	if (k->timing)
		generator_sink_take(k, port, frames, n, stamp, true);
	else
		generator_sink_take(k, port, frames, n, stamp, false);
	check_some(k, port, frames, n);
	k->frames += n;
}
