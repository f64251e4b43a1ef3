// SPDX-License-Identifier: Apache-2.0
// Makes a worker slow on purpose.
#pragma once

#include <stdint.h>

#include "base/error.h"

struct worker;

// Master. Each loop takes us microseconds longer, at most a second; 0 = no delay any more. Refused unless the process was
// started with --allow-debug.
int delay_set(struct worker *w, uint32_t us, struct error *err);
