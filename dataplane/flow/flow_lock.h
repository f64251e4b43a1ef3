// SPDX-License-Identifier: Apache-2.0
// The lock of one flow, for the slow path: the packets of its two directions may be on different workers. A lost update
// could leave one direction allowed that was just denied.
#pragma once

#include <rte_pause.h>

#include "flow/flow.h"

#define FLOW_LOCK_US 50 // a decision takes about 1 us; a holder that needs longer was preempted

static inline bool flow_lock_take(struct flow *f)
{
	uint64_t now, end = 0;

	while (__atomic_exchange_n(&f->lock, 1, __ATOMIC_ACQUIRE)) {
		now = rte_rdtsc();
		if (end == 0)
			end = now + flow_tsc_hz / 1000000 * FLOW_LOCK_US;
		else if (now > end)
			return false;
		rte_pause();
	}
	return true;
}

static inline void flow_lock_release(struct flow *f)
{
	__atomic_store_n(&f->lock, 0, __ATOMIC_RELEASE);
}
