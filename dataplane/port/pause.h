// SPDX-License-Identifier: Apache-2.0
// When a queue that is polled by a system call is polled next.
//
// An empty poll costs a system call (0.3 us, 1.3 us in a virtual machine), so an idle queue is polled less often: after
// each empty poll it rests for twice as long as before, from PAUSE_MIN_NS to PAUSE_MAX_NS. The first packet after
// silence waits for the rest of that pause. The idle queues of a worker take turns, PAUSE_TURN_NS apart, so that many
// of them do not take the time of the busy ones.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>
#include <rte_cycles.h>

#define PAUSE_MIN_NS 1000
#define PAUSE_MAX_NS 16000
#define PAUSE_TURN_NS 8000       // about ten empty polls
#define PAUSE_TURN_MAX_NS 128000 // that a queue waits for its turn

struct pause {              // of a queue. Polling worker: rw
	uint64_t next_poll; // TSC
	uint32_t cycles;    // grows while the queue is empty; 0 = poll at once
};

extern __thread uint64_t pause_turn; // TSC: the last turn that this worker has given to an idle queue

static inline uint32_t pause_cycles_of(uint32_t ns)
{
	return (uint32_t)(rte_get_tsc_hz() / 1000000 * ns / 1000);
}

static inline bool pause_lasts(const struct pause *p)
{
	return p->cycles != 0 && rte_rdtsc() < p->next_poll;
}

// After each poll.
static inline void pause_after(struct pause *p, uint16_t received)
{
	uint32_t longest = pause_cycles_of(PAUSE_MAX_NS);
	uint64_t now;

	if (received > 0) {
		*p = (struct pause){0};
		return;
	}
	now = rte_rdtsc();
	p->cycles = p->cycles == 0 ? pause_cycles_of(PAUSE_MIN_NS) : RTE_MIN(p->cycles * 2, longest);
	p->next_poll = now + p->cycles;
	if (p->cycles < longest)
		return;
	pause_turn = RTE_MAX(pause_turn, now) + pause_cycles_of(PAUSE_TURN_NS);
	pause_turn = RTE_MIN(pause_turn, now + pause_cycles_of(PAUSE_TURN_MAX_NS));
	p->next_poll = RTE_MAX(p->next_poll, pause_turn);
}
