// SPDX-License-Identifier: Apache-2.0
// A thread that disturbs the others of this process on purpose: it changes the protection of a page over and over, and each time the
// kernel makes all CPUs that run this process forget it (TLB shootdown). Master only.
#pragma once

#include <stdint.h>

#include "base/error.h"

#define SHOOTDOWNS_MAX 1000000

// per_second: 0 = none any more. Refused unless the process was started with --allow-debug.
int shootdowns_set(uint32_t per_second, struct error *err);
void shootdowns_stop(void);
