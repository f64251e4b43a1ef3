// SPDX-License-Identifier: Apache-2.0
// Frames of a stream: the head as it is, then what the flow, the sequence number and the time make of it.
#include "stream.h"

#include <rte_branch_prediction.h>

#include "simd.h"

static __rte_always_inline void put16(uint8_t *at, uint16_t v)
{
	memcpy(at, &v, sizeof(v));
}

static __rte_always_inline uint32_t fold(uint32_t s)
{
	s = (s & 0xffff) + (s >> 16);
	return (s & 0xffff) + (s >> 16);
}

static __rte_always_inline void put_udp_sum(uint8_t *at, uint16_t base, const struct flow *w)
{
	uint16_t sum = (uint16_t)~fold((uint32_t)base + w->address_sum + w->source_port + w->destination_port);

	put16(at, sum ? sum : 0xffff); // 0 would say that there is none
}

static __rte_always_inline void put_flow(uint8_t *p, const struct layout *l, const struct head *h, const struct flow *w)
{
	memcpy(p + l->source, &w->source, 4);
	memcpy(p + l->destination, &w->destination, 8); // and the ports
	if (l->ip_sum)
		put16(p + l->ip_sum, (uint16_t)~fold((uint32_t)h->ip_sum + w->address_sum));
	if (l->udp_sum)
		put_udp_sum(p + l->udp_sum, h->udp_sum, w);
	if (l->entropy)
		put16(p + l->entropy, w->entropy);
}

// Of the frame that carries a flow's sequence number: its place in the list of sizes.
static uint16_t turn_of(const struct stream *s, uint32_t flow, uint32_t sequence)
{
	return s->n_turns == 1 ? 0 : (uint16_t)(((uint64_t)sequence * s->n_flows + flow) % s->n_turns);
}

uint16_t stream_size(const struct stream *s, uint32_t flow, uint32_t sequence)
{
	return s->heads[s->turns[turn_of(s, flow, sequence)]].size;
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
	// The list of sizes begins again with sequence number 0.
	if ((s->tx->n_tx > 1 && s->n_flows > 1) || unlikely(s->n_turns > 1 && s->sequence == UINT32_MAX))
		n = RTE_MIN(n, s->n_flows - s->at);
	return n;
}

static __rte_always_inline void advance(struct stream *s)
{
	if (++s->at == s->n_flows) {
		s->at = 0;
		s->sequence++;
	}
}

WITH_AVX2 void stream_build(struct stream *s, struct frame *frames, unsigned n, uint8_t trial, uint32_t time)
{
	uint64_t base = probe_base(s->index, trial), stamp = (uint64_t)time;
	uint16_t turn = turn_of(s, s->at, s->sequence), line;
	const struct layout l = s->layout;
	unsigned i;

	for (i = 0; i < n; i++, advance(s)) {
		const struct head *h = &s->heads[s->turns[turn]];
		const struct flow *w = &s->flows[s->at];
		struct probe p = probe_make(base, s->at, s->sequence, stamp);
		uint8_t *data = frames[i].data;

		for (line = 0; line < s->copy; line += 64)
			move64(data + line, h->bytes + line);
		put_flow(data, &l, h, w);
		memcpy(data + l.size, &p, sizeof(p));
		frames[i].length = h->size;
		if (++turn == s->n_turns)
			turn = 0;
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

void stream_skip(struct stream *s, unsigned n)
{
	for (; n > 0; n--)
		advance(s);
}
