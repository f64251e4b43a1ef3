// SPDX-License-Identifier: Apache-2.0
// The thread svc-debug disturbs the other threads of this process on purpose, as foreign programs might. Master thread
// only.
#pragma once

#include <stdint.h>

#include "base/error.h"

enum disturbance {
	// Changes the protection of a page: the kernel flushes it from the TLBs of all CPUs that run this process.
	DISTURB_SHOOTDOWNS,
	// Gives back the program's own pages, as a host that is short of memory does: executing them faults.
	DISTURB_FAULTS,
};

// Only one disturbance is active at a time; per_second 0 ends it. Refused unless the process was started with
// --allow-debug.
int disturb_set(enum disturbance what, uint32_t per_second, struct error *err);
void disturb_stop(void);
