// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

uint64_t clock_stopped, clock_stopped_ns;
