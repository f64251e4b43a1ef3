// SPDX-License-Identifier: Apache-2.0
// How far the CPU of the router is at this moment: the time that a cache line takes there and back.
#pragma once

#include <stdint.h>

#include "base/error.h"

int round_trip_start(unsigned cpu, struct error *err); // a thread that sleeps there
void round_trip_stop(void);
uint64_t round_trip_probe(void); // gen-poll. Median in TSC cycles, 2 ms at most; 0: no thread, or it did not answer
