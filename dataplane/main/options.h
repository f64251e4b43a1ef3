// SPDX-License-Identifier: Apache-2.0
// Command line of corelaned.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "worker/worker.h"

struct options {
	char run_dir[80]; // sockets and lock of this instance
	char socket[108];
	unsigned worker_cpus[WORKER_MAX];
	unsigned n_workers;
	enum idle_policy idle;
	bool idle_given;
	char control_cpus[128]; // list of the CPUs of all threads that do not forward; empty: those that no worker has
	bool no_huge;
	unsigned memory_mb; // 0: 512
	unsigned mbufs;     // 0: by the pool
	unsigned mbuf_size; // data room without headroom, 0: 2048
	uint64_t fib_bytes;
	uint32_t flows;
	char router_mac[18]; // empty: derived from the host and the run directory
	char log_level[16];
	bool check;
	const char *eal[32]; // further arguments for DPDK, after "--"
	unsigned n_eal;
};

// Returns 0, 1 when the process has nothing more to do (--help, --version), or -EINVAL with err.
int options_parse(int argc, char **argv, struct options *o, struct error *err);

// "0-2,5": at most max CPUs, each once and one that the machine has. name is the option's.
int cpu_list_parse(const char *name, const char *text, unsigned *cpus, unsigned max, unsigned *n, struct error *err);
