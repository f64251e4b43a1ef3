// SPDX-License-Identifier: Apache-2.0
// A thread, svc-debug, that disturbs the others of this process on purpose, as somebody else's programs may. Master only.
#pragma once

#include <stdint.h>

#include "base/error.h"

enum disturbance {
	DISTURB_SHOOTDOWNS, // changes the protection of a page: the kernel makes all CPUs that run this process forget it
	DISTURB_FAULTS,     // gives the program's own pages back, as a host without memory does: who executes them faults
};

// One at a time; per_second: 0 = none any more. Refused unless the process was started with --allow-debug.
int disturb_set(enum disturbance what, uint32_t per_second, struct error *err);
void disturb_stop(void);
