// SPDX-License-Identifier: Apache-2.0
// Injects a delay into the loops of a worker.
#pragma once

#include <stdint.h>

#include "base/error.h"

struct worker;

// Master thread. Makes each loop us microseconds longer, at most a minute. 0 ends the delay, also in the loop that runs
// now. Refused unless the process was started with --allow-debug.
int delay_set(struct worker *w, uint32_t us, struct error *err);
