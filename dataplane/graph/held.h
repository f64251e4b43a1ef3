// SPDX-License-Identifier: Apache-2.0
// How many packet buffers each port holds: those of the packets that came in by it and wait, in a ring between threads
// or for a neighbour. Packets that a worker has in its hands do not count.
//
// Each thread counts what begins to wait and what has waited, in a row of its own, so no two threads write one line.
#pragma once

#include <rte_mbuf.h>

#include "graph/meta.h"

struct held {
	uint32_t began, ended; // buffers, modulo 2^32. The thread: rw, others: ro
};

extern __thread struct held *held_row; // [PORT_MAX], of the calling thread

void held_enter(unsigned worker); // a worker's thread, before it counts. All other threads share one row: the master's

static inline void held_begin_as(uint16_t port, uint32_t buffers)
{
	struct held *h = &held_row[port % PORT_MAX];

	__atomic_store_n(&h->began, h->began + buffers, __ATOMIC_RELAXED);
}

// Before another thread can see the packet.
static inline void held_begin(const struct rte_mbuf *m)
{
	held_begin_as(m->port, m->nb_segs);
}

static inline void held_end(const struct rte_mbuf *m)
{
	struct held *h = &held_row[m->port % PORT_MAX];

	__atomic_store_n(&h->ended, h->ended + m->nb_segs, __ATOMIC_RELAXED);
}

uint32_t held_by(uint16_t port); // buffers; may be a few too few or too many while packets move. Any thread
