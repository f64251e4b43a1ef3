// SPDX-License-Identifier: Apache-2.0
// port_output: puts the link-layer header of the next hop's neighbour in front of an IP packet.
// Reads: nexthop, l3.  Writes: out_port.  Next: port_tx, or neighbor_hold while the neighbour's MAC is not known.
#include "graph/node.h"
#include "l3/nexthop.h"
#include "neighbor/adjacency.h"

enum { TX = 1, HOLD };

static inline edge_t port_output_one(struct rte_mbuf *m)
{
	return adjacency_write(m, meta(m)->nexthop->adj) ? TX : HOLD;
}

NODE_EACH(port_output, port_output_one, [TX] = "port_tx", [HOLD] = "neighbor_hold");
