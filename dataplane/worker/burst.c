// SPDX-License-Identifier: Apache-2.0
#include "worker/burst.h"

#include <rte_common.h>
#include <rte_cycles.h>

#include "port/port.h"

static uint64_t burst_cycles(uint64_t us)
{
	return rte_get_tsc_hz() / 1000000 * us;
}

void burst_init(struct burst *b)
{
	*b = (struct burst){.longest = burst_cycles(BURST_WALK_US)};
}

// A burst is doubled only if its walk would still be short, or the bound would never settle.
static void burst_adapt(struct burst *b, uint64_t cycles)
{
	uint16_t now = *b->most > 0 ? *b->most : BATCH, next;

	if (cycles > burst_cycles(BURST_WALK_US))
		next = (uint16_t)RTE_MAX(now / 2, BURST_LEAST);
	else if (b->brought == now && cycles < burst_cycles(BURST_WALK_US) * 2 / 5)
		next = 2 * now < BATCH ? (uint16_t)(2 * now) : 0;
	else
		return;
	__atomic_store_n(b->most, next, __ATOMIC_RELAXED);
}

void burst_walked(struct burst *b, uint64_t now, uint64_t cycles)
{
	bool needed = cycles > burst_cycles(BURST_WALK_US);

	if (b->bounded && b->brought >= BURST_LEAST) {
		needed |= b->brought == *b->most;
		burst_adapt(b, cycles);
	}
	if (needed)
		b->until = now + burst_cycles(1000 * BURST_CALM_MS);
	b->bounded = now < b->until;
	b->longest = b->bounded ? 0 : burst_cycles(BURST_WALK_US);
}
