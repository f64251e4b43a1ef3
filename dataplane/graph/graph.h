// SPDX-License-Identifier: Apache-2.0
// The graph of one worker. The only user of rte_graph besides graph/node.h.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct rte_graph;

int graph_init(struct error *err); // registers all nodes with DPDK

// Master thread. A graph whose only source is port_rx; name is unique in the process.
struct rte_graph *graph_create(const char *name, int numa, struct error *err);
void graph_destroy(struct rte_graph *graph);

void graph_walk(struct rte_graph *graph); // worker

struct graph_node_stats {
	const char *name;
	uint64_t calls, packets, cycles;
};

// Node i of the graph in the order of registration, -ENOENT past the last one.
int graph_stats(struct rte_graph *graph, unsigned i, struct graph_node_stats *out);
// Name of edge e of node i, NULL past the last one.
const char *graph_edge(unsigned i, unsigned e);
const char *graph_node_name(unsigned i); // NULL past the last one
