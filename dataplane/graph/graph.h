// SPDX-License-Identifier: Apache-2.0
// The graph of one worker. The only user of rte_graph besides graph/node.h.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct rte_graph;

#define GRAPH_NO_WORKER UINT16_MAX
extern __thread uint16_t graph_worker; // id of the worker that the calling thread is. A worker sets it as it begins

int graph_init(struct error *err); // registers all nodes with DPDK

// Master thread. A graph whose only source is port_rx; name is unique in the process.
struct rte_graph *graph_create(const char *name, int numa, struct error *err);
void graph_destroy(struct rte_graph *graph);

// When the nodes of one walk ended, of which the last GRAPH_TRAIL are kept. Their names are looked up only when somebody asks.
#define GRAPH_TRAIL 64 // a power of two

struct graph_trail {
	uint64_t begin, end; // TSC; the caller sets begin
	unsigned n;          // runs of nodes
	uint64_t ends[GRAPH_TRAIL];
	// Of the graph: in which order its nodes ran, the first at [-1], the others from [0] round and round.
	const uint32_t *order;
	uint32_t mask;
};

struct graph_step {    // one run of a node
	uint32_t node; // for graph_step_name()
	uint64_t cycles;
};

void graph_trail_init(struct graph_trail *trail, const struct rte_graph *graph);
void graph_walk(struct rte_graph *graph, struct graph_trail *trail); // worker
// The runs of the last walk that are still known, in order. Returns how many. All are when trail->n <= GRAPH_TRAIL.
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
