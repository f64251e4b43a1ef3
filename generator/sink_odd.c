// SPDX-License-Identifier: Apache-2.0
// The slow path of the sink: unusual frames, and the full check of a frame.
#include "sink.h"

#include "simd.h"

void sink_keep(struct kept_frame *kept, const struct frame *f, const struct stream *s)
{
	if (kept->n > 0)
		return;
	kept->n = RTE_MIN(f->length, (uint32_t)SINK_KEPT);
	memcpy(kept->bytes, f->data, kept->n);
	kept->stream = s;
}

static bool looks_as_expected(const struct expected *e, const struct frame *f)
{
	wide differs = {0};
	uint64_t any[4];
	unsigned i;

	if (f->length < e->size)
		return false;
	for (i = 0; i < e->size; i += sizeof(wide)) { // may read beyond e->size: buffers are longer than headers
		wide a = *(const wide *)(f->data + i), b = *(const wide *)(e->bytes + i),
		     m = *(const wide *)(e->mask + i);

		differs |= (a ^ b) & m;
	}
	memcpy(any, &differs, sizeof(any));
	return (any[0] | any[1] | any[2] | any[3]) == 0;
}

static bool payload_right(const struct stream *s, const struct frame *f, struct probe p)
{
	uint32_t sent = stream_size(s, probe_flow(p), probe_sequence(p)), n = sent - s->layout.size;
	uint32_t length = s->rx_probe + n;

	if (f->length != length && (f->length != 60 || length > 60)) // padded to the minimum of Ethernet
		return false;
	return memcmp(f->data + s->rx_probe + PROBE_SIZE, pattern + s->layout.size + PROBE_SIZE, n - PROBE_SIZE) == 0;
}

void sink_check(struct sink *k, struct stream *s, const struct frame *f, struct probe p)
{
	k->checked++;
	if (s->expected != NULL && !looks_as_expected(s->expected, f)) {
		s->count.wrong_header++;
		sink_keep(&k->wrong, f, s);
	}
	if (!payload_right(s, f, p))
		s->count.corrupt++;
}

static bool probe_at(const struct frame *f, uint16_t offset, struct probe *p)
{
	if (f->length < offset + PROBE_SIZE)
		return false;
	*p = probe_read(f->data + offset);
	return probe_trial(*p) != 0;
}

// Returns this trial's stream to which a probe belongs; NULL: none.
static struct stream *stream_of(const struct sink *k, struct probe p, uint16_t offset)
{
	struct stream *s;

	if (probe_trial(p) != k->trial || probe_stream(p) >= k->n_streams)
		return NULL;
	s = &k->streams[probe_stream(p)];
	return probe_flow(p) < s->n_flows && (offset == s->rx_probe || offset == s->layout.size) ? s : NULL;
}

// Handles a frame with an intact probe at another offset or port than usual.
static void sink_odd_found(struct sink *k, const struct gen_port *port, const struct frame *f, uint16_t offset,
			   struct stream *s, struct probe p, uint32_t stamp)
{
	if (s->rx != port) {
		s->count.misplaced++;
		return;
	}
	sink_count(k, s, f, p, stamp);
	if (offset != s->rx_probe) { // the router did not rewrite the header as expected
		s->count.wrong_header++;
		sink_keep(&k->wrong, f, s);
	} else if (k->verify == VERIFY_ALL || k->frames < SINK_FIRST || k->frames % SINK_SAMPLE == 0) {
		sink_check(k, s, f, p);
	}
}

// Whether a damaged probe is one of this trial. Two of three signs suffice: a known stream and flow, the trial, a
// recent time.
static bool remains_of_probe(const struct sink *k, struct probe p, uint32_t stamp)
{
	unsigned signs = probe_stream(p) < k->n_streams && probe_flow(p) < k->streams[probe_stream(p)].n_flows;

	signs += probe_trial(p) == k->trial;
	signs += stamp - probe_time(p) < k->age;
	return signs >= 2;
}

void sink_odd(struct sink *k, const struct gen_port *port, const struct frame *f, uint32_t stamp)
{
	bool remains = false;
	struct stream *s;
	struct probe p;
	unsigned i;

	for (i = 0; i < k->n_offsets; i++) {
		if (!probe_at(f, k->offsets[i], &p))
			continue;
		if (!probe_intact(p)) {
			remains |= remains_of_probe(k, p, stamp);
			continue;
		}
		s = stream_of(k, p, k->offsets[i]);
		if (s != NULL) {
			sink_odd_found(k, port, f, k->offsets[i], s, p, stamp);
			return;
		}
		if (probe_trial(p) != k->trial) {
			k->stale++;
			return;
		}
	}
	if (remains) {
		k->corrupt++;
		return;
	}
	k->foreign++;
	sink_keep(&k->strange, f, NULL);
}
