// SPDX-License-Identifier: Apache-2.0
// Distance to the router's CPU: the time that a cache line takes to it and back.
#pragma once

#include <stdint.h>

#include "base/error.h"

int round_trip_start(unsigned cpu, struct error *err); // starts a thread on that CPU, which sleeps
void round_trip_stop(void);
uint64_t round_trip_probe(void); // gen-poll. Median in TSC cycles, takes at most 2 ms; 0: no thread, or too few answers
