// SPDX-License-Identifier: Apache-2.0
// Measures the load of queues, table entries and workers each second, and acts on it: switches ports in mode auto, and
// moves queues and entries to less loaded workers. Master thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct port_queue;
struct worker;

struct load_move {
	struct port_queue *queue; // NULL: entries of a port's table
	uint16_t port;
	unsigned entries;
	uint32_t from, to; // workers
	double packets;    // per second
};

struct load_plan {
	double before, after; // packets/s of the most loaded worker
	double mean;
	unsigned n;
	struct load_move *moves; // free()
};

extern uint32_t rebalance_seconds; // 0: only on request

void load_poll(void);             // called from the master's loop
void load_measure(double passed); // what load_poll() does each second; passed: seconds since the last time

double load_of_queue(const struct port_queue *q); // packets/s
double load_of_worker(const struct worker *w);    // share of its time in which it had packets, 0 to 1

// Plans the moves that balance the load, and with apply makes them. -ENOMEM with err.
int load_rebalance(bool cross_numa, bool apply, struct load_plan *plan, struct error *err);
