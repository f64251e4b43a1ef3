// SPDX-License-Identifier: Apache-2.0
// Turns of the master's loop. A turn lasts from one tick to the next. During a long one the master answers no request,
// resolves no neighbour and watches no worker. The pieces of work that the loop does are timed, so that
// each long turn has a cause. What is not timed (accepting clients, reading sockets) counts only in the length of its
// turn.
//
// Master thread only.
#pragma once

#include <stdint.h>

#define TURN_LONG_NS 100000000ull     // a turn above this is reported, unless the master only waited for a CPU
#define TURN_STALL_NS 1000000000ull   // a turn above this is always reported
#define TURN_REPORT_NS 10000000000ull // time between two reports

struct turn_work {               // static memory; only the name is set by the owner
	const char *noun, *name; // "Routes", "Add"; noun NULL: the name alone
	uint64_t runs, total_ns, longest_ns;
	uint64_t longest_at_ns; // when the longest run ended, since 1970
	struct turn_work *next;
};

struct histogram;

struct turns {
	const struct histogram *times; // ns of all turns (base/histogram.h)
	uint64_t longest_ns, longest_at_ns;
	uint64_t longest_waited_ns;           // in the longest turn: runnable without a CPU
	const struct turn_work *longest_work; // NULL: no timed work ran in it
	uint64_t longest_work_ns;
	uint64_t own_ns;                  // longest turn, not counting the time that the master waited for a CPU
	const struct turn_work *own_work; // what took the longest in that one
	uint64_t above;   // turns above TURN_LONG_NS, not counting the time that the master waited for a CPU
	uint64_t waiting; // turns above TURN_LONG_NS because the master waited for a CPU
};

void turn_begin(struct turn_work *w); // does not nest
void turn_end(void);
void turn_next(void); // ends a turn and begins the next one

const struct turns *turns_get(void);
const struct turn_work *turn_work_next(
	const struct turn_work *w); // in the order of their first runs; NULL gives the first one
