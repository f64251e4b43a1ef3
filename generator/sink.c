// SPDX-License-Identifier: Apache-2.0
// The usual frame: its probe is where it should be, and whole. All others: sink_odd.c.
#include "sink.h"

#include "port/memif/memif_burst.h"
#include "simd.h"

struct hit {
	struct stream *stream;
	const struct frame *frame;
	struct probe probe;
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

// RFC 4737: a frame is reordered when one with a higher number came before it.
static __rte_always_inline void count_sequence(struct stream *s, struct flow_seen *seen, uint32_t sequence, uint32_t length)
{
	int32_t ahead = (int32_t)(sequence - seen->highest);

	if (likely(ahead > 0)) {
		seen->window = likely(ahead < 32) ? seen->window << ahead | 1 : 1;
		seen->highest = sequence;
	} else {
		uint32_t bit = ahead > -32 ? 1u << -ahead : 0; // too old: taken for new

		if (seen->window & bit) {
			s->count.duplicated++;
			return;
		}
		seen->window |= bit;
		s->count.reordered++;
	}
	s->count.received++;
	s->count.received_bytes += length;
}

static __rte_always_inline void count_latency(struct sink *k, uint32_t time, uint32_t stamp, unsigned n)
{
	int32_t took = (int32_t)(stamp - time);

	k->histogram.bars[histogram_bar(took > 0 ? (uint32_t)took : 0)] += n;
}

void sink_count(struct sink *k, struct stream *s, const struct frame *f, struct probe p, uint32_t stamp)
{
	count_sequence(s, &s->seen[probe_flow(p)], probe_sequence(p), f->length);
	if (k->latency)
		count_latency(k, probe_time(p), stamp, 1);
}

static __rte_always_inline bool usual(const struct sink *k, const struct gen_port *port, const struct frame *f, struct hit *hit)
{
	struct probe p;
	struct stream *s;
	uint32_t id;

	if (unlikely(f->length < port->probe + PROBE_SIZE))
		return false;
	p = probe_read(f->data + port->probe);
	id = probe_stream(p);
	if (unlikely(!probe_intact(p) || probe_trial(p) != k->trial || id >= k->n_streams))
		return false;
	s = &k->streams[id];
	if (unlikely(s->rx != port || s->rx_probe != port->probe || probe_flow(p) >= s->n_flows))
		return false;
	*hit = (struct hit){.stream = s, .frame = f, .probe = p};
	prefetch_write(&s->seen[probe_flow(p)]);
	return true;
}

static __rte_always_inline void count_hits(const struct hit *hits, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		struct stream *s = hits[i].stream;

		count_sequence(s, &s->seen[probe_flow(hits[i].probe)], probe_sequence(hits[i].probe), hits[i].frame->length);
	}
}

// Frames of one burst have the same time.
static __rte_always_inline void count_latencies(struct sink *k, const struct hit *hits, unsigned n, uint32_t stamp)
{
	unsigned i, from;

	for (i = 0; i < n; i++) {
		from = i;
		while (i + 1 < n && probe_time(hits[i + 1].probe) == probe_time(hits[from].probe))
			i++;
		count_latency(k, probe_time(hits[from].probe), stamp, i + 1 - from);
	}
}

static void check_some(struct sink *k, const struct hit *hits, unsigned n)
{
	bool all = k->verify == VERIFY_ALL || k->frames < SINK_FIRST;
	unsigned i = all ? 0 : (unsigned)(-k->frames % SINK_SAMPLE);

	for (; i < n; i += all ? 1 : SINK_SAMPLE)
		sink_check(k, hits[i].stream, hits[i].frame, hits[i].probe);
}

static void count_only(struct sink *k, const struct gen_port *port, const struct frame *frames, unsigned n)
{
	unsigned i;

	for (i = 0; i < k->n_streams && k->streams[i].rx != port; i++)
		;
	if (i == k->n_streams) // nothing should come here
		return;
	k->streams[i].count.received += n;
	for (; n > 0; n--)
		k->streams[i].count.received_bytes += frames[n - 1].length;
}

WITH_AVX2 void sink_take(struct sink *k, const struct gen_port *port, const struct frame *frames, unsigned n, uint32_t stamp)
{
	struct hit hits[PORT_BURST];
	unsigned i, found = 0;

	if (unlikely(k->verify == VERIFY_NONE)) {
		count_only(k, port, frames, n);
		return;
	}
	for (i = 0; i < n; i++) {
		if (likely(usual(k, port, &frames[i], &hits[found])))
			found++;
		else
			sink_odd(k, port, &frames[i], stamp);
	}
	count_hits(hits, found);
	if (k->latency)
		count_latencies(k, hits, found, stamp);
	check_some(k, hits, found);
	k->frames += n;
}
