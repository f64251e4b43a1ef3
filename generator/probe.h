// SPDX-License-Identifier: Apache-2.0
// Probes: 16 bytes behind the last header of each frame, by which the sink identifies it. Native byte order, because
// the same process writes and reads them.
//
// The ones' complement sum of the eight 16-bit words is always 0xffff. So a UDP checksum over the frame does not depend
// on the probe's content, and a damaged probe is detected.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_common.h>

#define PROBE_SIZE 16u
#define PROBE_MAX_FLOWS (1u << 24)
#define PROBE_TRIALS 256 // trials are numbered 1..255, cyclically

struct probe {
	uint64_t id;    // check 0..15, stream 16..31, flow 32..55, trial 56..63
	uint64_t stamp; // sequence number of the flow 0..31, time 32..63 (clock.h)
};

static __rte_always_inline uint32_t probe_fold(uint64_t id, uint64_t stamp)
{
	uint64_t s = (uint32_t)id + (id >> 32) + (uint32_t)stamp + (stamp >> 32);
	uint32_t f = (uint32_t)(s & 0xffff) + (uint32_t)(s >> 16);

	f = (f & 0xffff) + (f >> 16);
	return (f & 0xffff) + (f >> 16);
}

// The part of the id that all frames of a burst share.
static __rte_always_inline uint64_t probe_base(uint16_t stream, uint8_t trial)
{
	return (uint64_t)stream << 16 | (uint64_t)trial << 56;
}

// Makes probes that differ only in the flow.
struct probe_maker {
	uint64_t base, stamp;
	uint32_t sum;
};

static __rte_always_inline struct probe_maker probe_maker(uint64_t base, uint32_t sequence, uint32_t time)
{
	struct probe_maker m = {.base = base, .stamp = sequence | (uint64_t)time << 32};

	m.sum = probe_fold(m.base, m.stamp);
	return m;
}

static __rte_always_inline void probe_write(const struct probe_maker *m, uint8_t *at, uint32_t flow)
{
	uint32_t sum = m->sum + (flow & 0xffff) + (flow >> 16);
	uint64_t id;

	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16; // the low half is the sum
	id = m->base | (uint64_t)flow << 32 | (uint16_t)~sum;
	memcpy(at, &id, sizeof(id));
	memcpy(at + sizeof(id), &m->stamp, sizeof(m->stamp));
}

static __rte_always_inline struct probe probe_read(const uint8_t *at)
{
	struct probe p;

	memcpy(&p, at, sizeof(p));
	return p;
}

static __rte_always_inline bool probe_intact(struct probe p)
{
	uint64_t s = p.id + p.stamp;

	s += s < p.id;
	// Tests for a multiple of 0xffff: its product with the inverse of 0xffff (modulo 2^64) is small. All zero
	// passes, too, but has trial 0, which does not exist.
	return s * 0xfffefffefffeffffu <= UINT64_MAX / 0xffff;
}

static __rte_always_inline uint32_t probe_stream(struct probe p)
{
	return (p.id >> 16) & 0xffff;
}

static __rte_always_inline uint32_t probe_flow(struct probe p)
{
	return (p.id >> 32) & (PROBE_MAX_FLOWS - 1);
}

static __rte_always_inline uint32_t probe_trial(struct probe p)
{
	return p.id >> 56;
}

static __rte_always_inline uint32_t probe_sequence(struct probe p)
{
	return (uint32_t)p.stamp;
}

static __rte_always_inline uint32_t probe_time(struct probe p)
{
	return p.stamp >> 32;
}
