// SPDX-License-Identifier: Apache-2.0
// Makes each loop of a worker longer by a fixed time.
#include "debug/delay.h"

#include <errno.h>

#include <rte_cycles.h>
#include <rte_pause.h>

#include "base/log.h"
#include "debug/debug.h"
#include "worker/orders.h"
#include "worker/recorder.h"
#include "worker/worker.h"

static void delay_loop(struct worker *w)
{
	uint64_t start = rte_rdtsc();

	while (rte_rdtsc() - start < __atomic_load_n(&w->delay, __ATOMIC_RELAXED)) // ends when delay_set() ends it
		rte_pause();
	recorder_spent(w->recorder, STAGE_DELAY, rte_rdtsc() - start);
}

int delay_set(struct worker *w, uint32_t us, struct error *err)
{
	int ret = debug_check_allowed(err);

	if (ret < 0)
		return ret;
	__atomic_store_n(&w->delay, us * (rte_get_tsc_hz() / 1000000), __ATOMIC_RELAXED);
	worker_set_fault(w, us > 0 ? delay_loop : NULL);
	LOG(NOTICE, us > 0 ? "worker %u is delayed by %u us in each loop" : "worker %u is no longer delayed", w->id,
	    us);
	return 0;
}
