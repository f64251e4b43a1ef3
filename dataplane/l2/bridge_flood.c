// SPDX-License-Identifier: Apache-2.0
// bridge_flood: broadcast, multicast and unknown unicast. Sends a copy to each local port except the ingress port and,
// unless the frame came from a tunnel (split horizon), to each remote end (head-end replication).
// In a domain that keeps flows, the rules decide about each receiver. In one with snooping, frames to multicast groups
// go to their members.
// Reads: bridge, port, flags; arg where flows are kept.  Writes: out_port, nexthop, hash.
// Next: port_tx, an encapsulation.
#include <rte_cycles.h>

#include "base/bucket.h"
#include "base/offload.h"
#include "base/rcu.h"
#include "base/setting.h"
#include "flow/bridged.h"
#include "graph/counters.h"
#include "graph/node.h"
#include "l2/bridge.h"
#include "l2/snoop.h"
#include "l3/ip_header.h"
#include "l3/nexthop.h"
#include "port/registry.h"
#include "worker/worker.h"

enum { TX = NH_EDGES };

DROP_REASON(
	bridge_no_target,
	"A flooded frame has no target: no other port of the bridge domain is up, and no remote end can be reached.");
DROP_REASON(bridge_no_buffer, "A flooded frame could not be copied: no packet buffer was free.");
DROP_REASON(bridge_flood_limit, "A batch exceeded the limit of copies: a storm of broadcasts or unknown destinations "
				"in a domain with many ends.");
DROP_REASON(bridge_flood_rate, "The port, or the tunnels of the bridge domain, cause more copies of broadcasts and "
			       "unknown destinations per second than `corelane settings set --flood-copies` allows: a "
			       "storm, or a guest that floods. See `corelane drops --by-port`.");
DROP_REASON(bridge_flood_tunnel_down, "A flooded frame did not reach one of the remote ends: its tunnel has no route. "
				      "See `corelane nexthop list`.");
DROP_REASON(bridge_flood_too_big, "A flooded frame exceeds the MTU of one of the domain's ports or tunnels.");

#define COPIES_MAX 16384 // per batch: node streams have 16-bit counts

#define BURST 2048     // copies at once, about 2 ms of a worker; a frame with more ends passes when the bucket is full
#define WORKER_PORTS 5 // all ports of a worker together have this many budgets

uint32_t flood_copies_per_second = LIMIT_SETTINGS_FLOOD_COPIES_PER_SECOND_DEFAULT;
SETTING(flood_copies_per_second, flood_copies_per_second);

// Copies are charged to the sending port, or, for frames from tunnels, whose sender is unknown, to the bridge.
static struct bucket of_worker[WORKER_MAX], of_port[WORKER_MAX][PORT_MAX], of_bridge[WORKER_MAX][BRIDGE_MAX];

struct flood {
	struct rte_graph *graph;
	struct rte_node *node;
	uint64_t tsc;
	unsigned budget, n;
	void *objs[NODE_CHUNK];
	edge_t edges[NODE_CHUNK];
};

struct target {
	edge_t edge; // EDGE_DROP: none
	uint16_t port;
	const struct nexthop *nexthop;
};

static void bridge_flood_flush(struct flood *fl)
{
	if (fl->n)
		node_pass(fl->graph, fl->node, fl->objs, fl->edges, fl->n);
	fl->n = 0;
}

static void bridge_flood_emit(struct flood *fl, struct rte_mbuf *m, const struct target *t)
{
	if (t->edge == TX)
		meta(m)->out_port = t->port;
	else
		meta(m)->nexthop = t->nexthop;
	fl->objs[fl->n] = m;
	fl->edges[fl->n++] = t->edge;
	if (fl->n == NODE_CHUNK)
		bridge_flood_flush(fl);
}

// Counts a drop: one of the ends does not get the frame.
static void bridge_flood_miss(const struct rte_mbuf *m, const struct drop_reason *reason)
{
	counters->drops[m->port % PORT_MAX][reason->id]++;
}

static void flood_send_copy(struct flood *fl, struct rte_mbuf *m, const struct target *t)
{
	struct rte_mbuf *copy;

	if (unlikely(fl->budget == 0)) {
		bridge_flood_miss(m, &drop_bridge_flood_limit);
		return;
	}
	copy = rte_pktmbuf_copy(m, m->pool, 0, UINT32_MAX); // a deep copy: headers will be written
	if (unlikely(copy == NULL)) {
		bridge_flood_miss(m, &drop_bridge_no_buffer);
		return;
	}
	fl->budget--;
	bridge_flood_emit(fl, copy, t);
}

// The last target gets the frame itself, so a copy is sent to a target when the next one is found.
static void flood_add_target(struct flood *fl, struct rte_mbuf *m, struct target *last, const struct target *t)
{
	if (last->edge != EDGE_DROP)
		flood_send_copy(fl, m, last);
	*last = *t;
}

static bool flood_tunnel_target(const struct rte_mbuf *m, uint32_t id, struct target *t)
{
	const struct nexthop *nh = rcu_read(nexthop_table[id]);

	if (unlikely(nh == NULL || nh->kind != NH_TUNNEL || nh->edge == NH_EDGE_DROP)) {
		bridge_flood_miss(m, &drop_bridge_flood_tunnel_down);
		return false;
	}
	if (unlikely(m->pkt_len > (unsigned)nh->mtu + nh->inner_eth) &&
	    offload_frame_size(m) > (unsigned)nh->mtu + nh->inner_eth) {
		bridge_flood_miss(m, &drop_bridge_flood_too_big);
		return false;
	}
	*t = (struct target){.edge = nh->edge, .nexthop = nh};
	return true;
}

static bool flood_port_target(const struct rte_mbuf *m, uint16_t id, bool from_tunnel, struct target *t)
{
	const struct port *p = rcu_read(port_table[id]);
	const struct port_fwd *f = rcu_read(port_fwds[id]);

	if ((id == m->port && !from_tunnel) || p == NULL || f == NULL || !p->up)
		return false;
	if (unlikely(m->pkt_len > f->mtu + BRIDGE_L2) && offload_frame_size(m) > f->mtu + BRIDGE_L2) {
		bridge_flood_miss(m, &drop_bridge_flood_too_big);
		return false;
	}
	*t = (struct target){.edge = TX, .port = id};
	return true;
}

static bool bridge_flood_allowed(const struct flood *fl, struct rte_mbuf *m, unsigned ends)
{
	bool from_tunnel = (meta(m)->flags & META_FROM_TUNNEL) != 0;
	unsigned worker = this_worker->id;
	unsigned copies = ends * offload_segments(m, frame_ip(m)); // of a large segment, one for each of its packets
	struct bucket *own =
		from_tunnel ? &of_bridge[worker][meta(m)->bridge % BRIDGE_MAX] : &of_port[worker][m->port % PORT_MAX];
	uint32_t burst = RTE_MAX(copies, (uint32_t)BURST), rate = flood_copies_per_second;
	uint64_t hz = rte_get_tsc_hz();

	return bucket_take(own, fl->tsc, copies, rate, burst, hz) &&
	       bucket_take(&of_worker[worker], fl->tsc, copies, WORKER_PORTS * rate, WORKER_PORTS * burst, hz);
}

// What the rules say about a frame.
struct flood_rules {
	bool apply, tunnels_only;
	const struct drop_reason *denied; // a receiver does not get it, which is not counted yet
	struct flow_frame frame;
};

static void flood_rules_begin(struct flood_rules *r, struct rte_mbuf *m, bool from_tunnel)
{
	const struct pkt_meta *md = meta(m);

	r->denied = NULL;
	r->apply = flow_zones[FLOW_ZONE_BRIDGE | md->bridge % BRIDGE_MAX].stateful;
	if (likely(!r->apply))
		return;
	flow_frame_decide(m, from_tunnel ? 0 : m->port, md->arg, &r->frame);
	r->tunnels_only = md->arg == FLOW_FLOOD_TUNNELS;
}

// A frame that the sender's rules deny to all.
static inline bool flood_rules_refuse(const struct flood_rules *r)
{
	return unlikely(r->apply) && r->frame.egress && !r->frame.asks_dhcp;
}

// receiver: a port, 0 = a tunnel. Each receiver that does not get the frame counts as a drop.
static bool flood_rules_pass(struct flood_rules *r, const struct rte_mbuf *m, uint16_t receiver)
{
	const struct drop_reason *why;

	if (likely(!r->apply))
		return true;
	if (r->tunnels_only && receiver)
		return false;
	why = flow_frame_denied(&r->frame, receiver);
	if (why && r->denied)
		bridge_flood_miss(m, r->denied);
	if (why)
		r->denied = why;
	return why == NULL;
}

static void flood_rules_end(const struct flood_rules *r, struct rte_mbuf *m, const struct drop_reason *none, bool sent)
{
	if (sent && r->denied)
		bridge_flood_miss(m, r->denied);
	else if (!sent)
		drop_as(m, r->denied ? r->denied : none);
}

static void flood_one(struct flood *fl, struct rte_mbuf *m, const struct bridge_fwd *f)
{
	bool from_tunnel = (meta(m)->flags & META_FROM_TUNNEL) != 0;
	struct snoop_ends ends = {f->ports, NULL, f->n_ports, 0, &drop_bridge_no_target};
	struct target t, last = {.edge = EDGE_DROP};
	struct flood_rules rules;
	uint16_t port;
	unsigned i;

	flood_rules_begin(&rules, m, from_tunnel);
	if (flood_rules_refuse(&rules)) {
		drop_as(m, rules.frame.egress);
		bridge_flood_emit(fl, m, &last);
		return;
	}
	if (unlikely(f->snooping) && !snoop_ends(m, from_tunnel, &ends)) {
		drop_as(m, ends.none);
		bridge_flood_emit(fl, m, &last);
		return;
	}
	if (unlikely(!bridge_flood_allowed(fl, m, ends.n_ports + ends.n_more + (from_tunnel ? 0 : f->n_flood)))) {
		drop(m, bridge_flood_rate);
		bridge_flood_emit(fl, m, &last);
		return;
	}
	meta(m)->hash = eth_hash(m);
	for (i = 0; i < f->n_flood && !from_tunnel; i++)
		if (flood_tunnel_target(m, f->flood[i], &t) && flood_rules_pass(&rules, m, 0))
			flood_add_target(fl, m, &last, &t);
	while (snoop_ends_next(&ends, &port))
		if (flood_port_target(m, port, from_tunnel, &t) && flood_rules_pass(&rules, m, port))
			flood_add_target(fl, m, &last, &t);
	flood_rules_end(&rules, m, ends.none, last.edge != EDGE_DROP);
	bridge_flood_emit(fl, m, &last);
}

static uint16_t bridge_flood(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct flood fl = {.graph = graph, .node = node, .tsc = rte_rdtsc(), .budget = COPIES_MAX};
	const struct bridge_fwd *f;
	unsigned i;

	for (i = 0; i < n; i++) {
		f = rcu_read(bridge_fwds[meta(objs[i])->bridge % BRIDGE_MAX]);
		if (likely(f != NULL)) {
			flood_one(&fl, objs[i], f);
			continue;
		}
		drop((struct rte_mbuf *)objs[i], bridge_no_target);
		bridge_flood_emit(&fl, objs[i], &(struct target){.edge = EDGE_DROP});
	}
	bridge_flood_flush(&fl);
	return n;
}

NODE(bridge_flood, bridge_flood, NH_NEXT, [TX] = "port_tx");
