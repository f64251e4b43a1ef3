// SPDX-License-Identifier: Apache-2.0
// The kernel's view of a worker's thread, and whether the worker keeps up. threads/worker_watch.h reports workers that
// do not.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "worker/history.h"

struct worker;

struct worker_health {
	char affinity[128];        // CPUs that the kernel lets it run on: "3", "0-1"
	uint32_t last_cpu;         // that it last ran on
	int numa;                  // of that CPU, -1 = unknown
	uint64_t involuntary;      // context switches that were forced on it
	uint64_t voluntary;        // context switches by its own system calls
	uint64_t waited_ns;        // ready to run while another thread had its CPU
	uint64_t loops, moving_at; // moving_at: TSC when loops was last seen to grow
	struct history history;    // one sample per second
};

// Reads the files of thread tid of this process in /proc and /sys below root ("" for this machine). Returns 0, or
// -errno and leaves *h unchanged.
int health_read(struct worker_health *h, const char *root, int tid);
// TSC cycles for which changes have waited for this worker, or for which it has been stalled; 0 = it keeps up.
uint64_t health_behind(const struct worker *w);
