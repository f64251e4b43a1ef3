// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_debug.h>
#include <rte_errno.h>
#include <rte_mbuf_dyn.h>

#include "graph/node.h"

__thread uint16_t graph_worker = GRAPH_NO_WORKER;
__thread uint8_t node_memory[NODE_MEMORY] __rte_cache_aligned;

static struct node_desc *nodes; // in order of registration
static unsigned n_nodes;

void node_register(struct node_desc *desc)
{
	struct node_desc **end = &nodes;

	while (*end)
		end = &(*end)->list;
	*end = desc;
	n_nodes++;
}

void node_pass_apart(struct rte_graph *graph, struct rte_node *node, void **objs, const edge_t *edges, unsigned n)
{
	unsigned i, j;

	for (i = 0; i < n; i = j) {
		j = node_edges_alike(edges, i, n);
		rte_node_enqueue(graph, node, edges[i], objs + i, (uint16_t)(j - i));
	}
}

#define LISTED_MAX 64
static struct {
	const char *list, *node;
} listed[LISTED_MAX];
static unsigned n_listed;

// Node `place` of a list, NULL past the last one.
static const char *node_list_at(const char *list, unsigned place)
{
	unsigned i;

	for (i = 0; i < n_listed; i++)
		if (strcmp(listed[i].list, list) == 0 && place-- == 0)
			return listed[i].node;
	return NULL;
}

unsigned node_list_add(const char *list, const char *node)
{
	unsigned place = 0;

	if (n_listed == LISTED_MAX)
		rte_panic("no room for node %s in list %s\n", node, list);
	while (node_list_at(list, place))
		place++;
	listed[n_listed].list = list;
	listed[n_listed++].node = node;
	return place;
}

// Edge e of a node, NULL past the last one.
static const char *node_edge(const struct node_desc *d, unsigned e)
{
	const char *last = d->n_next ? d->next[d->n_next - 1] : "";

	if (*last == NODE_LIST_MARK && e + 1 >= d->n_next)
		return node_list_at(last + 1, e + 1 - d->n_next);
	if (e >= d->n_next)
		return NULL;
	return d->next[e] ? d->next[e] : "drop";
}

static const struct node_desc *node_at(unsigned i)
{
	const struct node_desc *d = nodes;

	while (d && i--)
		d = d->list;
	return d;
}

int meta_init(void)
{
	static const struct rte_mbuf_dynfield field = {
		.name = "corelane_meta", .size = sizeof(struct pkt_meta), .align = 8, .flags = 0};
	int off = rte_mbuf_dynfield_register_offset(&field, META_OFFSET);

	return off == META_OFFSET ? 0 : -EBUSY;
}

static int node_add(const struct node_desc *d, struct error *err)
{
	struct rte_node_register *reg;
	unsigned i, n = 0;
	rte_node_t id;

	while (node_edge(d, n))
		n++;
	reg = calloc(1, sizeof(*reg) + n * sizeof(reg->next_nodes[0]));
	if (reg == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for node %s", d->name);
	snprintf(reg->name, sizeof(reg->name), "%s", d->name);
	reg->flags = d->source ? RTE_NODE_SOURCE_F : 0;
	reg->process = d->process;
	reg->parent_id = RTE_NODE_ID_INVALID;
	reg->nb_edges = (rte_edge_t)n;
	for (i = 0; i < n; i++)
		reg->next_nodes[i] = node_edge(d, i);
	id = __rte_node_register(reg); // makes a copy
	free(reg);
	if (id == RTE_NODE_ID_INVALID)
		return error_set(err, EINVAL, NULL, NULL, NULL, "node %s cannot be registered: %s", d->name,
				 rte_strerror(rte_errno));
	return 0;
}

int graph_init(struct error *err)
{
	const struct node_desc *d;
	int ret;

	if (meta_init() < 0)
		return error_set(err, EBUSY, NULL, NULL, NULL, "the dynamic field of mbufs is already in use");
	for (d = nodes; d; d = d->list) {
		ret = node_add(d, err);
		if (ret < 0)
			return ret;
	}
	return 0;
}

struct rte_graph *graph_create(const char *name, int numa, struct error *err)
{
	const char *patterns[] = {"port_rx"};
	struct rte_graph_param param = {.socket_id = numa, .nb_node_patterns = 1, .node_patterns = patterns};
	rte_graph_t id = rte_graph_create(name, &param);

	if (id == RTE_GRAPH_ID_INVALID) {
		error_set(err, rte_errno ? rte_errno : EINVAL, NULL, NULL, NULL, "graph %s cannot be created: %s", name,
			  rte_strerror(rte_errno));
		return NULL;
	}
	return rte_graph_lookup(name);
}

void graph_destroy(struct rte_graph *graph)
{
	if (graph)
		rte_graph_destroy(graph->id);
}

void graph_trail_init(struct graph_trail *trail, const struct rte_graph *graph)
{
	trail->order = graph->cir_start;
	trail->mask = graph->cir_mask;
}

// Like rte_graph_walk(), but takes one time stamp per node instead of two, because a node begins when the one before it
// ends, and keeps the time stamps.
void graph_walk(struct rte_graph *graph, struct graph_trail *trail)
{
	const rte_graph_off_t *pending = graph->cir_start;
	const rte_node_t mask = graph->cir_mask;
	uint64_t now, before = trail->begin;
	uint32_t head = graph->head;
	unsigned n = 0;

	while (likely(head != graph->tail)) {
		struct rte_node *node = RTE_PTR_ADD(graph, pending[(int32_t)head++]);

		rte_prefetch0(node->objs);
		node->total_calls++;
		node->total_objs += node->process(graph, node, node->objs, node->idx);
		node->idx = 0;
		now = rte_rdtsc();
		node->total_cycles += now - before;
		trail->ends[n++ % GRAPH_TRAIL] = before = now;
		head = likely((int32_t)head > 0) ? head & mask : head;
	}
	graph->tail = 0;
	trail->end = before;
	trail->n = n;
}

unsigned graph_steps(const struct graph_trail *trail, struct graph_step steps[GRAPH_TRAIL])
{
	unsigned known = RTE_MIN((unsigned)GRAPH_TRAIL, trail->mask), i, n = 0;
	unsigned first = trail->n > known ? trail->n - known + 1 : 0; // the end of the step before it is its beginning
	uint64_t before = first > 0 ? trail->ends[(first - 1) % GRAPH_TRAIL] : trail->begin;

	for (i = first; i < trail->n; i++) {
		uint64_t end = trail->ends[i % GRAPH_TRAIL];
		uint32_t node = i == 0 ? trail->order[-1] : trail->order[(i - 1) & trail->mask];

		steps[n++] = (struct graph_step){.node = node, .cycles = end - before};
		before = end;
	}
	return n;
}

const char *graph_step_name(const struct rte_graph *graph, uint32_t node)
{
	return ((const struct rte_node *)RTE_PTR_ADD(graph, node))->name;
}

int graph_stats(struct rte_graph *graph, unsigned i, struct graph_node_stats *out)
{
	const struct node_desc *d = node_at(i);
	struct rte_node *node;

	if (d == NULL)
		return -ENOENT;
	out->name = d->name;
	out->calls = out->packets = out->cycles = 0;
	node = rte_graph_node_get_by_name(graph->name, d->name);
	if (node) {
		out->calls = node->total_calls;
		out->packets = node->total_objs;
		out->cycles = node->total_cycles;
	}
	return 0;
}

const char *graph_edge(unsigned i, unsigned e)
{
	const struct node_desc *d = node_at(i);

	return d ? node_edge(d, e) : NULL;
}

const char *graph_node_name(unsigned i)
{
	const struct node_desc *d = node_at(i);

	return d ? d->name : NULL;
}

const char *graph_edge_of(const char *node, unsigned e)
{
	const struct node_desc *d = nodes;

	while (d && strcmp(d->name, node) != 0)
		d = d->list;
	return d ? node_edge(d, e) : NULL;
}
