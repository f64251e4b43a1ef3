// SPDX-License-Identifier: Apache-2.0
// A node takes a batch of packets, chooses an edge for each and passes them on.
//
//	enum { FOO = 1, BAR };                     // edge 0 is always the drop node
//	static inline edge_t foo_one(struct rte_mbuf *m) { ... return FOO; }
//	NODE_EACH(foo, foo_one, [FOO] = "foo_next", [BAR] = "bar");
//
// A node that looks at several packets together has a process function of its own, and NODE() instead of NODE_EACH().
//
// Nodes do not log or allocate memory; docs/design.md names the few that take locks or make system calls. A batch may
// have any size.
#pragma once

#include <stdbool.h>

#include <rte_graph.h>
#include <rte_graph_worker.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "graph/drop.h"
#include "graph/meta.h"

typedef uint16_t edge_t;

struct node_desc {
	const char *name;
	rte_node_process_t process;
	const char *const *next;
	uint16_t n_next;
	bool source;
	struct node_desc *list;
};

void node_register(struct node_desc *desc);

// Edges that other modules add: a node whose last entry is [FIRST] = NODE_LIST("encap") has an edge to each node of
// that list, from FIRST on. Entries that are left out before it lead to drop.
#define NODE_LIST_MARK '+'
#define NODE_LIST(list) "+" list
unsigned node_list_add(const char *list, const char *node); // before graph_init(); returns the node's place in the list

#define NODE(sym, fn, ...) NODE_DESC(sym, fn, false, __VA_ARGS__)
#define NODE_SOURCE(sym, fn, ...) NODE_DESC(sym, fn, true, __VA_ARGS__)
#define NODE_DESC(sym, fn, src, ...)                                                        \
	static const char *const node_##sym##_next[] = {[EDGE_DROP] = "drop", __VA_ARGS__}; \
	static struct node_desc node_##sym = {.name = #sym,                                 \
					      .process = fn,                                \
					      .next = node_##sym##_next,                    \
					      .n_next = RTE_DIM(node_##sym##_next),         \
					      .source = src};                               \
	__attribute__((constructor)) static void node_##sym##_register(void)                \
	{                                                                                   \
		node_register(&node_##sym);                                                 \
	}

#define NODE_CHUNK 256u
#define NODE_AHEAD 4 // how many packets ahead headers are prefetched
#define NODE_MEMORY 16384

// Memory for the arrays of a batch. Each thread has one area, which all nodes use in turn, so it stays in the cache.
// For arrays on the stack, the compiler would check the stack in each call of the node.
extern __thread uint8_t node_memory[NODE_MEMORY] __attribute__((tls_model("local-exec")));

// Returns the area as a structure, which is valid until the node passes its packets on.
#define NODE_ARRAYS(type)                                                                                        \
	({                                                                                                       \
		_Static_assert(sizeof(type) <= NODE_MEMORY, "the arrays of a node are longer than NODE_MEMORY"); \
		(__typeof__(type) *)(void *)node_memory;                                                         \
	})

// True while a trace runs: node_pass() then records packets that have META_TRACED.
extern bool graph_tracing;
void graph_trace_batch(struct rte_graph *graph, struct rte_node *node, void **objs, const edge_t *edges, unsigned n);

// Returns the first place behind i whose edge differs from that of i, or n. Four edges that equal those one place
// before them are all alike.
static __rte_always_inline unsigned node_edges_alike(const edge_t *edges, unsigned i, unsigned n)
{
	for (i++; i + 4 <= n; i += 4)
		if (*(const unaligned_uint64_t *)&edges[i] != *(const unaligned_uint64_t *)&edges[i - 1])
			break;
	while (i < n && edges[i] == edges[i - 1])
		i++;
	return i;
}

void node_pass_apart(struct rte_graph *graph, struct rte_node *node, void **objs, const edge_t *edges, unsigned n);

// Passes n packets on, each by its edge. objs may be the node's own array.
static __rte_always_inline void node_pass(struct rte_graph *graph, struct rte_node *node, void **objs,
					  const edge_t *edges, unsigned n)
{
	if (unlikely(graph_tracing))
		graph_trace_batch(graph, node, objs, edges, n);
	if (likely(node_edges_alike(edges, 0, n) == node->idx && objs == node->objs))
		rte_node_next_stream_move(graph, node, edges[0]);
	else
		node_pass_apart(graph, node, objs, edges, n);
}

// Fetches the headers of the packet some places behind pkts[i], if there is one among the n packets.
static __rte_always_inline void node_prefetch(struct rte_mbuf *const *pkts, unsigned i, unsigned n)
{
	if ((int)i < (int)n - NODE_AHEAD)
		rte_prefetch0(rte_pktmbuf_mtod(pkts[i + NODE_AHEAD], void *));
}

typedef edge_t (*node_one_fn)(struct rte_mbuf *m);

// tools/nodes.py compiles nodes with NODE_CHECK to see whether one() has an array of its own: then the compiler checks
// the stack of a node, and the array of the loop is no reason for it.
#ifdef NODE_CHECK
#define NODE_EDGES(edges) edge_t *edges = *NODE_ARRAYS(edge_t[NODE_CHUNK])
#define NODE_UNCHECKED_STACK
#else
#define NODE_EDGES(edges) edge_t edges[NODE_CHUNK]
#define NODE_UNCHECKED_STACK __attribute__((no_stack_protector))
#endif

// Calls one() for each packet; the compiler inlines it.
static __rte_always_inline uint16_t node_each(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n,
					      node_one_fn one)
{
	NODE_EDGES(edges);
	unsigned done, i, k;

	for (done = 0; done < n; done += k) {
		struct rte_mbuf **pkts = (struct rte_mbuf **)objs + done;

		k = RTE_MIN(n - done, NODE_CHUNK);
		for (i = 0; i < k; i++) {
			node_prefetch(pkts, i, k);
			edges[i] = one(pkts[i]);
		}
		node_pass(graph, node, objs + done, edges, k);
	}
	return n;
}

// The compiler does not check the stack, because the loop alone indexes the array of node_each(). Lint refuses a one()
// that has an array, also in what the compiler inlines: such a node has a process function that calls node_each().
#define NODE_EACH(sym, one, ...)                                                                              \
	NODE_UNCHECKED_STACK static uint16_t sym(struct rte_graph *graph, struct rte_node *node, void **objs, \
						 uint16_t n)                                                  \
	{                                                                                                     \
		return node_each(graph, node, objs, n, one);                                                  \
	}                                                                                                     \
	NODE(sym, sym, __VA_ARGS__)
