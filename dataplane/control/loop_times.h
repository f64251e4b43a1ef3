// SPDX-License-Identifier: Apache-2.0
// Encodes durations of loops: those of workers (in TSC cycles) and of the master (in ns).
#pragma once

#include "base/histogram.h"
#include "worker.pb-c.h"

struct api_call;

// to_ns converts a value of the histogram.
Corelane__V1__LoopTimes *loop_times_encode(struct api_call *call, const struct histogram *h, uint64_t max,
					   uint64_t (*to_ns)(uint64_t value));
