// SPDX-License-Identifier: Apache-2.0
// neighbor_hold: passes packets to a neighbour without a known MAC to the control plane, which resolves it and then
// sends them. The control plane keeps a few for each neighbour, so packets that come faster are dropped here: one dead
// host must not delay the others.
// Reads: nexthop, arg (adjacency), l3, port.  Next: punt.
#include <rte_cycles.h>
#include <rte_ip.h>
#include <rte_jhash.h>

#include "base/bucket.h"
#include "base/clock.h"
#include "base/rcu.h"
#include "graph/node.h"
#include "l3/nexthop.h"
#include "neighbor/adjacency.h"
#include "port/registry.h"
#include "worker/punt.h"

enum { PUNT = 1 };

DROP_REASON(neighbor_rate,
	    "Packets for an unresolved neighbour came faster than the control plane takes them: 100/s for each next "
	    "hop, 2,000/s for each other address of a link, and for each port its unresolved_rate, see `corelane port "
	    "show`. It keeps the youngest 32 of each neighbour. `corelane neighbor list` shows which neighbours do not "
	    "answer.");

#define CELLS 4096 // addresses with the same hash share a bucket

struct hold_limit {
	uint32_t rate, burst;
};
static const struct hold_limit of_adjacency = {100, 64}, of_address = {2000, 512};

static struct bucket by_adjacency[ADJ_MAX], by_address[CELLS], by_port[PORT_MAX]; // of all workers

static inline bool neighbor_hold_take(struct bucket *b, const struct hold_limit *l, uint64_t now)
{
	return bucket_take(b, now, 1, l->rate, l->burst, rte_get_tsc_hz());
}

// The packet's data begin with the IP header.
static inline uint32_t hold_cell(const struct rte_mbuf *m)
{
	const struct rte_ipv4_hdr *ip4 = rte_pktmbuf_mtod(m, const struct rte_ipv4_hdr *);
	const struct rte_ipv6_hdr *ip6 = rte_pktmbuf_mtod(m, const struct rte_ipv6_hdr *);

	if (m->data_len >= sizeof(*ip6) && ip4->version_ihl >> 4 == 6)
		return rte_jhash(ip6->dst_addr, sizeof(ip6->dst_addr), 0) % CELLS;
	return m->data_len >= sizeof(*ip4) ? rte_jhash_1word(ip4->dst_addr, 0) % CELLS : 0;
}

// Returns the port whose token bucket is charged: the tenant port that sent the packet, or, for packets from the
// fabric, whose sender is unknown, the neighbour's port.
static inline uint16_t hold_port(const struct rte_mbuf *m, uint16_t to)
{
	const struct port_fwd *f = rcu_read(port_fwds[m->port % PORT_MAX]);

	return (f && f->role == PORT_TENANT ? m->port : to) % PORT_MAX;
}

// A port may have sent nothing for a while: its first packets to some neighbours pass at the lowest rate, too.
static inline struct hold_limit hold_of_port(uint16_t port)
{
	const struct port_fwd *f = rcu_read(port_fwds[port]);
	uint32_t rate = f ? f->unresolved_rate : LIMIT_PORT_UNRESOLVED_RATE_MAX;

	return (struct hold_limit){rate, RTE_MAX(rate / 10, 64u)};
}

static inline bool hold_allowed(struct rte_mbuf *m, bool glean, uint32_t arg)
{
	uint64_t now = clock_now();
	struct hold_limit of_port;
	uint16_t port;

	if (!(glean ? neighbor_hold_take(&by_address[hold_cell(m)], &of_address, now)
		    : neighbor_hold_take(&by_adjacency[arg], &of_adjacency, now)))
		return false;
	port = hold_port(m, glean ? (uint16_t)arg : rcu_read(adjacency_table[arg])->port);
	of_port = hold_of_port(port);
	return neighbor_hold_take(&by_port[port], &of_port, now);
}

static inline edge_t hold_one(struct rte_mbuf *m)
{
	struct pkt_meta *md = meta(m);
	bool glean = md->nexthop && md->nexthop->kind == NH_GLEAN;

	rte_pktmbuf_adj(m, md->l3);
	md->l3 = 0;
	if (glean)
		md->arg = md->nexthop->port;
	if (unlikely(!hold_allowed(m, glean, md->arg)))
		return drop(m, neighbor_rate);
	punt_mark(m, glean ? PUNT_GLEAN : PUNT_HOLD);
	return PUNT;
}

static uint16_t neighbor_hold(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, hold_one);
}

NODE(neighbor_hold, neighbor_hold, [PUNT] = "punt");
