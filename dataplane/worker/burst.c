// SPDX-License-Identifier: Apache-2.0
#include "worker/burst.h"

#include <rte_common.h>
#include <rte_cycles.h>

static uint64_t burst_cycles(uint64_t us)
{
	return rte_get_tsc_hz() / 1000000 * us;
}

void burst_init(struct burst *b)
{
	*b = (struct burst){.longest = burst_cycles(BURST_SHARED_US)};
}

// A burst is doubled only if its walk would still be short, or the bound would never settle.
static void burst_adapt(struct burst *b, uint64_t cycles, uint64_t longest)
{
	uint16_t half = b->brought / 2;

	if (cycles > longest)
		__atomic_store_n(b->most, RTE_MAX(half, b->least), __ATOMIC_RELAXED);
	else if (cycles < longest * 2 / 5)
		burst_double(b->most);
}

// Whether a full burst of it would take too long. While the worker is shared, even ordinary packets are bounded.
static bool burst_costly(const struct burst *b, uint64_t cycles)
{
	return b->brought == *b->most && cycles * BATCH / b->brought > burst_cycles(BURST_WALK_US);
}

// The time of one frame, without what the machine may have taken meanwhile.
static void burst_rest(struct burst *b, uint64_t now, uint64_t cycles)
{
	if (b->shared && b->dear && cycles > burst_cycles(BURST_SHARED_US))
		b->rest_until = now + BURST_REST * RTE_MIN(cycles, burst_cycles(BURST_WALK_US));
}

void burst_walked(struct burst *b, uint64_t now, uint64_t cycles)
{
	bool costly = cycles > burst_cycles(BURST_WALK_US);

	if (b->most != NULL) {
		costly |= burst_costly(b, cycles);
		burst_adapt(b, cycles, burst_cycles(b->shared ? BURST_SHARED_US : BURST_WALK_US));
		burst_rest(b, now, cycles);
		b->full = b->most;
	}
	if (costly)
		b->costly_until = now + burst_cycles(1000 * BURST_CALM_MS);
	if (b->others)
		b->shared_until = now + burst_cycles(1000 * BURST_SHARED_MS);
	burst_begin(b);
	b->shared = now < b->shared_until;
	b->bounded = b->shared || now < b->costly_until;
	b->resting = now < b->rest_until;
	b->longest = b->bounded ? 0 : burst_cycles(BURST_SHARED_US);
}
