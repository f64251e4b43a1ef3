// SPDX-License-Identifier: Apache-2.0
// What the kernel says of a worker's thread, and whether the worker keeps up. Who does not is reported by main/worker_watch.h.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct worker;

struct worker_health {
	char affinity[128];        // CPUs that the kernel lets it run on: "3", "0-1"
	uint32_t last_cpu;         // where it ran last
	int numa;                  // of that CPU, -1 = unknown
	uint64_t involuntary;      // switches to another thread that it had not asked for
	uint64_t voluntary;        // and by its own system calls
	uint64_t waited_ns;        // ready to run while another thread had its CPU
	uint64_t loops, moving_at; // TSC when its loops were last seen to grow
};

// Reads what is below root ("" for this machine) of thread tid of this process. Returns 0 or -errno; then nothing has changed.
int health_read(struct worker_health *h, const char *root, int tid);
// TSC cycles for which changes have waited for this worker, or for which it has stood still; 0 = it keeps up.
uint64_t health_behind(const struct worker *w);
