// SPDX-License-Identifier: Apache-2.0
#include "graph/node_test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_debug.h>
#include <rte_eal.h>
#include <rte_graph.h>
#include <rte_graph_worker.h>

#include "dpdk/eal_init.h"
#include "base/rcu.h"
#include "graph/counters.h"
#include "graph/drop.h"
#include "graph/graph.h"
#include "worker/worker.h"

#define POOL_SIZE 8191
#define POOL_OPS "node_test"
#ifdef __has_feature
#define POOL_IS_WATCHED __has_feature(thread_sanitizer)
#else
#define POOL_IS_WATCHED false
#endif
#define MAX_EDGES 48
#define SINK "test_sink_"
#define SOURCE "test_source"
#define GRAPH "node_test"

struct rte_mempool *node_test_pool;
struct node_test_out node_test_outs[NODE_TEST_MAX];

static unsigned n_outs;
static const char *edges[MAX_EDGES]; // of the tested node
static struct rte_mbuf **input;
static uint16_t n_input;
static struct rte_graph *graph;
static const char *tested;
static rte_node_t source_id;

// --- The pool of packets under the thread sanitizer: a stack with a lock that it knows, so that it sees that a buffer
// passes from the thread that frees it to the one that allocates it. DPDK's own pools are not instrumented, and between
// two threads that take from their ring at once there is no order that the C language would accept. ---

struct node_test_stack {
	pthread_mutex_t lock;
	unsigned n;
	void *objs[];
};

static int node_test_pool_alloc(struct rte_mempool *mp)
{
	struct node_test_stack *s = malloc(sizeof(*s) + mp->size * sizeof(s->objs[0]));

	if (s == NULL)
		return -ENOMEM;
	s->n = 0;
	pthread_mutex_init(&s->lock, NULL);
	mp->pool_data = s;
	return 0;
}

static void node_test_pool_free(struct rte_mempool *mp)
{
	free(mp->pool_data);
}

static int node_test_pool_put(struct rte_mempool *mp, void *const *objs, unsigned n)
{
	struct node_test_stack *s = mp->pool_data;

	pthread_mutex_lock(&s->lock);
	memcpy(s->objs + s->n, objs, n * sizeof(objs[0]));
	s->n += n;
	pthread_mutex_unlock(&s->lock);
	return 0;
}

static int node_test_pool_take(struct rte_mempool *mp, void **objs, unsigned n)
{
	struct node_test_stack *s = mp->pool_data;
	bool enough;

	pthread_mutex_lock(&s->lock);
	enough = s->n >= n;
	if (enough) {
		s->n -= n;
		memcpy(objs, s->objs + s->n, n * sizeof(objs[0]));
	}
	pthread_mutex_unlock(&s->lock);
	return enough ? 0 : -ENOBUFS;
}

static unsigned node_test_pool_count(const struct rte_mempool *mp)
{
	struct node_test_stack *s = mp->pool_data;
	unsigned n;

	pthread_mutex_lock(&s->lock);
	n = s->n;
	pthread_mutex_unlock(&s->lock);
	return n;
}

static const struct rte_mempool_ops node_test_pool_ops = {
	.name = POOL_OPS,
	.alloc = node_test_pool_alloc,
	.free = node_test_pool_free,
	.enqueue = node_test_pool_put,
	.dequeue = node_test_pool_take,
	.get_count = node_test_pool_count,
};
RTE_MEMPOOL_REGISTER_OPS(node_test_pool_ops);

static uint16_t source(struct rte_graph *g, struct rte_node *node, void **objs, uint16_t n)
{
	uint16_t given = n_input;

	n_input = 0;
	if (given)
		rte_node_enqueue(g, node, 0, (void **)input, given);
	return given;
}

static uint16_t sink(struct rte_graph *g, struct rte_node *node, void **objs, uint16_t n)
{
	unsigned i, edge = (unsigned)atoi(node->name + strlen(SINK));

	for (i = 0; i < n; i++) {
		if (n_outs == NODE_TEST_MAX)
			rte_panic("more than %u packets came out\n", NODE_TEST_MAX);
		node_test_outs[n_outs++] = (struct node_test_out){edges[edge], objs[i]};
	}
	return n;
}

static rte_node_t add_node(const char *name, rte_node_process_t process, uint64_t flags)
{
	struct rte_node_register *reg = calloc(1, sizeof(*reg));
	rte_node_t id;

	snprintf(reg->name, sizeof(reg->name), "%s", name);
	reg->process = process;
	reg->flags = flags;
	reg->parent_id = RTE_NODE_ID_INVALID;
	id = __rte_node_register(reg); // makes a copy
	free(reg);
	if (id == RTE_NODE_ID_INVALID)
		rte_panic("node %s cannot be registered\n", name);
	return id;
}

// One lcore, which may run on any CPU that this process may use.
static void lcores(char *out, size_t size)
{
	size_t at = (size_t)snprintf(out, size, "--lcores=0@(");
	cpu_set_t set;
	unsigned i;

	sched_getaffinity(0, sizeof(set), &set);
	for (i = 0; i < CPU_SETSIZE && at + 8 < size; i++)
		if (CPU_ISSET(i, &set))
			at += (size_t)snprintf(out + at, size - at, "%u,", i);
	snprintf(out + at - 1, size - at + 1, ")");
}

int node_test_setup(void **state)
{
	char cpus[4096],
		*argv[] = {
			"node_test",        cpus, "--no-huge", "-m", "512", "--no-pci", "--no-shconf", "--no-telemetry",
			"--log-level=error"};
	char name[RTE_NODE_NAMESIZE];
	struct error err;
	unsigned i;

	lcores(cpus, sizeof(cpus));
	if (eal_init(RTE_DIM(argv), argv) < 0 || rcu_init() < 0)
		return -1;
	if (graph_init(&err) < 0) {
		fprintf(stderr, "%s\n", err.message);
		return -1;
	}
	source_id = add_node(SOURCE, source, RTE_NODE_SOURCE_F);
	for (i = 0; i < MAX_EDGES; i++) {
		snprintf(name, sizeof(name), SINK "%u", i);
		add_node(name, sink, 0);
	}
	node_test_pool = rte_pktmbuf_pool_create_by_ops("node_test", POOL_SIZE, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
							SOCKET_ID_ANY, POOL_IS_WATCHED ? POOL_OPS : NULL);
	counters = counters_create(SOCKET_ID_ANY);
	return node_test_pool && counters ? 0 : -1;
}

int node_test_teardown(void **state)
{
	unsigned left = node_test_in_use();

	if (left)
		fprintf(stderr, "%u packets have leaked\n", left);
	graph_destroy(graph);
	graph = NULL;
	rte_mempool_free(node_test_pool);
	rcu_fini();
	rte_eal_cleanup();
	return left ? -1 : 0;
}

unsigned node_test_in_use(void)
{
	return rte_mempool_in_use_count(node_test_pool);
}

struct rte_mbuf *node_test_packet(const void *data, size_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(node_test_pool);
	char *at = m ? rte_pktmbuf_append(m, (uint16_t)len) : NULL;

	if (at == NULL)
		rte_panic("cannot allocate a packet of %zu bytes\n", len);
	memcpy(at, data, len);
	m->port = 0;
	memset(meta(m), 0, sizeof(*meta(m)));
	return m;
}

static void read_edges(const char *node)
{
	unsigned i, e;

	for (i = 0; graph_node_name(i) && strcmp(graph_node_name(i), node) != 0; i++)
		;
	if (graph_node_name(i) == NULL)
		rte_panic("node %s is not linked\n", node);
	for (e = 0; e < MAX_EDGES; e++)
		edges[e] = graph_edge(i, e);
	if (graph_edge(i, MAX_EDGES))
		rte_panic("node %s has more than %u edges\n", node, MAX_EDGES);
}

// Creates a graph of the source, the tested node and its sinks.
static void prepare(const char *node)
{
	char names[MAX_EDGES][RTE_NODE_NAMESIZE];
	const char *next[MAX_EDGES];
	const char *sources[] = {strcmp(node, "port_rx") == 0 ? node : SOURCE};
	struct rte_graph_param param = {.socket_id = SOCKET_ID_ANY, .nb_node_patterns = 1, .node_patterns = sources};
	uint16_t n;

	graph_destroy(graph);
	read_edges(node);
	for (n = 0; n < MAX_EDGES && edges[n]; n++) {
		snprintf(names[n], sizeof(names[n]), SINK "%u", n);
		next[n] = names[n];
	}
	rte_node_edge_update(rte_node_from_name(node), 0, next, n);
	rte_node_edge_update(source_id, 0, &node, 1);
	if (rte_graph_create(GRAPH, &param) == RTE_GRAPH_ID_INVALID)
		rte_panic("cannot create a graph for node %s\n", node);
	graph = rte_graph_lookup(GRAPH);
	tested = node;
}

static struct graph_trail trail;

unsigned node_test_run(const char *node, struct rte_mbuf **pkts, unsigned n)
{
	if (graph == NULL || strcmp(tested, node) != 0)
		prepare(node);
	input = pkts;
	n_input = (uint16_t)n;
	n_outs = 0;
	trail.begin = rte_rdtsc();
	graph_walk(graph, &trail);
	return n_outs;
}

const char *node_test_one(const char *node, struct rte_mbuf *m)
{
	unsigned i, n = node_test_run(node, &m, 1);

	for (i = 0; i < n; i++)
		if (node_test_outs[i].m == m)
			return node_test_outs[i].edge;
	return NULL;
}

const char *node_test_reason(struct rte_mbuf *m)
{
	return drop_reason_get(meta(m)->reason)->name;
}
