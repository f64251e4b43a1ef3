// SPDX-License-Identifier: Apache-2.0
// Packets that wait until their neighbour is resolved.
#include <errno.h>
#include <string.h>

#include <rte_ip.h>

#include "graph/held.h"
#include "neighbor/adjacency.h"
#include "neighbor/neighbor_private.h"
#include "port/registry.h"
#include "worker/punt.h"
#include "worker/worker.h"

DROP_REASON(
	neighbor_queue_full,
	"The queue of packets that wait for MAC resolution is full: for this neighbour, for this port, or in total.");
DROP_REASON(neighbor_unresolved,
	    "The destination on the link did not answer ARP or neighbour solicitations, or has been removed.");
DROP_REASON(neighbor_table_full,
	    "Too many addresses of the port, or of all ports, are being resolved at once: a host may be scanning "
	    "its subnet.");
DROP_REASON(neighbor_not_unicast, "The destination on the link is not a host, but a multicast or unspecified address.");
DROP_REASON(neighbor_headroom, "The packet's buffer has no room for an Ethernet header.");

#define HEADROOM 32 // that adjacency_write() may write to

static unsigned all_waiting, port_waiting[PORT_MAX];

void neighbor_drop(struct rte_mbuf *m, const struct drop_reason *reason)
{
	drop_as(m, reason);
	drop_packets(&m, 1);
}

static struct rte_mbuf *neighbor_wait_dequeue(struct neighbor *n)
{
	struct rte_mbuf *m = n->waiting[0];

	held_end(m);
	n->n_waiting--;
	memmove(&n->waiting[0], &n->waiting[1], n->n_waiting * sizeof(n->waiting[0]));
	port_waiting[n->port]--;
	all_waiting--;
	return m;
}

static void neighbor_wait_enqueue(struct neighbor *n, struct rte_mbuf *m)
{
	bool crowded = port_waiting[n->port] >= NEIGHBOR_PORT_WAITING || all_waiting >= NEIGHBOR_ALL_WAITING;

	if (crowded && n->n_waiting == 0) {
		neighbor_drop(m, &drop_neighbor_queue_full);
		return;
	}
	if (crowded || n->n_waiting == NEIGHBOR_WAITING)
		neighbor_drop(neighbor_wait_dequeue(n), &drop_neighbor_queue_full);
	held_begin(m);
	n->waiting[n->n_waiting++] = m;
	port_waiting[n->port]++;
	all_waiting++;
}

static void neighbor_wait_deliver(const struct neighbor *n, struct rte_mbuf *m)
{
	if (rte_pktmbuf_headroom(m) < HEADROOM)
		neighbor_drop(m, &drop_neighbor_headroom);
	else if (adjacency_write(m, n->adj))
		worker_inject(m, INJECT_TX);
	else
		neighbor_drop(m, &drop_neighbor_unresolved);
}

void neighbor_flush(struct neighbor *n)
{
	while (n->n_waiting > 0 && neighbor_usable(n))
		neighbor_wait_deliver(n, neighbor_wait_dequeue(n));
}

void neighbor_give_up(struct neighbor *n)
{
	while (n->n_waiting > 0)
		neighbor_drop(neighbor_wait_dequeue(n), &drop_neighbor_unresolved);
}

static void neighbor_wait_for(struct neighbor *n, struct rte_mbuf *m)
{
	meta(m)->nexthop = NULL; // it was valid only within the worker's walk
	if (neighbor_usable(n)) {
		neighbor_wait_deliver(n, m);
		return;
	}
	if (neighbor_may_retry(n))
		neighbor_change(n, NEIGH_INCOMPLETE, NULL);
	if (n->state != NEIGH_INCOMPLETE) {
		neighbor_drop(m, &drop_neighbor_unresolved);
		return;
	}
	neighbor_wait_enqueue(n, m);
	if (n->probes == 0)
		neighbor_solicit(n);
}

void neighbor_wait(uint32_t adj, struct rte_mbuf *m)
{
	struct neighbor *n = neighbor_at(adj);

	if (n)
		neighbor_wait_for(n, m);
	else
		neighbor_drop(m, &drop_neighbor_unresolved);
}

void neighbor_wait_on_port(uint16_t port, const struct ip_addr *addr, struct rte_mbuf *m)
{
	struct neighbor *n;

	if (port_get(port) == NULL) {
		neighbor_drop(m, &drop_neighbor_unresolved);
		return;
	}
	if (ip_is_multicast(addr) || ip_is_unspecified(addr)) {
		neighbor_drop(m, &drop_neighbor_not_unicast);
		return;
	}
	n = neighbor_unheld(port, addr, true);
	if (n == NULL) {
		neighbor_drop(m, &drop_neighbor_table_full);
		return;
	}
	neighbor_wait_for(n, m);
	if (n->state == NEIGH_STALE ||
	    (n->state == NEIGH_REACHABLE && n->use == NEIGH_IDLE)) { // in use again: checks that it is still reachable
		neighbor_change(n, NEIGH_PROBE, NULL);
		neighbor_solicit(n);
	}
}
