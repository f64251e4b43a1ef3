// SPDX-License-Identifier: Apache-2.0
// API of counters (api/stats.proto).
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "graph/counters.h"
#include "graph/graph.h"
#include "port/registry.h"
#include "stats.pb-c.h"
#include "worker/worker.h"

#define COUNTERS_AT_ONCE 65536 // counters that are read before others have their turn: about 1 ms

struct drop_cursor {
	uint32_t port, worker;
	uint32_t reason;
};

static uint64_t drops_of(const Corelane__V1__DropListRequest *in, const struct drop_cursor *c)
{
	struct worker *w = worker_get(c->worker);
	uint64_t sum = 0;
	unsigned p;

	if (in->by_worker) {
		if (w == NULL)
			return 0;
		if (in->by_port || *in->port)
			return w->counters->drops[c->port][c->reason];
		for (p = 0; p < PORT_MAX; p++)
			sum += w->counters->drops[p][c->reason];
		return sum;
	}
	if (in->by_port || *in->port)
		return counters_drops((uint16_t)c->port, (uint16_t)c->reason);
	for (p = 0; p < PORT_MAX; p++)
		sum += counters_drops((uint16_t)p, (uint16_t)c->reason);
	return sum;
}

// Steps through reasons, then ports, then workers, as far as the request separates them. Returns false at the end.
static bool stats_api_step(const Corelane__V1__DropListRequest *in, struct drop_cursor *c, uint32_t fixed_port)
{
	if (drop_reason_get((uint16_t)++c->reason))
		return true;
	c->reason = 0;
	if (in->by_port && fixed_port == UINT32_MAX && ++c->port < PORT_MAX)
		return true;
	c->port = fixed_port == UINT32_MAX ? 0 : fixed_port;
	while (in->by_worker && ++c->worker < WORKER_MAX)
		if (worker_get(c->worker))
			return true;
	return false;
}

// False for a port that was removed and a worker that does not exist: their zeros are not listed.
static bool drops_present(const Corelane__V1__DropListRequest *in, const struct drop_cursor *c)
{
	return (!in->by_port || port_get((uint16_t)c->port)) && (!in->by_worker || worker_get(c->worker));
}

static void stats_api_encode_drop(struct api_call *call, const Corelane__V1__DropListRequest *in,
				  const struct drop_cursor *c, uint64_t n, Corelane__V1__Drop *out)
{
	const struct drop_reason *r = drop_reason_get((uint16_t)c->reason);
	const struct port *p = port_get((uint16_t)c->port);

	out->reason = api_strdup(call, r->name);
	out->explanation = api_strdup(call, r->text);
	out->packets = n;
	if (in->by_port || *in->port)
		out->port = api_strdup(call, c->port == 0 ? "(router)" : p ? p->cfg.name : "(removed)");
	out->worker = in->by_worker ? c->worker : 0;
}

static int stats_api_drops(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__DropListRequest *in = req;
	struct drop_cursor *c = cursor;
	struct port *p = *in->port ? port_find(in->port) : NULL;
	uint32_t fixed = p ? p->id : UINT32_MAX;
	unsigned each = in->by_port || *in->port ? 1 : PORT_MAX, read = 0;
	uint64_t n;

	if (*in->port && p == NULL)
		return error_set(err, ENOENT, "port", in->port, "the name of a port that exists",
				 "there is no such port");
	if (p && c->reason == 0 && c->port == 0)
		c->port = fixed;
	for (; c->reason != UINT32_MAX; read += each) {
		struct drop_cursor here = *c;

		if (read >= COUNTERS_AT_ONCE)
			return api_again(call);
		n = drops_of(in, &here);
		if (!stats_api_step(in, c, fixed))
			c->reason = UINT32_MAX;
		if (n > 0 || (in->zero && here.reason > 0 && drops_present(in, &here))) {
			stats_api_encode_drop(call, in, &here, n, item);
			return 1;
		}
	}
	return 0;
}

struct node_cursor {
	uint32_t node, worker;
};

static void stats_api_encode_edges(struct api_call *call, unsigned node, Corelane__V1__Node *out)
{
	unsigned e, n = 0;

	while (graph_edge(node, n))
		n++;
	out->next = api_alloc(call, (n + 1) * sizeof(*out->next));
	for (e = 0; e < n; e++) // entries that a node does not use lead to drop, as entry 0 does
		if (e == 0 || strcmp(graph_edge(node, e), "drop") != 0)
			out->next[out->n_next++] = api_strdup(call, graph_edge(node, e));
}

static int stats_api_graph(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__NodeListRequest *in = req;
	struct node_cursor *c = cursor;
	struct graph_node_stats s;
	Corelane__V1__Node *out = item;
	struct worker *w;
	unsigned node = c->node;

	if (in->one_worker && worker_get(in->worker) == NULL)
		return error_set(err, ENOENT, "worker", NULL, "the id of a worker that exists",
				 "there is no such worker");
	if (graph_node_name(node) == NULL)
		return 0;
	for (w = worker_next(NULL); w; w = worker_next(w)) {
		if ((in->one_worker && w->id != in->worker) || graph_stats(w->graph, node, &s) < 0)
			continue;
		out->calls += s.calls;
		out->packets += s.packets;
		out->cycles += s.cycles;
	}
	out->name = api_strdup(call, graph_node_name(node));
	out->worker = in->worker;
	if (in->edges)
		stats_api_encode_edges(call, node, out);
	c->node++;
	return 1;
}

// The counters of one device are collected at once, since drivers report them all together.
struct stat_cursor {
	uint32_t port;
	unsigned next, n, room;
	struct stat {
		char name[64];
		uint64_t value;
	} * stats;
};

static void stats_api_collect(void *arg, const char *name, uint64_t value)
{
	struct stat_cursor *c = arg;
	struct stat *more;

	if (c->n == c->room) {
		more = realloc(c->stats, (c->room + 64) * sizeof(*more));
		if (more == NULL)
			return;
		c->stats = more;
		c->room += 64;
	}
	snprintf(c->stats[c->n].name, sizeof(c->stats[c->n].name), "%s", name);
	c->stats[c->n++].value = value;
}

static void collect_port(struct stat_cursor *c, struct port *p)
{
	struct port_stats dev = {0};
	struct port_counters n;

	c->n = c->next = 0;
	counters_port(p->id, &n);
	stats_api_collect(c, "rx_packets", n.rx_packets);
	stats_api_collect(c, "rx_bytes", n.rx_bytes);
	stats_api_collect(c, "tx_packets", n.tx_packets);
	stats_api_collect(c, "tx_bytes", n.tx_bytes);
	if (p->ops->stats) {
		p->ops->stats(p, &dev);
		stats_api_collect(c, "device_rx_missed_packets", dev.rx_missed);
		stats_api_collect(c, "device_tx_error_packets", dev.tx_errors);
	}
	if (p->ops->xstats)
		p->ops->xstats(p, stats_api_collect, c);
}

static const char *unit_of(const char *name)
{
	return strstr(name, "bytes")     ? "bytes"
	       : strstr(name, "cycles")  ? "cycles"
	       : strstr(name, "packets") ? "packets"
					 : "events";
}

static int stats_api_next(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__StatListRequest *in = req;
	struct stat_cursor *c = cursor;
	Corelane__V1__Stat *out = item;
	struct port *p;

	if (*in->port && port_find(in->port) == NULL)
		return error_set(err, ENOENT, "port", in->port, "the name of a port that exists",
				 "there is no such port");
	while (c->next == c->n) {
		do {
			if (++c->port >= PORT_MAX)
				return c->port = PORT_MAX, 0;
			p = port_get((uint16_t)c->port);
		} while (p == NULL || (*in->port && strcmp(in->port, p->cfg.name) != 0));
		collect_port(c, p);
	}
	p = port_get((uint16_t)c->port);
	out->name = api_strdup(call, c->stats[c->next].name);
	out->value = c->stats[c->next].value;
	out->unit = api_strdup(call, unit_of(out->name));
	out->port = api_strdup(call, p ? p->cfg.name : "(removed)");
	c->next++;
	return 1;
}

static void stats_done(void *cursor)
{
	free(((struct stat_cursor *)cursor)->stats);
}

static const struct api_method methods[] = {
	{"corelane.v1.Stats", "Drops", &corelane__v1__drop_list_request__descriptor, &corelane__v1__drop__descriptor,
	 .next = stats_api_drops, .cursor_size = sizeof(struct drop_cursor)},
	{"corelane.v1.Stats", "Graph", &corelane__v1__node_list_request__descriptor, &corelane__v1__node__descriptor,
	 .next = stats_api_graph, .cursor_size = sizeof(struct node_cursor)},
	{"corelane.v1.Stats", "List", &corelane__v1__stat_list_request__descriptor, &corelane__v1__stat__descriptor,
	 .next = stats_api_next, .done = stats_done, .cursor_size = sizeof(struct stat_cursor)},
};
API_METHODS(methods)
