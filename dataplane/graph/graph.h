// SPDX-License-Identifier: Apache-2.0
// The graph of one worker. The only user of rte_graph besides graph/node.h.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct rte_graph;

#define GRAPH_NO_WORKER UINT16_MAX
extern __thread uint16_t graph_worker; // worker id of the calling thread. A worker sets it when it starts

int graph_init(struct error *err); // registers all nodes with DPDK

// Master thread. Creates a graph with port_rx as its only source. name must be unique in the process.
struct rte_graph *graph_create(const char *name, int numa, struct error *err);
void graph_destroy(struct rte_graph *graph);

// The times at which the nodes of one walk ended. The last GRAPH_TRAIL are kept; names are looked up on demand.
#define GRAPH_TRAIL 64 // a power of two

struct graph_trail {
	uint64_t begin, end; // TSC; the caller sets begin
	unsigned n;          // runs of nodes
	uint64_t ends[GRAPH_TRAIL];
	// The graph's ring of pending nodes, in the order in which they ran: the first is at [-1], the others follow
	// from [0].
	const uint32_t *order;
	uint32_t mask;
};

struct graph_step {    // one run of a node
	uint32_t node; // for graph_step_name()
	uint64_t cycles;
};

void graph_trail_init(struct graph_trail *trail, const struct rte_graph *graph);
void graph_walk(struct rte_graph *graph, struct graph_trail *trail); // worker
// Writes the runs of the last walk that are still known, in order, and returns their number. None is missing when
// trail->n <= GRAPH_TRAIL.
unsigned graph_steps(const struct graph_trail *trail, struct graph_step steps[GRAPH_TRAIL]);
const char *graph_step_name(const struct rte_graph *graph, uint32_t node);

struct graph_node_stats {
	const char *name;
	uint64_t calls, packets, cycles;
};

// Node i of the graph in the order of registration, -ENOENT past the last one.
int graph_stats(struct rte_graph *graph, unsigned i, struct graph_node_stats *out);
// Name of edge e of node i, NULL past the last one.
const char *graph_edge(unsigned i, unsigned e);
const char *graph_edge_of(const char *node, unsigned e); // by the node's name
const char *graph_node_name(unsigned i);                 // NULL past the last one
