// SPDX-License-Identifier: Apache-2.0
// Builds the frames of a stream: copies the head, then fills in flow, sequence number and time.
#include "stream.h"

#include <rte_branch_prediction.h>

#include "simd.h"

static __rte_always_inline void stream_write16(uint8_t *at, uint32_t v)
{
	uint16_t low = (uint16_t)v;

	memcpy(at, &low, sizeof(low));
}

static uint16_t stream_get16(const uint8_t *at)
{
	uint16_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static __rte_always_inline uint32_t stream_fold(uint32_t s) // s: sum of a few 16-bit words
{
	s = (s & 0xffff) + (s >> 16);
	return s + (s >> 16); // the result is in the low half
}

static __rte_always_inline uint32_t udp_sum(uint16_t base, const struct flow *w)
{
	uint16_t sum = (uint16_t)~stream_fold((uint32_t)base + w->address_sum + w->source_port + w->destination_port);

	return sum ? sum : 0xffff; // 0 would mean "no checksum"
}

// p: the source address. All other fields are at fixed distances, as there are no options.
static __rte_always_inline void stream_write_flow(uint8_t *p, const struct head *h, const struct flow *w, bool ipv6,
						  bool with_sum)
{
	uint8_t *destination = p + (ipv6 ? 16 : 4);

	memcpy(p, &w->source, 4);
	memcpy(destination, &w->destination, 8); // with the ports
	if (!ipv6)
		stream_write16(p - 2, ~stream_fold((uint32_t)h->ip_sum + w->address_sum));
	if (with_sum)
		stream_write16(destination + 10, udp_sum(h->udp_sum, w));
}

// The outer checksum covers the fields that stream_write_flow() and the caller have written.
static __rte_noinline void stream_write_outer_sum(uint8_t *data, const struct layout *l, const struct head *h,
						  const struct flow *w)
{
	uint32_t sum = (uint32_t)h->outer_sum + w->address_sum + w->source_port + w->destination_port;

	if (l->entropy)
		sum += w->entropy;
	if (l->ip_sum)
		sum += stream_get16(data + l->ip_sum);
	if (l->udp_sum)
		sum += stream_get16(data + l->udp_sum);
	sum = (uint16_t)~stream_fold(sum);
	stream_write16(data + l->outer_sum, sum ? sum : 0xffff);
}

// Index in the list of sizes of the frame with this flow and sequence number.
static uint16_t turn_of(const struct stream *s, uint32_t flow, uint32_t sequence)
{
	return s->n_turns == 1 ? 0 : (uint16_t)(((uint64_t)sequence * s->n_flows + flow) % s->n_turns);
}

uint16_t stream_size(const struct stream *s, uint32_t flow, uint32_t sequence)
{
	return s->heads[s->turns[turn_of(s, flow, sequence)]].size;
}

uint32_t stream_block(uint32_t n_flows, unsigned queues)
{
	uint32_t n = n_flows / queues;

	if (n_flows == 1)
		return PORT_BURST;
	return n == 0 ? 1 : RTE_MIN(n, 32u);
}

unsigned stream_queue(const struct stream *s)
{
	return s->at / s->block % s->tx->n_tx;
}

unsigned stream_run(const struct stream *s)
{
	unsigned n = PORT_BURST;

	if (s->tx->n_tx > 1)
		n = RTE_MIN(n, s->block - s->at % s->block);
	// The list of sizes restarts with sequence number 0.
	if ((s->tx->n_tx > 1 && s->n_flows > 1) || unlikely(s->n_turns > 1 && s->sequence > UINT32_MAX - PORT_BURST))
		n = RTE_MIN(n, s->n_flows - s->at);
	return n;
}

// lines: cache lines of the head, 0 = s->copy bytes. one: the stream has a single frame size.
static __rte_always_inline void generator_stream_build(struct stream *s, struct frame *frames, unsigned n,
						       uint64_t base, uint32_t time, unsigned lines, bool one,
						       bool ipv6)
{
	uint16_t turn = turn_of(s, s->at, s->sequence), copy = lines ? lines * 64 : s->copy, at;
	uint16_t source = s->layout.source, entropy = s->layout.entropy, size = s->layout.size, mac = s->layout.mac;
	struct probe_maker maker = probe_maker(base, s->sequence, time);
	const struct flow *w = &s->flows[s->at], *last = &s->flows[s->n_flows - 1];
	const struct head *h = &s->heads[s->turns[0]];
	bool with_sum = s->layout.udp_sum != 0, outer_sum = s->layout.outer_sum != 0;
	unsigned i;

	for (i = 0; i < n; i++) {
		uint8_t *data = frames[i].data;

		for (at = 0; at < copy; at += 64)
			prefetch_write(frames[i + PORT_AHEAD].data + at);
		if (!one) {
			h = &s->heads[s->turns[turn]];
			turn = turn + 1 == s->n_turns ? 0 : turn + 1;
		}
		for (at = 0; at < copy; at += 64)
			move64(data + at, h->bytes + at);
		stream_write_flow(data + source, h, w, ipv6, with_sum);
		if (entropy)
			stream_write16(data + entropy, w->entropy);
		if (unlikely(mac))
			memcpy(data + mac, &w->source, sizeof(w->source));
		if (unlikely(outer_sum))
			stream_write_outer_sum(data, &s->layout, h, w);
		probe_write(&maker, data + size, (uint32_t)(w - s->flows));
		frames[i].length = h->size;
		if (unlikely(w++ == last)) {
			w = s->flows;
			maker = probe_maker(base, ++s->sequence, time);
		}
	}
	s->at = (uint32_t)(w - s->flows);
}

WITH_AVX2 void stream_build(struct stream *s, struct frame *frames, unsigned n, uint8_t trial, uint32_t time)
{
	uint64_t base = probe_base(s->index, trial);

	if (s->layout.ipv6)
		generator_stream_build(s, frames, n, base, time, 0, false, true);
	else if (s->n_turns == 1 && s->copy == 64)
		generator_stream_build(s, frames, n, base, time, 1, true, false);
	else if (s->n_turns == 1 && s->copy == 128)
		generator_stream_build(s, frames, n, base, time, 2, true, false);
	else
		generator_stream_build(s, frames, n, base, time, 0, false, false);
}

void stream_skip(struct stream *s, unsigned n)
{
	for (; n > 0; n--) {
		if (++s->at == s->n_flows) {
			s->at = 0;
			s->sequence++;
		}
	}
}

void stream_renew(struct stream *s, unsigned n)
{
	s->renewed += n;
	for (; n > 0; n--) {
		s->flows[s->oldest] = flow_make(&s->plan, s->next_number++);
		s->oldest = s->oldest + 1 == s->n_flows ? 0 : s->oldest + 1;
	}
}

void stream_rewind(struct stream *s, unsigned n)
{
	for (; n > 0; n--) {
		if (s->at == 0) {
			s->at = s->n_flows;
			s->sequence--;
		}
		s->at--;
	}
}
