// SPDX-License-Identifier: Apache-2.0
// Command line of corelaned.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/role.h"
#include "base/error.h"
#include "base/ip.h"
#include "dpdk/eal_init.h"
#include "privilege/filter.h"
#include "threads/machine.h"
#include "threads/placement.h"

struct options {
	char run_dir[80]; // sockets and lock of this instance
	char socket[108];
	char state_dir[108]; // empty: the state is not kept
	struct machine machine;
	struct placement placement;
	struct cpu_list overlap; // workers' CPUs that other threads may run on too
	enum idle_policy idle;
	bool idle_given;
	uint32_t rx_ring_size;  // slots of the rings to a worker
	uint32_t tx_ring_size;  // accepted for Contrail vRouter, and ignored: workers transmit directly. 0 = not given
	bool run_to_completion; // no port may spread its packets
	bool ddp;               // vRouter's, without effect
	bool no_huge;
	uint32_t memory_mb;
	uint32_t mbufs;     // 0: the pool decides
	uint32_t mbuf_size; // data room without headroom; 0: the pool decides
	uint32_t fib_mb;
	uint32_t flows;
	struct rte_ether_addr router_mac; // zero: derived from the host and the run directory
	char log_level[16];
	const char *groups[ROLES]; // by role
	char user[32];             // to run as; empty: the one that started the process
	enum filter_mode system_calls;
	bool system_calls_given;
	bool core_dumps;
	bool takeover; // from the daemon of the same run directory
	bool detach;   // in the background
	bool standby;  // both, for a restart of the service
	bool relieve;  // not an option: takeover, because a standby runs; it may end before it is asked to
	bool check;
	bool allow_debug;
	const char *eal[EAL_MORE]; // further arguments for DPDK, after "--"
	unsigned n_eal;
};

// Reads the machine's CPUs. Returns 0, 1 when the process has nothing more to do (--help, --version), or -EINVAL with
// err.
int options_parse(int argc, char **argv, struct options *o, struct error *err);
